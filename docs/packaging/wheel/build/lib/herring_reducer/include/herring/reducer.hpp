// herring: `reducer<Element, Policies...>`: reduces gradients, or any buffer, over the ranks of a world.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_REDUCER_HPP
#define HERRING_REDUCER_HPP

#include "herring/base/config.hpp"
#include "herring/base/device_span.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/range.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/all_reduce_calls.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/defaults.hpp"
#include "herring/session/reducer_core.hpp"
#include "herring/session/reducible.hpp"
#include "herring/session/session.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/inert.hpp"
#include "herring/step/step.hpp"
#include "herring/sync/sync.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE {

template <class Pack>
class basic_lazy_reducer; // herring/lazy_reducer.hpp: with a sync policy that skips steps

namespace detail {
template <class Pack> struct reducer_of { using type = basic_reducer<Pack>; };
template <class Pack>
requires(skips_steps<typename Pack::sync>) //
    struct reducer_of<Pack> {
    using type = basic_lazy_reducer<Pack>;
};
} // namespace detail

/// A reducer over elements of one type, composed of policies in any order; an axis left out takes its
/// default.
template <class Element, class... Policies>
using reducer =
    typename detail::reducer_of<typename detail::runnable<resolve_t<Element, Policies...>>::type>::type;

namespace detail {
/// Defined by herring/in_gaps.hpp: the call `in_gaps`.
template <class Reducer> struct gaps_of;
/// Returned by `in_gaps` after a sentence of the compiler.
struct inert_gaps {
    template <class... Anything> herring::step wait(Anything&&...) const noexcept {
        return herring::step::exchanged;
    }
};
template <bool Included> struct gaps_included {
    static constexpr bool value = Included;
    static_assert(
        Included,
        "[HRG-C07] in_gaps: needs its header; a common slip is to include herring.hpp alone, which leaves it "
        "out; include <herring/in_gaps.hpp>");
};
} // namespace detail

/// Reduces the tensors of a layout, step after step, and buffers outside it.
///
/// A step: every tensor is made ready once, in any order, then `wait()`. A bucket leaves when its last tensor
/// is ready and the buckets before it have left. All ranks do the same steps and the same `all_reduce` calls
/// in the same order.
///
/// Shape:    tensor(i) has layout[i] elements on every rank; afterwards each rank holds update(all ranks'
///           values).
/// Result:   the same bits on every rank, and in every run: contributions are combined in the order of the
///           ranks of a node, then of the nodes, in the accumulator's type, and rounded once.
/// Threads:  one at a time; a call that finds another one under way is refused (`bad_state`), and that one
///           goes on.
/// Lifetime: not longer than the world, or every call is refused (`bad_state`); the world may be moved.
///           Neither copied nor moved itself. A process that is forked off later has the memory but not the
///           rank: calls are refused there (`bad_state`), and the destructor does nothing.
/// Errors:   `herring::error`. A misuse of one rank (`bad_argument`, `bad_state`) leaves the step as it was.
///           Whatever ends a reduction (`peer_lost`, `timeout`, `mismatch`, ...) ends the world for all
///           ranks: none gets a partial sum, and every later call throws it again.
template <class Pack>
class basic_reducer : public detail::all_reduce_calls<Pack>,
                      public detail::training_calls<Pack>,
                      public detail::every_step_calls<typename Pack::element>,
                      protected detail::reducer_core<Pack> { // the last: destroyed first
    using core = detail::reducer_core<Pack>;
    using element = typename Pack::element;
    using session = detail::session<Pack>;
    using store = typename session::store;
    static constexpr bool on_device = store::on_device;
    static constexpr bool updates = detail::optimizes<typename Pack::optimizer>;

  public:
    using element_type = element;
    using pack = Pack;
    /// The type of `tensor(i)`: std::span, or device_span where the intra_node policy keeps tensors on
    /// devices.
    using tensor_span = std::conditional_t<on_device, device_span<element>, std::span<element>>;
    /// Orders work on a device: cudaStream_t.
    using stream = typename store::stream;

    /// Collective: all ranks construct with the same layout. Further arguments go to the transport's
    /// constructor, for example the caller's `io_context` for tcp (`herring/transport/tcp_asio.hpp`).
    ///
    /// Cost:   O(tensors) messages of set-up, all memory.
    /// Blocks: until all ranks are here, at most `world::default_timeout()`.
    /// Errors: `mismatch` names the rank and the field that differ; `no_resources`, `unreachable`,
    ///         `unsupported`.
    template <class... TransportArguments>
    basic_reducer(world& ranks, layout tensors, TransportArguments&&... arguments)
        : core(ranks, std::move(tensors)) {
        try {
            session_.connect(std::forward<TransportArguments>(arguments)...);
            parts_.emplace(session_, session_.node(), session_.trace(), calls_);
            if constexpr (updates) this->begin_training();
            session_.open(parts_->steps.ledger().ready());
        } catch (...) {
            detail::announce_and_rethrow(ranks);
        }
    }
    /// Collective. Without tensors: for `all_reduce` and the collectives of `herring/collectives/`.
    explicit basic_reducer(world& ranks) : basic_reducer(ranks, layout{}) {}

    basic_reducer(basic_reducer const&) = delete;
    basic_reducer& operator=(basic_reducer const&) = delete;

    /// Not collective. Leaving in the middle of a step, or by the exception of a misuse, is a failure for the
    /// others, which get it at once.
    ~basic_reducer() {
        if (session_.ranks().forked_off()) {
            parts_.abandon();
            return;
        }
        if (session_.failed() != nullptr) return;
        if (parts_->steps.ledger().under_way() || session_.released() != session_.requested())
            calls_.announce_abandoned_step();
        else
            calls_.announce_misuse();
        if constexpr (session::commands)
            if (session_.failed() == nullptr && session_.ranks().failed() == nullptr)
                session_.desk().leave(session_); // not of a world that has ended: servers end with its error
    }

    /// Number of tensors.
    std::size_t size() const noexcept { return parts_->steps.ledger().size(); }

    /// Where tensor i lies: write the gradient here, and find the result here after `wait()`. No copy is
    /// made, unless the bucket also has a tensor in the caller's memory.
    ///
    /// Shape:    layout[i].elements elements, 64-byte aligned.
    /// Lifetime: as the reducer; not to be touched between `ready(i)` and the end of `wait()`.
    /// Errors:   `bad_argument` when i is out of range.
    tensor_span tensor(std::size_t i) {
        return {reinterpret_cast<element*>(parts_->steps.tensor(i)), plan().tensors[i].elements};
    }

    /// Tensor i is complete on this rank.
    ///
    /// Cost:   none, or the start of its bucket.
    /// Errors: `bad_argument` when i is out of range, `bad_state` when it is ready already; neither changes
    ///         anything.
    void ready(std::size_t i) {
        (void)holds<detail::only_on_host<on_device>>;
        make_ready(i, {});
    }
    /// Tensors on a device: tensor i is complete when the present work in `written_in` is. The host does not
    /// wait for it.
    ///
    /// Cost:     an event a bucket and stream.
    /// Lifetime: the stream, until `wait` is called.
    /// Errors:   as above; `bad_argument` when the stream is being captured in a graph, or the program has
    ///           not read an error of CUDA's in this thread. So of `wait` and `all_reduce`.
    void ready(std::size_t i, stream written_in) requires(on_device) { make_ready(i, written_in); }

    /// The same for the caller's memory, which has the result by the time that `wait()` returns.
    ///
    /// Shape:    layout[i].elements elements.
    /// Cost:     none where each rank is a node and the tensor a bucket of its own, over TCP without
    ///           progress::thread. Else two copies; on one node, without progress::thread, through bounce
    ///           buffers that stay in cache; one copy where the node has two ranks and both lend the bucket's
    ///           tensors.
    /// Lifetime: until `wait()` has returned, and not to be touched; after an error its content is undefined.
    void ready(std::size_t i, std::span<element> inout) {
        (void)holds<detail::only_on_host<on_device>>;
        make_ready(i, inout.data(), inout.size(), {});
    }
    /// Tensors on a device: packed with the rest of its bucket, and `wait(stream)` copies the result back,
    /// both on the device.
    ///
    /// Cost:     two copies, many at once; one by one where the memory is other than in the last two steps
    ///           and the device is still busy with both.
    /// Lifetime: until what is put into that stream then is done.
    void ready(std::size_t i, device_span<element> inout, stream written_in) requires(on_device) {
        make_ready(i, inout.data(), inout.size(), written_in);
    }

    /// Ends the step: returns when every tensor holds its result. Says what became of the step: it was
    /// exchanged, unless a policy of the pack has others.
    ///
    /// Blocks: at most `world::default_timeout()`, 30 s unless set.
    /// Errors: `bad_state` naming a tensor that is not ready; else what ended the reduction, naming the rank
    ///         that is missing or differs.
    /// Returns: `step::exchanged`; with an optimizer `step::skipped`, where it skips steps whose gradients
    ///          are not finite.
    step wait() {
        wait(session_.default_timeout()).value();
        return outcome();
    }
    /// The same with a deadline, a time or from now on; a failure is returned, a misuse (`bad_state`) thrown.
    /// A passed deadline ends the world.
    status wait(std::chrono::milliseconds timeout) { return wait(detail::deadline_in(timeout)); }
    status wait(time_point deadline) {
        (void)holds<detail::only_on_host<on_device>>;
        return end_step({}, deadline);
    }
    /// Tensors on a device: work that is put into `read_in` from now on comes after the results. The host
    /// waits for the other ranks, not for the device's last copies or sums.
    step wait(stream read_in) requires(on_device) {
        wait(read_in, session_.default_timeout()).value();
        return outcome();
    }
    status wait(stream read_in, std::chrono::milliseconds timeout) requires(on_device) {
        return wait(read_in, detail::deadline_in(timeout));
    }
    status wait(stream read_in, time_point deadline) requires(on_device) {
        return end_step(read_in, deadline);
    }

    /// The outcome of the last step that ended without an error, which `wait()` has returned.
    step outcome() const noexcept {
        if constexpr (updates) return this->training_outcome();
        return step::exchanged;
    }

    /// Moves what can be moved now, between `ready` and `wait`.
    ///
    /// Errors: as `wait`.
    void poll() {
        detail::call const here(calls_, "poll");
        parts_->steps.advance(session_);
        if (failure const* const why = session_.failed()) throw error(*why);
    }
    /// True if `wait()` would return at once or, with an optimizer in two phases, has only the second one
    /// left; moves what can be moved now, like `poll`.
    ///
    /// Shape:  false as long as a tensor is not ready, and after `wait()`.
    /// Errors: as `wait`.
    bool done() {
        poll();
        return parts_->steps.done();
    }

    /// The range of a buffer of n elements that worker w owns: its result of a reduce_scatter, its input of
    /// an all_gather (`herring/collectives/`). Without dedicated servers worker w is rank w.
    ///
    /// Shape: W workers → W ranges in the order of their ranks, which cover the buffer; the first n mod W
    ///        have one element more.
    range owned(std::size_t elements, int worker) const noexcept {
        return owned_range(elements, worker, session_.ranks().workers());
    }
    /// The range that this rank owns.
    range owned(std::size_t elements) const noexcept { return owned(elements, session_.ranks().worker()); }

    /// Does quanta of `task` in the gaps of steps that are ended by `wait()` of what it returns, in place of
    /// that of the reducer: where this thread would only wait, and the gap is predicted to be longer
    /// (`herring/in_gaps.hpp`, docs/gaps.md).
    ///
    /// Cost:     nothing for who does not call it; else two looks at the clock a quantum.
    /// Threads:  the task runs on the calling thread; the pack has to name progress::thread ([HRG-G03]).
    /// Lifetime: of what is returned: not longer than the reducer and the task.
    /// Errors:   `unsupported` where ranks share cores: a gap is another rank's core there.
    template <class Task, class Self = basic_reducer> [[nodiscard]] auto in_gaps(Task& task) {
        constexpr bool included = requires { sizeof(detail::gaps_of<Self>); };
        if constexpr (included) {
            return detail::gaps_of<Self>::open(static_cast<Self&>(*this), task);
        } else {
            (void)holds<detail::gaps_included<included>>; // of a name that depends on Self
            return detail::inert_gaps();
        }
    }

    /// The plan that this reducer runs; print it, or look up what a step costs.
    herring::plan const& plan() const noexcept { return session_.plan(); }
    herring::counters counters() const noexcept { return session_.counters(); }
    typename Pack::trace& trace() noexcept { return session_.trace(); }
    typename Pack::transport& transport() noexcept { return session_.transport(); }
    typename Pack::intra_node& intra_node() noexcept { return session_.node(); }

  protected:
    using core::calls_;
    using core::parts_;
    using core::session_;

  private:
    friend struct detail::reducer_access;

    void make_ready(std::size_t i, stream written_in) {
        detail::call const here(calls_, "ready");
        if constexpr (updates) this->check_started("ready");
        parts_->steps.check_ready(i, written_in);
        parts_->steps.ready(session_, i, nullptr, written_in);
    }
    void make_ready(std::size_t i, element* inout, std::size_t elements, stream written_in) {
        auto const at = reinterpret_cast<typename store::pointer>(inout);
        detail::call const here(calls_, "ready");
        if constexpr (updates) this->check_started("ready");
        parts_->steps.check_ready(i, at, elements, written_in);
        parts_->steps.ready(session_, i, at, written_in);
    }
    template <class Wait = detail::plain_wait>
    status end_step(stream read_in, time_point deadline, Wait const& wait = {}) {
        detail::call const here(calls_, "wait");
        status ended = [&] {
            if constexpr (updates)
                return parts_->steps.end(
                    session_, read_in, deadline, [&] { return this->end_training_step(deadline); }, wait);
            else
                return parts_->steps.end(session_, read_in, deadline, detail::nothing_left(), wait);
        }();
        session_.rethrow_of_handlers();
        return ended;
    }
};

} // namespace HERRING_NAMESPACE

#include "herring/base/compiled_apart.hpp"

#endif // HERRING_REDUCER_HPP
