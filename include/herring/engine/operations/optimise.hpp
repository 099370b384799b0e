// herring: the operations of a step with an optimizer: in one pass, or in two phases.
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

/// Messages of `optimise`: parts as in an all-reduce, results are weights. Weights land in the node's one
/// copy, which all of its ranks read, so they are not spread. By mailbox each rank updates a separate copy.
class optimise_traffic : public reduce_traffic {
  public:
    static constexpr lending lends = lending::none;

    using reduce_traffic::reduce_traffic;

    std::byte const* result(execution const& e, chunk const& c) const noexcept { return landing(e, c); }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return weights_.bucket(e.label) + e.bytes(c.offset);
    }
    void take_result(execution const&, chunk const&) const noexcept {}

    void place_weights(placed_weights const& weights) noexcept { weights_ = weights; }

  private:
    placed_weights weights_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// All ranks contribute gradients. The rank that combines a chunk updates the chunk's weights in the same
/// pass, with the state that it alone keeps, and all ranks take the weights. Executions are buckets of the
/// plan; their `label` is the bucket's number.
///
/// Bits: as after an all-reduce with `Update`, and then the optimizer on every rank.
template <class Element, class Update, class Optimizer> class optimise {
  public:
    using traffic = detail::optimise_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    optimise(detail::engine_state& state, traffic& of) : state_(state), traffic_(of), all_(state) {}

    /// Sets the memory; before the first execution.
    void use(memory& kept) noexcept {
        memory_ = &kept;
        traffic_.place_weights(kept.weights());
    }

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void sum_rack(execution const& e, chunk const& c, parts_view const& parts, std::byte* sums) noexcept {
        all_.sum_rack(e, c, parts, sums);
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
    void combine_lent(execution const&) noexcept {} // an optimizer lends nothing

  private:
    using operands = typename detail::combiner<Element, Update>::operands;

    template <class From>
    HERRING_ALWAYS_INLINE void update(execution const& e, chunk const& c, parts_view const& parts,
                                      From const& from) noexcept {
        std::size_t const place = memory_->place(e.label, c.offset);
        memory_->for_each_run(
            e.label, c.offset, c.elements,
            [&](std::size_t offset, std::size_t elements, auto const&, auto const& group) {
                all_.for_each_tile(
                    e, {offset, elements}, parts, from, [&](operands const& given, range const& here) {
                        std::size_t const bad = kernel::fold_optimising<Update, Optimizer, Element>(
                            given.before, given.group, given.after,
                            memory_->at(e.label, here.offset, place + (here.offset - c.offset)),
                            here.elements, state_.ranks_in(e), group.with, memory_->unscale());
                        if (bad < here.elements) [[unlikely]]
                            memory_->fail(e.label, here.offset + bad, all_.origin_of(from(here), parts, bad));
                    });
            });
    }

    detail::engine_state& state_;
    traffic& traffic_;
    detail::combiner<Element, Update> all_;
    memory* memory_ = nullptr;
};

} // namespace HERRING_NAMESPACE::operations

namespace HERRING_NAMESPACE::detail {

/// Messages of the first phase: parts as in an all-reduce; results are empty, for the credit.
class hold_traffic : public reduce_traffic {
  public:
    static constexpr lending lends = lending::none;
    using reduce_traffic::reduce_traffic;

    bool returns(execution const&, chunk const&, int) const noexcept { return false; }
    void take_result(execution const&, chunk const&) const noexcept {}
};

/// Messages of the second phase: parts are empty, for the credit; results are weights.
class return_traffic : public optimise_traffic {
  public:
    using optimise_traffic::optimise_traffic;

    range sends(execution const&, chunk const&, int, int) const noexcept { return {}; }
    range given(execution const&) const noexcept { return {}; }
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// The first phase: the rank that combines a chunk keeps its gradients, and adds up their squares.
template <class Element, class Update, class Optimizer> class hold_gradients {
  public:
    using traffic = detail::hold_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    hold_gradients(detail::engine_state& state, traffic&) : state_(state), all_(state) {}

    /// Sets the memory; before the first execution.
    void use(memory& kept) noexcept { memory_ = &kept; }

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void sum_rack(execution const& e, chunk const& c, parts_view const& parts, std::byte* sums) noexcept {
        all_.sum_rack(e, c, parts, sums);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        hold(e, c, parts, [&](range const& what) { return all_.operands_of(e, what, parts, c.offset); });
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        hold(e, {.elements = e.elements}, {}, [&](range const& what) {
            std::size_t const skip = what.offset * sizeof(Element);
            return operands{{}, all_.local_sources_at([&](int l) { return boxes[l] + skip; }), {}};
        });
    }
    void combine_lent(execution const&) noexcept {} // a phase lends nothing

  private:
    using operands = typename detail::combiner<Element, Update>::operands;

    template <class From>
    HERRING_ALWAYS_INLINE void hold(execution const& e, chunk const& c, parts_view const& parts,
                                    From const& from) noexcept {
        std::size_t const place = memory_->place(e.label, c.offset);
        all_.for_each_tile(e, c.range(), parts, from, [&](operands const& given, range const& here) {
            kernel::fold_gradients<Update, Element>(given.before, given.group, given.after,
                                                    memory_->gradients(place + (here.offset - c.offset)),
                                                    here.elements, state_.ranks_in(e), memory_->unscale());
        });
        memory_->add_squares(e.label, c.offset, c.elements, place);
    }

    detail::engine_state& state_;
    detail::combiner<Element, Update> all_;
    memory* memory_ = nullptr;
};

/// The second phase: the rank that keeps the gradients of a chunk updates the chunk's weights, and all ranks
/// take them.
template <class Element, class Optimizer> class return_weights {
  public:
    using traffic = detail::return_traffic;
    using memory = detail::optimizer_memory<Element, Optimizer>;

    return_weights(detail::engine_state&, traffic& of) : traffic_(of) {}

    /// Sets the memory; before the first execution.
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
    void combine_lent(execution const&) noexcept {} // a phase lends nothing

  private:
    traffic& traffic_;
    memory* memory_ = nullptr;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP
