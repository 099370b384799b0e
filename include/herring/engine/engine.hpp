// herring: the state machine that runs executions over an intra-node reducer and a transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ENGINE_HPP
#define HERRING_ENGINE_ENGINE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
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

  public:
    engine(world& ranks, topology const& map, herring::plan const& made, Transport& transport,
           IntraNode& node, Trace& trace, std::span<int const> peers, std::size_t executions,
           std::byte* local_memory, std::span<std::byte> staging)
        : shared_(ranks, map, made, transport, node, peers, executions, staging), trace_(trace),
          networked_(map.nodes() > 1), on_node_(shared_, made.tuning.mailbox_bytes, local_memory),
          one_hop_(shared_), two_hops_(shared_) {}
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
        std::uint64_t const number = shared_.requested.load(std::memory_order_relaxed);
        shared_.at(number) = e;
        shared_.requested.store(number + 1, std::memory_order_release);
        return number;
    }

    /// Executions that were submitted.
    std::uint64_t requested() const noexcept { return shared_.requested.load(std::memory_order_acquire); }
    /// Executions whose results lie in this rank's memory; nobody reads or writes it for them any more.
    std::uint64_t released() const noexcept { return shared_.released.load(std::memory_order_acquire); }

    /// The same counts, for whoever looks from outside.
    ///
    /// Lifetime: the engine's.
    std::atomic<std::uint64_t> const& submissions() const noexcept { return shared_.requested; }
    std::atomic<std::uint64_t> const& releases() const noexcept { return shared_.released; }

    /// A released execution as it ended, until as many others as may be outstanding are submitted: whether it was
    /// exchanged, and the place that is this rank's now.
    execution const& ended(std::uint64_t number) noexcept { return shared_.at(number); }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept { return shared_.failed_as(); }
    /// Ends everything with this failure, here and, if `announce`, on every rank.
    void fail(failure const& why, bool announce = true) noexcept { shared_.end(why, announce); }

    /// What does not depend on the type of elements: whom this rank waits for, and who it suspects.
    ///
    /// Threads: of the one that polls.
    detail::engine_core<Transport, IntraNode>& core() noexcept { return shared_; }

    /// Does what can be done now. Returns 0 when there was nothing.
    std::size_t poll() noexcept {
        if (shared_.failing) return 0;
        shared_.submitted = shared_.requested.load(std::memory_order_acquire);
        std::size_t progress = 0;
        if (networked_) progress += shared_.poll_transport();
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

    herring::counters counters() const noexcept { return shared_.counters(); }
    /// Closes the account of one wait: who was waited for longest.
    void settle_account() noexcept { shared_.settle_account(); }

  private:
    std::size_t arrive() noexcept {
        std::size_t progress = 0;
        if constexpr (context::on_device)
            if (failure const* const why = shared_.node.failed()) return shared_.fail(*why, true), progress;
        for (; shared_.arrived < shared_.submitted; ++shared_.arrived, ++progress) {
            execution& e = shared_.at(shared_.arrived);
            if constexpr (context::on_device)
                if (!shared_.node.loaded(shared_.arrived, shared_.submitted)) break;
            if (e.path == route::mailbox && !on_node_.fill(e, shared_.arrived)) break;
            e.open = e.path == route::two_hop ? two_hops_.cursors() : 1;
            on_node_.declare(e, shared_.arrived);
            shared_.node.arrive(shared_.arrived);
        }
        for (; shared_.arrived > shared_.gathered && shared_.node.absent(shared_.gathered) < 0;
             ++shared_.gathered, ++progress) {
            execution& e = shared_.at(shared_.gathered);
            if (int const other = on_node_.differs(e, shared_.gathered); other >= 0) {
                shared_.mismatch_on_node(other, e);
                break;
            }
            if constexpr (context::sums_on_device)
                if (!shared_.sum_on_device()) break;
        }
        return progress;
    }

    // Whether the result is complete when this rank has made it.
    static bool alone(execution const& e) noexcept { return e.path == route::mailbox || e.exchanged; }

    std::size_t finish() noexcept {
        std::size_t progress = 0;
        for (; finished_ < shared_.arrived && shared_.at(finished_).open == 0; ++finished_, ++progress) {
            if constexpr (context::sums_on_device) {
                shared_.node.template spread<Element>(finished_, shared_.at(finished_));
                if (shared_.node.failed() != nullptr) break; // nobody may take this for finished
            }
            shared_.node.finish(finished_, !alone(shared_.at(finished_)));
        }
        std::uint64_t done = shared_.released.load(std::memory_order_relaxed);
        while (done < finished_ && (alone(shared_.at(done)) || shared_.node.unfinished(done) < 0)) {
            trace_(trace_event::bucket_reduced, shared_.at(done).label);
            if constexpr (context::on_device && !context::sums_on_device) shared_.node.store(done);
            shared_.released.store(++done, std::memory_order_release);
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

    std::uint64_t finished_ = 0;

    std::chrono::nanoseconds nap_{0};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_ENGINE_HPP
