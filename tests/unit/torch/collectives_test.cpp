// herring: tests of torch/collectives.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/torch/collectives.hpp"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "torch_ranks.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <latch>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace {

namespace torch = herring::torch;
torch::table const& calls = torch::table_of<herring::transport::tcp>();

template <class Rank> void with_ranks(int size, Rank rank) {
    torch_ranks::run(size, [&](torch_ranks::seat& mine) {
        int const r = static_cast<int>(mine.rank);
        torch::outcome joined;
        torch::group* const group = calls.open(r, size, mine.through(), 20'000, joined);
        if (joined.code != 0) FAIL_CHECK(joined.text);
        if (group == nullptr) return;
        rank(group, r);
        calls.close(group);
    });
}

torch::outcome run(torch::table::function what, torch::group* group, torch::call with) {
    torch::outcome result;
    with.timeout_ms = 20'000;
    what(group, with, result);
    return result;
}
template <class Element> constexpr std::size_t type_of() {
    return []<std::size_t... I>(std::index_sequence<I...>) {
        return ((std::is_same_v<std::tuple_element_t<I, herring::torch_calls::elements>, Element> ? I : 0) +
                ...);
    }
    (std::make_index_sequence<torch::types>());
}

TEST_CASE("table: it says what it is") {
    CHECK(calls.abi == torch::abi);
    CHECK(calls.size == sizeof(torch::table));
    CHECK(std::string_view(calls.version) == HERRING_VERSION_STRING);
    CHECK(std::string_view(calls.policies) == "tcp");
    CHECK(
        std::string_view(
            herring::torch_calls::names_of<herring::transport::tcp, herring::intra_node::shared_memory>.data()) ==
        "tcp, shared_memory");
    CHECK(calls.by_type[type_of<float>()] == 0b11111);
    CHECK(calls.by_type[type_of<std::int64_t>()] == 0b11101); // no average
}

TEST_CASE("table: all rules and types, in place and between buffers") {
    with_ranks(2, [](torch::group* group, int rank) {
        auto const check = [&]<class Element>(Element, torch::rule by, double wanted) {
            std::array<Element, 5> in{}, out{};
            in.fill(static_cast<Element>(static_cast<float>(rank + 2)));
            auto const ended = run(calls.all_reduce[type_of<Element>()], group,
                                   {.in = in.data(), .out = out.data(), .count = 5, .by = by});
            CHECK(ended.code == 0);
            for (auto const x : out) CHECK(static_cast<double>(static_cast<float>(x)) == wanted);
            auto part = Element{};
            CHECK(run(calls.reduce_scatter[type_of<Element>()], group,
                      {.in = in.data(), .out = &part, .count = 2, .by = by})
                      .code == 0);
            CHECK(static_cast<double>(static_cast<float>(part)) == wanted);
        };
        auto const types = [&](torch::rule by, double wanted) {
            check(float{}, by, wanted);
            check(double{}, by, wanted);
            check(herring::bfloat16{}, by, wanted);
            check(herring::float16{}, by, wanted);
            if (by == torch::rule::average) return;
            check(std::int32_t{}, by, wanted);
            check(std::int64_t{}, by, wanted);
            check(std::int16_t{}, by, wanted);
            check(std::int8_t{}, by, wanted);
            check(std::uint8_t{}, by, wanted);
        };
        types(torch::rule::sum, 5);
        types(torch::rule::average, 2.5);
        types(torch::rule::product, 6);
        types(torch::rule::min, 2);
        types(torch::rule::max, 3);
    });
}

TEST_CASE("table: the sum and the maximum of bool are true where one is, product and minimum where all are") {
    with_ranks(2, [](torch::group* group, int rank) {
        std::array<bool, 4> const in{false, rank == 0, rank == 1, true};
        auto const check = [&](torch::rule by, std::array<bool, 4> wanted) {
            std::array<bool, 4> out{};
            CHECK(run(calls.all_reduce[type_of<bool>()], group,
                      {.in = in.data(), .out = out.data(), .count = 4, .by = by})
                      .code == 0);
            CHECK(out == wanted);
        };
        for (auto const by : {torch::rule::sum, torch::rule::max}) check(by, {false, true, true, true});
        for (auto const by : {torch::rule::product, torch::rule::min}) check(by, {false, false, false, true});
    });
}

TEST_CASE("table: bytes to and from three ranks") {
    constexpr std::size_t n = 13, ranks = 3;
    auto const block = [](int from, int to) {
        std::array<unsigned char, n> bytes{};
        for (std::size_t i = 0; i < n; ++i)
            bytes[i] = static_cast<unsigned char>(100 * from + 10 * to + int(i));
        return bytes;
    };
    auto const of_all = [&](auto of) {
        std::vector<unsigned char> all;
        for (int r = 0; r < int(ranks); ++r) {
            auto const one = of(r);
            all.insert(all.end(), one.begin(), one.end());
        }
        return all;
    };
    with_ranks(int(ranks), [&](torch::group* group, int rank) {
        auto mine = block(rank, 0);
        CHECK(run(calls.broadcast, group, {.out = mine.data(), .count = n, .root = 2}).code == 0);
        CHECK(mine == block(2, 0));
        mine = block(rank, 0);
        std::vector<unsigned char> all(ranks * n);
        CHECK(run(calls.all_gather, group, {.in = mine.data(), .out = all.data(), .count = n}).code == 0);
        auto const gathered = of_all([&](int r) { return block(r, 0); });
        CHECK(all == gathered);
        std::fill(all.begin(), all.end(), 0);
        CHECK(run(calls.gather, group,
                  {.in = mine.data(), .out = rank == 1 ? all.data() : nullptr, .count = n, .root = 1})
                  .code == 0);
        if (rank == 1) CHECK(all == gathered);
        CHECK(run(calls.scatter, group,
                  {.in = rank == 1 ? gathered.data() : nullptr, .out = mine.data(), .count = n, .root = 1})
                  .code == 0);
        CHECK(mine == block(rank, 0));
        auto const sent = of_all([&](int to) { return block(rank, to); });
        CHECK(run(calls.all_to_all, group, {.in = sent.data(), .out = all.data(), .count = n}).code == 0);
        CHECK(all == of_all([&](int from) { return block(from, rank); }));
        // Blocks of other sizes: rank r sends 2r + s bytes to rank s.
        std::array<std::size_t, ranks> sends{}, receives{};
        for (std::size_t r = 0; r < ranks; ++r) {
            sends[r] = 2 * static_cast<std::size_t>(rank) + r;
            receives[r] = 2 * r + static_cast<std::size_t>(rank);
        }
        std::vector<unsigned char> out(std::accumulate(receives.begin(), receives.end(), std::size_t{0}));
        std::vector<unsigned char> in(std::accumulate(sends.begin(), sends.end(), std::size_t{0}),
                                      static_cast<unsigned char>(rank + 1));
        CHECK(run(calls.all_to_all, group,
                  {.in = in.data(), .out = out.data(), .sends = sends.data(), .receives = receives.data()})
                  .code == 0);
        std::vector<unsigned char> wanted;
        for (std::size_t r = 0; r < ranks; ++r)
            wanted.insert(wanted.end(), receives[r], static_cast<unsigned char>(r + 1));
        CHECK(out == wanted);
        CHECK(run(calls.barrier, group, {}).code == 0);
    });
}

TEST_CASE("table: an announced failure is one of all ranks, and of every later call") {
    std::latch both(2);
    with_ranks(2, [&](torch::group* group, int rank) {
        torch::outcome why;
        CHECK_FALSE(calls.failed(group, why));
        float x = 1;
        CHECK(run(calls.all_reduce[0], group, {.in = &x, .out = &x, .count = 1}).code == 0);
        both.arrive_and_wait(); // a failure may overtake a call
        if (rank == 1)
            calls.fail(group, static_cast<std::int32_t>(herring::errc::mismatch), 0, "broadcast",
                       "rank 0 is elsewhere");
        auto const ended = run(calls.all_reduce[0], group, {.in = &x, .out = &x, .count = 1});
        CHECK(ended.code == static_cast<std::int32_t>(herring::errc::mismatch));
        CHECK(std::string_view(ended.text).find("rank 0 is elsewhere") != std::string_view::npos);
        CHECK(calls.failed(group, why));
        CHECK(why.code == ended.code);
    });
}

TEST_CASE("table: a gather that fails is a failure with its sentence") {
    torch_ranks::room here(2);
    torch_ranks::seat mine{&here, 0, "the store is away"};
    torch::outcome joined;
    CHECK(calls.open(0, 2, mine.through(), 1'000, joined) == nullptr);
    CHECK(joined.code != 0);
    CHECK(std::string_view(joined.text).find("the store is away") != std::string_view::npos);
}

} // namespace
