// herring: real processes reduce over real sockets and shared memory; every result is checked to the bit.
// SPDX-License-Identifier: Apache-2.0
#include "herring/fusion/fusion.hpp"
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "brain_float.hpp"
#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

using namespace herring;

namespace {

using names = std::vector<std::string>;

// Small sizes, so that every threshold is crossed by tensors of a few hundred kilobytes.
using quick_tcp = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 8_KiB,
                                                             .window_bytes = 16_KiB,
                                                             .loopback_chunk_bytes = 8_KiB,
                                                             .loopback_window_bytes = 16_KiB,
                                                             .one_hop_bytes = 2_KiB,
                                                             .one_hop_bytes_two_nodes = 20_KiB}>;
using two_lanes = transport::basic_tcp<transport::tcp_tuning{.loopback_chunk_bytes = 64_KiB,
                                                             .loopback_window_bytes = 128_KiB,
                                                             .connections = 2,
                                                             .control = transport::congestion::system}>;

// One server for all, and connections that end at different times.
using three_lanes = transport::basic_tcp<transport::tcp_tuning{.loopback_chunk_bytes = 64_KiB,
                                                               .one_hop_bytes = 4_KiB,
                                                               .one_hop_bytes_two_nodes = 4_KiB,
                                                               .connections = 3}>;

launch_options on(names nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return options;
}

// Values that any order of additions sums exactly, also in 16 bits.
template <class T> T exact(int rank, std::size_t i, int step) {
    return static_cast<T>(static_cast<float>((i * 7 + static_cast<std::size_t>(rank * 3 + step)) % 13));
}
template <class T, class Update> T expected(int ranks, std::size_t i, int step) {
    float total = static_cast<float>(exact<T>(0, i, step));
    for (int r = 1; r < ranks; ++r) {
        float const next = static_cast<float>(exact<T>(r, i, step));
        if constexpr (std::is_same_v<Update, update::min>)
            total = std::min(total, next);
        else if constexpr (std::is_same_v<Update, update::max>)
            total = std::max(total, next);
        else
            total += next;
    }
    if constexpr (std::is_same_v<Update, update::average>) {
        if constexpr (std::is_same_v<T, double>)
            return static_cast<double>(total) / ranks;
        else
            return static_cast<T>(total / static_cast<float>(ranks));
    } else {
        return static_cast<T>(total);
    }
}

std::uint64_t hash(void const* data, std::size_t bytes) {
    std::uint64_t sum = 1469598103934665603u;
    for (std::size_t i = 0; i < bytes; ++i)
        sum = (sum ^ static_cast<unsigned char const*>(data)[i]) * 1099511628211u;
    return sum;
}

// The number of elements that are not what they must be.
template <class T, class Update> std::size_t wrong(std::span<T const> got, int ranks, int step) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
        T const want = expected<T, Update>(ranks, i, step);
        count += std::memcmp(&got[i], &want, sizeof want) != 0;
    }
    return count;
}

// Steps and calls of all_reduce by turns, tensors ready in changing order, ranks that are late in turn.
template <class Reducer, class Update> int work(world& ranks) {
    using T = typename Reducer::element_type;
    std::vector<std::size_t> const sizes{1000, 0, 3, 70001, 17, 4096, 33333, 1};
    Reducer reduce(ranks, layout::of(sizes));
    std::vector<T> own(sizes[6]);
    std::vector<std::size_t> const lengths{1,    2,    3,     7,     16,    17,    511,  512,
                                           513,  1023, 1024,  1025,  2048,  2049,  4999, 5120,
                                           5121, 8191, 16385, 65536, 65537, 131101};
    std::size_t failures = 0;
    for (int step = 0; step < 6; ++step) {
        if (ranks.size() > 1 && ranks.rank() == step % ranks.size()) // everyone else runs ahead
            for (auto const until = clock::now() + std::chrono::milliseconds(3); clock::now() < until;) {
            }
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            std::size_t const i = (n * 3 + static_cast<std::size_t>(step)) % sizes.size();
            std::span<T> const at = i == 6 ? std::span<T>(own) : reduce.tensor(i);
            for (std::size_t k = 0; k < at.size(); ++k) at[k] = exact<T>(ranks.rank(), k, step);
            i == 6 ? reduce.ready(i, at) : reduce.ready(i);
            if (n % 2 == 0) reduce.poll();
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i)
            failures +=
                wrong<T, Update>(i == 6 ? std::span<T const>(own) : reduce.tensor(i), ranks.size(), step);
        std::vector<T> buffer(lengths[(static_cast<std::size_t>(step) * 5) % lengths.size()]);
        for (std::size_t const length : lengths) {
            if (length % 3 != static_cast<std::size_t>(step) % 3) continue;
            buffer.resize(length);
            for (std::size_t k = 0; k < length; ++k) buffer[k] = exact<T>(ranks.rank(), k, step);
            reduce.all_reduce(buffer);
            failures += wrong<T, Update>(buffer, ranks.size(), step);
        }
    }
    counters const done = reduce.counters();
    bool const sensible = done.operations >= 6 && (ranks.size() == 1 || done.slowest_rank != ranks.rank()) &&
                          (reduce.plan().nodes == 1) == (done.messages_sent == 0);
    if (failures > 0) std::fprintf(stderr, "rank %d: %zu elements differ\n", ranks.rank(), failures);
    if (!sensible) std::fprintf(stderr, "rank %d: counters make no sense\n", ranks.rank());
    return failures > 0 || !sensible ? 1 : 0;
}

template <class T> using nodes_of = reducer<T, update::average, quick_tcp, intra_node::shared_memory>;

template <class T, class Update, class... Policies> int run(int n, names nodes = {}) {
    return launch(
        n, [](world& ranks) { return work<reducer<T, Update, Policies...>, Update>(ranks); },
        on(std::move(nodes)));
}

} // namespace

TEST_CASE("one node, shared memory: 1 to 7 ranks") {
    for (int const n : {1, 2, 3, 4, 7}) {
        CAPTURE(n);
        CHECK(run<float, update::sum, transport::inproc, intra_node::shared_memory>(n) == 0);
    }
}

TEST_CASE("tcp: 1 to 7 ranks, small chunks and default ones") {
    for (int const n : {1, 2, 3, 4, 7}) {
        CAPTURE(n);
        CHECK(run<float, update::sum, quick_tcp>(n) == 0);
    }
    CHECK(run<float, update::average, transport::tcp>(2) == 0);
    CHECK(run<float, update::average, transport::tcp>(4) == 0);
    CHECK(run<float, update::average, two_lanes>(3) == 0);
}

TEST_CASE("nodes of several ranks, even and uneven") {
    CHECK(run<float, update::sum, quick_tcp, intra_node::shared_memory>(4, {"a", "a", "b", "b"}) == 0);
    CHECK(run<float, update::sum, quick_tcp, intra_node::shared_memory>(4, {"a", "b", "a", "b"}) == 0);
    CHECK(run<float, update::sum, quick_tcp, intra_node::shared_memory>(3, {"a", "b", "b"}) == 0);
    CHECK(run<float, update::sum, quick_tcp, intra_node::shared_memory>(6, {"a", "b", "b", "c", "c", "c"}) ==
          0);
    CHECK(run<double, update::average, transport::tcp, intra_node::shared_memory>(
              5, {"a", "a", "b", "b", "b"}) == 0);
}

TEST_CASE("element types and updates") {
    CHECK(run<double, update::sum, quick_tcp>(3) == 0);
    CHECK(run<std::int32_t, update::sum, quick_tcp>(3) == 0);
    CHECK(run<std::int8_t, update::max, quick_tcp, intra_node::shared_memory>(3, {"a", "a", "b"}) == 0);
    CHECK(run<std::int64_t, update::max, quick_tcp, intra_node::shared_memory>(3, {"a", "a", "b"}) == 0);
    CHECK(run<long long, update::sum, quick_tcp>(2) == 0);
    CHECK(run<unsigned, update::max, quick_tcp, intra_node::shared_memory>(3, {"a", "a", "b"}) == 0);
    CHECK(run<unsigned long, update::sum, transport::inproc, intra_node::shared_memory>(2) == 0);
    CHECK(run<float, update::min, quick_tcp>(2) == 0);
    CHECK(run<bfloat16, update::average, quick_tcp, intra_node::shared_memory>(4, {"a", "a", "b", "b"}) == 0);
    CHECK(run<float16, update::average, quick_tcp>(3) == 0);
    CHECK(run<bfloat16, update::sum, transport::inproc, intra_node::shared_memory>(3) == 0);
}

TEST_CASE(
    "an element type of another library: ranks that name it, and ranks that name Herring's with its bits") {
    CHECK(launch(
              4,
              [](world& ranks) {
                  return ranks.rank() % 2 == 0
                             ? work<nodes_of<other_library::brain_float>, update::average>(ranks)
                             : work<nodes_of<bfloat16>, update::average>(ranks);
              },
              on({"a", "a", "b", "b"})) == 0);
}

TEST_CASE("fusion, sharding, progress, waiting: any mix gives the same") {
    CHECK(run<float, update::sum, quick_tcp, fusion::per_tensor>(3) == 0);
    CHECK(run<float, update::sum, quick_tcp, fusion::whole_model, sharding::whole_tensor>(3) == 0);
    CHECK(run<float, update::sum, quick_tcp, fusion::balanced_buffer<16_KiB, 4_KiB>, waiting::block>(3) == 0);
    CHECK(run<float, update::sum, quick_tcp, intra_node::shared_memory, progress::thread>(
              4, {"a", "a", "b", "b"}) == 0);
    CHECK(run<float, update::sum, quick_tcp, progress::thread, waiting::block, fusion::per_tensor>(2) == 0);
    CHECK(run<float, update::sum, transport::inproc, intra_node::shared_memory, progress::thread>(3) == 0);
    CHECK(run<float, update::sum, transport::inproc, intra_node::shared_memory, waiting::block,
              fusion::per_tensor>(3) == 0);
    CHECK(run<float, update::sum, quick_tcp, waiting::spin>(2) == 0);
}

TEST_CASE("random numbers: within the bound of a left fold, the same bits on every rank and in every run") {
    for (bool const shared : {false, true}) {
        auto const body = [](auto& reduce, world& ranks) {
            std::size_t const count = 100'003;
            auto const value = [](int rank, std::size_t i) {
                std::uint64_t x =
                    (i + 1) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank) * 0xbf58476d1ce4e5b9u;
                x ^= x >> 31;
                x *= 0x94d049bb133111ebu;
                return static_cast<float>(static_cast<double>(x >> 11) / 9007199254740992.0 - 0.5);
            };
            std::uint64_t first = 0;
            for (int repeat = 0; repeat < 3; ++repeat) {
                std::vector<float> buffer(count);
                for (std::size_t i = 0; i < count; ++i) buffer[i] = value(ranks.rank(), i);
                reduce.all_reduce(buffer);
                for (std::size_t i = 0; i < count; ++i) {
                    double sum = 0;
                    double magnitude = 0;
                    for (int r = 0; r < ranks.size(); ++r) {
                        sum += value(r, i);
                        magnitude += std::abs(static_cast<double>(value(r, i)));
                    }
                    // A fold of n terms in float: at most (n − 1)·u·Σ|x| off, u = 2^−24.
                    if (std::abs(buffer[i] - sum) > (ranks.size() - 1) * 0x1p-24 * magnitude * 1.01) return 1;
                }
                std::uint64_t const mine = hash(buffer.data(), count * sizeof(float));
                if (repeat == 0) first = mine;
                if (mine != first) return 2;
                for (auto const& other : ranks.all_gather(std::as_bytes(std::span(&mine, 1))))
                    if (std::memcmp(other.data(), &mine, sizeof mine) != 0) return 3;
            }
            return 0;
        };
        CAPTURE(shared);
        if (shared)
            CHECK(launch(
                      4,
                      [&](world& ranks) {
                          reducer<float, update::sum, quick_tcp, intra_node::shared_memory> reduce(ranks);
                          return body(reduce, ranks);
                      },
                      on({"a", "a", "b", "b"})) == 0);
        else
            CHECK(launch(
                      4,
                      [&](world& ranks) {
                          reducer<float, update::sum, quick_tcp> reduce(ranks);
                          return body(reduce, ranks);
                      },
                      on({})) == 0);
    }
}

TEST_CASE("16-bit types are rounded once, also over nodes") {
    // 1 + 1/256 + 1/256 in bfloat16 (8 bits): rounded after each addition it stays 1, rounded once it is 1.0078125.
    CHECK(launch(
              3,
              [](world& ranks) {
                  reducer<bfloat16, update::sum, quick_tcp, intra_node::shared_memory> reduce(ranks);
                  std::vector<bfloat16> buffer(5000, bfloat16(ranks.rank() == 0 ? 1.0f : 0.00390625f));
                  reduce.all_reduce(buffer);
                  for (bfloat16 const x : buffer)
                      if (static_cast<float>(x) != 1.0078125f) return 1;
                  return 0;
              },
              on({"a", "a", "b"})) == 0);
}

TEST_CASE("a rank that has everything may leave while its last results are still on several connections") {
    for (int round = 0; round < 6; ++round)
        CHECK(launch(
                  2,
                  [](world& w) {
                      {
                          reducer<float, three_lanes, sharding::whole_tensor, update::sum> reduce(
                              w, layout{{"x", 100'000}});
                          std::span<float> const x = reduce.tensor(0);
                          std::fill(x.begin(), x.end(), 1.0f);
                          reduce.ready(0);
                          if (w.rank() == 1) {
                              // Computes, and polls in time for the server to be done, but not again before it is gone.
                              for (int i = 0; i < 40; ++i) reduce.poll();
                              usleep(30'000);
                              reduce.poll();
                              usleep(200'000);
                          }
                          status const ended = reduce.wait(std::chrono::seconds(20));
                          if (!ended.ok() || x[99'999] != 2.0f) {
                              std::fprintf(stderr, "rank %d: %s\n", w.rank(), ended.message().c_str());
                              return 1;
                          }
                      }
                      w.barrier();
                      return 0;
                  },
                  on({"a", "b"})) == 0);
}

TEST_CASE("two ranks of one node: tensors of the caller's and of the reducer's, another choice on each rank "
          "and in each step") {
    CHECK(launch(
              2,
              [](world& w) {
                  using small_cuts =
                      intra_node::basic_shared_memory<intra_node::shared_memory_tuning{.split_bytes = 8_KiB}>;
                  std::vector<std::size_t> const sizes = {5000, 3, 40'000, 700, 1, 9001, 0, 12'345};
                  std::vector<tensor_spec> specs;
                  for (std::size_t i = 0; i < sizes.size(); ++i)
                      specs.push_back({std::to_string(i), sizes[i]});
                  reducer<std::int32_t, transport::tcp, small_cuts, update::sum> reduce(w, layout(specs));
                  std::vector<std::vector<std::int32_t>> mine;
                  for (std::size_t const n : sizes) mine.emplace_back(n);
                  auto const value = [](int rank, std::size_t tensor, std::size_t i, int step) {
                      return static_cast<std::int32_t>(i * 7 + tensor * 3) + 1000 * rank + step;
                  };
                  auto const sum = [&](std::size_t tensor, std::size_t i, int step) {
                      return value(0, tensor, i, step) + value(1, tensor, i, step);
                  };
                  std::uint32_t dice = static_cast<std::uint32_t>(w.rank()) * 77 + 5;
                  for (int step = 0; step < 60; ++step) {
                      std::vector<std::span<std::int32_t>> at;
                      for (std::size_t t = 0; t < sizes.size(); ++t) {
                          dice = dice * 1664525u + 1013904223u;
                          // At first all are lent on both ranks, then some, another choice on each rank.
                          bool const lent = step < 20 || (dice >> 16) % 3 != 0;
                          at.push_back(lent ? std::span(mine[t]) : reduce.tensor(t));
                          for (std::size_t i = 0; i < sizes[t]; ++i) at[t][i] = value(w.rank(), t, i, step);
                          lent ? reduce.ready(t, at[t]) : reduce.ready(t);
                      }
                      reduce.wait();
                      for (std::size_t t = 0; t < sizes.size(); ++t)
                          for (std::size_t i = 0; i < sizes[t]; ++i)
                              if (at[t][i] != sum(t, i, step)) {
                                  std::fprintf(stderr, "rank %d, step %d, tensor %zu, element %zu\n",
                                               w.rank(), step, t, i);
                                  return 1;
                              }
                      // The same places serve buffers outside the layout, in place and from one buffer to another.
                      std::vector<std::int32_t> in(40'000 + static_cast<std::size_t>(step) * 2000),
                          out(in.size());
                      for (std::size_t i = 0; i < in.size(); ++i) in[i] = value(w.rank(), 99, i, step);
                      auto const before = in;
                      reduce.all_reduce(std::span<std::int32_t const>(in), std::span(out));
                      if (in != before) return 2;
                      reduce.all_reduce(std::span(in));
                      for (std::size_t i = 0; i < in.size(); ++i)
                          if (out[i] != sum(99, i, step) || in[i] != out[i]) return 3;
                  }
                  return 0;
              },
              on({"a", "a"})) == 0);
}

namespace {

/// Steps over tensors of the caller's and of the reducer's, another choice on each rank and in each step, beside the same steps
/// over the reducer's own: the bits are alike. A tensor of the caller's that is a bucket is reduced where it lies if `in_place`.
template <class Fusion, class Element, class... Policies>
int lends_some(world& w, std::vector<std::size_t> const& sizes, bool in_place) {
    using reducer_type = reducer<Element, quick_tcp, update::average, Fusion, Policies...>;
    reducer_type reduce(w, layout::of(sizes)), beside(w, layout::of(sizes));
    auto const failed = [&](char const* what, int step, std::size_t t) {
        std::fprintf(stderr, "rank %d, step %d, tensor %zu: %s\n", w.rank(), step, t, what);
        return 1;
    };
    constexpr auto untouched = static_cast<Element>(-77);
    std::vector<std::vector<Element>> mine; // from its second element on: no cache line begins there
    for (std::size_t const n : sizes) mine.emplace_back(n + 2, untouched);
    auto const value = [&](std::size_t t, std::size_t i, int step) {
        return static_cast<Element>(std::sin(static_cast<double>(i * 7 + t * 3) + 100.0 * w.rank() + step));
    };
    std::uint32_t dice = static_cast<std::uint32_t>(w.rank()) * 77 + 5;
    for (int step = 0; step < 20; ++step) {
        std::vector<std::span<Element>> at;
        std::vector<bool> lent;
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            dice = dice * 1664525u + 1013904223u;
            lent.push_back(step < 4 || (dice >> 16) % 3 != 0);
            at.push_back(lent[t] ? std::span(mine[t]).subspan(1, sizes[t]) : reduce.tensor(t));
            std::fill(reduce.tensor(t).begin(), reduce.tensor(t).end(), untouched);
            for (std::size_t i = 0; i < sizes[t]; ++i) at[t][i] = beside.tensor(t)[i] = value(t, i, step);
            lent[t] ? reduce.ready(t, at[t]) : reduce.ready(t);
            beside.ready(t);
        }
        reduce.wait();
        beside.wait();
        for (std::size_t t = 0; t < sizes.size(); ++t) {
            std::span<Element> const own = reduce.tensor(t);
            if (mine[t].front() != untouched || mine[t].back() != untouched)
                return failed("written beside it", step, t);
            if (sizes[t] == 0) continue;
            if (std::memcmp(at[t].data(), beside.tensor(t).data(), at[t].size_bytes()) != 0)
                return failed("other bits", step, t);
            bucket const& in = reduce.plan().buckets[reduce.plan().tensors[t].bucket];
            bool const copied = std::ranges::any_of(own, [](Element x) { return x != untouched; });
            if (lent[t] && copied == (in_place && in.elements == sizes[t]))
                return failed(copied ? "was copied" : "was not copied", step, t);
        }
    }
    auto const now = reduce.counters(), then = beside.counters();
    if (now.operations != then.operations || now.bytes_sent != then.bytes_sent ||
        now.messages_sent != then.messages_sent)
        return failed("other counters", 0, 0);
    return 0;
}

} // namespace

TEST_CASE("ranks with a node each: a tensor of the caller's that is a bucket is reduced where it lies") {
    std::vector<std::size_t> const sizes = {5000, 0, 40'001, 3, 700, 0, 1, 12'345, 0};
    auto const run = [&]<class Fusion, class Element, class... Policies>(names const& where,
                                                                         bool in_place = true) {
        auto const body = [&](world& w) {
            return lends_some<Fusion, Element, Policies...>(w, sizes, in_place);
        };
        return launch(static_cast<int>(where.size()), body, on(where));
    };
    using fused = fusion::balanced_buffer<8_KiB>;
    CHECK(run.operator()<fusion::per_tensor, float>({"a", "b"}) == 0);
    CHECK(run.operator()<fusion::per_tensor, double>({"a", "b", "c"}) == 0);
    CHECK(run.operator()<fused, float>({"a", "b", "c", "d"}) == 0);
    CHECK(run.operator()<fusion::whole_model, float>({"a", "b"}) == 0);
    CHECK(run.operator()<fusion::per_tensor, float>({"a"}) == 0);
    CHECK(run.operator()<fused, float, progress::thread>({"a", "b"}, false) == 0);
    CHECK(run.operator()<fused, float, intra_node::shared_memory>({"a", "b", "b"}, false) == 0);
}

TEST_CASE("what is lent is touched by calls alone, whatever has come meanwhile") {
    // Left by an exception, a step frees the program's tensors before the reducer is gone.
    auto const body = []<class... Progress>(world& w, Progress...) {
        constexpr bool by_thread = sizeof...(Progress) > 0;
        reducer<float, quick_tcp, update::sum, Progress...> reduce(w, layout{{"a", 100'000}});
        std::vector<float> mine(100'000, static_cast<float>(w.rank() + 1));
        std::vector<float> before = mine;
        reduce.ready(0, std::span(mine));
        if (!by_thread) before = mine; // the call itself may have taken in what the other rank sent
        while (by_thread && reduce.counters().operations == 0) ::usleep(100);
        w.barrier();
        if (mine != before) return 1;
        reduce.wait();
        return std::ranges::all_of(mine, [](float x) { return x == 3.0f; }) ? 0 : 2;
    };
    CHECK(launch(
              2, [&](world& w) { return body(w); }, on({"a", "b"})) == 0);
    CHECK(launch(
              2, [&](world& w) { return body(w, progress::thread{}); }, on({"a", "b"})) == 0);
}
