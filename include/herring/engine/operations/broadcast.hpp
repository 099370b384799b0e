// herring: the operation of a broadcast: one rank, the root, contributes the bucket, and the others get it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_BROADCAST_HPP
#define HERRING_ENGINE_OPERATIONS_BROADCAST_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of a broadcast. The root's node alone pushes, to each chunk's server, and the server returns the
/// chunk to the other nodes: no node sends more than the bucket twice. All other messages are empty, for the
/// credit. In an execution with a table of ranges (`owned`), a small scatter, a node gets what its ranks own.
class broadcast_traffic {
  public:
    static constexpr lending lends = lending::swap_or_read;

    explicit broadcast_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const& e, int) const noexcept { return {e.element_bytes}; }
    range sends(execution const& e, chunk const& c, int from, int) const noexcept {
        return from == root_node(e) ? c.range() : range{};
    }
    bool returns(execution const& e, chunk const&, int to) const noexcept { return to != root_node(e); }
    std::byte const* part(execution const& e, chunk const& c, range const&, std::byte*) const noexcept {
        return of_root(e, c.offset);
    }
    std::byte const* result(execution const& e, chunk const& c) const noexcept {
        return is_at_root(e) ? of_root(e, c.offset) : state_.result(e, c);
    }
    /// The range of a chunk that a node gets, and its bytes.
    range returned(execution const& e, chunk const& c, int to) const noexcept {
        return e.part.owned == nullptr ? c.range() : state_.owned_by_node(e, c, to);
    }
    std::span<std::byte const> result_to(execution const& e, chunk const& c, int to) const noexcept {
        range const what = returned(e, c, to);
        return {result(e, c) + e.bytes(what.offset - c.offset), e.bytes(what.elements)};
    }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return state_.result_of(e, state_.who.local, returned(e, c, state_.who.node).offset);
    }
    /// At the root's node it is the credit: the part has been sent.
    void take_result(execution const& e, chunk const& c) const noexcept { spread(e, c, result(e, c)); }
    range given(execution const& e) const noexcept {
        return e.root == state_.who.rank ? range{0, e.elements} : range{};
    }

    int root_node(execution const& e) const noexcept { return state_.who.map.node(e.root); }
    int local_root(execution const& e) const noexcept { return state_.who.map.local_rank(e.root); }
    bool is_at_root(execution const& e) const noexcept { return root_node(e) == state_.who.node; }
    std::byte* of_root(execution const& e, std::size_t offset) const noexcept {
        return state_.given_by(e, local_root(e), offset);
    }
    /// Copies a chunk into the results of all local ranks but the root: what each owns of it, if there is a
    /// table; all of it into this rank's, from which it is returned.
    void spread(execution const& e, chunk const& c, std::byte const* from) const noexcept {
        for (int l = 0; l < state_.who.local_size; ++l) {
            int const rank = state_.who.rank_of(l);
            bool const whole = e.part.owned == nullptr || l == state_.who.local;
            range const what = whole ? c.range() : state_.owned_by(e, c, rank);
            if (rank != e.root)
                state_.copy(state_.result_of(e, l, what.offset), from + e.bytes(what.offset - c.offset),
                            e.bytes(what.elements));
        }
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Copies the root's bucket to all ranks, or to each the range that it owns. Depends on no element type.
class broadcast {
  public:
    using traffic = detail::broadcast_traffic;

    broadcast(detail::engine_state& state, traffic& of) noexcept : state_(state), traffic_(of) {}

    void make_part(execution const&, chunk const&, std::byte*) noexcept {}
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (traffic_.is_at_root(e)) return traffic_.spread(e, c, traffic_.result(e, c));
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side)
                if (p.node == traffic_.root_node(e)) traffic_.spread(e, c, p.data);
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        if (e.root != state_.who.rank)
            state_.copy(state_.result_of(e, state_.who.local, 0), boxes[traffic_.local_root(e)],
                        e.bytes(e.elements));
    }
    void combine_lent(execution const& e) noexcept {
        if (e.root == state_.who.rank) return;
        for (lent_part const& part : std::span(e.lent, e.lent_parts))
            state_.fetch(part.to, traffic_.of_root(e, part.offset), e.bytes(part.elements), part.landing);
    }

  private:
    detail::engine_state& state_;
    traffic& traffic_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_BROADCAST_HPP
