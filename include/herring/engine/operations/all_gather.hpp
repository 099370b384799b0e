// herring: the operation of an all-gather: every rank contributes its range, and gets the ranges of all.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_ALL_GATHER_HPP
#define HERRING_ENGINE_OPERATIONS_ALL_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/copies.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of an all-gather. By two hops shards belong to owners: a push is empty, for the credit, and the
/// owner returns its range to all nodes. A server that is not the owner gets the range from the owner's node,
/// and returns it to the others. By one hop a node sends the ranges of its ranks in a chunk. In an execution
/// with a root, a small gather, all nodes send their ranges to one server, which returns all to the root.
class all_gather_traffic {
  public:
    static constexpr lending lends = lending::swap_or_read;

    explicit all_gather_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const& e, int) const noexcept { return {e.element_bytes}; }
    range sends(execution const& e, chunk const& c, int from, int) const noexcept {
        return c.owner >= 0 && state_.owners_serve ? range{} : state_.owned_by_node(e, c, from);
    }
    bool returns(execution const& e, chunk const& c, int to) const noexcept {
        if (e.root >= 0) return to == state_.who.map.node(e.root);
        return state_.owners_serve || !state_.is_owned_by(e, c, to);
    }
    std::byte const* part(execution const& e, chunk const& c, range const& what,
                          std::byte* stage) const noexcept {
        if (c.owner >= 0) return state_.given_by(e, c.owner, c.offset);
        return state_.who.local_size > 1 ? stage : state_.given_by(e, state_.who.local, what.offset);
    }
    /// The owner sends its range from the caller's memory: its copy at the result may be outside the caches.
    std::byte const* result(execution const& e, chunk const& c) const noexcept {
        return c.owner >= 0 && state_.owners_serve ? state_.given_by(e, c.owner, c.offset) : landing(e, c);
    }
    std::byte* landing(execution const& e, chunk const& c) const noexcept { return state_.result(e, c); }
    void take_result(execution const& e, chunk const& c) const noexcept {
        if (returns(e, c, state_.who.node)) return spread(e, c.range(), landing(e, c));
        if (e.root >= 0) return;                        // the root alone gets the ranges
        for (int l = 0; l < state_.who.local_size; ++l) // this is the credit: the range has been sent
            state_.copy(state_.result_of(e, l, c.offset), state_.given_by(e, c.owner, c.offset),
                        e.bytes(c.elements));
    }
    range given(execution const& e) const noexcept { return e.part.owned[state_.who.rank]; }
    /// Copies a range into the results of all local ranks; of those of a gather into the root's, and this
    /// rank's, from which they are returned.
    void spread(execution const& e, range const& what, std::byte const* from) const noexcept {
        for (int l = 0; l < state_.who.local_size; ++l)
            if (e.root < 0 || l == state_.who.local || state_.who.rank_of(l) == e.root)
                state_.copy(state_.result_of(e, l, what.offset), from, e.bytes(what.elements));
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Moves each rank's owned range to all ranks, or to the root, if the execution has one. It has the table of
/// ranges (`owned`). Depends on no element type.
class all_gather {
  public:
    using traffic = detail::all_gather_traffic;

    all_gather(detail::engine_state& state, traffic& of) noexcept : state_(state), traffic_(of) {}

    /// Collects the ranges of a node's ranks in `stage`.
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (c.owner >= 0 || state_.who.local_size == 1) return;
        std::size_t const begin = state_.owned_by_node(e, c, state_.who.node).offset;
        for (int l = 0; l < state_.who.local_size; ++l) {
            range const own = state_.owned_by(e, c, state_.who.rank_of(l));
            if (own.elements == 0) continue; // an empty range may have no memory
            state_.copy(stage + e.bytes(own.offset - begin), state_.given_by(e, l, own.offset),
                        e.bytes(own.elements));
        }
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (c.owner >= 0 && !state_.owners_serve) {
            for (auto const& side : {parts.before, parts.after})
                for (node_part const& p : side)
                    if (state_.is_owned_by(e, c, p.node)) traffic_.spread(e, c.range(), p.data);
            return;
        }
        if (c.owner >= 0) {
            std::byte const* const from = state_.given_by(e, c.owner, c.offset);
            if (e.out == nullptr || e.bytes(e.elements) < streamed_bytes)
                return traffic_.spread(e, c.range(), from);
            std::byte* const to = state_.result_of(e, state_.who.local, c.offset);
            if (to != from) kernel::stream_copy(to, from, e.bytes(c.elements));
            return;
        }
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side) {
                std::size_t const begin = state_.owned_by_node(e, c, p.node).offset;
                for (int const rank : state_.who.map.members(p.node)) {
                    range const own = state_.owned_by(e, c, rank);
                    if (own.elements > 0) // an empty range may begin before the node's part
                        traffic_.spread(e, own, p.data + e.bytes(own.offset - begin));
                }
            }
        for (int l = 0; l < state_.who.local_size; ++l) {
            range const own = state_.owned_by(e, c, state_.who.rank_of(l));
            if (own.elements > 0) traffic_.spread(e, own, state_.given_by(e, l, own.offset));
        }
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        for (int l = 0; l < state_.who.local_size; ++l) {
            range const theirs = e.part.owned[state_.who.rank_of(l)];
            state_.copy(state_.result_of(e, state_.who.local, theirs.offset),
                        boxes[l] + e.bytes(theirs.offset), e.bytes(theirs.elements));
        }
    }
    /// Lent part l is the range of local rank l.
    void combine_lent(execution const& e) noexcept {
        for (int l = 0; l < state_.who.local_size; ++l) {
            lent_part const& part = e.lent[l];
            if (l != state_.who.local)
                state_.fetch(part.to, state_.given_by(e, l, part.offset), e.bytes(part.elements),
                             part.landing, e.next);
            else if (part.landing != copy_mode::streamed)
                state_.copy(part.to, part.from, e.bytes(part.elements));
            else if (part.to != part.from)
                kernel::stream_copy(part.to, part.from, e.bytes(part.elements));
        }
    }

  private:
    /// Results from this size on do not stay in a core's cache, so an ordinary copy would read the lines that
    /// it overwrites.
    static constexpr std::size_t streamed_bytes = 4 << 20;

    detail::engine_state& state_;
    traffic& traffic_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_ALL_GATHER_HPP
