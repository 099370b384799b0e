// herring: the training of a reducer with an optimizer: values of groups, the number of the step, its end.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_TRAINING_HPP
#define HERRING_SESSION_TRAINING_HPP

#include "herring/base/config.hpp"
#include "herring/base/digest.hpp"
#include "herring/base/error.hpp"
#include "herring/base/lane_math.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/plan/plan.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/collective.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

template <class Element, class Optimizer> class optimizer_memory;

/// Names of the members of an optimizer's `hyper`: `fault` says which of them a NaN is. nullptr for a member
/// that it does not check.
template <class Optimizer> HERRING_SETUP std::span<char const* const> hyper_members() noexcept {
    using hyper = typename Optimizer::hyper;
    static auto const names = [] {
        std::array<char const*, sizeof(hyper) / sizeof(double)> found{};
        for (std::size_t i = 0; i < found.size(); ++i) {
            hyper values{};
            double each[sizeof(hyper) / sizeof(double)];
            std::memcpy(each, &values, sizeof each);
            each[i] = std::numeric_limits<double>::quiet_NaN();
            std::memcpy(static_cast<void*>(&values), each, sizeof each);
            if (!fault_of<Optimizer>(hyper{})) found[i] = fault_of<Optimizer>(values).member;
        }
        return found;
    }();
    return names;
}

/// The values in force, for each group of tensors, and the number of steps; the weights when they are set;
/// and what is left of a step when all gradients are summed. `Memory`: the session's `optimizer_memory`.
template <class Optimizer, class Memory> class training {
    using number = typename Memory::number;

  public:
    using hyper = typename Optimizer::hyper;
    static constexpr bool two_phases = Memory::two_phases;
    struct group {
        hyper values{};
        bool frozen = false;
    };

    /// The session is connected.
    template <class Session> HERRING_SETUP void begin(Session& session) {
        groups_.resize(session.updated().groups());
        auto const ranks = static_cast<std::size_t>(session.ranks().size());
        if constexpr (two_phases)
            if (!has_tables(session)) exchanged_.resize(ranks * session.norm_numbers());
        values_.resize(1 + groups_.size() * doubles_of_group);
        session.name_values({values_, hyper_members<Optimizer>()});
        prepare(session);
    }

    // ---- between steps ------------------------------------------------------------------------------------

    std::size_t size() const noexcept { return groups_.size(); }
    group const& at(std::size_t i) const noexcept { return groups_[i]; }
    double loss_scale() const noexcept { return loss_scale_; }
    bool started() const noexcept { return started_; }
    herring::step outcome() const noexcept { return outcome_; }
    double gradient_norm() const noexcept { return norm_; }

    /// Changes values of groups, by `change(group)` of each one in [first, end).
    template <class Session, class Change>
    void set(Session& session, std::size_t first, std::size_t end, Change const& change) noexcept {
        for (std::size_t i = first; i < end; ++i) change(groups_[i]);
        prepare(session);
    }
    template <class Session> void set_loss_scale(Session& session, double scale) noexcept {
        loss_scale_ = scale;
        prepare(session);
    }
    /// The weights are what lies in `from`, as the plan places tensors; the state is 0, and no step was
    /// taken.
    template <class Session> void start(Session& session, std::byte const* from) noexcept {
        place_weights(session, from);
        restart(session, from);
    }
    /// The same for weights that are where they belong.
    template <class Session> void restart(Session& session, std::byte const* weights) noexcept {
        session.updated().start(weights);
        go_on(session, 0);
    }
    /// The weights are what lies in `from`, or where they belong, after `steps` steps, which left `kept`, of
    /// which this takes a copy, and these values. The scale of the loss stays.
    template <class Session>
    void resume(Session& session, std::byte const* from, private_memory const& kept,
                std::vector<std::vector<double>> const& values_by_group, std::uint64_t steps) noexcept {
        if (from != nullptr) place_weights(session, from);
        session.updated().take_kept(kept);
        for (std::size_t i = 0; i < groups_.size(); ++i) take_group(i, values_by_group[i].data());
        go_on(session, steps);
    }

    // ---- values as doubles, for checkpoints and servers ---------------------------------------------------

    static constexpr std::size_t doubles_of_group = sizeof(hyper) / sizeof(double) + 1;
    std::uint64_t steps() const noexcept { return steps_; }
    std::vector<std::vector<double>> values_by_group() const {
        std::vector<std::vector<double>> all(groups_.size(), std::vector<double>(doubles_of_group));
        for (std::size_t i = 0; i < groups_.size(); ++i) put_group(i, all[i].data());
        return all;
    }
    /// A server: those of a command.
    template <class Session>
    void take_values(Session& session, std::span<std::byte const> from) noexcept
        requires(has_commands<Session>) {
        std::memcpy(values_.data(), from.data(), from.size());
        for (std::size_t i = 0; i < groups_.size(); ++i) take_group(i, &values_[i * doubles_of_group]);
        loss_scale_ = values_.back();
        prepare(session);
    }

    // ---- the end of a step --------------------------------------------------------------------------------

    /// All gradients are summed and, in one phase, all weights updated.
    template <class Session, class Collectives>
    status end_step(Session& session, Collectives& collectives, time_point deadline) {
        if constexpr (two_phases) {
            if (status ended = find_norm(session, collectives, deadline); !ended.ok()) return ended;
            outcome_ = herring::step::exchanged;
            if (Optimizer::facts.on_nonfinite == nonfinite::skip_step && !(norm_ - norm_ == 0)) {
                outcome_ = herring::step::skipped;
                if constexpr (has_commands<Session>) // servers have them, too
                    return session.finish(session.requested(), deadline);
                return {};
            }
            scale_gradients(session);
            if constexpr (Optimizer::facts.tensor_norms)
                if (status ended = find_tensor_norms(session, collectives, deadline); !ended.ok())
                    return ended;
            if (status ended = session.finish(session.submit_returns(), deadline); !ended.ok()) return ended;
        }
        ++steps_;
        if (!session.serves()) prepare(session); // a server does when it knows the next step's values
        return {};
    }

  private:
    // Every rank writes what it alone reads, and one the node's copy.
    template <class Session> void place_weights(Session& session, std::byte const* from) noexcept {
        plan const& of = session.plan();
        for (std::size_t b = 0; b < of.buckets.size(); ++b) {
            bucket const& one = of.buckets[b];
            if (one.elements > 0 && (one.path == route::mailbox || session.local_rank() == 0))
                std::memcpy(session.weights_of_bucket(b), from + one.offset * of.element_bytes,
                            one.elements * of.element_bytes);
        }
    }
    // Its hyper values, and 1 if it is frozen.
    void put_group(std::size_t i, double* into) const noexcept {
        std::memcpy(into, &groups_[i].values, sizeof(hyper));
        into[doubles_of_group - 1] = groups_[i].frozen ? 1 : 0;
    }
    void take_group(std::size_t i, double const* from) noexcept {
        std::memcpy(static_cast<void*>(&groups_[i].values), from, sizeof(hyper));
        groups_[i].frozen = from[doubles_of_group - 1] != 0;
    }
    template <class Session> void go_on(Session& session, std::uint64_t steps) noexcept {
        steps_ = steps;
        started_ = true;
        prepare(session);
    }
    template <class Session> void prepare(Session& session) noexcept {
        auto& memory = session.updated();
        for (std::size_t i = 0; i < groups_.size(); ++i) {
            memory.prepare(i, Optimizer::template prepare<number>(groups_[i].values, steps_ + 1),
                           groups_[i].frozen);
            put_group(i, &values_[i * doubles_of_group]);
        }
        memory.unscale(static_cast<number>(1 / loss_scale_));
        values_.back() = loss_scale_;
        digest sum(0x6879'7065'72u);
        sum.add(steps_);
        for (double const value : values_) sum.add(__builtin_bit_cast(std::uint64_t, value));
        session.set_values_digest(sum.value() << 32);
        if constexpr (has_commands<Session>) session.desk().set_values(std::as_bytes(std::span(values_)));
    }

    // True if norms go by the session's tables, as some servers are nodes of their own.
    template <class Session> static bool has_tables(Session& session) noexcept {
        if constexpr (has_commands<Session>) return session.desk().norms().any();
        return false;
    }

    // Adds up `count` numbers of every rank, in the order of ranks, to `sums_`: this rank's lie in its place.
    template <class Session, class Collectives>
    status add_up(Session& session, Collectives& collectives, std::size_t count, time_point deadline) {
        using share = collective_program::share;
        if constexpr (has_commands<Session>)
            if (has_tables(session)) {
                status ended = session.desk().exchange_norms(session, count, deadline);
                sums_ = session.desk().norms().sums(count);
                return ended;
            }
        auto const ranks = static_cast<std::size_t>(session.ranks().size());
        status ended =
            collectives.run(session,
                            {.operation = Session::template number_of<operations::all_gather>(),
                             .name = "wait",
                             .gives = share::owned,
                             .takes = share::all},
                            {mine(session, count).data(), exchanged_.data()},
                            ranks * count * (sizeof(double) / session.plan().element_bytes), deadline);
        if (!ended.ok()) return ended;
        for (std::size_t r = 1; r < ranks; ++r)
            for (std::size_t i = 0; i < count; ++i) exchanged_[i] += exchanged_[r * count + i];
        sums_ = std::span(exchanged_).first(count);
        return {};
    }
    // Empty: this rank combines nothing, and has no place.
    template <class Session> std::span<double> mine(Session& session, std::size_t count) noexcept {
        if constexpr (has_commands<Session>)
            if (has_tables(session)) return session.desk().norms().own(count);
        return std::span(exchanged_).subspan(static_cast<std::size_t>(session.ranks().rank()) * count, count);
    }

    template <class Session, class Collectives>
    status find_norm(Session& session, Collectives& collectives, time_point deadline) {
        double const squares = session.updated().take_squares();
        if (std::span<double> const here = mine(session, 1); !here.empty()) here[0] = squares;
        status ended = add_up(session, collectives, 1, deadline);
        if (ended.ok()) norm_ = lanes::sqrt(sums_[0]);
        return ended;
    }
    template <class Session> void scale_gradients(Session& session) noexcept {
        if constexpr (Optimizer::facts.clips)
            for (std::size_t i = 0; i < groups_.size(); ++i) {
                double const most = groups_[i].values.clip;
                session.updated().scale_gradients(i, static_cast<number>(norm_ > most ? most / norm_ : 1.0));
            }
    }
    template <class Session, class Collectives>
    status find_tensor_norms(Session& session, Collectives& collectives, time_point deadline) {
        std::size_t const count = session.norm_numbers();
        session.updated().direct(mine(session, count));
        status ended = add_up(session, collectives, count, deadline);
        if (!ended.ok()) return ended;
        std::span<tensor_norms> const norms = session.updated().norms();
        for (std::size_t i = 0; i < norms.size(); ++i)
            norms[i] = {lanes::sqrt(sums_[2 * i]), lanes::sqrt(sums_[2 * i + 1])};
        return {};
    }

    std::vector<group> groups_;
    double loss_scale_ = 1; // of gradients of 16 bits
    std::uint64_t steps_ = 0;
    bool started_ = false;
    herring::step outcome_ = herring::step::exchanged;
    double norm_ = 0;               // of the last step in two phases
    std::vector<double> exchanged_; // room for the numbers of all ranks
    std::span<double const> sums_;  // of the last exchange
    std::vector<double> values_;    // of all groups, and the loss scale
};

/// The training of a reducer of these elements with this optimizer.
template <class Element, class Optimizer> struct training_of {
    using type = training<Optimizer, optimizer_memory<Element, Optimizer>>;
};
template <class Element> struct training_of<Element, optimizer::none> {
    struct type {
        struct hyper {};
    };
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_TRAINING_HPP
