// herring: the calls of a reducer with an optimizer: the start of training, the weights, the hyper values.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRAINING_CALLS_HPP
#define HERRING_SESSION_TRAINING_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/session.hpp"
#include "herring/session/training.hpp"
#include "herring/step/collective.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A base of `basic_reducer<Pack>`, of which it is a friend: what a program calls where the pack names an optimizer. `wait()`
/// leaves the updated weights then, and tensors have no result.
///
/// Without an optimizer there are no such calls.
template <class Pack> class training_calls {};

template <class Pack>
requires(optimizes<typename Pack::optimizer>) //
    class training_calls<Pack> {
    using element = typename Pack::element;
    using training_type = training<typename Pack::optimizer>;

  public:
    /// The optimizer's hyper values: an aggregate of doubles.
    using hyper_type = typename training_type::hyper;

    /// Sets the weights of all ranks to what `fill(i, std::span<element>)` writes for each tensor i, on `root` only; the
    /// optimizer's state is 0 again, and its steps count from 1. Collective, between steps.
    ///
    /// Shape:    layout[i].elements elements. Tensors are unspecified afterwards.
    /// Cost:     a broadcast of the model, and a barrier.
    /// Blocks:   at most `world::default_timeout()` each.
    /// Errors:   `bad_argument` where there is no rank `root`; `mismatch` where ranks name different ones; what `fill` throws
    ///           ends the world.
    template <class Fill> void start(int root, Fill&& fill) {
        auto& of = reducer();
        call const here(of.calls_, "start");
        if (failure const* const why = of.session_.failed()) throw error(*why);
        of.parts_->steps.check_between_steps("start");
        world& ranks = of.session_.ranks();
        check_root(of.calls_, "start", root, ranks.topology());
        std::byte* const memory = of.session_.node().memory();
        if (ranks.rank() == root) {
            try {
                for (std::size_t i = 0; i < of.size(); ++i)
                    fill(i, std::span<element>(reinterpret_cast<element*>(of.parts_->steps.tensor(i)),
                                               of.plan().tensors[i].elements));
            } catch (...) {
                announce_and_rethrow(ranks, "start");
            }
        }
        status const ended = spread_weights(root, memory, deadline_in(of.default_timeout()));
        of.session_.rethrow_of_handlers();
        ended.value();
        training_.start(of.session_, memory);
        ranks.barrier(); // the node's copy is there before anyone reads it
    }

    /// The weights of tensor i: one copy for all ranks of a node that share memory.
    ///
    /// Lifetime: the reducer's. Not to be read between `ready(i)` and the end of `wait()`: an update may be under way.
    /// Errors:   `bad_argument` when i is out of range, `bad_state` before `start`.
    std::span<element const> weights(std::size_t i) {
        auto& of = reducer();
        (void)of.parts_->steps.tensor(i); // checks i
        check_started("weights");
        placed_tensor const& at = of.plan().tensors[i];
        bucket const& in = of.plan().buckets[at.bucket];
        return {reinterpret_cast<element const*>(of.session_.weights_of_bucket(at.bucket)) +
                    (at.offset - in.offset),
                at.elements};
    }

    /// The hyper values in force.
    hyper_type const& hyper() const noexcept { return training_.values(); }
    /// Replaces all of them, for the steps from now on: between steps, and alike on all ranks.
    ///
    /// Errors: `bad_state` in the middle of a step. Where ranks have different ones, the next step ends in `mismatch`.
    void set(hyper_type const& values) {
        auto& of = reducer();
        call const here(of.calls_, "set");
        of.parts_->steps.check_between_steps("set");
        training_.set(of.session_, values);
    }

  protected:
    /// The session is connected.
    void begin_training() noexcept { training_.set(reducer().session_, {}); }
    void check_started(char const* operation) {
        if (!training_.started()) [[unlikely]]
            reducer().calls_.throw_misuse(
                errc::bad_state, operation,
                {"there are no weights yet; call start(root, fill) on all ranks first"});
    }
    /// The step is over, and has updated the weights.
    void end_training_step() noexcept { training_.end_step(reducer().session_); }

  private:
    // What lies in the root's tensors, to those of all ranks.
    status spread_weights(int root, std::byte* memory, time_point deadline) {
        using share = collective_program::share;
        auto& of = reducer();
        std::uint8_t const broadcast = session<Pack>::template number_of<operations::broadcast>();
        if constexpr (session<Pack>::commands)
            if (of.session_.is_commanding()) {
                of.session_.begin_call({.what = command::kind::start, .root = root});
                return broadcast_buckets(
                    of.session_, broadcast, root,
                    [&](std::size_t b) { return memory + of.plan().buckets[b].offset * sizeof(element); },
                    deadline);
            }
        return of.parts_->collectives.run(of.session_,
                                          {.operation = broadcast,
                                           .name = "start",
                                           .gives = share::root,
                                           .takes = share::not_root,
                                           .root = root},
                                          memory, memory, of.plan().elements, deadline);
    }

    basic_reducer<Pack>& reducer() noexcept { return static_cast<basic_reducer<Pack>&>(*this); }

    training_type training_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRAINING_CALLS_HPP
