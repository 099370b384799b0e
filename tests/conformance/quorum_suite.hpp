// herring: what every quorum policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_QUORUM_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_QUORUM_SUITE_HPP

#include "conformance/suite.hpp"
#include "unit/ensemble/table_scripts.hpp"

#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/quorum.hpp"

namespace herring::conformance {

/// Asks for k of rosters of every size, looks at the tuning, then has a frontend's table decide requests by both. Empty: the
/// policy is sound.
template <class Q> findings quorum_suite() {
    static_assert(quorum_policy<Q>);
    findings all;
    auto const find = [&](char const* test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };

    // k: at least one member, the same for the same roster, no fewer of more members, and such that some roster has them.
    bool met = false;
    std::size_t before = 0;
    for (std::size_t roster = 1; roster <= member_set::capacity; ++roster) {
        std::size_t const k = Q::least(roster);
        std::string const of = " of " + std::to_string(roster);
        if (k == 0) find("counts", "nobody" + of);
        if (Q::least(roster) != k) find("counts", "another answer to the same question");
        if (k < before)
            find("counts", std::to_string(k) + of + ", and " + std::to_string(before) + " of fewer");
        before = k;
        met = met || k <= roster;
    }
    if (!met) find("counts", "no roster has as many members");

    // How long, and on whom, it waits.
    constexpr quorum_tuning tuning = Q::tuning;
    if (tuning.probation_left_after == 0)
        find("tuning", "probation is left after 0 requests: it never holds");
    if (tuning.grace_percent > 1000 && tuning.grace_percent != quorum_tuning::to_the_deadline)
        find("tuning", "a grace of more than ten times t_k");
    if (tuning.least_grace_us > 1'000'000) find("tuning", "a grace of more than a second");
    if (!all.empty()) return all; // better not to decide by it

    // At work: the table decides as the history says, with this k and this tuning.
    ensembles::table_script::seen seen;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(1000)); ++seed) {
        ensembles::table_options options = ensembles::random_options(seed, tuning, 0);
        while (Q::least(options.members) > options.members && options.members < 8) ++options.members;
        options.k = Q::least(options.members);
        std::string const wrong = ensembles::wrong_in(options, seed, 80, seen);
        if (!wrong.empty()) {
            find("decides", "script " + std::to_string(seed) + ":\n" + wrong);
            break;
        }
    }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_QUORUM_SUITE_HPP
