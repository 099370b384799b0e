// herring: the state machine that runs executions over an intra-node reducer and a transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ENGINE_HPP
#define HERRING_ENGINE_ENGINE_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/table.hpp"
#include "herring/engine/context.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/local_routes.hpp"
#include "herring/engine/one_hop_route.hpp"
#include "herring/engine/two_hop_route.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE {

/// Whom an engine waits for, and why it thinks so.
struct blame {
    int rank = -1;
    bool gone = false; ///< and it never will: it has left
    char const* text = "";
};

/// Runs executions, in order, each by its route.
///
/// A state machine: `poll` does what can be done now and returns how much that was; it never waits. It knows no clock
/// and no thread; memory, messages and flags come from the policies. An execution is *submitted*; it has *arrived*
/// when this rank's data is in place, is *gathered* when all local ranks' is, *finished* when this rank has done its
/// chunks, and *released* when all local ranks have.
///
/// Threads:  `submit`, `requested`, `released`, `failed`: any one thread; all else: one (other) thread.
/// Memory:   plan.staging_bytes(peers) and O(ranks + executions); nothing is allocated after construction.
/// Errors:   the first one stays (`failed`); nothing moves after it.
template <class Element, class Transport, class IntraNode, class Update, class Trace> class engine {
    using context = detail::engine_context<Element, Transport, IntraNode, Update>;
    using local_routes = detail::local_routes<context>;
    using peer = detail::peer;

  public:
    engine(world& ranks, topology const& map, herring::plan const& made, Transport& transport,
           IntraNode& node, Trace& trace, std::span<int const> peers, std::size_t executions,
           std::byte* local_memory, std::span<std::byte> staging)
        : shared_(ranks, map, made, transport, node, peers, executions, staging), trace_(trace),
          networked_(map.nodes() > 1), on_node_(shared_, made.tuning.mailbox_bytes, local_memory),
          one_hop_(shared_), two_hops_(shared_), lateness_(static_cast<std::size_t>(map.size())) {}
    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    /// Bytes of every rank's region that an engine needs for its local ranks: `local_memory` at construction.
    static constexpr std::size_t local_bytes(std::size_t executions, std::size_t mailbox_bytes) noexcept {
        return local_routes::memory_bytes(executions, mailbox_bytes);
    }

    /// Posts the receives of the first window; the caller then waits for all ranks, so that nobody sends before.
    void open() noexcept {
        two_hops_.open();
        one_hop_.open();
    }

    /// Hands over an execution; its memory belongs to the engine until it is released. At most as many may be
    /// outstanding as was said at construction. Returns its number.
    std::uint64_t submit(execution const& e) noexcept {
        std::uint64_t const number = requested_.load(std::memory_order_relaxed);
        shared_.at(number) = e;
        requested_.store(number + 1, std::memory_order_release);
        return number;
    }

    /// Executions that were submitted.
    std::uint64_t requested() const noexcept { return requested_.load(std::memory_order_acquire); }
    /// Executions whose results lie in this rank's memory; nobody reads or writes it for them any more.
    std::uint64_t released() const noexcept { return released_.load(std::memory_order_acquire); }

    /// The same counts, for whoever looks from outside.
    ///
    /// Lifetime: the engine's.
    std::atomic<std::uint64_t> const& submissions() const noexcept { return requested_; }
    std::atomic<std::uint64_t> const& releases() const noexcept { return released_; }

    /// A released execution as it ended, until as many others as may be outstanding are submitted: whether it was
    /// exchanged, and the place that is this rank's now.
    execution const& ended(std::uint64_t number) noexcept { return shared_.at(number); }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept {
        return shared_.failed.load(std::memory_order_acquire) ? &shared_.failed_with : nullptr;
    }
    /// Ends everything with this failure, here and, if `announce`, on every rank.
    void fail(failure const& why, bool announce = true) noexcept {
        shared_.fail(why, announce);
        shared_.publish();
    }
    /// A peer that is needed and lost, before it is known whether that is the cause; `what` is ok when there is none.
    failure const& suspicion() const noexcept { return shared_.suspicion; }

    /// Does what can be done now. Returns 0 when there was nothing.
    std::size_t poll() noexcept {
        if (shared_.failing) return 0;
        submitted_ = requested_.load(std::memory_order_acquire);
        std::size_t progress = 0;
        if (networked_)
            progress += shared_.transport.poll([this](completion const& done) noexcept { on(done); });
        if (!shared_.failing) progress += arrive();
        if (!shared_.failing) progress += on_node_.step();
        if (networked_) {
            if (!shared_.failing) progress += two_hops_.step();
            if (!shared_.failing) progress += one_hop_.step();
        }
        if (!shared_.failing) return progress + finish();
        shared_.publish(); // nothing is released any more
        return 0;
    }

    /// Sleeps until `poll` may find something, or `until`.
    void sleep(time_point until) noexcept {
        if constexpr (context::on_device) until = shared_.node.nap(until);
        if (!networked_) {
            std::uint32_t const heard = shared_.node.listen();
            shared_.node.sleep(heard, poll() > 0 ? time_point{} : until);
        } else if (shared_.local_size == 1) {
            shared_.transport.wait(until);
        } else {
            // News may come from the network or from the node, and one cannot sleep on both: look at both in turn,
            // the less often the longer it has taken.
            if (nap_ < std::chrono::milliseconds(2)) nap_ += nap_ / 8 + std::chrono::microseconds(10);
            shared_.transport.wait(std::min(until, clock::now() + nap_));
        }
    }

    /// Ends `sleep`, from any thread.
    void wake() noexcept {
        if (networked_)
            shared_.transport.wake();
        else
            shared_.node.wake();
    }

    /// Whom this rank waits for right now; rank −1: nobody.
    // For the oldest execution that somebody is waited for in: who is late for a younger one may himself be held up by
    // whoever is late for the older. So a chain of «waits for» never leads to a younger execution, and has an end.
    blame waiting_for() noexcept {
        std::uint64_t const first = released_.load(std::memory_order_relaxed);
        blame found;
        std::uint64_t oldest = submitted_;
        auto const consider = [&](int rank, std::uint64_t execution, char const* text) noexcept {
            if (rank < 0 || execution >= oldest) return;
            found = {rank, false, text};
            oldest = execution;
        };
        auto const consider_local = [&](int l, std::uint64_t execution, char const* text) noexcept {
            if (l < 0 || execution >= oldest) return;
            found = {shared_.map.rank_of(shared_.my_node, l), shared_.node.gone(l), text};
            oldest = execution;
        };
        if (first >= submitted_) return found;
        if constexpr (context::on_device) {
            // First of all: the others wait for it, and one of them might be named in its place.
            consider_local(shared_.local, arrived_, late_device);
            if constexpr (context::sums_on_device)
                if (shared_.gathered < arrived_ && shared_.node.absent(shared_.gathered) < 0)
                    consider_local(shared_.node.behind(shared_.gathered), shared_.gathered, late_device);
        }
        if (shared_.gathered < submitted_)
            consider_local(shared_.node.absent(shared_.gathered), shared_.gathered,
                           "it has not submitted this operation");
        consider(two_hops_.awaited(), two_hops_.awaited_in(), "its part has not come");
        consider(one_hop_.awaited(), one_hop_.awaited_in(), "its part has not come");
        for (peer const& p : shared_.peers)
            if (p.oldest < p.pushed) {
                shared_.need(p);
                consider(p.rank, p.flights[p.oldest % shared_.window].execution,
                         "it has not returned the sum");
            }
        if (found.rank >= 0 && oldest <= first) return found;
        consider_local(shared_.node.unfinished(first), first,
                       "it has not finished its share of the node's sum");
        for (peer const& p : shared_.peers)
            if (p.sends > 0) {
                shared_.need(p);
                consider(p.rank, first, "it takes no data");
            }
        return found;
    }

    /// Adds to the time that somebody was waited for.
    void charge(int rank, std::uint64_t ns) noexcept {
        if (rank >= 0) lateness_[static_cast<std::size_t>(rank)] += ns;
        waited_.add(ns);
    }

    /// Closes the account of one wait: who was waited for longest.
    void settle_account() noexcept {
        auto const most = std::max_element(lateness_.begin(), lateness_.end());
        bool const any = most != lateness_.end() && *most > 0;
        slowest_ns_.set(any ? *most : 0);
        slowest_rank_.set(any ? static_cast<std::uint64_t>(most - lateness_.begin()) + 1 : 0);
        std::fill(lateness_.begin(), lateness_.end(), std::uint64_t{0});
    }

    herring::counters counters() const noexcept {
        return {.operations = released(),
                .messages_sent = messages_sent_.get(),
                .messages_received = messages_received_.get(),
                .bytes_sent = bytes_sent_.get(),
                .bytes_received = bytes_received_.get(),
                .wait_ns = waited_.get(),
                .slowest_rank = static_cast<int>(slowest_rank_.get()) - 1,
                .slowest_ns = slowest_ns_.get()};
    }

  private:
    static constexpr char late_device[] = "its device has not come to this operation";

    // What the transport reports.
    void on(completion const& done) noexcept {
        if (shared_.failing) return;
        if (done.what == completion::lost) {
            peer& gone = shared_.peers[shared_.place(done.peer)];
            gone.lost = true;
            gone.why = done.why;
            return;
        }
        detail::token const about = detail::token::unpacked(done.token);
        peer& p = shared_.peers[about.peer];
        if (done.what == completion::received) {
            messages_received_.add(1);
            bytes_received_.add(done.bytes);
            detail::arrival const what = detail::arrival_of(done);
            switch (about.what) {
            case detail::message::push:
                two_hops_.pushed(p, about.slot, what);
                break;
            case detail::message::result:
                two_hops_.returned(p, about.slot, what);
                break;
            case detail::message::hop:
                one_hop_.arrived(p, about.slot, what);
                break;
            }
        } else {
            messages_sent_.add(1);
            bytes_sent_.add(done.bytes);
            if (about.what == detail::message::hop) one_hop_.sent(about.slot);
            --shared_.at(about.execution).open;
            --p.sends;
        }
    }

    std::size_t arrive() noexcept {
        std::size_t progress = 0;
        if constexpr (context::on_device)
            if (failure const* const why = shared_.node.failed()) return shared_.fail(*why, true), progress;
        for (; arrived_ < submitted_; ++arrived_, ++progress) {
            execution& e = shared_.at(arrived_);
            if constexpr (context::on_device)
                if (!shared_.node.loaded(arrived_, submitted_)) break;
            if (e.path == route::mailbox && !on_node_.fill(e, arrived_)) break;
            e.open = e.path == route::two_hop ? two_hops_.cursors() : 1;
            on_node_.declare(e, arrived_);
            shared_.node.arrive(arrived_);
        }
        for (; arrived_ > shared_.gathered && shared_.node.absent(shared_.gathered) < 0;
             ++shared_.gathered, ++progress) {
            execution& e = shared_.at(shared_.gathered);
            if (int const other = on_node_.differs(e, shared_.gathered); other >= 0) {
                shared_.mismatch_on_node(other, e);
                break;
            }
            if constexpr (context::sums_on_device)
                if (!shared_.sum_on_device(arrived_)) break;
        }
        return progress;
    }

    // Whether the result is complete when this rank has made it.
    static bool alone(execution const& e) noexcept { return e.path == route::mailbox || e.exchanged; }

    std::size_t finish() noexcept {
        std::size_t progress = 0;
        for (; finished_ < arrived_ && shared_.at(finished_).open == 0; ++finished_, ++progress) {
            if constexpr (context::sums_on_device) {
                shared_.node.template spread<Element>(finished_, shared_.at(finished_));
                if (shared_.node.failed() != nullptr) break; // nobody may take this for finished
            }
            shared_.node.finish(finished_, !alone(shared_.at(finished_)));
        }
        std::uint64_t done = released_.load(std::memory_order_relaxed);
        while (done < finished_ && (alone(shared_.at(done)) || shared_.node.unfinished(done) < 0)) {
            trace_(trace_event::bucket_reduced, shared_.at(done).label);
            if constexpr (context::on_device && !context::sums_on_device) shared_.node.store(done);
            released_.store(++done, std::memory_order_release);
            ++progress;
        }
        if (progress > 0) nap_ = std::chrono::nanoseconds(0);
        return progress;
    }

    context shared_;
    Trace& trace_;
    bool const networked_;
    local_routes on_node_;
    detail::one_hop_route<context> one_hop_;
    detail::two_hop_route<context> two_hops_;

    std::atomic<std::uint64_t> requested_{0}; // written by the submitting thread
    std::atomic<std::uint64_t> released_{0};  // written by the polling thread
    std::uint64_t submitted_ = 0;             // requested_, as of the last poll
    std::uint64_t arrived_ = 0;
    std::uint64_t finished_ = 0;

    std::chrono::nanoseconds nap_{0};
    detail::table<std::uint64_t> lateness_; // rank → ns in the current wait
    detail::tally messages_sent_, messages_received_, bytes_sent_, bytes_received_, waited_, slowest_rank_,
        slowest_ns_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_ENGINE_HPP
