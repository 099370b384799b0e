// herring: reductions over a difficult transport give the same bits, and end in a named error when it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/seeds.hpp"
#include "conformance/small_transports.hpp"
#include "conformance/suite.hpp"

#include "doctest/doctest.h"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/checked.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace herring;
using conformance::dice;
using conformance::fierce;
using conformance::replay;
using conformance::rough;
using conformance::seeds;
using conformance::small_inproc;
using conformance::small_tcp;
using conformance::times;
using std::chrono::milliseconds;
using transport::chaos;
using transport::chaos_seed;
using transport::chaos_tuning;

namespace {

// The same, and every twentieth message comes twice.
inline constexpr chaos_tuning repeating{.not_now_per_1000 = 250,
                                        .delay_per_1000 = 500,
                                        .hold_back_per_1000 = 400,
                                        .longest = 25,
                                        .duplicate_per_1000 = 50};
using rough_and_checked = transport::checked<chaos<small_inproc, repeating>>;

std::vector<std::size_t> const sizes{1000, 0, 3, 6001, 17, 200, 2049, 1};

std::uint64_t scatter(std::uint64_t x) {
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 31;
    return x * 0xbf58476d1ce4e5b9u;
}
template <class T> T value(int rank, std::uint64_t step, std::size_t i) {
    std::uint64_t const bits = scatter(scatter((i + 1) * 64 + static_cast<std::uint64_t>(rank)) + step);
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(bits >> 8); // sums of a few do not overflow
    else
        return static_cast<T>(static_cast<float>(bits >> 40) / 16777216.0f - 0.5f); // rounding shows
}

std::uint64_t hash(std::uint64_t sum, void const* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
        sum = (sum ^ static_cast<unsigned char const*>(data)[i]) * 1099511628211u;
    return sum;
}

struct outcome {
    bool stuck = false;
    std::size_t wrong = 0;   // integers that are not the sum
    std::uint64_t bits = 0;  // of all results of rank 0; those of the others are compared with them
    bool same = true;        // on all ranks
    std::uint64_t trace = 0; // of what the transports did
    std::uint64_t turns = 0;
    std::uint64_t refused = 0;
};

/// Reducers of all ranks, driven by one thread: nothing depends on the machine.
template <class Reducer> class crew {
  public:
    using T = typename Reducer::element_type;

    template <class... Arguments>
    crew(int ranks, std::vector<std::string> const& nodes, Arguments const&... arguments) {
        launch_options options;
        options.nodes = nodes;
        worlds_ = thread_worlds(ranks, options);
        reducers_.resize(worlds_.size());
        together([&](std::size_t r) {
            reducers_[r] = std::make_unique<Reducer>(worlds_[r], layout::of(sizes), arguments...);
        });
    }
    ~crew() {
        together([&](std::size_t r) { reducers_[r].reset(); });
        together([&](std::size_t r) { world const gone = std::move(worlds_[r]); });
    }

    /// Some steps, the ranks' turns in an order that `seed` says.
    outcome run(std::uint64_t seed, int steps) {
        outcome seen;
        dice random(seed);
        std::uint64_t due = 0;
        for (int step = 0; step < steps && !seen.stuck; ++step) {
            for (bucket const& b : reducers_[0]->plan().buckets) due += b.elements > 0;
            std::vector<std::vector<std::size_t>> order(worlds_.size());
            for (auto& mine : order) {
                for (std::size_t i = 0; i < sizes.size(); ++i) mine.push_back(i);
                random.shuffle(mine);
            }
            auto const done = [&](std::size_t r) {
                return reducers_[r]->counters().operations >= due && order[r].empty();
            };
            std::size_t favourite = 0, left = worlds_.size();
            std::vector<bool> through(worlds_.size());
            while (left > 0) {
                if (++seen.turns > 4'000'000) {
                    seen.stuck = true;
                    break;
                }
                // Now and then one rank gets most of the turns.
                if (random(300) == 0) favourite = random(worlds_.size());
                std::size_t const r = random(3) == 0 ? favourite : random(worlds_.size());
                if (!order[r].empty() && random(4) == 0) {
                    std::size_t const i = order[r].back();
                    order[r].pop_back();
                    auto const tensor = reducers_[r]->tensor(i);
                    for (std::size_t k = 0; k < tensor.size(); ++k)
                        tensor[k] =
                            value<T>(static_cast<int>(r), static_cast<std::uint64_t>(step) * 100 + i, k);
                    reducers_[r]->ready(i);
                }
                reducers_[r]->poll();
                if (!through[r] && done(r)) {
                    through[r] = true;
                    --left;
                }
            }
            if (seen.stuck) break;
            for (auto& one : reducers_) one->wait(); // there is nothing to wait for
            check(seen, step);
        }
        for (auto& one : reducers_)
            if constexpr (requires { one->transport().trace(); }) {
                seen.trace = hash(seen.trace, std::array{one->transport().trace()}.data(), 8);
                seen.refused += one->transport().counts().refused;
            }
        return seen;
    }

  private:
    void check(outcome& seen, int step) {
        for (std::size_t r = 0; r < reducers_.size(); ++r) {
            std::uint64_t bits = 0;
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                auto const tensor = reducers_[r]->tensor(i);
                bits = hash(bits, tensor.data(), tensor.size_bytes());
                if constexpr (std::is_integral_v<T>)
                    for (std::size_t k = 0; k < tensor.size(); ++k) {
                        T sum = 0;
                        for (std::size_t from = 0; from < reducers_.size(); ++from)
                            sum += value<T>(static_cast<int>(from),
                                            static_cast<std::uint64_t>(step) * 100 + i, k);
                        seen.wrong += sum != tensor[k];
                    }
            }
            if (r == 0)
                seen.bits = hash(seen.bits, &bits, sizeof bits);
            else
                seen.same = seen.same && bits == first_;
            if (r == 0) first_ = bits;
        }
    }

    template <class Function> void together(Function&& function) {
        std::vector<std::thread> threads;
        std::vector<std::exception_ptr> thrown(worlds_.size());
        for (std::size_t r = 0; r < worlds_.size(); ++r)
            threads.emplace_back([&, r] {
                try {
                    function(r);
                } catch (...) {
                    thrown[r] = std::current_exception();
                }
            });
        for (auto& t : threads) t.join();
        for (auto const& one : thrown)
            if (one) std::rethrow_exception(one);
    }

    std::vector<world> worlds_;
    std::vector<std::unique_ptr<Reducer>> reducers_;
    std::uint64_t first_ = 0;
};

char const* const by_name = " -tc='chaos: one thread*'";

/// Integers against their sum, each seed twice.
template <class... Policies> void integers(int ranks, std::vector<std::string> const& nodes, int count) {
    using mine = reducer<std::int64_t, rough, update::sum, Policies...>;
    for (std::uint64_t const seed : seeds(count)) {
        outcome seen[2];
        for (outcome& one : seen) one = crew<mine>(ranks, nodes, chaos_seed{seed}).run(seed, 2);
        INFO(ranks << " ranks; again: " << replay(seed, by_name));
        CHECK_FALSE(seen[0].stuck);
        CHECK(seen[0].wrong == 0);
        CHECK(seen[0].refused > 0);
        // The whole run is a function of the seed.
        CHECK(seen[0].trace == seen[1].trace);
        CHECK(seen[0].turns == seen[1].turns);
        CHECK(seen[0].bits == seen[1].bits);
    }
}

/// Floating-point numbers against the same reduction without chaos.
template <class Rough, class T, class... Policies>
void same_floats(int ranks, std::vector<std::string> const& nodes, int count) {
    outcome const plain = crew<reducer<T, small_inproc, Policies...>>(ranks, nodes).run(1, 2);
    CHECK(plain.same);
    for (std::uint64_t const seed : seeds(count)) {
        outcome const seen =
            crew<reducer<T, Rough, Policies...>>(ranks, nodes, chaos_seed{seed}).run(seed, 2);
        INFO(ranks << " ranks; again: " << replay(seed, by_name));
        CHECK_FALSE(seen.stuck);
        CHECK(seen.same);
        CHECK(seen.bits == plain.bits);
    }
}
template <class T, class... Policies>
void floats(int ranks, std::vector<std::string> const& nodes, int count) {
    same_floats<rough, T, Policies...>(ranks, nodes, count);
}

} // namespace

TEST_CASE("chaos: one thread drives all ranks: integers, every sharding, two hops and one") {
    integers<fusion::per_tensor>(2, {}, times(60));
    integers<fusion::per_tensor>(3, {}, times(60));
    integers<fusion::per_tensor>(5, {}, times(16));
    integers<fusion::per_tensor, sharding::whole_tensor>(3, {}, times(40));
    integers<fusion::balanced_buffer<8192, 512>>(4, {}, times(8));
    integers<fusion::whole_model, sharding::whole_tensor>(4, {}, times(8));
}

TEST_CASE("chaos: one thread drives all ranks: nodes of several ranks") {
    integers<fusion::per_tensor, intra_node::shared_memory>(4, {"a", "a", "b", "b"}, times(40));
    integers<fusion::per_tensor, intra_node::shared_memory>(6, {"a", "b", "b", "c", "c", "c"}, times(24));
}

TEST_CASE("chaos: one thread drives all ranks: the bits of floating-point sums are those without chaos") {
    floats<float, fusion::per_tensor>(3, {}, times(24));
    floats<float, update::sum, fusion::per_tensor, intra_node::shared_memory>(5, {"a", "a", "b", "b", "c"},
                                                                              times(12));
    floats<bfloat16, fusion::balanced_buffer<8192, 512>>(3, {}, times(12));
}

TEST_CASE("chaos: one thread drives all ranks: messages come twice, and are checked") {
    same_floats<rough_and_checked, float, fusion::per_tensor>(3, {}, times(24));
    same_floats<rough_and_checked, float, update::sum, fusion::per_tensor, intra_node::shared_memory>(
        5, {"a", "a", "b", "b", "c"}, times(8));
}

namespace {

/// Two reducers on one world, several buckets of each under way, and buffers outside the layouts. Returns what is wrong.
template <class Transport> int work(world& ranks, std::uint64_t seed) {
    using mine = reducer<std::int64_t, Transport, update::sum, fusion::per_tensor>;
    using other = reducer<std::int64_t, Transport, update::max, sharding::whole_tensor>;
    int wrong = 0;
    mine sums(ranks, layout::of(sizes), chaos_seed{seed});
    other most(ranks, layout::of(sizes), chaos_seed{seed + 1});
    auto const expect = [&](std::span<std::int64_t const> got, std::uint64_t step, bool sum) {
        for (std::size_t k = 0; k < got.size(); ++k) {
            std::int64_t due = value<std::int64_t>(0, step, k);
            for (int r = 1; r < ranks.size(); ++r) {
                auto const next = value<std::int64_t>(r, step, k);
                due = sum ? due + next : std::max(due, next);
            }
            wrong += due != got[k];
        }
    };
    auto const fill = [&](std::span<std::int64_t> tensor, std::uint64_t step) {
        for (std::size_t k = 0; k < tensor.size(); ++k)
            tensor[k] = value<std::int64_t>(ranks.rank(), step, k);
    };
    for (std::uint64_t step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            fill(sums.tensor(i), step * 100 + i);
            sums.ready(i);
            fill(most.tensor(i), step * 100 + 50 + i);
            most.ready(i);
        }
        sums.wait();
        most.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            expect(sums.tensor(i), step * 100 + i, true);
            expect(most.tensor(i), step * 100 + 50 + i, false);
        }
        for (std::size_t const length : {std::size_t{5}, std::size_t{9000}}) {
            std::vector<std::int64_t> buffer(length);
            fill(buffer, step + length);
            sums.all_reduce(buffer);
            expect(buffer, step + length, true);
        }
    }
    return wrong;
}

launch_options within(std::vector<std::string> nodes, int seconds) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(seconds);
    return options;
}

} // namespace

TEST_CASE("chaos: every rank a thread, two reducers at once, over inproc") {
    for (int const ranks : {2, 4})
        for (std::uint64_t const seed : seeds(times(50))) {
            INFO(ranks << " ranks; again: " << replay(seed, " -tc='chaos: every rank a thread*'"));
            CHECK(launch_threads(ranks, [&](world& w) { return work<rough>(w, seed) == 0 ? 0 : 1; }) == 0);
        }
}

namespace {

/// Reducers one after the other, each gone as soon as its rank is through with it. Returns what is wrong.
template <class Transport> int leave(world& w, std::uint64_t seed) {
    int wrong = 0;
    for (std::uint64_t n = 0; n < 4; ++n) {
        reducer<std::int64_t, Transport, update::sum, fusion::per_tensor> reduce(
            w, layout{{"one hop", 50}, {"and another", 60}, {"two", 3000}}, chaos_seed{seed + n});
        for (int step = 0; step < 3; ++step) {
            for (std::size_t i = reduce.size(); i-- > 0;) { // the one-hop ones end it
                for (std::int64_t& x : reduce.tensor(i)) x = w.rank() + step;
                reduce.ready(i);
            }
            reduce.wait();
            for (std::size_t i = 0; i < reduce.size(); ++i)
                for (std::int64_t const x : reduce.tensor(i))
                    wrong += x != w.size() * (w.size() - 1) / 2 + w.size() * step;
        }
    }
    return wrong;
}

/// In one world of processes, for what takes time is their start. What fails says its seed.
template <class Function>
int in_processes(int ranks, int count, std::string const& name, Function&& function) {
    auto const all = seeds(count);
    return launch(
        ranks,
        [&](world& w) {
            for (std::uint64_t const seed : all) {
                std::string what;
                try {
                    int const wrong = function(w, seed);
                    if (wrong != 0) what = std::to_string(wrong) + " elements differ";
                } catch (error const& thrown) {
                    what = thrown.what();
                }
                if (what.empty()) continue;
                std::fprintf(stderr, "rank %d: %s; again: %s\n", w.rank(), what.c_str(),
                             replay(seed, " -tc='" + name + "'").c_str());
                return 1;
            }
            return 0;
        },
        within({}, 240));
}

} // namespace

// Who has its result may go at once. The others owe it nothing, also where a receive of theirs was refused meanwhile.
TEST_CASE("chaos: a rank leaves while others are not through") {
    for (int const ranks : {2, 3}) {
        for (std::uint64_t const seed : seeds(times(100))) {
            INFO(ranks << " ranks; again: " << replay(seed, " -tc='chaos: a rank leaves*'"));
            CHECK(launch_threads(ranks, [&](world& w) { return leave<rough>(w, seed) == 0 ? 0 : 1; }) == 0);
        }
        CHECK(in_processes(ranks, times(60), "chaos: a rank leaves*", leave<chaos<small_tcp, fierce>>) == 0);
    }
}

TEST_CASE("chaos: every rank a process, two reducers at once, over tcp") {
    for (int const ranks : {2, 3})
        CHECK(in_processes(ranks, times(60), "chaos: every rank a process*",
                           work<chaos<small_tcp, fierce>>) == 0);
    CHECK(in_processes(3, times(40), "chaos: every rank a process*",
                       work<transport::checked<chaos<small_tcp, repeating>>>) == 0);
}

namespace {

/// How a rank ended that reduced until something ended it.
struct ending {
    failure why{};
    double seconds = 0;
    std::uint64_t seed = 0;
};

template <class Transport>
std::vector<ending> until_it_ends(int ranks, std::uint64_t seed, int patient, milliseconds deadline) {
    std::vector<ending> ends(static_cast<std::size_t>(ranks));
    launch_threads(ranks, [&](world& w) {
        ending& mine = ends[static_cast<std::size_t>(w.rank())];
        reducer<std::int64_t, Transport, update::sum, fusion::per_tensor> reduce(w, layout::of(sizes),
                                                                                 chaos_seed{seed});
        mine.seed = reduce.transport().seed();
        time_point since = clock::now();
        status ended;
        try {
            for (int step = 0; step < 1000 && ended.ok(); ++step) {
                since = clock::now();
                for (std::size_t i = 0; i < sizes.size(); ++i) reduce.ready(i);
                ended = reduce.wait(w.rank() == patient ? milliseconds(60'000) : deadline);
            }
            mine.why = ended.why();
        } catch (error const& thrown) { // by ready
            mine.why = thrown.why();
        }
        mine.seconds = std::chrono::duration<double>(clock::now() - since).count();
    });
    return ends;
}

} // namespace

TEST_CASE("chaos: a rank that falls silent ends all ranks within the deadline, with one name") {
    using stops = chaos<small_inproc, chaos_tuning{.stop = 1, .after = 200}>;
    milliseconds const deadline(700 * (HERRING_TEST_SLOW ? 3 : 1));
    for (int const ranks : {2, 3})
        for (std::uint64_t const seed : seeds(2)) {
            // The silent one waits longer than the others: it is they who accuse.
            auto const ends = until_it_ends<stops>(ranks, seed, 1, deadline);
            for (ending const& one : ends) {
                INFO(one.why.message()
                     << "\nagain: " << replay(seed, " -tc='chaos: a rank that falls silent*'"));
                CHECK(one.why.what == errc::timeout);
                CHECK(one.why.peer == ends[0].why.peer);
                // The silent one calls, and waits for others as they do for it: of ranks that wait in a circle the
                // one that was accused first is named, and the text says so.
                bool const circle =
                    one.why.message().find("waits for a rank that waits for it") != std::string::npos;
                CHECK((one.why.peer == 1 || (ranks > 2 && circle)));
                CHECK(one.seconds < 10);
                CHECK(one.seed == seed);
            }
        }
}

TEST_CASE("chaos: a link that is cut ends all ranks, with a named error") {
    using cuts = chaos<small_inproc, chaos_tuning{.cut = {0, 2}, .after = 300}>;
    for (int const ranks : {3, 4})
        for (std::uint64_t const seed : seeds(4)) {
            auto const ends = until_it_ends<cuts>(ranks, seed, -1, milliseconds(20'000));
            bool told = false;
            for (ending const& one : ends) {
                INFO(one.why.message() << "\nagain: " << replay(seed, " -tc='chaos: a link that is cut*'"));
                CHECK(one.why.what == errc::peer_lost);
                CHECK((one.why.peer == 0 || one.why.peer == 2));
                CHECK(one.why.peer == ends[0].why.peer);
                CHECK(one.seconds < 15);
                std::string const text = one.why.message();
                told = told || (text.find("chaos cut the link") != std::string::npos &&
                                text.find("seed " + std::to_string(seed)) != std::string::npos);
            }
            CHECK(told);
        }
}

// As documented: nothing looks at elements on their way, where the transport is not checked.
TEST_CASE("chaos: a turned bit is a wrong result, in silence") {
    using turns = chaos<small_inproc, chaos_tuning{.flip_per_1000 = 1000}>;
    std::atomic<std::uint64_t> turned{0}, wrong{0};
    launch_threads(2, [&](world& w) {
        reducer<std::int64_t, turns, update::sum> reduce(w, layout{{"t", 5000}}, chaos_seed{1});
        std::fill(reduce.tensor(0).begin(), reduce.tensor(0).end(), 1);
        reduce.ready(0);
        reduce.wait();
        for (std::int64_t const x : reduce.tensor(0)) wrong += x != 2;
        turned += reduce.transport().counts().flipped;
    });
    CHECK(turned > 0);
    CHECK(wrong > 0);
}
