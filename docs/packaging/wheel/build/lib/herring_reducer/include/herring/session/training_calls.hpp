// herring: the calls of a reducer with an optimizer: the start of training, the weights, the hyper values.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRAINING_CALLS_HPP
#define HERRING_SESSION_TRAINING_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/optimise.hpp"
#include "herring/engine/operations/optimizer_memory.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/reducer_core.hpp"
#include "herring/session/session.hpp"
#include "herring/session/training.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/collective.hpp"

#include <cstddef>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail {

struct no_checkpoints {
    template <class Reducer>
    static std::vector<state_range<accumulator<stored_element<typename Reducer::element_type>>>>
    state(Reducer&);
    template <class Reducer> static void save(Reducer&, std::string const&, std::span<std::byte const>);
    template <class Reducer> static std::vector<std::byte> load(Reducer&, std::string const&);
};
template <class Reducer> constexpr auto with_checkpoints() noexcept {
    constexpr bool included = requires { sizeof(checkpointing<Reducer>); };
    static_assert(included,
                  "[HRG-C06] state, save, load: need the header of checkpoints; a common slip is to include "
                  "herring.hpp alone, which leaves the code for files out; include <herring/checkpoint.hpp>");
    if constexpr (included)
        return checkpointing<Reducer>();
    else
        return no_checkpoints();
}

/// Throws `bad_argument` naming a hyper value that cannot be meant.
template <class Optimizer> void check_hyper(calls& of, typename Optimizer::hyper const& values) {
    hyper_fault const found = fault_of<Optimizer>(values);
    if (!found) [[likely]]
        return;
    char number[32];
    std::snprintf(number, sizeof number, "%g", found.value);
    of.throw_misuse(errc::bad_argument, "set",
                    {"hyper::", found.member, " is ", number, "; it must ", found.must});
}

/// A base of `basic_reducer<Pack>` whose pack names an optimizer: the calls of training. `wait()` leaves the
/// updated weights then, and tensors have no result.
template <class Pack> class training_calls<Pack, true> {
    using element = typename Pack::element;
    using stored = stored_element<element>;
    using optimizer = typename Pack::optimizer;
    using training_type = training<optimizer, optimizer_memory<stored, optimizer>>;
    static constexpr bool scales_loss = optimizer_memory<stored, optimizer>::has_masters;

  public:
    /// The optimizer's hyper values: an aggregate of doubles.
    using hyper_type = typename training_type::hyper;

    /// Sets the weights of all ranks to what `fill(i, std::span<element>)` writes for each tensor i, on
    /// `root` only; the optimizer's state is 0 again, and its steps count from 1. Collective, between steps.
    ///
    /// Shape:    layout[i].elements elements. Tensors are unspecified afterwards.
    /// Cost:     a broadcast of the model, and a barrier.
    /// Blocks:   at most `world::default_timeout()` each.
    /// Errors:   `bad_argument` where there is no rank `root`; `mismatch` where ranks name different ones;
    ///           what `fill` throws ends the world.
    template <class Fill> void start(int root, Fill&& fill) {
        auto& of = core();
        call const here(of.calls_, "start");
        check_at_rest("start");
        world& ranks = of.session_.ranks();
        check_root(of.calls_, "start", root, ranks.topology());
        std::byte* const memory = of.session_.node().memory();
        if (ranks.rank() == root) {
            try {
                for (std::size_t i = 0; i < of.session_.plan().tensors.size(); ++i)
                    fill(i, std::span<element>(reinterpret_cast<element*>(of.parts_->steps.tensor(i)),
                                               of.session_.plan().tensors[i].elements));
            } catch (...) {
                announce_and_rethrow(ranks, "start");
            }
        }
        if constexpr (session<Pack>::commands) of.session_.desk().begin_start(of.session_, root);
        spread_tensors("start", root);
        training_.start(of.session_, memory);
        ranks.barrier(); // the node's copy is there before anyone reads it
    }

    /// The weights of tensor i: one copy for all ranks of a node that share memory.
    ///
    /// Lifetime: the reducer's. Not to be read between `ready(i)` and the end of `wait()`: an update may be
    ///           under way.
    /// Errors:   `bad_argument` when i is out of range, `bad_state` before `start` or `load`.
    std::span<element const> weights(std::size_t i) {
        auto& of = core();
        (void)of.parts_->steps.tensor(i); // checks i
        check_started("weights");
        placed_tensor const& at = of.session_.plan().tensors[i];
        bucket const& in = of.session_.plan().buckets[at.bucket];
        return {reinterpret_cast<element const*>(of.session_.weights_of_bucket(at.bucket)) +
                    (at.offset - in.offset),
                at.elements};
    }

    /// Groups of tensors (`tensor_spec::group`), at least one.
    std::size_t groups() const noexcept { return training_.size(); }

    /// The hyper values in force of a group.
    ///
    /// Errors: `bad_argument` when there is no such group.
    hyper_type const& hyper(std::size_t group = 0) {
        check_group("hyper", group);
        return training_.at(group).values;
    }
    /// Replaces all of them, of every group or of one, for the steps from now on: between steps, and alike on
    /// all ranks.
    ///
    /// Errors: `bad_state` in the middle of a step, `bad_argument` when there is no such group, or naming a
    ///         value that cannot be meant (a rate below 0). Where ranks have different ones, the next step
    ///         ends in `mismatch`; so of all that follows.
    void set(hyper_type const& values) {
        check_hyper<optimizer>(core().calls_, values);
        change("set", 0, groups(), [&](auto& one) { one.values = values; });
    }
    void set(std::size_t group, hyper_type const& values) {
        check_group("set", group);
        check_hyper<optimizer>(core().calls_, values);
        change("set", group, group + 1, [&](auto& one) { one.values = values; });
    }

    /// Freezes a group, or unfreezes it: from the next step on its tensors and their state stay as they are.
    /// They are made ready as ever, and travel; their gradients may be anything, and are part of no norm.
    void freeze(std::size_t group, bool frozen = true) {
        check_group("freeze", group);
        change("freeze", group, group + 1, [&](auto& one) { one.frozen = frozen; });
    }
    bool frozen(std::size_t group) {
        check_group("frozen", group);
        return training_.at(group).frozen;
    }

    /// The factor by which the program has multiplied its loss, for gradients of 16 bits. They are divided by
    /// it before all else.
    double loss_scale() const noexcept requires(scales_loss) { return training_.loss_scale(); }
    /// Sets it, as `set` does hyper values.
    ///
    /// Errors: also `bad_argument`, of a scale that is not positive, or that is no normal float, or its
    ///         inverse.
    void set_loss_scale(double scale) requires(scales_loss) {
        auto& of = core();
        call const here(of.calls_, "set_loss_scale");
        of.parts_->steps.check_between_steps("set_loss_scale");
        constexpr double least = std::numeric_limits<float>::min();
        if (!(scale >= least && 1 / scale >= least))
            of.calls_.throw_misuse(
                errc::bad_argument, "set_loss_scale",
                {"the scale, or what it is divided by, is no positive normal float; begin with 65536, say"});
        training_.set_loss_scale(of.session_, scale);
    }

    /// With an optimizer in two phases: the norm of the gradients of all tensors but frozen ones, in the last
    /// step, also in one that was skipped; before it was clipped.
    ///
    /// Bits: alike on all ranks. Squares are added in double: of a chunk, of the chunks that a rank combines
    ///       in a bucket, of buckets, of ranks; so they depend on the number of ranks that combine: with
    ///       servers of their own on that of servers.
    double gradient_norm() const noexcept requires(training_type::two_phases) {
        return training_.gradient_norm();
    }
    /// With an optimizer that has `tensor_norms`: the norms of tensor i, in the last step that was not
    /// skipped.
    ///
    /// Errors: `bad_argument` when i is out of range.
    tensor_norms norms(std::size_t i) requires(optimizer::facts.tensor_norms) {
        (void)core().parts_->steps.tensor(i); // checks i
        return core().session_.updated().norms()[i];
    }

    // `herring/checkpoint.hpp` has the next three ([HRG-C06]).

    /// The ranges of the weights and of the optimizer's state that this rank owns: together the ranks own
    /// every element once. Between steps.
    ///
    /// Errors: `bad_state` in the middle of a step, before `start` or `load`, and where servers of their own
    ///         keep the state.
    template <class Self = basic_reducer<Pack>> std::vector<state_range<accumulator<stored>>> state() {
        return with_checkpoints<Self>().state(static_cast<Self&>(*this));
    }
    /// Saves weights, state, hyper values, the number of steps and bytes of the program, those of the lowest
    /// worker, in an existing folder that all ranks see (docs/checkpoints.md). Collective, between steps.
    /// Whenever processes or machines stop, the checkpoint that was there is whole, or the new one is.
    ///
    /// Cost:   each rank writes what it owns, to the disk.
    /// Blocks: at most `world::default_timeout()`, and a second for 16 MiB of the checkpoint.
    /// Errors: of a folder or a disk, on all ranks, which may go on with the reducer: `bad_argument`,
    ///         `no_resources`. `bad_state` as of `state`, and while a `gap_checkpoint` writes into that
    ///         folder.
    template <class Self = basic_reducer<Pack>>
    void save(std::string const& folder, std::span<std::byte const> bytes = {}) {
        with_checkpoints<Self>().save(static_cast<Self&>(*this), folder, bytes);
    }
    /// Goes on from a checkpoint, of any number of ranks, nodes and policies: with its weights, state, hyper
    /// values and steps, in place of `start`. Collective, between steps. Returns the program's bytes.
    ///
    /// Shape:  the layout, the type of elements and the optimizer are those of `save`. Tensors are
    ///         unspecified afterwards.
    /// Cost:   each rank reads the state that it keeps and a share of the weights, which are gathered; with
    ///         servers of their own one worker reads all weights, which are broadcast.
    /// Memory: the state twice, while both are there.
    /// Blocks: as `save`, and as `start`.
    /// Errors: on all ranks, which go on with the weights and the state that they had, if any: `corrupted`
    ///         names the file and the place; `mismatch` says what the checkpoint has otherwise;
    ///         `bad_argument` a hyper value that `set` would refuse; `no_resources`, `bad_state` in a step.
    template <class Self = basic_reducer<Pack>> std::vector<std::byte> load(std::string const& folder) {
        return with_checkpoints<Self>().load(static_cast<Self&>(*this), folder);
    }

  protected:
    /// The session is connected.
    void begin_training() { training_.begin(core().session_); }
    void check_started(char const* operation) {
        if (!training_.started()) [[unlikely]]
            core().calls_.throw_misuse(
                errc::bad_state, operation,
                {"there are no weights yet; call start(root, fill) or load(folder) on all ranks first"});
    }
    /// All gradients are summed: what is left of the step.
    status end_training_step(time_point deadline) {
        auto& of = core();
        return training_.end_step(of.session_, of.parts_->collectives, deadline);
    }
    herring::step training_outcome() const noexcept { return training_.outcome(); }

  private:
    template <class Reducer> friend struct checkpointing;

    void check_at_rest(char const* operation) {
        auto& of = core();
        if (failure const* const why = of.session_.failed()) throw error(*why);
        of.parts_->steps.check_between_steps(operation);
    }
    /// All ranks have the tensors of `root`.
    void spread_tensors(char const* operation, int root) {
        auto& of = core();
        status const ended =
            spread(operation, root, of.session_.node().memory(), deadline_in(of.session_.default_timeout()));
        of.session_.rethrow_of_handlers();
        ended.value();
    }
    /// All ranks have all tensors, of which each has what it owns of the plan's elements. There are no
    /// servers of their own.
    void gather_tensors(char const* operation) {
        auto& of = core();
        std::byte* const memory = of.session_.node().memory();
        std::size_t const elements = of.session_.plan().elements;
        range const own = owned_range(elements, of.session_.ranks().worker(), of.session_.ranks().workers());
        status const ended = of.run({.operation = session<Pack>::template number_of<operations::all_gather>(),
                                     .name = operation,
                                     .gives = collective_program::share::owned},
                                    {memory + own.offset * of.session_.plan().element_bytes, memory},
                                    elements, deadline_in(of.session_.default_timeout()));
        ended.value();
    }
    status spread(char const* operation, int root, std::byte* memory, time_point deadline) {
        using share = collective_program::share;
        auto& of = core();
        if constexpr (session<Pack>::commands)
            if (of.session_.desk().is_commanding())
                return of.session_.desk().spread_weights(of.session_, root, memory, deadline);
        return of.run({.operation = session<Pack>::template number_of<operations::broadcast>(),
                       .name = operation,
                       .gives = share::root,
                       .takes = share::not_root,
                       .root = root},
                      {memory, memory}, of.session_.plan().elements, deadline);
    }

    reducer_core<Pack>& core() noexcept {
        return reducer_access::core(static_cast<basic_reducer<Pack>&>(*this));
    }

    void check_group(char const* operation, std::size_t group) {
        if (group >= groups()) [[unlikely]]
            core().calls_.throw_misuse(
                errc::bad_argument, operation,
                {"there is no group ", group, " of tensors; the layout has ", groups(), ", numbered from 0"});
    }
    template <class Change>
    void change(char const* operation, std::size_t first, std::size_t end, Change const& how) {
        auto& of = core();
        call const here(of.calls_, operation);
        of.parts_->steps.check_between_steps(operation);
        training_.set(of.session_, first, end, how);
    }

    training_type training_;
    std::vector<std::string> in_gaps_; // folders of checkpoints that are being written (gap_checkpoint)
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRAINING_CALLS_HPP
