// herring: what servers of their own must do: each worker gets, in every call, the bits that it gets without them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_DEDICATED_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_DEDICATED_SUITE_HPP

#include "conformance/collectives_suite.hpp"
#include "conformance/suite.hpp"

#include "herring/collectives/all_moments.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/serve.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mman.h>

namespace herring::conformance {

/// Workers by their nodes, and where servers stand among them: 's' is one.
struct arrangement {
    std::string ranks; ///< one letter a rank: the name of a worker's node, or 's'

    int size() const noexcept { return static_cast<int>(ranks.size()); }
    launch_options with_servers() const {
        launch_options options;
        for (char const c : ranks) {
            options.nodes.emplace_back(1, c == 's' ? 'a' : c); // on the first workers' machine
            options.roles.push_back(c == 's' ? role::server : role::worker);
        }
        return options;
    }
    launch_options without() const {
        launch_options options;
        for (char const c : ranks)
            if (c != 's') options.nodes.emplace_back(1, c);
        return options;
    }
};
/// One to four workers on one to four nodes, one to four servers, before, among and behind them.
inline std::vector<arrangement> const arrangements{{"abssab"},  {"sabcs"},    {"aaaass"},  {"as"},
                                                   {"sabcd"},   {"ssa"},      {"aasb"},    {"abs"},
                                                   {"abbssss"}, {"abcdssss"}, {"aabsbbss"}};

/// The digests of what workers got, in shared memory: the worker's n-th result.
class results {
  public:
    static constexpr std::size_t most = 1024, most_workers = 8;
    struct of_worker {
        std::uint64_t count = 0;
        std::uint64_t digests[most] = {};
        std::uint64_t called[most] = {}; // sizes
        char names[most][24] = {};
    };
    results()
        : all_(static_cast<of_worker*>(::mmap(nullptr, sizeof(of_worker) * most_workers,
                                              PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
        for (std::size_t w = 0; w < most_workers; ++w) ::new (all_ + w) of_worker;
    }
    results(results const&) = delete;
    results& operator=(results const&) = delete;
    ~results() { ::munmap(all_, sizeof(of_worker) * most_workers); }

    template <class Element>
    void add(int worker, std::string_view name, std::span<Element const> what) noexcept {
        of_worker& mine = all_[worker];
        std::size_t const n = mine.count++;
        if (n >= most) return;
        mine.digests[n] = std::hash<std::string_view>()(
            std::string_view(reinterpret_cast<char const*>(what.data()), what.size_bytes()));
        mine.called[n] = what.size();
        name.copy(mine.names[n], sizeof mine.names[n] - 1);
    }
    /// What differs first of one worker; empty: nothing.
    std::string difference(results const& from, int worker) const {
        of_worker const &mine = all_[worker], &theirs = from.all_[worker];
        if (mine.count != theirs.count || mine.count == 0 || mine.count > most)
            return "results " + std::to_string(mine.count) + ", without servers " +
                   std::to_string(theirs.count);
        for (std::size_t n = 0; n < mine.count; ++n)
            if (mine.digests[n] != theirs.digests[n])
                return std::string(mine.names[n]) + " of " + std::to_string(mine.called[n]) +
                       " elements has other bits, result " + std::to_string(n);
        return {};
    }

  private:
    of_worker* all_;
};

/// Runs a program of workers with servers of their own and without, and compares what each worker got. `Program`: has
/// `tensors()`, and `work<Reducer>(ranks, into)`.
template <class Program, class Colocated, class Dedicated>
findings same_with_servers(arrangement const& on, settings const& how = {}) {
    results with, without;
    std::string const name = "as without servers, on " + on.ranks;
    findings found;
    auto const run = [&](int ranks, launch_options const& options, auto const& body) {
        auto const guarded = [&](world& w) {
            try {
                body(w);
            } catch (std::exception const& why) {
                std::fprintf(stderr, "%s: %s\n", name.c_str(), why.what());
                w.fail(failure::make(errc::peer_failed, w.rank(), -1, "conformance", why.what()));
                return 1;
            }
            return 0;
        };
        int const status = how.start == ranks_as::threads ? launch_threads(ranks, guarded, options)
                                                          : launch(ranks, guarded, options);
        if (status != 0) found.push_back({name, -1, "a rank ended with an error"});
    };
    run(static_cast<int>(on.without().nodes.size()), on.without(),
        [&](world& w) { Program::template work<Colocated>(w, without); });
    run(on.size(), on.with_servers(), [&](world& w) {
        if (w.role() == role::server)
            serve<Dedicated>(w, Program::tensors());
        else
            Program::template work<Dedicated>(w, with);
    });
    for (int w = 0; w < static_cast<int>(on.without().nodes.size()); ++w)
        if (std::string const what = with.difference(without, w); !what.empty())
            found.push_back({name, w, what});
    return found;
}

template <class Program, class Colocated, class Dedicated>
findings same_on_all(settings const& how = {}, std::size_t count = arrangements.size()) {
    findings found;
    for (arrangement const& one : std::span(arrangements).first(count))
        append(found, same_with_servers<Program, Colocated, Dedicated>(one, how));
    return found;
}

/// Steps with tensors of the reducer's and of the caller's, and every collective, of sizes about every threshold.
struct all_calls {
    static layout tensors() {
        return layout::of(std::vector<std::size_t>{1000, 0, 3, 40'001, 17, 1, 900, 131'101, 512});
    }
    template <class Reducer> static void work(world& ranks, results& into) {
        using T = typename Reducer::element_type;
        Reducer reduce(ranks, tensors());
        int const me = ranks.worker();
        auto const filled = [&](std::size_t n, int turn) {
            return detail::copy_of(detail::elements_of<T>(me, turn, n));
        };
        int root = 0; // the worker in the middle
        for (int r = 0; r < ranks.size(); ++r)
            if (ranks.topology().worker(r) == ranks.workers() / 2) root = r;
        int turn = 0;
        for (std::size_t const n : {std::size_t{1}, std::size_t{0}, std::size_t{5}, std::size_t{513},
                                    std::size_t{65'569}, std::size_t{5121}, std::size_t{200'003}}) {
            if (n * sizeof(T) > 1'250'000) continue;
            if (++turn % 4 == 1) step(reduce, into, me, turn); // every second size
            std::vector<T> const in = filled(n, ++turn);
            std::vector<T> out(n);
            range const own = reduce.owned(n);
            std::vector<T> part(own.elements);
            // By each rule, if there are several.
            auto const combine = [&](auto... by) {
                reduce.all_reduce(std::span<T const>(in), std::span<T>(out), by...);
                into.add<T>(me, "all_reduce", out);
                reduce_scatter(reduce, in, part, by...);
                into.add<T>(me, "reduce_scatter", part);
            };
            by_rules<typename Reducer::pack::update>(combine);
            std::fill(out.begin(), out.end(), T{});
            all_gather(reduce, part, out);
            into.add<T>(me, "all_gather", out);
            out = in;
            broadcast(reduce, std::span<T>(out), root);
            into.add<T>(me, "broadcast", out);
            std::vector<three_bytes> small(n * sizeof(T) / 3), all(small.size()); // moved as bytes
            if (n > 0) std::memcpy(small.data(), in.data(), small.size() * 3);
            broadcast(reduce, small, root);
            into.add<three_bytes>(me, "broadcast of 3 bytes", small);
            range const few = reduce.owned(small.size());
            all_gather(reduce, std::span(small).subspan(few.offset, few.elements), all);
            into.add<three_bytes>(me, "all_gather of 3 bytes", all);
            std::vector<T> place = in; // in place
            by_rules<typename Reducer::pack::update>([&](auto... by) {
                reduce_scatter(reduce, place, std::span(place).subspan(own.offset, own.elements), by...);
                into.add<T>(me, "reduce_scatter in place", place);
            });
            all_gather(reduce, std::span(place).subspan(own.offset, own.elements), place);
            into.add<T>(me, "all_gather in place", place);
            if constexpr (herring::detail::gives_deviations<typename Reducer::pack::update>) {
                std::vector<T> mean(n), deviation(n);
                all_moments(reduce, in, mean, deviation);
                into.add<T>(me, "the means", mean);
                into.add<T>(me, "the deviations", deviation);
            }
        }
    }

  private:
    template <class Update, class Call> static void by_rules(Call const& call) {
        if constexpr (herring::detail::lists_rules<Update>)
            for (std::uint8_t number = 1; number <= Update::names().size(); ++number)
                Update::choose(number, [&]<class Rule>(std::type_identity<Rule>) {
                    call(typename Update::rule(Rule()));
                });
        else
            call();
    }
    template <class Reducer> static void step(Reducer& reduce, results& into, int me, int turn) {
        using T = typename Reducer::element_type;
        std::vector<std::vector<T>> lent(reduce.size());
        for (std::size_t i = lent.size(); i-- > 0;) {
            bool const own = (i + static_cast<std::size_t>(turn)) % 2 == 0;
            lent[i].resize(own ? 0 : reduce.plan().tensors[i].elements);
            std::span<T> const at = own ? reduce.tensor(i) : std::span<T>(lent[i]);
            auto const from = detail::elements_of<T>(me, turn, at.size());
            std::copy(from.begin(), from.end(), at.begin());
            own ? reduce.ready(i) : reduce.ready(i, at);
        }
        reduce.wait();
        for (std::size_t i = 0; i < lent.size(); ++i)
            into.add<T>(me, "a tensor",
                        lent[i].empty() ? std::span<T const>(reduce.tensor(i)) : std::span<T const>(lent[i]));
    }
};

/// Steps with an optimizer, other hyper values on the way, and a second start from another root.
struct training_steps {
    static layout tensors() {
        // Smaller under a sanitizer: more chunks than windows all the same.
        return layout::of(std::vector<std::size_t>{3, HERRING_TEST_SLOW ? 16'417u : 65'569u, 0, 17, 1, 900,
                                                   5121, HERRING_TEST_SLOW ? 24'999u : 131'101u, 512, 40});
    }
    template <class Trainer> static void work(world& ranks, results& into) {
        using T = typename Trainer::element_type;
        Trainer train(ranks, tensors());
        int const me = ranks.worker();
        for (int again = 0; again < 2; ++again) {
            int root = 0;
            for (int r = 0; r < ranks.size(); ++r)
                if (ranks.topology().worker(r) == again * (ranks.workers() - 1)) root = r;
            train.start(root, [&](std::size_t i, std::span<T> weights) {
                auto const from = detail::elements_of<T>(50, static_cast<int>(i) + again, weights.size());
                std::copy(from.begin(), from.end(), weights.begin());
            });
            for (int turn = 0; turn < 4; ++turn) {
                if (turn == 2) {
                    auto values = train.hyper();
                    values.rate = values.rate / 2;
                    train.set(values);
                }
                for (std::size_t i = train.size(); i-- > 0;) {
                    std::span<T> const gradient = train.tensor(i);
                    T const* const from =
                        detail::elements_of<T>(me, turn + static_cast<int>(i), gradient.size()).data();
                    T* const to = gradient.data();
                    for (std::size_t k = 0, n = gradient.size(); k < n; ++k) to[k] = from[k] / 128;
                    train.ready(i);
                }
                train.wait();
                for (std::size_t i = 0; i < train.size(); ++i) into.add<T>(me, "weights", train.weights(i));
            }
        }
    }
};

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_DEDICATED_SUITE_HPP
