// herring: what a reducer with an optimizer has beside a session: hyper values, the number of the step, and its weights.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRAINING_HPP
#define HERRING_SESSION_TRAINING_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/piece.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Of a reducer without optimizer: nothing.
template <class Optimizer> class training {
  public:
    struct hyper {};
};

/// The hyper values in force and the number of steps, and the weights when they are set. All between steps.
template <class Optimizer>
requires(optimizes<Optimizer>) //
    class training<Optimizer> {
  public:
    using hyper = typename Optimizer::hyper;

    hyper const& values() const noexcept { return values_; }
    bool started() const noexcept { return started_; }

    template <class Session> void set(Session& session, hyper const& values) noexcept {
        values_ = values;
        prepare(session);
    }
    /// The step is over: all weights have been updated.
    template <class Session> void end_step(Session& session) noexcept {
        ++steps_;
        prepare(session);
    }
    /// The weights are what lies in `from`, as the plan places tensors; the state is 0, and no step was taken.
    // Every rank writes what it alone reads, and one the node's copy.
    template <class Session> void start(Session& session, std::byte const* from) noexcept {
        plan const& of = session.plan();
        for (std::size_t b = 0; b < of.buckets.size(); ++b) {
            bucket const& one = of.buckets[b];
            if (one.path == route::mailbox || session.local_rank() == 0)
                std::memcpy(session.weights_of_bucket(b), from + one.offset * of.element_bytes,
                            one.elements * of.element_bytes);
        }
        restart(session);
    }
    /// The weights are where they belong; the state is 0, and no step was taken.
    template <class Session> void restart(Session& session) noexcept {
        session.optimising().clear_state();
        steps_ = 0;
        started_ = true;
        prepare(session);
    }

  private:
    template <class Session> void prepare(Session& session) noexcept {
        session.optimising().prepare(values_, steps_ + 1);
        digest sum(0x6879'7065'72u);
        sum.add(steps_);
        double each[sizeof(hyper) / sizeof(double)];
        std::memcpy(each, &values_, sizeof each);
        for (double const value : each) sum.add(__builtin_bit_cast(std::uint64_t, value));
        session.set_values_digest(sum.value() << 32);
        if constexpr (has_commands<Session>) session.desk().set_values(std::as_bytes(std::span(&values_, 1)));
    }

    hyper values_{};
    std::uint64_t steps_ = 0;
    bool started_ = false;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRAINING_HPP
