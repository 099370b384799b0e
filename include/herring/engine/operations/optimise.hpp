// herring: the operation of a step with an optimizer: gradients are summed and weights updated by their owner, who returns weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP
#define HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/operations/optimizer_memory.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/optimise.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Parts as of an all-reduce. Results are weights: they land in the node's one copy, which all of its ranks read, so nothing is
/// spread. What goes by mailbox each rank makes for itself, in a copy of its own.
class optimise_traffic : public reduce_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit optimise_traffic(engine_state& state) noexcept : reduce_traffic(state), state_(state) {}

    std::span<std::byte const> result(execution const& e, chunk const& c) const noexcept {
        return {landing(e, c), c.elements * state_.element_bytes};
    }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return weights_.bucket(e.label) + c.offset * state_.element_bytes;
    }
    void take_result(execution const&, chunk const&) const noexcept {}

    void place_weights(placed_weights const& weights) noexcept { weights_ = weights; }

  private:
    engine_state& state_;
    placed_weights weights_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Everyone contributes gradients; whoever combines a chunk updates its weights in the same pass, with the state that it alone
/// keeps, and everyone takes the weights. Executions are buckets of the plan; their `label` is the bucket's number.
///
/// Bits: as of an all-reduce with `Update`, and then the optimizer on every rank.
template <class Element, class Update, class Optimizer> class optimise {
  public:
    using traffic = detail::optimise_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    optimise(detail::engine_state& state, traffic& of) : state_(state), traffic_(of), all_(state) {}

    /// Before the first execution.
    void use(memory& kept) noexcept {
        memory_ = &kept;
        traffic_.place_weights(kept.weights());
    }

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        update(e, c, parts, [&](range const& what) { return all_.operands_of(e, what, parts, c.offset); });
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        update(e, {.elements = e.elements}, {}, [&](range const& what) {
            std::size_t const skip = what.offset * sizeof(Element);
            return operands{{}, all_.local_sources_at([&](int l) { return boxes[l] + skip; }), {}};
        });
    }
    void combine_lent(execution const&) noexcept {} // lends nothing

  private:
    using operands = typename detail::combiner<Element, Update>::operands;

    template <class From>
    HERRING_ALWAYS_INLINE void update(execution const& e, chunk const& c, parts_view const& parts,
                                      From const& from) noexcept {
        std::size_t const place = memory_->place(e.label, c.offset);
        memory_->for_each_run(e.label, c.offset, c.elements,
                              [&](std::size_t offset, std::size_t elements, auto const&, auto const& group) {
                                  operands const given = from({offset, elements});
                                  std::size_t const bad = kernel::fold_optimising<Update, Optimizer, Element>(
                                      given.before, given.group, given.after,
                                      memory_->at(e.label, offset, place + (offset - c.offset)), elements,
                                      state_.ranks_in(e), group.with, memory_->unscale());
                                  if (bad < elements) [[unlikely]]
                                      memory_->fail(e.label, offset + bad, all_.origin_of(given, parts, bad));
                              });
    }

    detail::engine_state& state_;
    traffic& traffic_;
    detail::combiner<Element, Update> all_;
    memory* memory_ = nullptr;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP
