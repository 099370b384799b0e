// herring: the operations of a step with an optimizer in two phases: gradients are summed, and stay; then weights travel.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_OPTIMISE_IN_TWO_HPP
#define HERRING_ENGINE_OPERATIONS_OPTIMISE_IN_TWO_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/operations/optimise.hpp"
#include "herring/engine/operations/optimizer_memory.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/optimise.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Parts as of an all-reduce; results are empty, for the credit.
class hold_traffic : public reduce_traffic {
  public:
    static constexpr lending lends = lending::none;
    using reduce_traffic::reduce_traffic;

    std::size_t result_bytes(execution const&, chunk const&, int) const noexcept { return 0; }
    std::span<std::byte const> result(execution const&, chunk const&) const noexcept { return {}; }
    void take_result(execution const&, chunk const&) const noexcept {}
};

/// Parts are empty, for the credit; results are weights.
class return_traffic : public optimise_traffic {
  public:
    using optimise_traffic::optimise_traffic;

    std::size_t part_bytes(execution const&, chunk const&, int, int) const noexcept { return 0; }
    std::span<std::byte const> part(execution const&, chunk const&, int, std::byte*) const noexcept {
        return {};
    }
    range given(execution const&) const noexcept { return {}; }
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// The first phase: whoever combines a chunk keeps its gradients, and adds up their squares.
template <class Element, class Update, class Optimizer> class hold_gradients {
  public:
    using traffic = detail::hold_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    hold_gradients(detail::engine_state& state, traffic&) : state_(state), all_(state) {}

    /// Before the first execution.
    void use(memory& kept) noexcept { memory_ = &kept; }

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        hold(e, c, all_.operands_of(e, c.range(), parts, c.offset));
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        hold(e, {.elements = e.elements},
             {{}, all_.local_sources_at([boxes](int l) { return boxes[l]; }), {}});
    }
    void combine_lent(execution const&) noexcept {} // lends nothing

  private:
    void hold(execution const& e, chunk const& c,
              typename detail::combiner<Element, Update>::operands const& from) noexcept {
        std::size_t const place = memory_->place(e.label, c.offset);
        kernel::fold_gradients<Update, Element>(from.before, from.group, from.after,
                                                memory_->gradients(place), c.elements, state_.ranks_in(e),
                                                memory_->unscale());
        memory_->add_squares(e.label, c.offset, c.elements, place);
    }

    detail::engine_state& state_;
    detail::combiner<Element, Update> all_;
    memory* memory_ = nullptr;
};

/// The second phase: whoever holds the gradients of a chunk updates its weights, and everyone takes them.
template <class Element, class Optimizer> class return_weights {
  public:
    using traffic = detail::return_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    return_weights(detail::engine_state&, traffic& of) : traffic_(of) {}

    /// Before the first execution.
    void use(memory& kept) noexcept {
        memory_ = &kept;
        traffic_.place_weights(kept.weights());
    }

    void make_part(execution const&, chunk const&, std::byte*) noexcept {}
    void combine(execution const& e, chunk const& c, parts_view const&) noexcept {
        memory_->update(e.label, c.offset, c.elements);
    }
    void combine_mailboxes(execution const& e, std::byte* const*) noexcept {
        memory_->update(e.label, 0, e.elements);
    }
    void combine_lent(execution const&) noexcept {} // lends nothing

  private:
    traffic& traffic_;
    memory* memory_ = nullptr;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_OPTIMISE_IN_TWO_HPP
