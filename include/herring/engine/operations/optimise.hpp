// herring: the operation of a step with an optimizer: gradients are summed, and what travels back are weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP
#define HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP

#include "herring/base/config.hpp"
#include "herring/base/private_memory.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/operations/reduce.hpp"
#include "herring/engine/state.hpp"
#include "herring/error.hpp"
#include "herring/kernel/optimise.hpp"
#include "herring/layout.hpp"
#include "herring/plan/handled_chunks.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

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
        return weights_of(e.label, e.path) + c.offset * state_.element_bytes;
    }
    void take_result(execution const&, chunk const&) const noexcept {}

    /// Where the weights lie, as the plan places tensors.
    ///
    /// Lifetime: refers to the plan and the memory.
    void place_weights(plan const& of, std::byte* of_node, std::byte* own) noexcept {
        plan_ = &of;
        of_node_ = of_node;
        own_ = own;
    }
    std::byte* weights_of(std::size_t bucket, route by) const noexcept {
        return (by == route::mailbox ? own_ : of_node_) +
               plan_->buckets[bucket].offset * state_.element_bytes;
    }

  private:
    engine_state& state_;
    plan const* plan_ = nullptr;
    std::byte* of_node_ = nullptr;
    std::byte* own_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Everyone contributes gradients; whoever combines a chunk updates its weights in the same pass, with the state that it alone
/// keeps, and everyone takes the weights. Executions are buckets of the plan; their `label` is the bucket's number.
///
/// Bits:   as of an all-reduce with `Update`, and then the optimizer on every rank.
/// Memory: `facts.states` numbers for each element that this rank combines.
template <class Element, class Update, class Optimizer> class optimise {
  public:
    using traffic = detail::optimise_traffic;
    using hyper = typename Optimizer::hyper;

    optimise(detail::engine_state& state, traffic& of) : state_(state), traffic_(of), all_(state) {}

    // ---- between steps ------------------------------------------------------------------------------------------------

    /// Allocates the state, which is 0. The weights are placed in the traffic.
    ///
    /// Lifetime: refers to the plan and the layout.
    /// Errors:   `no_resources`.
    HERRING_SETUP void keep_state(plan const& of, layout const& tensors) {
        plan_ = &of;
        tensors_ = &tensors;
        chunks_ = detail::handled_chunks(of, state_.who.own_chunks(), state_.who.server);
        memory_ = new_state();
    }
    /// What the state belongs to; number n of the element at a place lies n times `handled().elements()` behind the first one.
    detail::handled_chunks const& handled() const noexcept { return chunks_; }
    std::byte* state() const noexcept { return memory_.data(); }
    /// Memory for another state, and its exchange with the one in use.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP detail::private_memory new_state() const {
        return {chunks_.elements() * states * sizeof(Element), state_.who.rank};
    }
    void exchange_state(detail::private_memory& other) noexcept { std::swap(memory_, other); }
    void clear_state() noexcept {
        std::span<std::byte> const all = memory_.bytes();
        if (!all.empty()) std::memset(all.data(), 0, all.size());
    }
    /// Step n, which counts from 1, is the next.
    void prepare(hyper const& values, std::uint64_t step) noexcept {
        prepared_ = Optimizer::template prepare<Element>(values, step);
    }

    // ---- of the engine ------------------------------------------------------------------------------------------------

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        update(e, c, all_.operands_of(e, c.range(), parts, c.offset));
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        update(e, {.elements = e.elements},
               {{}, all_.local_sources_at([boxes](int l) { return boxes[l]; }), {}});
    }
    void combine_lent(execution const&) noexcept {} // lends nothing

  private:
    static constexpr std::size_t states = static_cast<std::size_t>(Optimizer::facts.states);
    using prepared = decltype(Optimizer::template prepare<Element>(hyper{}, std::uint64_t{1}));

    void update(execution const& e, chunk const& c,
                typename detail::combiner<Element, Update>::operands const& from) noexcept {
        auto* const state = reinterpret_cast<Element*>(memory_.data());
        std::size_t const place = states == 0 ? 0 : chunks_.place(*plan_, e.label, c.offset);
        std::size_t const bad = kernel::fold_optimising<Update, Optimizer, Element>(
            from.before, from.group, from.after,
            {reinterpret_cast<Element*>(traffic_.landing(e, c)), state + place, chunks_.elements()},
            c.elements, state_.ranks_in(e), prepared_);
        if (bad < c.elements) [[unlikely]]
            fail(plan_->buckets[e.label].offset + c.offset + bad);
    }

    [[gnu::noinline, gnu::cold]] void fail(std::size_t at) noexcept {
        auto const& placed = plan_->tensors;
        std::size_t i = 0;
        while (i + 1 < placed.size() && placed[i + 1].offset <= at) ++i;
        state_.failures.fail(
            failure::make(errc::bad_argument, state_.who.rank, -1, "step",
                          {"the gradient of tensor ", i, " ('", (*tensors_)[i].name,
                           "') is not finite, at element ", at - placed[i].offset,
                           ": the weights would be lost; lower the rate, clip or scale the gradients before "
                           "they are made ready, and start again from the weights that were saved"}),
            true);
    }

    detail::engine_state& state_;
    traffic& traffic_;
    detail::combiner<Element, Update> all_;
    plan const* plan_ = nullptr;
    layout const* tensors_ = nullptr;
    detail::handled_chunks chunks_;
    detail::private_memory memory_;
    prepared prepared_{};
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_OPTIMISE_HPP
