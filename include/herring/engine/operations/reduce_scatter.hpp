// herring: the operation of a reduce-scatter: every rank contributes all of the bucket, and gets the sum of what it owns.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP
#define HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::operations {

/// Shards belong to owners: the rank that owns a range combines it, and nothing but a credit travels back. The execution has
/// the table of ranges (`owned`). By one hop a node gets of a chunk what its ranks own.
template <class Element, class Update> class reduce_scatter {
  public:
    using element = Element;
    using update = Update;
    static constexpr lending lends = lending::read;

    explicit reduce_scatter(detail::engine_state& state) : state_(state), all_(state) {}

    std::size_t part_bytes(execution const& e, chunk const& c, int, int to) const noexcept {
        return due_to(e, c, to).elements * state_.partial_bytes;
    }
    std::size_t result_bytes(execution const&, chunk const&, int) const noexcept { return 0; }
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    std::span<std::byte const> part(execution const& e, chunk const& c, int to, std::byte* stage) noexcept {
        return all_.part(e, c, due_to(e, c, to), stage);
    }
    std::span<std::byte const> combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (c.owner >= 0) {
            all_.combine(e, c.range(), parts, c.offset, state_.result_of(e, c.owner, c.offset));
            return {};
        }
        std::size_t const begin = due_to(e, c, state_.who.node).offset;
        for (int l = 0; l < state_.who.local_size; ++l)
            if (range const own = state_.owned_by(e, c, state_.who.rank_of(l)); own.elements > 0)
                all_.combine(e, own, parts, begin, state_.result_of(e, l, own.offset));
        return {};
    }
    std::byte* landing(execution const&, chunk const&) noexcept { return nullptr; }
    void take_result(execution const&, chunk const&) noexcept {}

    range given(execution const& e) const noexcept { return {0, e.elements}; }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        range const own = e.owned[state_.who.rank];
        if (own.elements > 0)
            all_.combine_local([&](int l) { return boxes[l] + own.offset * sizeof(Element); },
                               state_.result_of(e, state_.who.local, own.offset), own.elements);
    }
    /// Reads its own range of every copy, and its own contribution where that lies.
    void combine_lent(execution const& e) noexcept {
        for (lent_part const& part : std::span(e.lent, e.lent_parts))
            if (part.to != nullptr)
                all_.combine_local(
                    [&](int l) -> std::byte const* {
                        return l == state_.who.local ? part.from : state_.given_by(e, l, part.offset);
                    },
                    part.to, part.elements);
    }

  private:
    range due_to(execution const& e, chunk const& c, int node) const noexcept {
        return c.owner >= 0 ? c.range() : state_.owned_by_node(e, c, node);
    }

    detail::engine_state& state_;
    detail::combiner<Element, Update> all_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_REDUCE_SCATTER_HPP
