// herring: the reducer of a sync policy that skips steps: each rank's own weights are averaged when due.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_LAZY_REDUCER_HPP
#define HERRING_LAZY_REDUCER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/collectives/call.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/reducer.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/training_calls.hpp"
#include "herring/step/own_gradients.hpp"
#include "herring/step/votes.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/sync/selective.hpp"

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

template <class Sync> struct detail::lazy_reducer_header {};

/// A reducer of weights, which the sync policy has averaged in some steps, or some buckets of them in a step.
/// `reducer<...>` is one where the pack has such a policy. Gradients stay with their rank.
///
///     for (...) {
///         ...; lazy.ready(i);     // tensor(i) is this rank's gradient, each tensor once
///         lazy.wait();            // what is due is agreed on
///         ...; lazy.updated(i);   // weights(i) is updated by it, each tensor once
///         lazy.settle();          // what was due is the mean of all ranks' weights
///     }
///
/// A bucket whose weights are updated leaves at once, while the others are being updated. The same loop suits
/// every pack: with `sync::every_step` tensor(i) is the mean of all gradients after `wait`, and `updated` and
/// `settle` do nothing.
///
/// Shape:    weights(i) and tensor(i) have layout[i] elements on every rank.
/// Result:   of a bucket that is due, the same bits on every rank, as of a reduction. `start` makes replicas
///           one, and a program may change them before the first exchange. One that keeps its weights itself,
///           and calls `updated(i, span)` alone, needs no `start`.
/// Memory:   weights lie where other reducers have their tensors; gradients in private memory.
/// Threads:  as `basic_reducer`, of which the collectives, too, are this one's.
/// Lifetime: as `basic_reducer`. With `facts.votes` and `facts.ahead == 1` it ends before its world: the last
///           step's votes travel on, and a world that ends meanwhile ends in a step.
/// Errors:   as `basic_reducer`; a call out of turn is `bad_state`, and leaves the step as it was. Where
///           `due` of a policy differs between ranks: `mismatch`, with the next exchange or vote.
template <class Pack> class basic_lazy_reducer : public basic_reducer<Pack> {
    using base = basic_reducer<Pack>;
    using element = typename Pack::element;
    using stored = detail::stored_element<element>;
    using policy = typename Pack::sync;
    static constexpr sync_facts facts = policy::facts;
    using session = detail::session<Pack>;
    using training_type =
        typename detail::training_of<stored, typename session::optimizer>::type; // of the outer optimizer

  public:
    using tensor_span = std::span<element>;
    /// The hyper values of the policy's outer optimizer, if it has one.
    using hyper_type = typename training_type::hyper;

    /// Collective, as of `basic_reducer`.
    template <class... TransportArguments>
    basic_lazy_reducer(world& ranks, layout tensors, TransportArguments&&... arguments)
        : base(ranks, std::move(tensors), std::forward<TransportArguments>(arguments)...) {
        try {
            gradients_.emplace(this->plan(), ranks.rank());
            synchronized_ = detail::fixed_array<bool>(leaving().groups());
            elsewhere_ = detail::fixed_array<bool>(this->size());
            if constexpr (facts.votes) votes_.emplace(this->session_, steps().bounce());
            if constexpr (facts.on_nodes)
                leaving().combine_on_nodes(this->session_.local_ranks(), this->session_.map().largest_node());
            if constexpr (facts.outer) {
                external_ = detail::fixed_array<element*>(this->size());
                outer_.begin(this->session_);
            }
        } catch (...) {
            detail::announce_and_rethrow(ranks);
        }
    }
    /// Not collective. Leaving in the middle of a step is a failure for the others, which get it at once.
    ///
    /// Blocks: with `facts.votes`, until all ranks have ended the gradients of the last step, whose votes
    ///         they exchange; at most `world::default_timeout()`.
    ~basic_lazy_reducer() {
        if (this->session_.ranks().forked_off()) {
            gradients_.abandon();
            if constexpr (facts.votes) votes_.abandon();
            return;
        }
        if (this->session_.failed() != nullptr) return;
        if (under_way()) {
            this->calls_.announce_abandoned_step();
            if constexpr (votes_travel || facts.outer)
                this->session_
                    .stop_driver(); // votes that travel, and the outer optimizer's values, are this object's
        } else
            (void)count_votes(deadline()); // the policy ends, too
    }

    /// This rank's gradient of tensor i.
    ///
    /// Shape:  layout[i].elements elements, 64-byte aligned.
    /// Errors: `bad_argument` when i is out of range.
    std::span<element> tensor(std::size_t i) {
        check_index(i, "tensor");
        return detail::same_memory<element>(gradients_->tensor(i));
    }
    /// This rank's weights of tensor i.
    ///
    /// Shape:    layout[i].elements elements, 64-byte aligned.
    /// Lifetime: the reducer's; not to be touched between `updated(i)` and the end of `settle()`.
    /// Errors:   `bad_argument` when i is out of range, `bad_state` before `start` or `load`.
    std::span<element> weights(std::size_t i) {
        check_index(i, "weights");
        check_weights("weights");
        return base::tensor(i);
    }

    /// Sets the weights of all ranks to what `fill(i, std::span<element>)` writes for each tensor i, on
    /// `root` only. Collective, between steps. The policy's state stays as it is; that of an outer optimizer
    /// is 0 again.
    ///
    /// Cost:   a broadcast of the model.
    /// Blocks: at most `world::default_timeout()`.
    /// Errors: `bad_argument` where there is no rank `root`; `mismatch` where ranks name different ones; what
    ///         `fill` throws ends the world.
    template <class Fill> void start(int root, Fill&& fill) {
        check_between_steps("start");
        world& ranks = this->session_.ranks();
        if (ranks.rank() == root) {
            try {
                for (std::size_t i = 0; i < this->size(); ++i) fill(i, base::tensor(i));
            } catch (...) {
                detail::announce_and_rethrow(ranks, "start");
            }
        }
        spread_weights("start", root);
        std::fill(elsewhere_.begin(), elsewhere_.end(), false);
        has_weights_ = true;
        if constexpr (facts.outer) outer_.start(this->session_, this->session_.node().memory());
    }

    /// True if this step exchanges tensor i: from the end of the last `settle` on, or with `facts.ahead == 0`
    /// from the end of the step's `wait`.
    ///
    /// Blocks: with `facts.votes`, before the step's `wait`: until all ranks have ended the gradients of the
    ///         step before; at most `world::default_timeout()`.
    /// Errors: `bad_argument` when i is out of range, `bad_state` when it is not decided yet; what ended the
    ///         world, where it blocks.
    bool due(std::size_t i) {
        check_index(i, "due");
        std::size_t const bucket = this->plan().tensors[i].bucket;
        if (decided_) return leaving().is_due(bucket);
        if (facts.ahead == 0) [[unlikely]]
            this->calls_.throw_misuse(
                errc::bad_state, "due",
                {"what the step exchanges follows from its gradients: call wait() first"});
        end_votes("due");
        return policy_.due(leaving().group(bucket));
    }
    /// True if the last step exchanged tensor i; false before the first.
    ///
    /// Errors: `bad_argument` when i is out of range.
    bool synchronized(std::size_t i) {
        check_index(i, "synchronized");
        return synchronized_[leaving().group(this->plan().tensors[i].bucket)];
    }

    /// Tensor i has its gradient on this rank.
    ///
    /// Cost:   with `facts.observes` one pass over it, else none.
    /// Errors: `bad_argument` when i is out of range, `bad_state` when it is ready already, or the step has
    ///         not settled; neither changes anything.
    void ready(std::size_t i) {
        check_index(i, "ready");
        make_ready(i, tensor(i));
    }
    /// The same for a gradient in the program's memory, which is read, and not kept.
    ///
    /// Errors: also `bad_argument` where the size differs.
    void ready(std::size_t i, std::span<element const> gradient) {
        check_index(i, "ready");
        if (gradient.size() != this->plan().tensors[i].elements) [[unlikely]]
            this->calls_.throw_other_size(i, name(i), this->plan().tensors[i].elements, gradient.size());
        make_ready(i, gradient);
    }

    /// Ends the gradients of a step: ranks agree on what is due.
    ///
    /// Returns: `exchanged`, `partial` or `local`: what `settle` will do; the same on every rank.
    /// Cost:    with `facts.votes` one message of 64 bytes a peer, else none. With `facts.ahead == 1` it
    ///          travels while the next step computes.
    /// Blocks:  with `facts.votes`, until all ranks have called it, or with `facts.ahead == 1` that of the
    ///          step before; at most `world::default_timeout()`.
    /// Errors:  `bad_state` naming a tensor that is not ready, or where the step has not settled; else what
    ///          ended the world.
    step wait() {
        wait(deadline()).value();
        return outcome();
    }
    /// The same with a deadline, a time or from now on; a failure is returned, a misuse thrown.
    status wait(std::chrono::milliseconds timeout) { return wait(detail::deadline_in(timeout)); }
    status wait(time_point deadline) {
        detail::call const here(this->calls_, "wait");
        if (failure const* const why = this->session_.failed()) return status(*why);
        check_undecided("wait");
        if (!gradients_->ledger().all_ready()) [[unlikely]]
            this->calls_.throw_not_ready(gradients_->ledger().first_unready(),
                                         name(gradients_->ledger().first_unready()));
        if constexpr (votes_travel) {
            status ended = count_votes(deadline);
            this->session_.rethrow_of_handlers();
            if (!ended.ok()) return ended;
        }
        if constexpr (facts.ahead == 1) choose();
        if constexpr (facts.observes)
            gradients_->observe(leaving(), [this](std::size_t group, double squares) noexcept {
                policy_.observe(group, squares);
            });
        gradients_->end_step();
        if constexpr (facts.votes) {
            if (status ended = vote(deadline); !ended.ok()) return ended;
        } else {
            policy_.agreed({});
        }
        if constexpr (facts.ahead == 0) choose();
        decided_ = true;
        return {};
    }

    /// True if the next call need not wait: before `wait()`, every gradient is ready, and the votes of the
    /// step before are here; behind it, every tensor is updated, and `settle()` would return at once. Moves
    /// what can be moved now, like `poll`. With votes and `facts.ahead == 0`, `wait` exchanges those of the
    /// step all the same.
    ///
    /// Errors: as `wait`.
    bool done() {
        if (decided_) return base::done();
        this->poll();
        bool const ready = gradients_->ledger().all_ready();
        if constexpr (votes_travel) return ready && votes_->are_here(this->session_);
        return ready;
    }

    /// Declares this rank's weights of tensor i to be final for this step.
    ///
    /// Cost:   none, or the start of its bucket.
    /// Errors: `bad_argument` when i is out of range, `bad_state` before `wait`, a second time, or before
    ///         `start` or `load`; neither changes anything.
    void updated(std::size_t i) {
        detail::call const here(this->calls_, "updated");
        check_update(i);
        check_weights("updated");
        elsewhere_[i] = false;
        steps().ready(this->session_, i, nullptr, {});
    }
    /// The same for weights in the program's memory, which hold the mean after `settle` where the tensor is
    /// due.
    ///
    /// Cost:     as of `basic_reducer::ready` where the tensor is due, else none.
    /// Lifetime: until `settle()` has returned, and not to be touched.
    /// Errors:   also `bad_argument` where the size differs.
    void updated(std::size_t i, std::span<element> inout) {
        detail::call const here(this->calls_, "updated");
        check_update(i);
        if (inout.size() != this->plan().tensors[i].elements) [[unlikely]]
            this->calls_.throw_misuse(errc::bad_argument, "updated",
                                      {"tensor ", i, " ('", name(i), "') has ",
                                       this->plan().tensors[i].elements, " elements, the span has ",
                                       inout.size()});
        elsewhere_[i] = true;
        bool const combined = leaving().is_combined(this->plan().tensors[i].bucket);
        if constexpr (facts.outer) {
            if (combined && !inout.empty()) {
                std::memcpy(base::tensor(i).data(), inout.data(), inout.size_bytes());
                external_[i] = inout.data();
            }
            return steps().ready(this->session_, i, nullptr, {});
        }
        steps().ready(this->session_, i, combined ? reinterpret_cast<std::byte*>(inout.data()) : nullptr, {});
    }

    /// Ends the step: returns when what was due is the mean of all ranks' weights.
    ///
    /// Blocks: where anything was due, at most `world::default_timeout()`.
    /// Errors: `bad_state` before `wait`, or naming a tensor that was not updated; else what ended the world.
    void settle() { settle(deadline()).value(); }
    /// The same with a deadline, a time or from now on; a failure is returned, a misuse thrown.
    status settle(std::chrono::milliseconds timeout) { return settle(detail::deadline_in(timeout)); }
    status settle(time_point deadline) {
        detail::call const here(this->calls_, "settle");
        if (failure const* const why = this->session_.failed()) return status(*why);
        check_decided("settle");
        if (auto const& ledger = steps().ledger(); !ledger.all_ready()) [[unlikely]]
            this->calls_.throw_misuse(errc::bad_state, "settle",
                                      {"tensor ", ledger.first_unready(), " ('", name(ledger.first_unready()),
                                       "') is not updated: every tensor must be, once a step"});
        status const ended = steps().end(this->session_, {}, deadline);
        if (ended.ok()) {
            if constexpr (facts.outer) take_outer_step(deadline);
            for (std::size_t b = 0; b < this->plan().buckets.size(); ++b)
                synchronized_[leaving().group(b)] = leaving().is_due(b);
            decided_ = false;
            ++steps_;
        }
        this->session_.rethrow_of_handlers();
        return ended;
    }

    /// The hyper values of the outer optimizer in force.
    hyper_type const& hyper() const noexcept requires(facts.outer) { return outer_.at(0).values; }
    /// Replaces all of them, for the exchanges from now on: between steps, and alike on all ranks.
    ///
    /// Errors: `bad_state` in the middle of a step, `bad_argument` naming a value that cannot be meant. Where
    ///         ranks have different ones, the next exchange ends in `mismatch`.
    void set(hyper_type const& values) requires(facts.outer) {
        detail::call const here(this->calls_, "set");
        check_between_steps("set");
        detail::check_hyper<typename policy::outer>(this->calls_, values);
        outer_.set(this->session_, 0, outer_.size(), [&](auto& group) { group.values = values; });
    }
    /// The policy's object: its state, to be saved.
    ///
    /// Blocks: between steps as `due`. When the world has ended meanwhile, it is the state without the last
    ///         votes.
    policy const& state() const noexcept {
        // A reducer that has taken a step is no const object. Where another thread is in a call, it counts
        // them.
        auto& self = const_cast<basic_lazy_reducer&>(*this);
        if constexpr (votes_travel)
            if (detail::call_if_free const here(self.calls_); here && !decided_)
                (void)self.count_votes(deadline());
        return policy_;
    }
    /// Replaces it, for the steps from now on: between steps, and alike on all ranks.
    ///
    /// Blocks: as `due`.
    /// Errors: `bad_state` in the middle of a step; what ended the world. Where what is due differs, the next
    ///         exchange or vote ends in `mismatch`.
    void set(policy const& state) {
        detail::call const here(this->calls_, "set");
        check_between_steps("set");
        count_votes(deadline()).value();
        this->session_.rethrow_of_handlers();
        policy_ = state;
    }

    // `herring/checkpoint.hpp` has the next three ([HRG-C06]).

    /// Saves weights, the policy's state, that of an outer optimizer, the number of steps and bytes of the
    /// program, those of rank 0, in an existing folder that all ranks see (docs/checkpoints.md). Collective,
    /// between steps. Where ranks differ, in weights that the last steps did not exchange or in the policy's
    /// state, each rank saves its part, and only as many ranks can load.
    ///
    /// Cost:   a digest of the weights; what all ranks have alike is written once, and else each rank's.
    /// Blocks: at most `world::default_timeout()`, and a second for 16 MiB of the checkpoint.
    /// Errors: `bad_state` in the middle of a step, with an outer optimizer before `start` or `load`, and
    ///         naming a tensor whose weights lie in the program's memory; on all ranks, which may go on:
    ///         `bad_argument`, `no_resources` of a folder or a disk.
    template <class Self = basic_lazy_reducer>
    void save(std::string const& folder, std::span<std::byte const> bytes = {}) {
        detail::with_checkpoints<Self>().save(static_cast<Self&>(*this), folder, bytes);
    }
    /// The same for weights that lie in the program's memory: `fill(i, std::span<element>)` writes those of
    /// this rank, of every tensor, to weights(i). An exception of it ends the world.
    template <class Fill, class Self = basic_lazy_reducer>
    requires std::invocable<Fill&, std::size_t, std::span<element>>
    void save(std::string const& folder, Fill&& fill, std::span<std::byte const> bytes = {}) {
        check_between_steps("save");
        try {
            for (std::size_t i = 0; i < this->size(); ++i) {
                fill(i, base::tensor(i));
                elsewhere_[i] = false;
            }
            has_weights_ = true;
        } catch (...) {
            detail::announce_and_rethrow(this->session_.ranks(), "save");
        }
        save<Self>(folder, bytes);
    }
    /// Goes on from a checkpoint of such a reducer, in place of `start`: weights(i) are those of this rank,
    /// the policy's object is as it was, and so is all that follows. Collective, between steps. Returns the
    /// program's bytes.
    ///
    /// Shape:  the layout, the type of elements, the policy, and the buckets that its fusion policy makes are
    ///         those of `save`.
    /// Memory: the weights twice, while both are there.
    /// Blocks: as `save`, and as `start`.
    /// Errors: on all ranks, which go on with what they had: `corrupted` names the file; `mismatch` says what
    ///         the checkpoint has otherwise, such as another number of ranks where they differ;
    ///         `bad_argument`, `no_resources`, `bad_state` in a step.
    template <class Self = basic_lazy_reducer> std::vector<std::byte> load(std::string const& folder) {
        return detail::with_checkpoints<Self>().load(static_cast<Self&>(*this), folder);
    }

  private:
    template <class Reducer> friend struct detail::checkpointing;

    auto& steps() noexcept { return this->parts_->steps; }
    detail::due_buckets& leaving() noexcept { return steps().leaving(); }
    std::string const& name(std::size_t i) const noexcept { return this->session_.tensors()[i].name; }
    time_point deadline() const noexcept { return detail::deadline_in(this->session_.default_timeout()); }
    step outcome() noexcept {
        return leaving().none() ? step::local : leaving().all() ? step::exchanged : step::partial;
    }

    // All ranks have the weights of `root`.
    void spread_weights(char const* operation, int root) {
        using share = detail::collective_program::share;
        std::span<std::byte const> const all(this->session_.node().memory(), this->plan().tensor_bytes());
        detail::collective_call::run(*this,
                                     {.operation = session::template number_of<operations::broadcast>(),
                                      .name = operation,
                                      .gives = share::root,
                                      .takes = share::not_root,
                                      .root = root},
                                     all, {}, deadline())
            .value();
    }
    void choose() noexcept {
        leaving().choose(steps_, [this](std::size_t group) { return policy_.due(group); });
    }
    void make_ready(std::size_t i, std::span<element const> gradient) {
        detail::call const here(this->calls_, "ready");
        if (failure const* const why = this->session_.failed()) throw error(*why);
        check_undecided("ready");
        if constexpr (facts.outer)
            if (!outer_.started()) [[unlikely]]
                throw_no_weights("ready");
        if (gradients_->ledger().is_ready(i)) [[unlikely]]
            this->calls_.throw_ready_already(i, name(i));
        gradients_->mark_ready(i, detail::same_memory<stored const>(gradient));
    }
    // The digest of what is due is compared with the votes: a policy that has ranks differ is found by the
    // next of them.
    status vote(time_point deadline) requires(facts.votes) {
        status ended = votes_->cast(this->session_, this->parts_->collectives, policy_.vote(),
                                    leaving().digest(), deadline, tell_policy());
        this->session_.rethrow_of_handlers();
        return ended;
    }
    static constexpr bool votes_travel = facts.votes && facts.ahead == 1;
    /// Ends the votes that travel, if any do. Not between `wait` and `settle`: then they are the votes of the
    /// step.
    status count_votes([[maybe_unused]] time_point deadline) noexcept {
        if constexpr (votes_travel) return votes_->finish(this->session_, deadline, tell_policy());
        return {};
    }
    auto tell_policy() noexcept {
        return [this](sync::ballot const& any) noexcept { policy_.agreed(any); };
    }
    /// The same for a call between steps.
    void end_votes([[maybe_unused]] char const* operation) {
        if constexpr (votes_travel) {
            detail::call const here(this->calls_, operation);
            count_votes(deadline()).value();
            this->session_.rethrow_of_handlers();
        }
    }

    // The weights that the ranks go on from lie in the node's copy. It is not written again before this
    // rank's next weights are updated.
    void take_outer_step(time_point deadline) noexcept requires(facts.outer) {
        if (leaving().none()) return;
        for (std::size_t n = 0; n < leaving().pieces(); ++n) {
            std::size_t const b = leaving().bucket(n);
            bucket const& of = this->plan().buckets[b];
            if (of.elements > 0)
                std::memcpy(this->session_.node().memory() + of.offset * sizeof(element),
                            this->session_.weights_of_bucket(b), of.elements * sizeof(element));
        }
        for (std::size_t i = 0; i < external_.size(); ++i)
            if (element* const to = std::exchange(external_[i], nullptr))
                std::memcpy(to, base::tensor(i).data(), base::tensor(i).size_bytes());
        (void)outer_.end_step(this->session_, this->parts_->collectives,
                              deadline); // in one phase nothing is left to fail
    }
    bool under_way() noexcept { return decided_ || gradients_->ledger().under_way(); }
    void check_index(std::size_t i, char const* operation) {
        if (i >= this->size()) [[unlikely]]
            this->calls_.throw_no_such_tensor(operation, i, this->size());
    }
    void check_weights(char const* operation) {
        if (!has_weights_) [[unlikely]]
            throw_no_weights(operation);
    }
    [[noreturn]] void throw_no_weights(char const* operation) {
        this->calls_.throw_misuse(
            errc::bad_state, operation,
            {"there are no weights yet; call start(root, fill) or load(folder) on all ranks first",
             facts.outer ? "" : ", or keep weights in memory of the program's and call updated(i, span)"});
    }
    void check_undecided(char const* operation) {
        if (decided_) [[unlikely]]
            this->calls_.throw_misuse(
                errc::bad_state, operation,
                {"wait() has ended the step's gradients; call updated(i) for every tensor, then settle()"});
    }
    void check_decided(char const* operation) {
        if (!decided_) [[unlikely]]
            this->calls_.throw_misuse(
                errc::bad_state, operation,
                {"no step's gradients were ended; call ready(i) for every tensor, then wait()"});
    }
    void check_update(std::size_t i) {
        check_index(i, "updated");
        if (failure const* const why = this->session_.failed()) throw error(*why);
        check_decided("updated");
        if (steps().ledger().is_ready(i)) [[unlikely]]
            this->calls_.throw_misuse(errc::bad_state, "updated",
                                      {"tensor ", i, " ('", name(i),
                                       "') is updated already: once a step; call settle() before the next"});
    }
    void check_between_steps(char const* operation) {
        if (under_way()) [[unlikely]]
            this->calls_.throw_misuse(
                errc::bad_state, operation,
                {"a step is under way; end it by wait(), updated(i) and settle() first"});
    }

    detail::manual_lifetime<detail::own_gradients<stored, facts.observes>> gradients_;
    detail::fixed_array<bool> synchronized_; // by the last step, each group of buckets
    detail::fixed_array<bool> elsewhere_;    // a tensor's weights were updated in the program's memory
    [[no_unique_address]] training_type outer_;
    detail::fixed_array<element*>
        external_; // with an outer optimizer: weights in the program's memory that are due
    policy policy_{};
    struct nothing {};
    using collectives = detail::collective<typename session::store, typename Pack::sharding>;
    [[no_unique_address]] std::conditional_t<
        facts.votes, detail::manual_lifetime<detail::votes<stored, collectives, votes_travel>>, nothing>
        votes_;
    std::uint64_t steps_ = 0;
    bool decided_ = false;     // between `wait` and `settle`
    bool has_weights_ = false; // that `start` or `load` has set
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_LAZY_REDUCER_HPP
