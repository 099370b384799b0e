// herring: events that an engine records by a detailed trace policy: messages, folds, stalls, waits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_TRACER_HPP
#define HERRING_ENGINE_TRACER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/ledger.hpp"
#include "herring/engine/messages.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// Records an engine's events by its trace policy. Empty, and not called, where the policy takes no details.
template <class Trace, bool details = traces_details<Trace>> class tracer {
  public:
    tracer(Trace&, std::size_t) noexcept {}
};

template <class Trace> class tracer<Trace, true> {
  public:
    tracer(Trace& trace, std::size_t peers) : trace_(trace), sent_(peers * kinds), stalled_(peers) {}

    /// A message is about to be posted: `number` of its kind to that rank, for execution `e` of number `at`.
    /// Recorded before the post, for the message may arrive before that returns; once for each message,
    /// however often the transport refuses it.
    void sends(std::size_t place, message what, std::uint64_t number, int to, execution const& e,
               std::uint64_t at, std::size_t bytes) noexcept {
        std::uint64_t& told = sent_[place * kinds + static_cast<std::size_t>(what)];
        if (told == number + 1) return;
        told = number + 1;
        trace_.record(what == message::result ? trace_event::result_sent : trace_event::part_sent,
                      {e.label, to, at, bytes, name_of(what, number)});
    }
    /// A message has come, perhaps for an execution that this rank has not submitted yet.
    void arrived(token const& about, completion const& done, int from, execution_ledger const& all) noexcept {
        std::uint64_t const here = all.submitted(), at = execution_of(arrival_of(done), all);
        bool const known = at < here && here - at <= all.size();
        trace_.record(
            about.what == message::result ? trace_event::result_arrived : trace_event::part_arrived,
            {known ? all.at(at).label : no_bucket, from, at, done.bytes, name_of(about.what, done.tag)});
    }
    /// A fold of a chunk, or a copy of a bucket, begins or ends.
    void work(trace_event which, execution const& e, std::uint64_t at, std::size_t bytes) noexcept {
        trace_.record(which, {.index = e.label, .execution = at, .bytes = bytes});
    }
    /// The next push to a peer, number `number`, has no credit. Recorded once for each push, however often it
    /// is tried.
    void stalled(std::size_t place, int to, std::uint64_t number, execution const& e,
                 std::uint64_t at) noexcept {
        if (stalled_[place] == number + 1) return;
        stalled_[place] = number + 1;
        trace_.record(
            trace_event::credit_stall,
            {.index = e.label, .peer = to, .execution = at, .message = name_of(message::push, number)});
    }
    /// Records the result of a look around, when it has changed.
    void waits_for(int rank, execution_ledger const& all) noexcept {
        std::uint64_t const oldest = all.released().load(std::memory_order_relaxed);
        if (rank < 0 || (rank == waited_for_ && oldest == waited_at_)) return;
        waited_for_ = rank;
        waited_at_ = oldest;
        trace_.record(trace_event::waits_for,
                      {.index = oldest < all.submitted() ? all.at(oldest).label : no_bucket,
                       .peer = rank,
                       .execution = oldest});
    }

  private:
    /// The execution that a message belongs to. It carries the number among networked executions modulo
    /// 4,096, and belongs to the nearest one that is here. The number of an execution that is not here is
    /// unknown where a node has executions of its own.
    static std::uint64_t execution_of(arrival const& carried, execution_ledger const& all) noexcept {
        std::uint64_t const here = all.submitted(), networked = all.networked_before(here);
        std::uint64_t ahead = (carried.execution - networked) & arrival::numbers;
        bool const is_here = ahead > arrival::numbers / 2;
        if (is_here) ahead -= arrival::numbers + 1;
        if (networked == here) return here + ahead;
        if (is_here)
            for (std::uint64_t at = here; at > 0 && here - at < all.size(); --at)
                if (is_networked(all.at(at - 1).path) && all.network_number(at - 1) == networked + ahead)
                    return at - 1;
        return no_execution;
    }
    static std::uint32_t name_of(message what, std::uint64_t number) noexcept {
        return static_cast<std::uint32_t>(what) << 28 |
               (static_cast<std::uint32_t>(number) & ((1u << 28) - 1));
    }

    Trace& trace_;
    static constexpr std::size_t kinds = static_cast<std::size_t>(message::rack_result) + 1;
    fixed_array<std::uint64_t> sent_;    // place of a peer, kind → the message recorded last, plus 1
    fixed_array<std::uint64_t> stalled_; // place of a peer → the push recorded last, plus 1
    int waited_for_ = -1;
    std::uint64_t waited_at_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_TRACER_HPP
