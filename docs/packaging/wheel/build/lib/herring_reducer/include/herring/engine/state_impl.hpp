// herring: what the operations and routes of an engine share: its set-up, and how it ends where ranks differ.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_STATE_IMPL_HPP
#define HERRING_ENGINE_STATE_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/engine/state.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void hyper_values::name(char (&to)[64], std::size_t place) const noexcept {
    std::size_t const of_group = members.size() + 1, member = place % of_group;
    auto const group = static_cast<unsigned>(place / of_group);
    char which[24] = "";
    if (all.size() > of_group + 1) std::snprintf(which, sizeof which, " of group %u", group);
    if (place + 1 == all.size())
        std::snprintf(to, sizeof to, "the loss scale");
    else if (member == members.size())
        std::snprintf(to, sizeof to, "whether group %u is frozen (0 or 1)", group);
    else if (members[member] != nullptr)
        std::snprintf(to, sizeof to, "hyper::%.24s%s", members[member], which);
    else
        std::snprintf(to, sizeof to, "member %u of hyper%s", static_cast<unsigned>(member), which);
}

HERRING_SEPARABLE std::size_t hyper_values::list(char* to, std::size_t size) const noexcept {
    std::size_t used = 0;
    for (double const value : all) {
        char one[32];
        auto const length =
            static_cast<std::size_t>(std::snprintf(one, sizeof one, used == 0 ? "%.9g" : " %.9g", value));
        if (used + length >= size) break;
        std::memcpy(to + used, one, length + 1);
        used += length;
    }
    return used;
}

HERRING_SEPARABLE bool hyper_values::compare(char (&to)[160], char const* listed, int other,
                                             int rank) const noexcept {
    for (std::size_t place = 0; place < all.size() && *listed != 0; ++place) {
        char own[32];
        std::snprintf(own, sizeof own, "%.9g", all[place]);
        std::size_t const length = std::strcspn(listed, " ;");
        if (length != std::strlen(own) || std::memcmp(listed, own, length) != 0) {
            char what[64];
            name(what, place);
            std::snprintf(to, sizeof to, "%s is %.*s on rank %d and %s on rank %d", what,
                          static_cast<int>(length < 24 ? length : 24), listed, other, own, rank);
            return true;
        }
        listed += length;
        if (*listed != ' ') break;
        ++listed;
    }
    return false;
}

HERRING_SEPARABLE engine_state::engine_state(failure_sink sink, int rank, topology const& map,
                                             plan const& from, std::span<int const> with,
                                             std::size_t executions)
    : who(map, from.roles, rank, with), element_bytes(static_cast<std::uint16_t>(from.element_bytes)),
      sum_parts(from.parts), owners_serve(from.contributors_serve()),
      contributing_ranks(from.roles.contributing_ranks(map)), ledger(executions), failures(sink),
      peers(with.size()), node_parts(static_cast<std::size_t>(map.nodes())),
      local_offsets_(ledger.size() * static_cast<std::size_t>(who.local_size)),
      waited_for_ns_(with.size() + static_cast<std::size_t>(who.local_size)) {
    ledger.handles(who.own_chunks(), who.contributes, who.server);
    for (std::size_t i = 0; i < with.size(); ++i) peers[i].rank = with[i];
}

/// "a call of broadcast from rank 1 with 1000 elements", "a call of all_reduce by max with 1000 elements".
/// `stored`: bytes of an element of the reducer.
inline void name_execution(char (&to)[128], execution const& e, std::span<char const* const> rules,
                           std::size_t stored) noexcept {
    char beside[24] = "", size[24] = "";
    if (e.moved_bytes > 0 && e.moved_bytes != stored)
        std::snprintf(size, sizeof size, e.moved_bytes == 1 ? " of 1 byte" : " of %u bytes", e.moved_bytes);
    if (e.root >= 0)
        std::snprintf(beside, sizeof beside, " %s rank %d",
                      std::strcmp(e.name, "gather") == 0 ? "to" : "from", e.root);
    if (e.rule > 0 && e.rule <= rules.size())
        std::snprintf(beside, sizeof beside, " by %s", rules[e.rule - 1u]);
    if (e.label != no_bucket)
        std::snprintf(to, sizeof to, "bucket %u of a step%s with %zu elements", e.label, beside, e.elements);
    else if (std::strcmp(e.name, "serve") == 0)
        std::snprintf(to, sizeof to, "herring::serve");
    else
        std::snprintf(to, sizeof to, "a call of %.24s%s with %zu elements%s", e.name, beside,
                      e.moved_bytes > 0 ? e.elements / e.moved_bytes : e.elements, size);
}

HERRING_SEPARABLE bool engine_state::is_update(execution const& e) const noexcept {
    return e.label != no_bucket && e.operation != 0 && !values.all.empty();
}

inline constexpr char has_values[] = " has hyper values "; // a list follows

HERRING_SEPARABLE void engine_state::mismatch(int with, execution const& e, char const* how,
                                              std::uint8_t rule) noexcept {
    char what[128];
    name_execution(what, e, rules, element_bytes);
    bool const agrees = std::strcmp(e.name, "settle") == 0 || std::strcmp(e.name, "wait") == 0;
    bool const updates = is_update(e);
    char const* const more = agrees ? ", and let due() of the sync policy follow from steps and ballots alone"
                             : updates ? ", and set the same hyper values before the step"
                                       : "";
    char text[416];
    auto const length = static_cast<std::size_t>(
        rule > 0
            ? std::snprintf(text, sizeof text,
                            "rank %d is in this call by %.24s: rank %d is in %s; let all ranks make the "
                            "same calls by the same rules, in the same order",
                            with, rules[rule - 1u], who.rank, what)
            : std::snprintf(text, sizeof text,
                            "rank %d is in another operation, or in one %s%s: rank %d is in %s; let all "
                            "ranks make the same calls with the same sizes, in the same order%s",
                            with, how, updates ? ", or has other hyper values" : "", who.rank, what, more));
    constexpr std::size_t left = 48; // for what another rank puts before it
    if (updates && length + 40 + left < sizeof text) {
        std::size_t const begin =
            length + static_cast<std::size_t>(std::snprintf(text + length, sizeof text - length,
                                                            "; rank %d%s", who.rank, has_values));
        values.list(text + begin, sizeof text - left - begin);
    }
    failure const* const first = failures.fail(
        failure::make(errc::mismatch, who.rank, with, e.label != no_bucket ? "reduce" : e.name, text), true);
    // Both ranks may find it at once. Ranks of one machine hear of one failure first: the other rank
    // compares.
    if (updates && first != nullptr && first->reporter != who.rank) failures.amend(told(*first));
}

HERRING_SEPARABLE failure engine_state::told(failure const& why) const noexcept {
    failure seen = as_seen_by(why, who.rank);
    std::uint64_t const number = ledger.released().load(std::memory_order_relaxed);
    if (why.what != errc::mismatch || why.peer != who.rank || why.reporter == who.rank ||
        number == ledger.requested().load(std::memory_order_acquire))
        return seen;
    execution const& e = ledger.at(number);
    char const* const listed = std::strstr(why.text, has_values);
    char differs[160];
    if (listed != nullptr && is_update(e) &&
        values.compare(differs, listed + sizeof has_values - 1, why.reporter, who.rank)) {
        failure precise = why;
        std::snprintf(precise.text, sizeof precise.text,
                      "%s; set the same hyper values on all ranks before the step", differs);
        return as_seen_by(precise, who.rank);
    }
    char what[128];
    name_execution(what, e, rules, element_bytes);
    std::size_t const length = std::strlen(seen.text);
    std::snprintf(seen.text + length, sizeof seen.text - length, "; rank %d is in %s", who.rank, what);
    return seen;
}

HERRING_SEPARABLE void engine_state::find_slowest() noexcept {
    any_waited_for_.set(0);
    std::uint64_t most = 0, rank = 0; // from 1
    for (std::size_t i = 0; i < waited_for_ns_.size(); ++i) {
        std::uint64_t const ns = waited_for_ns_[i].get();
        if (ns == 0) continue;
        waited_for_ns_[i].set(0);
        if (ns <= most) continue;
        most = ns;
        int const whom = i < peers.size() ? peers[i].rank : who.rank_of(static_cast<int>(i - peers.size()));
        rank = static_cast<std::uint64_t>(whom) + 1;
    }
    slowest_ns_.set(most);
    slowest_rank_.set(rank);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_STATE_IMPL_HPP
