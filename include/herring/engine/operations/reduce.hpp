// herring: the operation of an all-reduce: every rank contributes the bucket, and gets the sum.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_REDUCE_HPP
#define HERRING_ENGINE_OPERATIONS_REDUCE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of an all-reduce: parts and results have the whole chunk.
class reduce_traffic {
  public:
    static constexpr lending lends = lending::swap;

    explicit reduce_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const&, int node) const noexcept { return state_.summed_by(node); }
    range sends(execution const&, chunk const& c, int, int) const noexcept { return c.range(); }
    bool returns(execution const&, chunk const&, int) const noexcept { return true; }
    std::byte const* part(execution const& e, chunk const& c, range const&, std::byte* stage) const noexcept {
        return state_.part(e, c, c.offset, stage);
    }
    std::byte const* result(execution const& e, chunk const& c) const noexcept { return landing(e, c); }
    std::byte* landing(execution const& e, chunk const& c) const noexcept { return state_.result(e, c); }
    void take_result(execution const& e, chunk const& c) const noexcept {
        if (e.device_sum == nullptr) state_.spread(e, c); // else devices spread the result
    }
    range given(execution const& e) const noexcept { return {0, e.elements}; }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// All ranks contribute, the chunk's server combines, all ranks take the result, which may overwrite the
/// contribution.
template <class Element, class Update> class reduce {
  public:
    using element = Element;
    using update = Update;
    using traffic = detail::reduce_traffic;

    reduce(detail::engine_state& state, traffic&) : state_(state), all_(state) {}

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void sum_rack(execution const& e, chunk const& c, parts_view const& parts, std::byte* sums) noexcept {
        all_.sum_rack(e, c, parts, sums);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        all_.combine(e, c.range(), parts, c.offset,
                     [&](std::size_t offset) { return all_.local_targets(e, offset); });
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        all_.combine_local(
            e, [boxes](int l) { return boxes[l]; }, state_.result_of(e, state_.who.local, 0), e.elements);
    }

    /// On a node of two ranks: sums the other rank's copy and this rank's memory into this rank's memory, and
    /// writes the next piece over that copy.
    void combine_lent(execution const& e) noexcept {
        int const other = 1 - state_.who.local;
        std::span<std::byte const> next = e.next;
        for (lent_part const& part : std::span(e.lent, e.lent_parts)) {
            all_.combine_with(e, other, part, state_.given_by(e, other, part.offset), next);
            next = {};
        }
    }

  private:
    detail::engine_state& state_;
    detail::combiner<Element, Update> all_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_REDUCE_HPP
