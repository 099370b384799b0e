// herring: a member of an ensemble, as a model's process has it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_HPP
#define HERRING_ENSEMBLE_MEMBER_HPP

#include "herring/base/config.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/options.hpp"
#include "herring/ensemble/shape.hpp"
#include "herring/machine/forks.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

HERRING_SETUP inline member_options checked(member_options options) {
    check_options(options);
    return options;
}

/// Answers requests of its frontends, in the order in which they are taken, or any other.
///
/// It comes, goes, and comes back by itself: a frontend that is not there, or has gone, is dialled again with growing pauses
/// (10 ms … 2 s). A second process with its name and replica takes its place, and it is refused (`status`).
///
/// Threads:  one at a time; `leave`, `stop` and `status` from any at any time.
/// Lifetime: longer than its jobs, and than calls of other threads: `next` returns while `leave` still waits. It stays with its process: in one that is forked off later calls throw `bad_state`, or do nothing
///           where they are noexcept, and so does the destructor.
template <class Element, class Core> class basic_member {
  public:
    using job = typename Core::job;

    HERRING_SETUP basic_member(member_options const& o, shape const& what) {
        core_.emplace(o.elements, o.concurrency, what, dialling(o));
    }
    basic_member(basic_member const&) = delete;
    basic_member& operator=(basic_member const&) = delete;
    HERRING_SETUP ~basic_member() {
        if (forked_off()) core_.abandon(); // it is the parent's
    }

    /// The next request, of the frontends in turn. Nothing: at the timeout, after `stop` or `leave`, or once every frontend
    /// has refused this member, which `status` tells.
    ///
    /// Blocks:  until then.
    /// Errors:  `bad_state`: the program holds `concurrency` jobs.
    template <class Rep = std::chrono::nanoseconds::rep, class Period = std::nano>
    [[nodiscard]] job next(std::chrono::duration<Rep, Period> timeout) {
        return core_->next(std::chrono::duration_cast<std::chrono::nanoseconds>(timeout));
    }
    [[nodiscard]] job next() { return core_->next(); }
    /// Does not block. Nothing also where the program holds `concurrency` jobs.
    [[nodiscard]] job try_next() noexcept { return core_->try_next(); }

    /// For an event loop: readable when `try_next` may have something. `arm` before each wait for it; false: there is
    /// something already.
    int descriptor() const noexcept { return core_->descriptor(); }
    bool arm() noexcept { return core_->arm(); }

    /// A row that no frontend asked for: each that is connected gets it under the id that it expects.
    ///
    /// Shape:   row: `elements`.
    /// Returns: to how many frontends it was sent; 0 also for a row that its space does not allow.
    /// Errors:  `bad_argument`: its size.
    std::size_t contribute(std::uint64_t id, std::span<Element const> row) {
        if (row.size() != core_->elements())
            option_check{"contribute"}.refuse(
                {"the row has ", row.size(), " elements, and the ensemble's have ", core_->elements()});
        return core_->contribute(
            id, [&](std::span<Element> to) { std::copy(row.begin(), row.end(), to.begin()); });
    }
    /// The same; `fill(std::span<Element>)` writes it where it goes. It calls neither the member nor its jobs.
    template <class Fill>
    requires std::is_invocable_v<Fill&, std::span<Element>> //
        std::size_t contribute(std::uint64_t id, Fill&& fill) {
        return core_->contribute(id, std::forward<Fill>(fill));
    }

    /// Whether this process was forked off after the member was made, and so cannot use it.
    bool forked_off() const noexcept { return !owner_.is_this(); }
    /// Whether `next` returns nothing from now on.
    bool is_over() const noexcept { return core_->is_over(); }
    /// `next` returns nothing from now on, and wakes up for it. From signal handlers, too.
    void stop() noexcept { core_->stop(); }
    /// Asks all frontends to ask no more, answers what waits as declined, and returns when each has let this member go. Jobs that the
    /// program holds are answered before. `next` returns nothing from now on, and wakes up for it.
    ///
    /// Blocks:  for `most` at most; false: not all frontends have, and it can be called again.
    /// Threads: any, also beside `next` and jobs of another one, as a thread that waits for SIGTERM does; not signal handlers.
    bool leave(std::chrono::milliseconds most = std::chrono::milliseconds(5000)) {
        return core_->leave(most);
    }

    /// One for each frontend, in the order of the options.
    auto status() const { return core_->status(); }
    auto counters() const noexcept { return core_->counters(); }

    /// Not part of what is promised.
    Core& core() noexcept { return *core_; }

  private:
    HERRING_SETUP static dialler_options dialling(member_options const& o) {
        dialler_options d;
        d.frontends = o.frontends;
        d.name = o.name;
        d.replica = o.replica;
        d.secret = o.secret;
        d.secret_file = o.secret_file;
        d.require_secret = o.require_secret;
        d.lanes = o.lanes;
        d.credits = static_cast<std::uint32_t>(o.credits);
        return d;
    }

    owner_process const owner_{};
    manual_lifetime<Core> core_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_HPP
