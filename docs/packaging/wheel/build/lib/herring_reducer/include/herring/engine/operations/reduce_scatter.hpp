// herring: the operation of a reduce-scatter: every rank contributes a bucket, and gets the sum of its range.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP
#define HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/copies.hpp"

#include <algorithm>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of a reduce-scatter. By two hops shards belong to owners: results are empty, for the credit,
/// except from a server that is not the owner to the owner's node. By one hop a node gets the ranges of its
/// ranks in a chunk.
class reduce_scatter_traffic {
  public:
    static constexpr lending lends = lending::swap_or_read;

    explicit reduce_scatter_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const&, int node) const noexcept { return state_.summed_by(node); }
    range sends(execution const& e, chunk const& c, int, int to) const noexcept { return due_to(e, c, to); }
    bool returns(execution const& e, chunk const& c, int to) const noexcept {
        return !state_.owners_serve && state_.is_owned_by(e, c, to);
    }
    std::byte const* part(execution const& e, chunk const& c, range const& what,
                          std::byte* stage) const noexcept {
        return state_.part(e, c, what.offset, stage);
    }
    std::byte const* result(execution const& e, chunk const& c) const noexcept { return state_.result(e, c); }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return state_.result_of(e, c.owner, c.offset);
    }
    void take_result(execution const&, chunk const&) const noexcept {}
    range given(execution const& e) const noexcept { return {0, e.elements}; }

    /// The range of a chunk that node `to` gets.
    range due_to(execution const& e, chunk const& c, int to) const noexcept {
        return c.owner >= 0 ? c.range() : state_.owned_by_node(e, c, to);
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// The owner of a range combines it. The execution has the table of ranges (`owned`).
template <class Element, class Update> class reduce_scatter {
  public:
    using traffic = detail::reduce_scatter_traffic;

    reduce_scatter(detail::engine_state& state, traffic& of) : state_(state), traffic_(of), all_(state) {}

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (c.owner >= 0)
            return all_.combine(
                e, c.range(), parts, c.offset,
                state_.result_of(e, state_.owners_serve ? c.owner : state_.who.local, c.offset));
        std::size_t const begin = traffic_.due_to(e, c, state_.who.node).offset;
        for (int l = 0; l < state_.who.local_size; ++l)
            if (range const own = state_.owned_by(e, c, state_.who.rank_of(l)); own.elements > 0)
                all_.combine(e, own, parts, begin, state_.result_of(e, l, own.offset));
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        range const own = e.part.owned[state_.who.rank];
        if (own.elements > 0)
            all_.combine_local(
                e, [&](int l) { return boxes[l] + own.offset * sizeof(Element); },
                state_.result_of(e, state_.who.local, own.offset), own.elements);
    }
    /// Reads this rank's range of the other ranks' copies, and of its contribution in the caller's memory.
    void combine_lent(execution const& e) noexcept {
        for (lent_part const& part : std::span(e.lent, e.lent_parts)) {
            if (part.to == nullptr) continue;
            if (state_.who.local_size == 2)
                all_.combine_with(e, 1 - state_.who.local, part,
                                  state_.given_by(e, 1 - state_.who.local, part.offset), e.next);
            else
                for (std::size_t at = 0; at < part.elements; at += block)
                    combine_block(e, part, at, std::min(block, part.elements - at));
        }
    }

  private:
    static constexpr std::size_t block = std::max<std::size_t>(4096 / sizeof(Element), 1);

    /// Combines a block on a node of more than two ranks. Claims the lines of the other ranks' copies: this
    /// rank alone reads them, and their owner writes them next.
    void combine_block(execution const& e, lent_part const& part, std::size_t from,
                       std::size_t elements) noexcept {
        all_.combine_local(
            e,
            [&](int l) -> std::byte const* {
                return l == state_.who.local ? part.from + from * sizeof(Element)
                                             : state_.given_by(e, l, part.offset + from);
            },
            part.to + from * sizeof(Element), elements);
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l != state_.who.local)
                kernel::claim_lines(state_.given_by(e, l, part.offset + from), elements * sizeof(Element));
    }

    detail::engine_state& state_;
    traffic& traffic_;
    detail::combiner<Element, Update> all_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP
