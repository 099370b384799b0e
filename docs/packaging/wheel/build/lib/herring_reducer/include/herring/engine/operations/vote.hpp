// herring: the operation of a vote: every rank contributes bits, and gets the bits that any rank set.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_VOTE_HPP
#define HERRING_ENGINE_OPERATIONS_VOTE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of a vote: parts and results have the whole chunk, as stored.
class vote_traffic : public reduce_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit vote_traffic(engine_state& state) noexcept : reduce_traffic(state), state_(state) {}

    part_format format(execution const& e, int) const noexcept { return {e.element_bytes}; }
    std::byte const* part(execution const& e, chunk const& c, range const&, std::byte* stage) const noexcept {
        return state_.who.local_size > 1 ? stage : state_.given_by(e, state_.who.local, c.offset);
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// The bitwise or of the elements of all ranks. Depends on no element type.
class vote {
  public:
    using traffic = detail::vote_traffic;

    vote(detail::engine_state& state, traffic&) noexcept : state_(state) {}

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (state_.who.local_size > 1) combine_node(e, c, stage);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        std::size_t const bytes = e.bytes(c.elements);
        std::byte* const result = state_.result_of(e, state_.who.local, c.offset);
        if (state_.who.contributes)
            combine_node(e, c, result);
        else
            std::memset(result, 0, bytes);
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side) add(result, p.data, bytes);
        state_.spread(e, c);
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        std::size_t const bytes = e.bytes(e.elements);
        std::byte* const result = state_.result_of(e, state_.who.local, 0);
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l == 0)
                std::memmove(result, boxes[0], bytes);
            else
                add(result, boxes[l], bytes);
    }
    void combine_lent(execution const&) noexcept {} // a vote lends nothing

  private:
    static void add(std::byte* to, std::byte const* more, std::size_t bytes) noexcept {
        for (std::size_t i = 0; i < bytes; ++i) to[i] |= more[i];
    }
    /// Combines the contributions of the local ranks, this rank's first: `to` may be its contribution.
    void combine_node(execution const& e, chunk const& c, std::byte* to) noexcept {
        state_.copy(to, state_.given_by(e, state_.who.local, c.offset), e.bytes(c.elements));
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l != state_.who.local) add(to, state_.given_by(e, l, c.offset), e.bytes(c.elements));
    }

    detail::engine_state& state_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_VOTE_HPP
