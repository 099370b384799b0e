// herring: tests of reducer.hpp: steps, buffers, misuse, failures; the arithmetic is tested by tests/multi_process.
// SPDX-License-Identifier: Apache-2.0
#include "herring/reducer.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <pthread.h>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

using herring::errc;
using herring::layout;
using herring::reducer;
using herring::world;
using herring::transport::inproc;
using std::chrono::milliseconds;
using sum = herring::update::sum;
using shared = herring::intra_node::shared_memory;

namespace {

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

/// What an error must be: code, peer, and a word of its text.
template <class Function> void throws(Function&& f, errc code, int peer, std::string const& word) {
    try {
        f();
    } catch (herring::error const& why) {
        std::string const text = why.what();
        require(why.code() == code, "code of: " + text);
        require(why.peer() == peer, "peer of: " + text);
        require(text.find(word) != std::string::npos, "'" + word + "' in: " + text);
        return;
    }
    throw std::runtime_error("no error, where one that says '" + word + "' is due");
}

herring::launch_options nodes(std::vector<std::string> names) {
    herring::launch_options options;
    options.nodes = std::move(names);
    return options;
}

/// Waits for a number that another thread sets.
void until(std::atomic<int> const& flag, int value) {
    while (flag.load() < value) sched_yield();
}

} // namespace

TEST_CASE("reducer: the order of policies makes no other type, and it is neither copied nor moved") {
    CHECK(std::is_same_v<reducer<float, inproc, sum>, reducer<float, sum, inproc>>);
    CHECK(std::is_same_v<reducer<float, inproc>, reducer<float, herring::update::unnamed_average, inproc>>);
    CHECK_FALSE(std::is_move_constructible_v<reducer<float, inproc>>);
    CHECK_FALSE(std::is_copy_constructible_v<reducer<float, inproc>>);
    CHECK(std::is_same_v<reducer<double, inproc>::element_type, double>);
}

namespace {
struct no_decision {
    using axis = herring::axes::waiting;
    static constexpr char const* name = "no_decision";
    static herring::wait_action next(std::uint32_t, std::int64_t idle_nanoseconds, bool) noexcept {
        return idle_nanoseconds < 1'000'000 ? herring::wait_action::poll : herring::wait_action{77};
    }
};
} // namespace

TEST_CASE("reducer: a waiting policy that decides for what there is not is refused at construction, on every "
          "rank") {
    CHECK(herring::launch_threads(2, [](world& w) {
              try {
                  reducer<float, inproc, no_decision> reduce(w);
                  require(false, "constructed");
              } catch (herring::error const& why) {
                  std::string const text = why.what();
                  require(why.code() == errc::bad_argument, text);
                  require(text.find("waiting policy 'no_decision'") != std::string::npos, text);
                  require(why.reported_by() == w.rank(), text);
              }
          }) == 0);
}

namespace {
/// Not associative, and says so or not.
struct minus {
    using axis = herring::axes::update;
    static constexpr char const* name = "minus";
    static constexpr herring::update_facts facts{.takes_vectors = true};
    template <class T> static constexpr bool supports = true;
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept { return a - b; }
    template <class Acc> static Acc finish(Acc total, int) noexcept { return total; }
};
struct minus_by_rank : minus {
    static constexpr herring::update_facts facts{.takes_vectors = true, .associative = false};
};
} // namespace

TEST_CASE(
    "reducer: a node's ranks are combined first; a rule that is not associative is folded rank by rank") {
    auto const gives = []<class Reducer>(std::type_identity<Reducer>, std::vector<std::string> const& names,
                                         double due) {
        for (std::size_t const elements : {1u, 20'000u}) // by one hop or a mailbox, and by two hops or turns
            CHECK(herring::launch_threads(
                      4,
                      [&](world& w) {
                          Reducer reduce(w);
                          std::vector<double> x(elements, static_cast<double>(1 << w.rank()));
                          reduce.all_reduce(x);
                          for (double const value : x) require(value == due, std::to_string(value));
                      },
                      nodes(names)) == 0);
    };
    std::type_identity<reducer<double, inproc, minus_by_rank>> const by_rank;
    std::type_identity<reducer<double, inproc, minus, shared>> const by_node;
    for (auto const& names : {std::vector<std::string>{"a", "a", "a", "a"},
                              {"a", "a", "b", "b"},
                              {"a", "b", "a", "b"},
                              {"a", "b", "c", "d"}})
        gives(by_rank, names, -13); // ((1 - 2) - 4) - 8
    gives(by_node, {"a", "a", "a", "a"}, -13);
    gives(by_node, {"a", "b", "c", "d"}, -13);
    gives(by_node, {"a", "a", "b", "b"}, 3); // (1 - 2) - (4 - 8)
    gives(by_node, {"a", "b", "a", "b"}, 3); // (1 - 4) - (2 - 8)
}

TEST_CASE("reducer: a world of one gives back what it got") {
    world alone;
    reducer<float, inproc, herring::update::average> reduce(alone, layout{{"a", 3}, {"empty", 0}, {"b", 70}});
    REQUIRE(reduce.size() == 3);
    CHECK(reduce.tensor(1).empty());
    for (int step = 0; step < 3; ++step) {
        for (std::size_t i = 3; i-- > 0;) {
            std::fill(reduce.tensor(i).begin(), reduce.tensor(i).end(), static_cast<float>(step) + 0.5f);
            reduce.ready(i);
        }
        reduce.wait();
        CHECK(reduce.tensor(0)[2] == static_cast<float>(step) + 0.5f);
        CHECK(reduce.tensor(2)[69] == static_cast<float>(step) + 0.5f);
    }
    std::vector<float> buffer(1000, 2.0f);
    reduce.all_reduce(buffer);
    CHECK(buffer == std::vector<float>(1000, 2.0f));
    CHECK(reduce.counters().operations > 0);
    CHECK(reduce.counters().messages_sent == 0);
}

namespace {

/// From one buffer into another, one value, and what is refused.
template <class T, class... Policies> void forms(world& w, std::size_t count) {
    reducer<T, inproc, sum, Policies...> reduce(w);
    T const ranks = static_cast<T>(w.size());
    T const each = static_cast<T>(w.size() * (w.size() - 1) / 2);
    std::vector<T> const in(count, static_cast<T>(w.rank()));
    std::vector<T> out(count, T{99});
    reduce.all_reduce(in, out);
    require(out == std::vector<T>(count, each) && in[0] == static_cast<T>(w.rank()), "from one to another");
    reduce.all_reduce(out, out); // one buffer
    require(out == std::vector<T>(count, static_cast<T>(each * ranks)), "both one buffer");
    reduce.all_reduce(in, out, milliseconds(20'000)).value();
    require(out == std::vector<T>(count, each), "with a deadline");
    T const x = static_cast<T>(w.rank() + 1);
    T y = reduce.all_reduce(x);
    require(y == static_cast<T>(each + ranks), "one value");
    reduce.all_reduce(y, herring::clock::now() + milliseconds(20'000)).value();
    require(y == static_cast<T>((each + ranks) * ranks), "one value, in place");
    T many[] = {x, x, x};
    reduce.all_reduce(many);
    require(many[2] == static_cast<T>(each + ranks), "an array");

    auto const refused = [&](auto&& call, std::string const& word) {
        throws(call, errc::bad_argument, -1, word);
    };
    std::span<T> const all(out);
    refused([&] { reduce.all_reduce(in, all.first(count - 1)); }, "elements in");
    refused([&] { reduce.all_reduce(all.first(count - 1), all.subspan(1)); }, "overlap");
    refused([&] { reduce.all_reduce(all.subspan(1), all.first(count - 1)); }, "overlap");
    refused([&] { (void)reduce.all_reduce(all.first(2), all.subspan(1, 2), milliseconds(1)); }, "overlap");
    reduce.all_reduce(all.first(1), all.subspan(1, 1)); // side by side
    reduce.all_reduce(std::span<T const>(), std::span<T>());
}

} // namespace

TEST_CASE("reducer: all_reduce from one buffer into another, and of one value") {
    for (std::size_t const count : {3u, 1000u, 50'000u}) {
        CAPTURE(count);
        herring::launch_threads(1, [&](world& w) { forms<double>(w, count); });
        herring::launch_threads(3, [&](world& w) { forms<long long>(w, count); });
        herring::launch_threads(3, [&](world& w) { forms<unsigned, shared>(w, count); });
        herring::launch_threads(
            3, [&](world& w) { forms<unsigned long, shared>(w, count); }, nodes({"a", "a", "b"}));
        herring::launch_threads(2, [&](world& w) { forms<unsigned long long>(w, count); });
    }
}

TEST_CASE("reducer: integers without a sign compare and add as such") {
    herring::launch_threads(3, [](world& w) {
        reducer<unsigned, inproc, herring::update::max> most(w);
        require(most.all_reduce(w.rank() == 1 ? 0x8000'0001u : 5u) == 0x8000'0001u, "max");
        reducer<unsigned long long, inproc, herring::update::min> least(w);
        std::vector<unsigned long long> x(40, w.rank() == 1 ? ~0ull : 7ull);
        least.all_reduce(x);
        require(x == std::vector<unsigned long long>(40, 7), "min");
        reducer<unsigned, inproc, sum> sums(w);
        require(sums.all_reduce(0xffff'ffffu) == 0xffff'fffdu, "wraps");
    });
}

namespace {

/// Polls by `done` alone, with tensors of the reducer's and of the caller's.
template <class... Policies> void polled(world& w) {
    reducer<float, inproc, sum, Policies...> reduce(w, layout{{"a", 1000}, {"b", 300'000}});
    std::vector<float> own(300'000);
    for (int step = 0; step < 3; ++step) {
        require(!reduce.done(), "nothing is ready");
        std::fill(reduce.tensor(0).begin(), reduce.tensor(0).end(), 1.0f);
        std::fill(own.begin(), own.end(), 2.0f);
        reduce.ready(0);
        require(!reduce.done(), "one is not ready");
        if (step == 1)
            reduce.ready(1, own);
        else
            reduce.ready(1);
        while (!reduce.done()) sched_yield();
        std::uint64_t const before = reduce.counters().operations;
        reduce.wait(milliseconds(0)).value(); // at once: there is nothing left to wait for
        require(reduce.counters().operations == before, "all was done");
        require(reduce.tensor(0)[999] == static_cast<float>(w.size()), "result");
        if (step == 1) require(own[299'999] == 2.0f * static_cast<float>(w.size()), "own result");
    }
    reducer<float, inproc, Policies...> empty(w);
    require(empty.done(), "a step of no tensors");
}

} // namespace

TEST_CASE("reducer: done is true when wait would return at once") {
    herring::launch_threads(1, [](world& w) { polled<>(w); });
    herring::launch_threads(3, [](world& w) { polled<>(w); });
    herring::launch_threads(3, [](world& w) { polled<shared>(w); });
    herring::launch_threads(
        3, [](world& w) { polled<shared>(w); }, nodes({"a", "a", "b"}));
    herring::launch_threads(3, [](world& w) { polled<herring::progress::thread>(w); });
}

TEST_CASE("reducer: no layout, or none but empty tensors") {
    herring::launch_threads(3, [](world& w) {
        reducer<float, inproc, sum> plain(w);
        require(plain.size() == 0, "no tensors");
        plain.wait();
        std::vector<float> buffer(5, 1.0f);
        plain.all_reduce(buffer);
        require(buffer == std::vector<float>(5, 3.0f), "all_reduce");
        plain.all_reduce(std::span<float>());
        reducer<float, inproc, sum, shared> empties(w, layout{{"a", 0}, {"b", 0}});
        for (int step = 0; step < 3; ++step) {
            empties.ready(1);
            empties.ready(0);
            empties.wait();
        }
    });
}

TEST_CASE("reducer: tensors are aligned, apart, zero at first, and as large as the layout says") {
    herring::launch_threads(2, [](world& w) {
        reducer<double, inproc, shared> reduce(w, layout{{"a", 1}, {"b", 9}, {"c", 0}, {"d", 1000}});
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            require(reinterpret_cast<std::uintptr_t>(reduce.tensor(i).data()) % 64 == 0, "alignment");
            for (double const x : reduce.tensor(i)) require(x == 0.0, "zero");
            if (i > 0)
                require(reduce.tensor(i - 1).data() + reduce.tensor(i - 1).size() <= reduce.tensor(i).data(),
                        "apart");
        }
        require(reduce.tensor(3).size() == 1000, "size");
        w.barrier();
    });
}

TEST_CASE("reducer: misuse is an error that says what to do, and changes nothing") {
    herring::launch_threads(2, [](world& w) {
        reducer<float, inproc, sum> reduce(w, layout{{"first", 4}, {"second", 8}});
        throws([&] { (void)reduce.tensor(2); }, errc::bad_argument, -1, "the layout has 2");
        throws([&] { reduce.ready(2); }, errc::bad_argument, -1, "there is no tensor 2");
        throws([&] { reduce.wait(); }, errc::bad_state, -1, "'first'");
        reduce.tensor(0)[0] = 1.0f;
        reduce.ready(0);
        throws([&] { reduce.ready(0); }, errc::bad_state, -1, "ready already");
        throws([&] { reduce.wait(); }, errc::bad_state, -1, "'second'");
        std::vector<float> wrong(7);
        throws([&] { reduce.ready(1, wrong); }, errc::bad_argument, -1, "has 8 elements, the span has 7");
        throws([&] { reduce.ready(0, wrong); }, errc::bad_state, -1, "ready already");
        throws([&] { reduce.all_reduce(wrong); }, errc::bad_state, -1, "call wait() first");
        std::vector<float> right(8, 3.0f);
        reduce.ready(1, right);
        throws([&] { reduce.ready(1, right); }, errc::bad_state, -1, "ready already");
        reduce.wait();
        require(reduce.tensor(0)[0] == 2.0f, "tensor 0");
        require(right == std::vector<float>(8, 6.0f), "the caller's memory");
        throws([&] { reduce.wait(); }, errc::bad_state, -1, "'first'");
        w.barrier();
    });
}

TEST_CASE("reducer: any order of ready, buckets of any fusion") {
    auto const run = []<class Fusion>(Fusion) {
        herring::launch_threads(3, [](world& w) {
            std::vector<std::size_t> const sizes{5, 0, 300, 17, 64, 4000, 1, 0};
            reducer<std::int32_t, inproc, sum, shared, Fusion> reduce(w, layout::of(sizes));
            std::vector<std::size_t> order(sizes.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::vector<std::int32_t> callers(300);
            for (int step = 0; step < 40; ++step) {
                // Another order on every rank and in every step.
                std::rotate(order.begin(), order.begin() + (step * 3 + w.rank()) % 8, order.end());
                for (std::size_t const i : order) {
                    bool const lent = i == 2 && step % 2 == 1;
                    std::span<std::int32_t> const to = lent ? std::span(callers) : reduce.tensor(i);
                    for (std::size_t k = 0; k < to.size(); ++k)
                        to[k] = static_cast<std::int32_t>(k) + step + 1000 * w.rank();
                    if (lent)
                        reduce.ready(i, to);
                    else
                        reduce.ready(i);
                    if (step % 5 == 0) reduce.poll();
                }
                reduce.wait();
                for (std::size_t i = 0; i < sizes.size(); ++i) {
                    bool const lent = i == 2 && step % 2 == 1;
                    std::span<std::int32_t> const from = lent ? std::span(callers) : reduce.tensor(i);
                    for (std::size_t k = 0; k < from.size(); ++k)
                        require(from[k] == 3 * (static_cast<std::int32_t>(k) + step) + 3000, "sum");
                }
            }
        });
    };
    run(herring::fusion::per_tensor{});
    run(herring::fusion::whole_model{});
    run(herring::fusion::balanced_buffer<1024, 64>{});
}

TEST_CASE("reducer: some ranks lend some tensors in some steps, more than their ring holds: nobody's sums "
          "are others") {
    auto const run = []<class Fusion, class... More>(Fusion, int ranks, std::uint32_t seed, More...) {
        using by_pieces = herring::intra_node::basic_shared_memory<herring::intra_node::shared_memory_tuning{
            .local_chunk_bytes = 4096, .mailbox_bytes = 256, .split_bytes = 4096}>;
        herring::launch_threads(ranks, [&](world& w) {
            std::vector<std::size_t> const sizes{5, 9000, 0, 700, 1025, 0, 16, 30'000, 3, 1000};
            reducer<std::int32_t, inproc, sum, by_pieces, Fusion, More...> reduce(w, layout::of(sizes));
            std::vector<std::vector<std::int32_t>> lent;
            for (std::size_t const n : sizes)
                lent.emplace_back(n + 2, -1); // what must not be touched on both sides
            std::mt19937 random(seed * 64 + static_cast<std::uint32_t>(w.rank()));
            std::vector<std::size_t> order(sizes.size());
            std::iota(order.begin(), order.end(), std::size_t{0});
            for (int step = 0; step < 12; ++step) {
                std::shuffle(order.begin(), order.end(), random);
                std::vector<std::span<std::int32_t>> at(sizes.size());
                auto const lends = step == 0 ? 0 : step == 1 ? 4 : random() % 5;
                for (std::size_t const i : order) {
                    bool const mine = random() % 4 >= lends;
                    at[i] = mine ? reduce.tensor(i) : std::span(lent[i]).subspan(1, sizes[i]);
                    for (std::size_t k = 0; k < sizes[i]; ++k)
                        at[i][k] = static_cast<std::int32_t>(k + i) * (w.rank() + 1) + step;
                    if (mine)
                        reduce.ready(i);
                    else
                        reduce.ready(i, at[i]);
                    if (random() % 3 == 0) reduce.poll();
                }
                reduce.wait();
                for (std::size_t i = 0; i < sizes.size(); ++i) {
                    require(lent[i].front() == -1 && lent[i].back() == -1, "beside the caller's memory");
                    for (std::size_t k = 0; k < sizes[i]; ++k)
                        require(at[i][k] == static_cast<std::int32_t>(k + i) * (ranks * (ranks + 1) / 2) +
                                                ranks * step,
                                "sum");
                }
                std::vector<std::int32_t> other(5000, w.rank());
                if (step % 4 == 3) reduce.all_reduce(other);
                require(step % 4 != 3 || other[4999] == ranks * (ranks - 1) / 2, "all_reduce between steps");
            }
        });
    };
    for (std::uint32_t seed = 1; seed < 4; ++seed) {
        run(herring::fusion::per_tensor{}, 2, seed);
        run(herring::fusion::whole_model{}, 3, seed);
        run(herring::fusion::balanced_buffer<8192, 64>{}, 4, seed);
        run(herring::fusion::balanced_buffer<8192, 64>{}, 3, seed, herring::progress::thread{});
    }
}

TEST_CASE("reducer: progress is each rank's own affair on one node too, whoever lends") {
    constexpr std::size_t count = 200'000;
    auto const step = [](auto& reduce, int rank, bool lends) {
        std::vector<std::int32_t> lent(count);
        std::span<std::int32_t> const at = lends ? std::span(lent) : reduce.tensor(0);
        for (std::size_t k = 0; k < count; ++k) at[k] = static_cast<std::int32_t>(k) + rank;
        if (lends)
            reduce.ready(0, at);
        else
            reduce.ready(0);
        reduce.wait();
        for (std::size_t k = 0; k < count; ++k) require(at[k] == 2 * static_cast<std::int32_t>(k) + 1, "sum");
    };
    herring::launch_threads(2, [&](world& w) {
        auto const run = [&]<class... Progress>(Progress...) {
            reducer<std::int32_t, inproc, sum, shared, Progress...> reduce(w, layout{{"a", count}});
            for (int lent = 0; lent < 4; ++lent) step(reduce, w.rank(), (lent >> w.rank() & 1) != 0);
        };
        if (w.rank() == 0)
            run();
        else
            run(herring::progress::thread{});
    });
}

TEST_CASE("reducer: a step that an exception ends has freed what it lent, and nobody is there any more") {
    auto const run = []<class... Progress>(Progress...) {
        return herring::launch_threads(2, [](world& w) {
            constexpr bool by_thread = sizeof...(Progress) > 0;
            reducer<float, herring::transport::tcp, sum, Progress...> reduce(w, layout{{"a", 200'000}});
            if (w.rank() == 1) {
                reduce.ready(0);
                w.barrier();
                herring::status const ended = reduce.wait(std::chrono::seconds(20));
                // Whole, if a thread serves it, or the other rank's `ready` has.
                require(ended.ok() || (!by_thread && (ended.code() == errc::peer_lost ||
                                                      ended.code() == errc::peer_failed)),
                        "how it ended: " + ended.message());
                if (by_thread) w.barrier();
                return;
            }
            try {
                std::vector<float> mine(200'000, 1.0f);
                reduce.ready(0, std::span(mine));
                throw std::runtime_error("of the program's");
            } catch (std::runtime_error const&) {
            }
            w.barrier();
            if (by_thread) w.barrier(); // the thread moves what was lent, also once that is gone
        });
    };
    CHECK(run() == 0);
    CHECK(run(herring::progress::thread{}) == 0);
}

TEST_CASE("reducer: what is lent moves in ready, beyond what the ring holds") {
    herring::launch_threads(2, [](world& w) {
        std::vector<std::size_t> const sizes(40, 1000);
        reducer<std::int32_t, inproc, sum, shared, herring::fusion::per_tensor> reduce(w, layout::of(sizes));
        std::vector<std::int32_t> lent(40'000, w.rank() + 1);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            reduce.ready(i, std::span(lent).subspan(i * 1000, 1000));
            w.barrier(); // which moves nothing
        }
        require(reduce.counters().operations > 20, "most were done while others were not ready");
        reduce.wait();
        require(std::count(lent.begin(), lent.end(), 3) == 40'000, "sums");
    });
}

TEST_CASE("reducer: many small buckets, one rank far behind in polling") {
    // Ranks 1 and 2 are done with bucket 0 before rank 0 has looked; then rank 0 hands in a fifth bucket, whose
    // mailbox is that of bucket 0.
    std::atomic<int> turn{0};
    herring::launch_threads(3, [&](world& w) {
        std::vector<std::size_t> const sizes(9, 4);
        reducer<float, inproc, sum, shared, herring::fusion::per_tensor> reduce(w, layout::of(sizes));
        require(reduce.plan().buckets[0].path == herring::route::mailbox, "through mailboxes");
        for (std::size_t i = 0; i < sizes.size(); ++i)
            std::fill_n(reduce.tensor(i).data(), 4,
                        static_cast<float>(100 * w.rank()) + static_cast<float>(i));
        if (w.rank() == 0) {
            for (std::size_t i = 0; i < 4; ++i) reduce.ready(i);
            turn.fetch_add(1);
            until(turn, 5);
            for (std::size_t i = 4; i < sizes.size(); ++i) reduce.ready(i);
        } else {
            until(turn, 1);
            for (std::size_t i = 0; i < 4; ++i) reduce.ready(i);
            turn.fetch_add(1);
            until(turn, 3);
            reduce.poll(); // all are here: this rank is done with four buckets
            turn.fetch_add(1);
            for (std::size_t i = 4; i < sizes.size(); ++i) reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i)
            for (float const x : reduce.tensor(i)) require(x == 300.0f + 3.0f * static_cast<float>(i), "sum");
    });
}

TEST_CASE("reducer: ranks that declare different things are told, by rank and by field") {
    auto const differ = [](auto&& make, std::string const& word) {
        std::atomic<int> told{0};
        herring::launch_threads(3, [&](world& w) {
            // Rank 1 differs: it hears of rank 0, the others of rank 1.
            throws([&] { make(w); }, errc::mismatch, w.rank() == 1 ? 0 : 1, word);
            told.fetch_add(1);
        });
        CHECK(told.load() == 3);
    };
    differ([](world& w) { reducer<float, inproc> r(w, layout{{"fc", w.rank() == 1 ? 5u : 4u}}); }, "fc of 4");
    differ(
        [](world& w) {
            reducer<float, inproc> r(w, layout{{w.rank() == 1 ? "fd" : "fc", 4}});
        },
        "fd of 4");
    differ(
        [](world& w) {
            layout const two{{"a", 1}, {"b", 2}};
            layout const swapped{{"b", 2}, {"a", 1}};
            reducer<float, inproc> r(w, w.rank() == 1 ? swapped : two);
        },
        "tensor 0");
    differ(
        [](world& w) {
            reducer<float, inproc> r(w, w.rank() == 1 ? layout{{"a", 1}} : layout{{"a", 1}, {"b", 1}});
        },
        "tensors=");
    differ(
        [](world& w) {
            if (w.rank() == 1)
                reducer<double, inproc> r(w);
            else
                reducer<float, inproc> r(w);
        },
        "element=");
    differ(
        [](world& w) {
            if (w.rank() == 1)
                reducer<float, inproc, sum> r(w);
            else
                reducer<float, inproc> r(w);
        },
        "update=");
    differ(
        [](world& w) {
            if (w.rank() == 1)
                reducer<float, inproc, shared> r(w);
            else
                reducer<float, inproc> r(w);
        },
        "intra_node=");
}

TEST_CASE("reducer: another size or another call is a mismatch that names a rank, never a wrong sum") {
    auto const differ = []<class IntraNode>(IntraNode*, std::size_t small, std::size_t large) {
        std::atomic<int> ended{0};
        herring::launch_threads(2, [&](world& w) {
            reducer<float, inproc, sum, IntraNode> reduce(w);
            std::vector<float> buffer(w.rank() == 0 ? small : large, 1.0f);
            try {
                reduce.all_reduce(buffer);
            } catch (herring::error const& why) {
                require(why.code() == errc::mismatch, why.what());
                require(why.peer() == 1 - w.rank() || why.peer() == w.rank(), why.what());
                ended.fetch_add(1);
                // The same failure for ever after.
                throws([&] { reduce.all_reduce(buffer); }, errc::mismatch, why.peer(), "");
                throws([&] { reduce.wait(); }, errc::mismatch, why.peer(), "");
            }
            while (ended.load() < 2) sched_yield();
        });
        CHECK(ended.load() == 2);
    };
    differ(static_cast<herring::intra_node::none*>(nullptr), 100, 101);
    differ(static_cast<herring::intra_node::none*>(nullptr), 100'000, 100'064);
    differ(static_cast<shared*>(nullptr), 100, 101);
    differ(static_cast<shared*>(nullptr), 10'000, 10'001);
}

TEST_CASE("reducer: a rank that does not call is named at the deadline") {
    auto const late = []<class... More>(std::type_identity<void(More...)>) {
        std::atomic<int> told{0};
        herring::launch_threads(3, [&](world& w) {
            reducer<float, inproc, sum, More...> reduce(w, layout{{"a", 1000}});
            if (w.rank() == 2) {
                while (told.load() < 2) sched_yield();
                return;
            }
            reduce.ready(0);
            herring::status const ended = reduce.wait(herring::clock::now() + milliseconds(50));
            require(ended.code() == errc::timeout, ended.message());
            require(ended.peer() == 2, ended.message());
            require(reduce.wait(herring::clock::now()).code() == errc::timeout, "the failure stays");
            told.fetch_add(1);
        });
        CHECK(told.load() == 2);
    };
    late(std::type_identity<void(shared)>());
    late(std::type_identity<void(shared, herring::progress::thread)>());
    late(std::type_identity<void()>());
    late(std::type_identity<void(herring::progress::thread)>());
}

TEST_CASE("reducer: a rank that fails elsewhere ends the wait of the others") {
    std::atomic<int> told{0};
    CHECK_THROWS_WITH(
        herring::launch_threads(3,
                                [&](world& w) {
                                    reducer<float, inproc, sum, shared> reduce(w, layout{{"a", 1000}});
                                    if (w.rank() == 1) throw std::runtime_error("disk full");
                                    reduce.ready(0);
                                    try {
                                        reduce.wait();
                                    } catch (herring::error const& why) {
                                        require(why.peer() == 1, why.what());
                                        told.fetch_add(1);
                                    }
                                }),
        "disk full");
    CHECK(told.load() == 2);
}

TEST_CASE("reducer: leaving in the middle of a step is told to the others") {
    std::atomic<int> told{0};
    herring::launch_threads(2, [&](world& w) {
        {
            reducer<float, inproc, sum> reduce(w, layout{{"a", 10}, {"b", 10}});
            reduce.ready(0);
            if (w.rank() == 0) {
                reduce.ready(1);
                try {
                    reduce.wait();
                } catch (herring::error const& why) {
                    require(why.peer() == 1, why.what());
                    told.fetch_add(1);
                }
            }
        }
        if (w.rank() == 1)
            while (told.load() == 0) sched_yield();
    });
    CHECK(told.load() == 1);
}

TEST_CASE("reducer: the misuse that made a rank leave is told to the others") {
    std::atomic<int> told{0};
    CHECK_THROWS_AS(
        herring::launch_threads(2,
                                [&](world& w) {
                                    reducer<float, inproc, sum> reduce(w, layout{{"a", 10}, {"b", 10}});
                                    reduce.ready(0);
                                    if (w.rank() == 1) {
                                        std::vector<float> wrong(9);
                                        reduce.ready(1, std::span<float>(wrong));
                                    }
                                    reduce.ready(1);
                                    herring::status const ended = reduce.wait(std::chrono::seconds(20));
                                    require(ended.peer() == 1, ended.message());
                                    require(ended.message().find("('b') has 10 elements, the span has 9") !=
                                                std::string::npos,
                                            ended.message());
                                    told.fetch_add(1);
                                }),
        herring::error);
    CHECK(told.load() == 1);
}

TEST_CASE("reducer: tensors of no elements are no operation, however many steps of them there are") {
    herring::launch_threads(2,
                            [](world& w) {
                                reducer<float, inproc, sum> reduce(w, layout{{"a", 0}, {"b", 0}});
                                for (int step = 0; step < (w.rank() + 1) * 3000; ++step) {
                                    reduce.ready(0);
                                    reduce.ready(1);
                                    reduce.wait();
                                }
                                std::vector<float> one(3, 1.0f);
                                reduce.all_reduce(one);
                                require(one[2] == 2.0f, "the sum");
                            },
                            {.nodes = {"a", "b"}});
}

TEST_CASE("reducer: after an error nobody touches the caller's memory any more") {
    // Under AddressSanitizer this is more than it says.
    std::atomic<bool> gone{false};
    std::atomic<bool> over{false};
    herring::launch_threads(2,
                            [&](world& w) {
                                reducer<float, inproc, sum> reduce(w);
                                if (w.rank() == 0) {
                                    auto memory = std::make_unique<std::vector<float>>(30'000, 1.0f);
                                    herring::status const ended =
                                        reduce.all_reduce(*memory, std::chrono::milliseconds(50));
                                    require(!ended.ok() && ended.peer() == 1, ended.message());
                                    memory.reset();
                                    gone.store(true);
                                    while (!over.load()) sched_yield(); // its reducer stays
                                } else {
                                    while (!gone.load()) sched_yield();
                                    std::vector<float> late(30'000, 2.0f);
                                    herring::status const ended =
                                        reduce.all_reduce(late, std::chrono::seconds(20));
                                    over.store(true);
                                    require(!ended.ok(), "a sum with a rank that gave up");
                                }
                            },
                            {.nodes = {"a", "b"}});
}

TEST_CASE("reducer: several on one world, one after the other and side by side") {
    herring::launch_threads(
        4,
        [](world& w) {
            for (int round = 0; round < 3; ++round) {
                reducer<float, inproc, sum, shared> one(w, layout{{"a", 100}});
                reducer<std::int64_t, inproc, sum> two(w, layout{{"a", 50}});
                std::fill_n(one.tensor(0).data(), 100, 1.0f);
                std::fill_n(two.tensor(0).data(), 50, std::int64_t{2});
                one.ready(0);
                two.ready(0);
                two.wait();
                one.wait();
                require(one.tensor(0)[99] == 4.0f && two.tensor(0)[49] == 8, "sums");
            }
        },
        nodes({"x", "x", "y", "y"}));
}

TEST_CASE("reducer: the counters count") {
    herring::launch_threads(4, [](world& w) {
        reducer<float, inproc, sum> reduce(w, layout{{"a", 100'000}});
        herring::counters const before = reduce.counters();
        require(before.operations == 0 && before.bytes_sent == 0 && before.wait_ns == 0, "nothing yet");
        require(before.slowest_rank == -1, "nobody yet");
        reduce.ready(0);
        reduce.wait();
        herring::counters const after = reduce.counters();
        w.barrier(); // whose next message would count as received
        require(after.operations == 1, "one bucket");
        // Two hops: pushes 3/4 of the bucket to the three others, and returns their shards: 3 quarters each way.
        require(after.bytes_sent == after.bytes_received, "as much out as in");
        std::size_t const padded = reduce.plan().buckets[0].elements * sizeof(float);
        require(after.bytes_sent > 2 * 3 * padded / 4 - 1000 && after.bytes_sent < 2 * 3 * padded / 4 + 1000,
                "2(n-1)/n");
        require(after.messages_sent > 0 && after.messages_received > 0, "messages");
        std::vector<float> buffer(10);
        reduce.all_reduce(buffer);
        require(reduce.counters().operations == 2, "two");
        require(reduce.counters().bytes_sent == after.bytes_sent + 3 * 40,
                "one hop sends everything to everyone");
    });
}

namespace {
/// Notes which thread each event came from, and how often bucket_reduced came for no bucket.
struct noting {
    using axis = herring::axes::trace;
    struct seen {
        std::atomic<int> count{0};
        std::atomic<pthread_t> thread{};
    };
    seen events[5];
    std::atomic<int> outside{0};
    std::atomic<std::uint32_t> largest{0}; // bucket

    void operator()(herring::trace_event event, std::uint32_t index) noexcept {
        seen& it = events[static_cast<int>(event)];
        it.count.fetch_add(1);
        it.thread.store(pthread_self());
        if (event != herring::trace_event::bucket_reduced) return;
        if (index == herring::no_bucket)
            outside.fetch_add(1);
        else if (index > largest)
            largest = index;
    }
    seen const& of(herring::trace_event event) const noexcept { return events[static_cast<int>(event)]; }
};

template <class Reducer> void trace_a_step(world& ranks, bool own_thread) {
    using enum herring::trace_event;
    Reducer reduce(ranks, layout{{"a", 100}, {"b", 7}});
    reduce.ready(0);
    reduce.ready(1);
    reduce.wait();
    noting& noted = reduce.trace();
    for (auto const event : {tensor_ready, bucket_submitted, wait_begin, wait_end, bucket_reduced}) {
        int const due = event == wait_begin || event == wait_end ? 1 : 2;
        require(noted.of(event).count == due, std::string("how often: ") + herring::to_string(event));
        bool const here = pthread_equal(noted.of(event).thread, pthread_self()) != 0;
        require(here == (event != bucket_reduced || !own_thread),
                std::string("on another thread: ") + herring::to_string(event));
    }
    require(noted.largest == 1 && noted.outside == 0, "buckets have their numbers");
    std::vector<float> outside(3);
    reduce.all_reduce(outside);
    require(noted.outside == 1 && noted.of(bucket_reduced).count == 3, "all_reduce is traced as no_bucket");
    require(noted.of(wait_begin).count == 1, "all_reduce is no step");
}
} // namespace

TEST_CASE("reducer: which thread traces what, and all_reduce is no bucket") {
    auto const traced = [](world& ranks) {
        using herring::fusion::per_tensor;
        trace_a_step<reducer<float, sum, inproc, per_tensor, noting>>(ranks, false);
        trace_a_step<reducer<float, sum, inproc, shared, per_tensor, noting>>(ranks, false);
        trace_a_step<reducer<float, sum, inproc, per_tensor, noting, herring::progress::thread>>(ranks, true);
    };
    herring::launch_threads(2, traced);
    herring::launch_threads(3, traced, nodes({"a", "a", "b"}));
}

TEST_CASE("reducer: a rank that runs ahead keeps what it declared until the other has read it") {
    // Seven buckets. One rank has arrived at the last four, which both lend, and does not look at them yet; the other is done
    // with them by that arrival alone, and declares all seven of the next step.
    constexpr std::size_t elements = 4096;
    std::atomic<int> at{0};
    auto const body = [&](world& w) {
        bool const late = w.rank() == 1;
        layout const seven{{"a", elements}, {"b", elements}, {"c", elements}, {"d", elements},
                           {"e", elements}, {"f", elements}, {"g", elements}};
        reducer<float, inproc, shared, sum, noting, herring::fusion::per_tensor> reduce(w, seven);
        require(reduce.plan().buckets.size() == seven.size(), "a bucket for each tensor");
        std::vector<std::vector<float>> mine(seven.size());
        auto const fill = [&](std::size_t i, float value) {
            for (float& x : reduce.tensor(i)) x = value;
            reduce.ready(i);
        };
        auto const lend = [&] {
            for (std::size_t i = 3; i < 7; ++i) {
                mine[i].assign(elements, static_cast<float>(i) + (late ? 10.0f : 0.0f));
                reduce.ready(i, mine[i]);
            }
        };
        for (std::size_t i = 0; i < 3; ++i) fill(i, 1);
        while (reduce.trace().of(herring::trace_event::bucket_reduced).count < 3) reduce.poll();
        w.barrier();
        if (late) {
            lend(); // the ring is full now: this rank has arrived at all four
            at = 1;
            until(at, 2);
            reduce.wait();
        } else {
            until(at, 1);
            lend();
            reduce.wait(); // alone
        }
        for (std::size_t i = 3; i < 7; ++i)
            for (float const x : mine[i])
                require(x == 2 * static_cast<float>(i) + 10, "sum of lent tensor " + std::to_string(i));
        for (std::size_t i = 0; i < 7; ++i) fill(i, static_cast<float>(i));
        if (!late) {
            for (int i = 0; i < 10; ++i) reduce.poll(); // declares them
            at = 2;
        }
        reduce.wait();
        for (std::size_t i = 0; i < 7; ++i)
            require(reduce.tensor(i)[elements - 1] == 2 * static_cast<float>(i), "the next step's sum");
    };
    CHECK(herring::launch_threads(2, body) == 0);
}
