// herring: the memory of an optimizer on the rank that updates a chunk: state, gradients, numbers by group.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_OPTIMIZER_MEMORY_HPP
#define HERRING_ENGINE_OPERATIONS_OPTIMIZER_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/operations/combiner.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/kernel/optimise.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/model/element.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/handled_chunks.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The places of the weights, which are those of tensors in the plan: one copy a node; for buckets by mailbox
/// one copy a rank.
///
/// Lifetime: refers to the plan and the memory.
struct placed_weights {
    plan const* of = nullptr;
    std::byte* of_node = nullptr;
    std::byte* own = nullptr;

    /// The place where the weights of a bucket begin.
    std::byte* bucket(std::size_t number) const noexcept {
        herring::bucket const& b = of->buckets[number];
        return (b.path == route::mailbox ? own : of_node) + b.offset * of->element_bytes;
    }
};

/// Arrays of numbers for the elements of the chunks that this rank updates: the optimizer's state; the
/// weights before rounding, where elements are rounded; the gradients, in steps of two phases. Also the
/// numbers of the step, by group of tensors.
///
/// Units:    a *place* counts elements in each array, in plan order (`handled_chunks`). Numbers have the
///           accumulator's type.
/// Memory:   arrays() numbers for each element that this rank combines.
/// Lifetime: refers to the engine's state, the plan and the layout.
template <class Element, class Optimizer> class optimizer_memory {
  public:
    using number = accumulator<Element>;
    using hyper = typename Optimizer::hyper;
    using prepared = decltype(Optimizer::template prepare<number>(hyper{}, std::uint64_t{1}));
    static constexpr auto states = static_cast<std::size_t>(Optimizer::facts.states);
    static constexpr bool two_phases = Optimizer::facts.two_phases();
    static constexpr bool has_masters = !std::is_same_v<Element, number>;
    static constexpr std::size_t arrays() noexcept { return states + has_masters + two_phases; }

    /// `of_node`: the node's weights; `own`: this rank's copy, used for buckets by mailbox.
    ///
    /// Errors: `no_resources`; `bad_argument` for a group beyond `most_groups`.
    HERRING_SETUP optimizer_memory(engine_state& state, plan const& of, layout const& tensors,
                                   std::byte* of_node, std::byte* own)
        : state_(state), plan_(of), tensors_(tensors), weights_{&of, of_node, own},
          chunks_(plan_, state.who.own_chunks(), state.who.server),
          runs_(plan_, tensors,
                Optimizer::facts.tensor_norms ? tensor_runs::of::tensors : tensor_runs::of::groups),
          memory_(chunks_.elements() * arrays() * sizeof(number), state.who.rank),
          groups_(count_groups(tensors, state.who.rank)), squares_(two_phases ? plan_.buckets.size() : 0),
          norms_(Optimizer::facts.tensor_norms ? tensors.size() : 0) {}

    // ---- between steps

    placed_weights const& weights() const noexcept { return weights_; }
    std::size_t groups() const noexcept { return groups_.size(); }
    /// Bytes of the values of all groups, as doubles: for each group its hyper values, and 1 if it is frozen;
    /// then the scale of the loss.
    HERRING_SETUP static std::size_t values_bytes(layout const& tensors, int rank) {
        return sizeof(double) + count_groups(tensors, rank) * (sizeof(hyper) + sizeof(double));
    }

    // ---- checkpoints

    /// The chunks of the arrays. Number n of the element at a place lies n · `handled().elements()` behind
    /// its first number.
    handled_chunks const& handled() const noexcept { return chunks_; }
    /// Arrays that outlive a step: the state, and weights before rounding.
    static constexpr std::size_t kept_arrays() noexcept { return states + has_masters; }
    std::byte* kept() const noexcept { return memory_.data(); }
    /// Allocates memory of the size of these arrays, for `take_kept`. The arrays themselves do not move,
    /// because the program may have spans of them.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP private_memory like_kept() const {
        return {chunks_.elements() * kept_arrays() * sizeof(number), state_.who.rank};
    }
    HERRING_SETUP void take_kept(private_memory const& other) noexcept {
        if (std::span<std::byte const> const all = other.bytes(); !all.empty())
            std::memcpy(memory_.data(), all.data(), all.size());
    }

    // ---- steps

    /// Sets the state to 0, and the weights before rounding to those in `from`, which has the plan's places.
    HERRING_SETUP void start(std::byte const* from) noexcept {
        if (std::span<std::byte> const all = memory_.bytes(); !all.empty())
            std::memset(all.data(), 0, all.size());
        if constexpr (has_masters)
            chunks_.for_each(plan_,
                             [&](std::size_t b, std::size_t offset, std::size_t elements, std::size_t place) {
                                 auto const* const first = reinterpret_cast<Element const*>(from) +
                                                           plan_.buckets[b].offset + offset;
                                 for (std::size_t i = 0; i < elements; ++i)
                                     masters()[place + i] = static_cast<number>(first[i]);
                             });
    }
    /// Sets the numbers of a group for the next step; `frozen`: the step leaves the group's tensors as they
    /// are.
    void prepare(std::size_t group, prepared const& with, bool frozen) noexcept {
        groups_[group].with = with;
        groups_[group].frozen = frozen;
    }
    /// Sets the factor of gradients of 16 bits.
    void unscale(number by) noexcept { unscale_ = by; }
    number unscale() const noexcept { return unscale_; }

    // ---- a chunk, or a part of one

    std::size_t place(std::size_t bucket, std::size_t offset) const noexcept {
        return arrays() == 0 ? 0 : chunks_.place(plan_, bucket, offset);
    }
    kernel::optimised<Element> at(std::size_t bucket, std::size_t offset, std::size_t place) const noexcept {
        number* const all = numbers();
        return {reinterpret_cast<Element*>(weights_.bucket(bucket)) + offset,
                states == 0 ? nullptr : all + place, chunks_.elements(),
                has_masters ? masters() + place : nullptr};
    }
    number* gradients(std::size_t place) const noexcept requires(two_phases) {
        return numbers() + (states + has_masters) * chunks_.elements() + place;
    }
    /// Calls `with(offset in the bucket, elements, run, group)` for the runs of a chunk that are not frozen,
    /// in order.
    template <class With>
    HERRING_ALWAYS_INLINE void for_each_run(std::size_t bucket, std::size_t offset, std::size_t elements,
                                            With const& with) const noexcept {
        std::size_t const first = plan_.buckets[bucket].offset;
        runs_.for_each(first + offset, first + offset + elements,
                       [&](std::size_t begin, std::size_t end, tensor_runs::run const& run) {
                           if (!groups_[run.group].frozen)
                               with(begin - first, end - begin, run, groups_[run.group]);
                       });
    }
    struct group_numbers {
        prepared with{};
        number factor = 1; // of the gradients, in steps of two phases
        bool frozen = false;
    };

    /// Ends the world with the error that an element of the bucket has a gradient that is not finite.
    [[gnu::noinline, gnu::cold]] void fail(std::size_t bucket, std::size_t offset,
                                           contribution_origin const& of = {}) noexcept {
        std::size_t const at = plan_.buckets[bucket].offset + offset;
        auto const& placed = plan_.tensors;
        std::size_t i = 0;
        while (i + 1 < placed.size() && placed[i + 1].offset <= at) ++i;
        char from[64] = "";
        if (of.rank >= 0)
            std::snprintf(from, sizeof from, ", and came so from rank %d", of.rank);
        else if (of.node >= 0)
            std::snprintf(from, sizeof from, ", and came so from the node of rank %d",
                          state_.who.map.rank_of(of.node, 0));
        else if (of.known)
            std::snprintf(from, sizeof from, ", as the sum of gradients that are");
        state_.failures.fail(
            failure::make(errc::bad_argument, state_.who.rank, -1, "step",
                          {"the gradient of tensor ", i, " ('", tensors_[i].name,
                           "') is not finite, at element ", at - placed[i].offset, from,
                           ": the weights would be lost; lower the rate, clip or scale the gradients before "
                           "they are made ready, and start again from the weights that were saved"}),
            true);
    }

    // ---- two phases: after all gradients are summed

    /// Upper bound on the numbers of each rank that a step exchanges.
    static constexpr std::size_t norm_numbers(std::size_t tensors) noexcept requires(two_phases) {
        return Optimizer::facts.tensor_norms ? std::max(2 * tensors, std::size_t{1}) : 1;
    }

    /// Adds the squares of the gradients at the chunk's place.
    void add_squares(std::size_t bucket, std::size_t offset, std::size_t elements, std::size_t place) noexcept
        requires(two_phases) {
        for_each_run(bucket, offset, elements, [&](std::size_t from, std::size_t count, auto const&, auto&) {
            number const* const values = gradients(place + (from - offset));
            double const sum = kernel::sum_of_squares(values, count);
            squares_[bucket] += sum;
            if (Optimizer::facts.on_nonfinite == nonfinite::fail && !(sum - sum == 0)) [[unlikely]]
                look_for_nonfinite(bucket, from, values, count);
        });
    }
    /// Returns the sum of squares of all gradients that this rank counts for the world, and resets it to 0.
    double take_squares() noexcept requires(two_phases) {
        double sum = 0;
        for (std::size_t b = 0; b < squares_.size(); ++b) {
            if (counts(plan_.buckets[b].path)) sum += squares_[b];
            squares_[b] = 0;
        }
        return sum;
    }
    /// Sets the factor of a group's gradients, which depends on the norm over all ranks.
    void scale_gradients(std::size_t group, number factor) noexcept { groups_[group].factor = factor; }

    /// Replaces gradients by directions, and sums the squares of weights and directions for each tensor,
    /// without the gap behind the tensor: two numbers a tensor.
    void direct(std::span<double> sums) noexcept requires(Optimizer::facts.tensor_norms) {
        std::fill(sums.begin(), sums.end(), 0.0);
        chunks_.for_each(plan_, [&](std::size_t b, std::size_t offset, std::size_t elements,
                                    std::size_t place) {
            bool const counted = counts(plan_.buckets[b].path);
            for_each_run(
                b, offset, elements, [&](std::size_t from, std::size_t count, auto const& run, auto& group) {
                    std::size_t const here = place + (from - offset);
                    kernel::optimised<Element> const of = at(b, from, here);
                    kernel::direct<Optimizer, Element>(gradients(here), of, count, group.factor, group.with);
                    placed_tensor const& tensor = plan_.tensors[run.tensor];
                    std::size_t const end = tensor.offset + tensor.elements,
                                      begin = plan_.buckets[b].offset + from;
                    if (!counted || begin >= end) return;
                    std::size_t const inside = std::min(count, end - begin);
                    sums[2 * run.tensor] += kernel::sum_of_squares(of.exact(), inside);
                    sums[2 * run.tensor + 1] += kernel::sum_of_squares(gradients(here), inside);
                });
        });
    }
    std::span<tensor_norms> norms() noexcept requires(Optimizer::facts.tensor_norms) { return norms_; }

    /// Updates a chunk's weights with its gradients, or directions.
    void update(std::size_t bucket, std::size_t offset, std::size_t elements) noexcept requires(two_phases) {
        std::size_t const place = this->place(bucket, offset);
        for_each_run(
            bucket, offset, elements, [&](std::size_t from, std::size_t count, auto const& run, auto& group) {
                std::size_t const here = place + (from - offset);
                kernel::optimised<Element> const of = at(bucket, from, here);
                if constexpr (Optimizer::facts.tensor_norms)
                    kernel::optimise<Optimizer, Element>(gradients(here), of, count, number(1),
                                                         Optimizer::adapt(group.with, norms_[run.tensor]));
                else
                    kernel::optimise<Optimizer, Element>(gradients(here), of, count, group.factor,
                                                         group.with);
            });
    }

  private:
    static constexpr std::size_t most_groups = 1024;
    HERRING_SETUP static std::size_t count_groups(layout const& tensors, int rank) {
        std::size_t count = 1;
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (tensors[i].group >= most_groups)
                throw error(errc::bad_argument, rank, -1, "construction",
                            {"tensor ", i, " ('", tensors[i].name, "') is in group ", tensors[i].group,
                             ": groups are numbered from 0, and there are at most ", most_groups});
            count = std::max(count, tensors[i].group + 1);
        }
        return count;
    }

    number* numbers() const noexcept { return reinterpret_cast<number*>(memory_.data()); }
    number* masters() const noexcept { return numbers() + states * chunks_.elements(); }

    /// True on one of the ranks that combine the same chunks (by mailbox, one hop or dissemination), so that
    /// each counts once.
    bool counts(route path) const noexcept { return chunks_.is_lowest(path); }
    void look_for_nonfinite(std::size_t bucket, std::size_t offset, number const* values,
                            std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i)
            if (!(values[i] - values[i] == 0)) return fail(bucket, offset + i);
    }

    engine_state& state_;
    plan const& plan_;
    layout const& tensors_;
    placed_weights weights_;
    handled_chunks chunks_;
    tensor_runs runs_;
    private_memory memory_;
    std::vector<group_numbers> groups_;
    number unscale_ = 1;
    std::vector<double> squares_; // bucket → of the gradients that this rank combined, in the order of chunks
    std::vector<tensor_norms> norms_; // tensor → of the current step
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_OPERATIONS_OPTIMIZER_MEMORY_HPP
