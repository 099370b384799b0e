// herring: what every waiting policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_WAITING_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_WAITING_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/transport/inproc.hpp"

namespace herring::conformance {

/// Asks for decisions in many states, then has reducers wait by them. Empty: the policy is sound.
template <class P> findings waiting_suite(settings const& how = {}) {
    static_assert(waiting_policy<P>);
    findings all;
    auto const find = [&](char const* test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };

    // A decision: one of the four, and the same for the same question.
    P const one{};
    for (int pass = 0; pass < 2; ++pass)
        for (bool const oversubscribed : {false, true})
            for (std::uint32_t const rounds : {0u, 1u, 7u, 1000u, 0xffffffffu})
                for (std::int64_t const ns :
                     {std::int64_t{0}, std::int64_t{1}, std::int64_t{10'000}, std::int64_t{1'000'000},
                      std::int64_t{100'000'000}, std::int64_t{1} << 60}) {
                    wait_action const action = one.next(rounds, ns, oversubscribed);
                    if (action > wait_action::sleep) find("decides", "an action that there is not");
                    if (P{}.next(rounds, ns, oversubscribed) != action ||
                        one.next(rounds, ns, oversubscribed) != action)
                        find("decides", "another answer to the same question");
                }

    if (!all.empty()) return all; // better not to work by it

    // At work: ranks that keep each other waiting, on one node or on two, polled by the caller and by a thread.
    auto const work = [&]<class Progress>(std::string const& name, Progress) {
        for (std::string const second : {"a", "b"})
            append(
                all, run_case(name, 2, {"a", second}, how, [&](stage& on) {
                    reducer<std::int64_t, transport::inproc, intra_node::shared_memory, update::sum, Progress,
                            P>
                        reduce(on.ranks, layout{{"small", 10}, {"large", 40'000}});
                    dice random(static_cast<std::uint64_t>(on.rank()) + 3);
                    for (int step = 0; step < 10;
                         ++step) { // with spinning ranks, a step may cost many time slices
                        if (static_cast<int>(random(2)) == on.rank())
                            for (std::size_t i = random(20); i > 0; --i) ::sched_yield(); // the other waits
                        for (std::size_t t = 0; t < 2; ++t) {
                            for (std::int64_t& x : reduce.tensor(t)) x = step + on.rank();
                            reduce.ready(t);
                        }
                        status const ended = reduce.wait(clock::now() + how.patience);
                        if (!on.expect(ended.ok(), "step " + std::to_string(step) + ": " + ended.message()))
                            return;
                        for (std::size_t t = 0; t < 2; ++t)
                            for (std::int64_t const x : reduce.tensor(t))
                                if (!on.expect(x == 2 * step + 1, "a wrong sum")) return;
                    }
                    on.ranks.barrier();
                }));
    };
    work("caller", progress::caller{});
    work("thread", progress::thread{});
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_WAITING_SUITE_HPP
