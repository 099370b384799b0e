// herring: `reducer<Element, Policies...>`: reduces a model's gradients, or any buffer, over the ranks of a world.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_REDUCER_HPP
#define HERRING_REDUCER_HPP

#include "herring/base/append_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/cores.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/element.hpp"
#include "herring/engine/agreement.hpp"
#include "herring/engine/driver.hpp"
#include "herring/engine/engine.hpp"
#include "herring/layout.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy.hpp"
#include "herring/policy/defaults.hpp"
#include "herring/policy/names.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/memory_check.hpp"
#include "herring/step/call_forms.hpp"
#include "herring/step/call_mark.hpp"
#include "herring/update/update.hpp"
#include "herring/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail {

template <class Transport> constexpr bool carries(exchange_tuning const& sizes) noexcept {
    // No number of chunks or bytes overflows.
    return sizes.chunk_bytes >= 4096 && sizes.chunk_bytes <= 1_GiB &&
           sizes.window_bytes >= sizes.chunk_bytes && sizes.window_bytes / sizes.chunk_bytes <= 65536 &&
           Transport::facts.max_message >= 2 * sizes.chunk_bytes;
}

/// What a reducer asks of a pack, beyond what its policies ask of each other.
template <class Pack> struct reducible {
    using transport = typename Pack::transport;
    static constexpr bool known = !Pack::placement::facts.dedicated_servers;
    static constexpr bool carried = transport::facts.tag_bits >= 64 &&
                                    carries<transport>(transport::facts.tuning) &&
                                    carries<transport>(transport::facts.same_host_tuning);
    static constexpr bool value = known && carried;
    static_assert(
        known,
        "[HRG-M05] reducer: every node has to contribute and to serve, and the facts of this placement say "
        "dedicated_servers; a common slip is a fact that is copied from another placement; name "
        "herring::placement::colocated, or leave the axis out");
    static_assert(
        !known || carried,
        "[HRG-T12] transport: a reducer needs 64 tag bits, chunks of 4 KiB to 1 GiB, a window of one chunk "
        "to "
        "65536, and messages of two chunks' size; a common slip is a chunk_bytes of 1024, for a test; "
        "leave chunk_bytes and window_bytes out for their defaults");
};
template <class Element> struct reducible<rejected<Element>> { static constexpr bool value = true; };

/// What a reducer's tensors are spans of, and what orders the work on them: nothing, on the host.
template <class Element, class IntraNode> struct tensor_memory {
    static constexpr bool on_device = false;
    using span = std::span<Element>;
    struct stream {};
    struct copy {};
};
template <class Element, class IntraNode>
requires(bool(IntraNode::device_memory)) struct tensor_memory<Element, IntraNode> {
    static constexpr bool on_device = true;
    using span = device_span<Element>;
    using stream = typename IntraNode::stream_handle;
    using copy = typename IntraNode::copy;
};

template <bool OnDevice> struct only_on_host {
    static constexpr bool value = true;
    static_assert(
        !OnDevice,
        "[HRG-D02] reducer: its tensors lie on a device, and it has to be told in which stream; a common "
        "slip is ready(i), wait() or all_reduce(span); call ready(i, stream), wait(stream) and "
        "all_reduce(device_span, stream)");
};

/// The rule that a policy stands for, and whether the pack names it.
template <class Update> struct rule {
    using type = Update;
    static constexpr bool is_named = true;
};
template <> struct rule<update::unnamed_average> {
    using type = update::average;
    static constexpr bool is_named = false;
};

template <class Pack> struct runnable { using type = rejected<typename Pack::element>; };
template <class Pack>
requires holds<reducible<Pack>>
struct runnable<Pack> {
    using type = Pack;
};

} // namespace detail

/// A reducer over elements of one type, composed of policies in any order; an axis left out takes its default.
template <class Element, class... Policies>
using reducer = basic_reducer<typename detail::runnable<resolve_t<Element, Policies...>>::type>;

/// Reduces the tensors of a layout, step after step, and buffers outside it.
///
/// A step: every tensor is made ready once, in any order, then `wait()`. A bucket leaves when its last tensor is ready
/// and the buckets before it have left. All ranks do the same steps and the same `all_reduce` calls in the same order.
///
/// Shape:    tensor(i) has layout[i] elements on every rank; afterwards each rank holds update(all ranks' values).
/// Result:   the same bits on every rank, and in every run: contributions are combined in the order of the ranks of
///           a node, then of the nodes, in the accumulator's type, and rounded once.
/// Threads:  one at a time; a call that finds another one under way is refused (`bad_state`), and that one goes on.
/// Lifetime: not longer than the world, or every call is refused (`bad_state`); the world may be moved. Neither copied nor
///           moved itself. A process that is forked off later has the memory but
///           not the rank: it must not touch the reducer, nor destroy it (`_exit`, or exec).
/// Errors:   `herring::error`. A misuse of one rank (`bad_argument`, `bad_state`) leaves the step as it was. Whatever
///           ends a reduction (`peer_lost`, `timeout`, `mismatch`, ...) ends the world for all ranks: none gets a
///           partial sum, and every later call throws it again.
template <class Pack>
class basic_reducer
    : detail::refused_calls<
          typename Pack::element,
          typename detail::tensor_memory<typename Pack::element, typename Pack::intra_node>::stream,
          detail::rule<typename Pack::update>::is_named> {
    using Element = typename Pack::element;
    using Transport = typename Pack::transport;
    using IntraNode = typename Pack::intra_node;
    using Sharding = typename Pack::sharding;
    using Placement = typename Pack::placement;
    using Fusion = typename Pack::fusion;
    using Update = typename Pack::update;
    using Progress = typename Pack::progress;
    using Waiting = typename Pack::waiting;
    using Trace = typename Pack::trace;

    static constexpr bool rule_is_named = detail::rule<Update>::is_named;

  public:
    using element_type = Element;
    using pack = Pack;

    /// Of `tensor(i)`: std::span, or device_span where the intra_node policy keeps tensors on devices.
    using tensor_span = typename detail::tensor_memory<Element, IntraNode>::span;
    /// What orders work on a device: cudaStream_t.
    using stream = typename detail::tensor_memory<Element, IntraNode>::stream;

    /// Collective: all ranks construct with the same layout. What follows it goes to the transport's constructor,
    /// for example an `io_context` of the caller's for tcp (`herring/transport/tcp_asio.hpp`).
    ///
    /// Blocks: until all ranks are here, at most `world::default_timeout()`.
    /// Cost: O(tensors) messages of set-up, all memory.
    /// Errors: `mismatch` names the rank and the field that differ; `no_resources`, `unreachable`, `unsupported`.
    template <class... TransportArguments>
    basic_reducer(world& ranks, layout tensors, TransportArguments&&... arguments)
        : ranks_(ranks, detail::for_reducer{}), layout_(std::move(tensors)),
          map_(IntraNode::joins_ranks ? ranks_.topology() : ranks_.topology().flat()) {
        try {
            plan_ = make();
            construct(std::forward<TransportArguments>(arguments)...);
        } catch (...) {
            detail::tell_and_rethrow(ranks);
        }
    }
    /// Collective: for `all_reduce` alone.
    explicit basic_reducer(world& ranks) : basic_reducer(ranks, layout{}) {}

    basic_reducer(basic_reducer const&) = delete;
    basic_reducer& operator=(basic_reducer const&) = delete;

    /// Not collective. Leaving in the middle of a step is a failure for the others, who are told at once.
    ~basic_reducer() {
        if (!engine_ || engine_->failed() != nullptr) return;
        if (ready_ > 0 || engine_->released() != engine_->requested()) leave_in_a_step();
    }

    /// Number of tensors.
    std::size_t size() const noexcept { return layout_.size(); }

    /// Where tensor i lies: write the gradient here, and find the result here after `wait()`. No copy is made, unless the bucket
    /// has a tensor of the caller's too.
    ///
    /// Shape: layout[i].elements elements, 64-byte aligned.
    /// Lifetime: as the reducer; not to be touched between `ready(i)` and the end of `wait()`.
    /// Errors: `bad_argument` when i is out of range.
    tensor_span tensor(std::size_t i) {
        check_index(i, "tensor");
        return {memory() + plan_.tensors[i].offset, plan_.tensors[i].elements};
    }

    /// Tensor i is complete on this rank.
    ///
    /// Cost: none, or the start of its bucket.
    /// Errors: `bad_argument` when i is out of range, `bad_state` when it is ready already; neither changes anything.
    void ready(std::size_t i) {
        (void)holds<detail::only_on_host<on_device>>;
        call const here(*this, "ready");
        check_ready(i);
        mark(i, {});
    }

    /// Of tensors on a device: tensor i is complete when what is in `written_in` now is. The host does not wait for it.
    ///
    /// Lifetime: the stream, until `wait` is called.
    /// Cost: an event a bucket and stream.
    /// Errors: as above; `bad_argument` when the stream is being captured in a graph. So of `wait` and `all_reduce`.
    void ready(std::size_t i,
               stream written_in) requires(detail::tensor_memory<Element, IntraNode>::on_device) {
        call const here(*this, "ready");
        check_ready(i);
        check_stream(written_in, "ready");
        note(written_in);
        mark(i, {});
    }
    /// The same for memory of the caller's: it is packed with the rest of its bucket, and `wait(stream)` copies the result
    /// back, both on the device.
    ///
    /// Lifetime: until what is put into that stream then is done.
    /// Cost: two copies, many at once; one by one where the memory is other than in the last two steps and the device is
    /// still busy with both.
    void ready(std::size_t i, device_span<Element> inout,
               stream written_in) requires(detail::tensor_memory<Element, IntraNode>::on_device) {
        call const here(*this, "ready");
        check_ready(i);
        check_size(i, inout.size());
        check_stream(written_in, "ready");
        if (!inout.empty())
            if (char const* const wrong = node_->device().check_tensor(inout.data()))
                refuse(errc::bad_argument, "ready", {"tensor ", i, " ('", layout_[i].name, "'): ", wrong});
        note(written_in);
        mark(i, inout);
    }

    /// The same for memory of the caller's: it is packed, now or when its turn comes, and the result is copied back into it
    /// by the time that `wait()` returns.
    ///
    /// Shape: layout[i].elements elements.
    /// Lifetime: until `wait()` has returned, and not to be touched; after an error its content is undefined.
    /// Cost: two copies; on one node, without progress::thread, through a ring that stays in cache; one copy where the node
    /// has two ranks and both lend the bucket's tensors.
    void ready(std::size_t i, std::span<Element> inout) {
        (void)holds<detail::only_on_host<on_device>>;
        call const here(*this, "ready");
        check_ready(i);
        check_size(i, inout.size());
        if (!through_ring_ && !inout.empty())
            std::memcpy(memory() + plan_.tensors[i].offset, inout.data(), inout.size_bytes());
        mark(i, inout);
    }

    /// Ends the step: returns when every tensor holds its result.
    ///
    /// Blocks: at most `world::default_timeout()`, 30 s unless set.
    /// Errors: `bad_state` naming a tensor that is not ready; else what ended the reduction, naming the rank that is
    /// missing or differs.
    void wait() { wait(ranks_.default_timeout()).value(); }

    /// The same with a deadline of the caller's, a time or from now on; a failure is returned, a misuse (`bad_state`)
    /// thrown. A passed deadline ends the world.
    status wait(std::chrono::milliseconds timeout) { return wait(detail::deadline_in(timeout)); }
    status wait(time_point deadline) {
        (void)holds<detail::only_on_host<on_device>>;
        call const here(*this, "wait");
        status const ended = end_step(deadline);
        rethrow_of_handlers();
        return ended;
    }

    /// Of tensors on a device: what is put into `read_in` from now on comes after the results. The host waits for the other
    /// ranks, not for the device's last copies or sums.
    void wait(stream read_in) requires(detail::tensor_memory<Element, IntraNode>::on_device) {
        wait(read_in, ranks_.default_timeout()).value();
    }
    /// The same with a deadline of the caller's, as above.
    status wait(stream read_in, std::chrono::milliseconds timeout) //
        requires(detail::tensor_memory<Element, IntraNode>::on_device) {
        return wait(read_in, detail::deadline_in(timeout));
    }
    status wait(stream read_in,
                time_point deadline) requires(detail::tensor_memory<Element, IntraNode>::on_device) {
        call const here(*this, "wait");
        if (engine_->failed() == nullptr) check_stream(read_in, "wait");
        status const ended = end_step(deadline);
        if (!ended.ok()) {
            rethrow_of_handlers();
            return ended;
        }
        node_->results(read_in, step_end_);
        node_->template inspect<Element>(read_in, plan_.elements);
        node_->unpack(read_in, copies([this](auto const& take) {
                          // Not by calls: their order may change, and the list with it.
                          for (std::size_t i = 0; i < size(); ++i)
                              if (!callers_[i].empty()) take(i, true);
                      }));
        node_->taken(read_in);
        for (std::size_t const i : borrowed_) callers_[i] = {};
        borrowed_.clear();
        if (failure const* const why = node_->failed()) {
            engine_->fail(*why);
            return status(*why);
        }
        rethrow_of_handlers();
        return ended;
    }

    /// Moves what can be moved now, between `ready` and `wait`.
    ///
    /// Errors: as `wait`.
    void poll() {
        call const here(*this, "poll");
        move();
        if (failure const* const why = engine_->failed()) throw error(*why);
    }

    /// Whether `wait()` would return at once; moves what can be moved now, like `poll`.
    ///
    /// Shape:  false as long as a tensor is not ready, and after `wait()`.
    /// Errors: as `wait`.
    bool done() {
        poll();
        return ready_ == size() && next_bucket_ == missing_.size() && engine_->released() >= step_end_ &&
               (!through_ring_ || borrowed_.empty() || next_out_ == plan_.buckets.size());
    }

    /// Reduces a buffer outside the layout, in place. Collective, and the same size on every rank. The pack has to name the
    /// rule: `update::sum`, `average`, ... ([HRG-C02]).
    ///
    /// Shape:  n elements in, n out; with n = 0, on all ranks, nothing is done.
    /// Blocks: until done, at most `world::default_timeout()`.
    /// Cost:   without a shared node, and a transport that needs no registration, no copy; else one copy in and one out
    ///         through a ring of a few pieces that stays in cache; on one node of two ranks one copy in.
    /// Lifetime: until it has returned, with a result or an error; after an error the buffer's content is undefined.
    /// Errors: as `wait`; `bad_state` in the middle of a step.
    void all_reduce(std::span<Element> inout) requires(rule_is_named) {
        all_reduce(inout, ranks_.default_timeout()).value();
    }

    /// The same with a deadline of the caller's, a time or from now on; a failure is returned. A passed deadline ends the
    /// world.
    status all_reduce(std::span<Element> inout, std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(inout, detail::deadline_in(timeout));
    }
    status all_reduce(std::span<Element> inout, time_point deadline) requires(rule_is_named) {
        return reduce_buffer(inout, inout, deadline);
    }

    /// The same from one buffer into another; `in` is only read. They may be one, and must not overlap otherwise.
    ///
    /// Cost:   as in place, and one copy more where that has none.
    /// Errors: also `bad_argument`, of sizes that differ or buffers that overlap.
    void all_reduce(std::span<Element const> in, std::span<Element> out) requires(rule_is_named) {
        all_reduce(in, out, ranks_.default_timeout()).value();
    }
    status all_reduce(std::span<Element const> in, std::span<Element> out,
                      std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(in, out, detail::deadline_in(timeout));
    }
    status all_reduce(std::span<Element const> in, std::span<Element> out,
                      time_point deadline) requires(rule_is_named) {
        return reduce_buffer(in, out, deadline);
    }

    /// The same of one value, which is returned.
    ///
    /// Errors: as of a buffer.
    [[nodiscard("the result is returned, the argument left as it is")]] Element
    all_reduce(Element value) requires(rule_is_named) {
        all_reduce(std::span(&value, 1));
        return value;
    }
    /// With a deadline the value is reduced in place, and a failure returned.
    status all_reduce(Element& inout, std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(std::span(&inout, 1), timeout);
    }
    status all_reduce(Element& inout, time_point deadline) requires(rule_is_named) {
        return all_reduce(std::span(&inout, 1), deadline);
    }

    /// Of device memory: reduced in place; its values are there when what is in the stream now is done, and what is put into
    /// the stream from now on finds the results. The host waits for the other ranks.
    ///
    /// Shape: as above.
    /// Cost: a copy in and one out on the device, through a ring of 4 pieces of at most 4 MiB.
    /// Blocks: at most `world::default_timeout()`.
    /// Lifetime: the buffer, until what is put into the stream then is done.
    void all_reduce(device_span<Element> inout, stream in) //
        requires(rule_is_named&& detail::tensor_memory<Element, IntraNode>::on_device) {
        all_reduce(inout, in, ranks_.default_timeout()).value();
    }
    /// The same with a deadline of the caller's, as above.
    status all_reduce(device_span<Element> inout, stream in, std::chrono::milliseconds timeout) //
        requires(rule_is_named&& detail::tensor_memory<Element, IntraNode>::on_device) {
        return all_reduce(inout, in, detail::deadline_in(timeout));
    }
    status all_reduce(device_span<Element> inout, stream in, time_point deadline) //
        requires(rule_is_named&& detail::tensor_memory<Element, IntraNode>::on_device) {
        call const here(*this, "all_reduce");
        if (failure const* const why = engine_->failed()) return status(*why);
        if (ready_ > 0)
            refuse(errc::bad_state, "all_reduce",
                   {"a step is under way: ", ready_, " tensors are ready; call wait(stream) first"});
        if (inout.empty()) return {};
        check_stream(in, "all_reduce");
        if (char const* const wrong = node_->device().check_tensor(inout.data()))
            refuse(errc::bad_argument, "all_reduce", {wrong});
        status const ended = reduce_on_device(inout, in, deadline);
        rethrow_of_handlers();
        return ended;
    }

    /// Any other call is one sentence of the compiler, [HRG-C01].
    using detail::refused_calls<Element, stream, rule_is_named>::all_reduce;

    /// The plan that this reducer runs; print it, or look up what a step costs.
    herring::plan const& plan() const noexcept { return plan_; }
    herring::counters counters() const noexcept { return engine_->counters(); }
    Trace& trace() noexcept { return trace_; }
    Transport& transport() noexcept { return *transport_; }
    IntraNode& intra_node() noexcept { return *node_; }

  private:
    static constexpr bool on_device = detail::tensor_memory<Element, IntraNode>::on_device;
    using engine_type = engine<Element, Transport, IntraNode, typename detail::rule<Update>::type, Trace>;
    static constexpr bool background = requires { requires bool(Progress::background); };
    using driver_type = std::conditional_t<background, detail::thread_driver<engine_type, Waiting>,
                                           detail::caller_driver<engine_type, Waiting>>;
    static constexpr std::size_t ring_pieces = 4;
    static constexpr std::size_t least_on_device = 64_KiB, most_on_device = 4_MiB; // of a piece
    // Sums of devices go to other nodes without passing the host.
    static constexpr bool parts_on_device = requires {
        requires bool(IntraNode::leaves_parts) && Transport::facts.device_memory;
    };
    static constexpr std::size_t most_elements =
        (std::size_t{1} << 43) / sizeof(Element); // 8 TiB: no sum of sizes or number of chunks overflows

    /// As long as a call lives: one at a time, and none when the world has ended.
    class call {
      public:
        call(basic_reducer& of, char const* operation) : mark_(of.in_call_) {
            if (auto const taken = mark_.take(); taken != detail::call_mark::taken::yes) [[unlikely]]
                detail::refuse_call(taken, of.ranks_.rank(), operation);
            if (of.ranks_.ended()) [[unlikely]] {
                mark_.release();
                throw detail::ended_world(of.ranks_.rank(), operation);
            }
        }
        ~call() { mark_.release(); }
        call(call const&) = delete;
        call& operator=(call const&) = delete;

      private:
        detail::call_mark& mark_;
    };

    bool runs_handlers() noexcept {
        if constexpr (Transport::facts.runs_handlers) return transport_->runs_handlers();
        return false;
    }
    /// What a handler of the program threw while it ran inside of this call's wait.
    void rethrow_of_handlers() {
        if constexpr (Transport::facts.runs_handlers)
            if (transport_->has_exception()) [[unlikely]]
                std::rethrow_exception(transport_->take_exception());
    }

    HERRING_SETUP herring::plan make() const {
        if (!waits_soundly<Waiting>())
            throw error(
                errc::bad_argument, ranks_.rank(), -1, "construction",
                {"waiting policy '", policy_name<Waiting>(),
                 "': next() returns a number that is no wait_action; return poll, pause, yield or sleep"});
        auto const counts = detail::counts_of(layout_, most_elements, ranks_.rank());
        exchange_tuning tuning = on_loopback() ? Transport::facts.same_host_tuning : Transport::facts.tuning;
        tuning.local_chunk_bytes = IntraNode::tuning.local_chunk_bytes;
        tuning.mailbox_bytes = IntraNode::tuning.mailbox_bytes;
        tuning.cut_bytes = cuts() ? IntraNode::tuning.cut_bytes : 0;
        return make_plan<Fusion, Sharding, Placement>({counts.data(), counts.size()}, map_, sizeof(Element),
                                                      sizeof(accumulator<Element>), tuning);
    }

    // Whether large buckets are cut: where they are in one place after the other, but for the network, which cuts them itself.
    bool cuts() const noexcept {
        if constexpr (requires { requires bool(IntraNode::sums_on_device); }) return map_.nodes() > 1;
        return on_device || (map_.nodes() == 1 && map_.largest_node() > 1);
    }

    bool on_loopback() const noexcept {
        std::string const& address = ranks_.local_address();
        return address.starts_with("127.") || address == "::1";
    }

    template <class... TransportArguments> HERRING_SETUP void construct(TransportArguments&&... arguments) {
        detail::agree(
            ranks_,
            detail::declare(element<Element>::name, policy_facts<pack>::all, on_loopback(), plan_, layout_),
            ranks_.default_timeout());
        std::vector<int> const peers = detail::peers_of(map_, ranks_.rank());

        // A rank's region: tensors, then the ring for buffers of the caller's, then what the engine shows local ranks.
        std::size_t const tensors = on_device ? 0 : detail::round_up(plan_.tensor_bytes(), 4096);
        piece_ = needs_ring() && !on_device ? ring_piece() : 0;
        bool const ring_of_tensors = !on_device && plan_.tuning.cut_bytes > 0;
        through_ring_ = ring_of_tensors && !background;
        slot_ = piece_;
        // With progress::thread too: regions are alike on all ranks of a node, and progress may differ.
        if (ring_of_tensors)
            for (bucket const& b : plan_.buckets) slot_ = std::max(slot_, b.elements);
        std::size_t const ring = ring_pieces * slot_ * sizeof(Element);
        std::size_t const executions = std::max(plan_.buckets.size(), ring_pieces);
        if (executions >= detail::token::low || peers.size() > detail::token::low)
            throw error(
                errc::bad_argument, ranks_.rank(), -1, "construction",
                {executions, " buckets and ", peers.size(), " peers: at most ", detail::token::low,
                 " of each; use larger buckets (herring::fusion::balanced_buffer), or a larger cut_bytes "
                 "of the intra_node policy's tuning"});
        // So many are outstanding, or were released by this rank alone while another rank has still to look at them.
        std::size_t const kept = executions + ring_pieces;
        std::size_t const flags =
            map_.largest_node() > 1 ? engine_type::local_bytes(kept, plan_.tuning.mailbox_bytes) : 0;
        std::size_t region = detail::round_up(tensors + ring + flags, 64);
        if constexpr (on_device) {
            std::size_t largest = 0;
            std::size_t loads = 0;
            for (bucket const& b : plan_.buckets) {
                largest = std::max(largest, b.elements * sizeof(Element));
                loads += b.tensors > 0;
            }
            piece_ = (largest > 0 ? std::clamp(largest, least_on_device, most_on_device) : most_on_device) /
                     sizeof(Element);
            ring_at_ = detail::round_up(plan_.tensor_bytes(), 256) / sizeof(Element);
            largest = std::max(largest, piece_ * sizeof(Element));
            node_.emplace(ranks_, region,
                          typename IntraNode::needs_of_device{
                              .tensor_bytes = (ring_at_ + ring_pieces * piece_) * sizeof(Element),
                              .bucket_bytes = largest,
                              .wide_bytes = plan_.partial_bytes / sizeof(Element),
                              .executions = executions,
                              .loads = std::max(loads, ring_pieces),
                              .taken_apart = ring_pieces,
                              .tensors = size(),
                              .nodes = plan_.nodes,
                              .parts_on_device = parts_on_device});
            region = node_->memory_bytes();
        } else {
            node_.emplace(ranks_, region);
        }
        ring_ = node_->memory() + tensors;
        if constexpr (!on_device) {
            for (std::size_t i = 0; i < ring_pieces; ++i)
                slots_[i] = {ring_ + i * slot_ * sizeof(Element), map_.local_rank(ranks_.rank())};
            for (bucket const& b : plan_.buckets) {
                std::size_t parts = 0;
                each_in(b, [&](std::size_t, std::size_t, std::size_t) { ++parts; });
                most_parts_ = std::max(most_parts_, parts);
            }
            parts_ = detail::fixed_array<lent_part>(ring_pieces * most_parts_);
        }
        // Alike on all ranks, so that all ask or none does.
        if (plan_.tensor_bytes() >= detail::memory_worth_asking_for)
            detail::check_memory(ranks_, plan_.staging_bytes(peers.size()) +
                                             (on_device || IntraNode::joins_ranks ? 0 : region));
        staging_ = detail::private_memory(plan_.staging_bytes(peers.size()), ranks_.rank());

        transport_needs const needs{.peers = peers,
                                    .receives_per_peer = 2 * plan_.window() + plan::one_hop_window() + 4,
                                    .sends_per_peer = 2 * plan_.window() + plan::one_hop_window() + 4,
                                    .largest_message =
                                        std::max(plan_.slot_elements(), plan_.hop_slot_elements()) *
                                        plan_.partial_bytes,
                                    .timeout = ranks_.default_timeout()};
        transport_.emplace(ranks_, needs, std::forward<TransportArguments>(arguments)...);
        if constexpr (Transport::facts.registers_memory) {
            transport_->register_memory({node_->memory(), region});
            transport_->register_memory(staging_.bytes());
        }
        if constexpr (parts_on_device)
            transport_->register_device_memory(node_->parts(), node_->device().number());
        engine_.emplace(ranks_, map_, plan_, *transport_, *node_, trace_, peers, kept, ring_ + ring,
                        staging_.bytes());
        engine_->open();

        scratch_.reserve(static_cast<std::size_t>(plan_.nodes) + 8);
        if (piece_ > 0) divide(piece_, whole_piece_, piece_shards_);
        is_ready_ = detail::fixed_array<std::uint8_t>(size());
        callers_ = detail::fixed_array<tensor_span>(size());
        borrowed_ = detail::append_buffer<std::size_t>(size());
        if constexpr (on_device) copies_ = decltype(copies_)(size());
        missing_ = detail::fixed_array<std::uint32_t>(plan_.buckets.size());
        start_step();
        auto const mine = detail::cores_of_rank::here(background ? 2 : 1);
        bool const crowded = detail::crowded(mine, ranks_.all_gather(mine.bytes())); // a barrier as well
        registration_.emplace(ranks_.state(), detail::reducer_counts{.submitted = engine_->submissions(),
                                                                     .released = engine_->releases(),
                                                                     .ready = ready_});
        driver_.emplace(*engine_, ranks_, crowded, runs_handlers() ? 0 : registration_->number());
    }

    /// A misuse of this rank's. It is kept: should it end this rank, the others are told it.
    [[noreturn]] HERRING_SETUP void refuse(errc what, char const* operation,
                                           std::initializer_list<detail::text_part> text) {
        error const misuse(what, ranks_.rank(), -1, operation, text);
        misuse_ = misuse.why();
        throw misuse;
    }

    HERRING_SETUP void leave_in_a_step() noexcept {
        char text[sizeof misuse_.text];
        if (misuse_.what != errc::ok)
            std::snprintf(text, sizeof text, "it left in the middle of a step, after its %s: %s: %.300s",
                          misuse_.operation, to_string(misuse_.what), misuse_.text);
        else
            std::snprintf(text, sizeof text, "it destroyed its reducer in the middle of a step%s",
                          std::uncaught_exceptions() > 0 ? ", for an exception: read what that rank says"
                                                         : "");
        ranks_.fail(failure::make(errc::peer_failed, ranks_.rank(), ranks_.rank(), "reduce", text));
    }

    // ---- a step ---------------------------------------------------------------------------------------------------

    Element* memory() noexcept {
        if constexpr (on_device)
            return reinterpret_cast<Element*>(node_->tensors());
        else
            return reinterpret_cast<Element*>(node_->memory());
    }

    status end_step(time_point deadline) {
        if (failure const* const why = engine_->failed()) return status(*why);
        if (ready_ != size())
            refuse(errc::bad_state, "wait",
                   {"tensor ", first_unready(), " ('", layout_[first_unready()].name,
                    "') is not ready: every tensor must be, once a step"});
        trace_(trace_event::wait_begin, 0);
        if (through_ring_ && !borrowed_.empty())
            for (turn_ring(); next_out_ < plan_.buckets.size() && engine_->failed() == nullptr; turn_ring())
                driver_->until(taken_ + 1, deadline);
        status const ended = finish(step_end_, deadline);
        if (!ended.ok()) return ended;
        if constexpr (!on_device) {
            for (std::size_t const i : borrowed_) {
                if (!through_ring_)
                    std::memcpy(callers_[i].data(), memory() + plan_.tensors[i].offset,
                                callers_[i].size_bytes());
                callers_[i] = {};
            }
            borrowed_.clear();
        }
        start_step();
        trace_(trace_event::wait_end, 0);
        return {};
    }

    void start_step() noexcept {
        std::fill(is_ready_.begin(), is_ready_.end(), std::uint8_t{0});
        for (std::size_t b = 0; b < plan_.buckets.size(); ++b) missing_[b] = plan_.buckets[b].tensors;
        ready_ = 0;
        next_bucket_ = next_out_ = 0;
    }

    void check_index(std::size_t i, char const* operation) {
        if (i >= size()) [[unlikely]]
            no_such_tensor(i, operation);
    }
    [[noreturn]] HERRING_SETUP void no_such_tensor(std::size_t i, char const* operation) {
        refuse(errc::bad_argument, operation, {"there is no tensor ", i, ": the layout has ", size()});
    }

    void check_ready(std::size_t i) {
        check_index(i, "ready");
        if (is_ready_[i] != 0)
            refuse(errc::bad_state, "ready",
                   {"tensor ", i, " ('", layout_[i].name,
                    "') is ready already: once a step; call wait() before the next"});
        if (failure const* const why = engine_->failed()) throw error(*why);
    }

    void check_size(std::size_t i, std::size_t given) {
        if (given != plan_.tensors[i].elements)
            refuse(errc::bad_argument, "ready",
                   {"tensor ", i, " ('", layout_[i].name, "') has ", plan_.tensors[i].elements,
                    " elements, the span has ", given});
    }

    void check_stream(stream given, char const* operation) {
        if (char const* const wrong = node_->device().check_stream(given))
            refuse(errc::bad_argument, operation, {wrong});
    }

    // What is ready was written in this stream. The node is told once a bucket, and when the stream changes.
    void note(stream written_in) noexcept {
        if (untold_ && !(written_in == stream_)) node_->after(stream_);
        stream_ = written_in;
        untold_ = true;
    }

    std::size_t first_unready() const noexcept {
        return static_cast<std::size_t>(std::find(is_ready_.begin(), is_ready_.end(), 0) - is_ready_.begin());
    }

    void mark(std::size_t i, tensor_span callers) noexcept {
        if (ready_ == 0) taken_ = engine_->requested();
        is_ready_[i] = 1;
        ++ready_;
        if (!callers.empty()) {
            callers_[i] = callers;
            borrowed_.push(i);
        }
        trace_(trace_event::tensor_ready, static_cast<std::uint32_t>(i));
        --missing_[plan_.tensors[i].bucket];
        send_off();
        if (through_ring_ && ring_in_ - ring_out_ == ring_pieces) move();
    }

    // Buckets leave in the plan's order on every rank, so that all ranks count the same executions.
    void send_off() noexcept {
        for (; next_bucket_ < missing_.size() && missing_[next_bucket_] == 0; ++next_bucket_) {
            bucket const& full = plan_.buckets[next_bucket_];
            if (full.elements == 0) continue; // on every rank: nothing to do, and nobody to wait for
            place at;
            if constexpr (on_device) {
                at.own = load(full);
            } else if (through_ring_ && is_borrowed(full)) {
                if (ring_in_ - ring_out_ == ring_pieces) return;
                at = copied_in(full, ring_in_++);
                at.next = next_in_slot(next_bucket_, at.lent[0].elements);
            } else {
                at.own = reinterpret_cast<std::byte*>(memory() + full.offset);
            }
            trace_(trace_event::bucket_submitted, static_cast<std::uint32_t>(next_bucket_));
            step_end_ = submit(full, plan_.shards.data(), at, next_bucket_,
                               fingerprint_of(full.elements, next_bucket_));
        }
    }

    // ---- the caller's tensors, through a ring -----------------------------------------------------------------------

    void move() noexcept {
        driver_->poll();
        if (through_ring_ && engine_->failed() == nullptr) turn_ring();
    }

    // Copies out what is reduced, and in what there is room for.
    void turn_ring() noexcept {
        for (; next_out_ < next_bucket_; ++next_out_) {
            bucket const& b = plan_.buckets[next_out_];
            if (b.elements == 0) continue;
            if (engine_->released() <= taken_) break;
            if (is_borrowed(b) && !taken_over(taken_, ring_out_++)) copy_out(b, slot_of(ring_out_ - 1));
            ++taken_;
        }
        send_off();
    }

    // Where a bucket lies while it is reduced, and what of it is a copy from memory of the caller's.
    struct place {
        std::byte* own = nullptr;
        int home = -1;
        std::span<lent_part const> lent{};
        std::span<Element const> next{}; // what is copied to the same slot after this, if that is known
    };

    struct slot_place {
        std::byte* own = nullptr;
        int home = -1;
        bool filled = false; // by the exchange that left it to this rank
    };

    Element* slot_of(std::size_t number) const noexcept {
        return reinterpret_cast<Element*>(slots_[number % ring_pieces].own);
    }
    lent_part* parts_of(std::size_t number) noexcept { return &parts_[number % ring_pieces * most_parts_]; }

    // After execution `number`, whose bucket lay in a slot: where two ranks exchanged it, its results are in the caller's
    // memory already, and the slot is another from now on.
    bool taken_over(std::uint64_t number, std::size_t slot) noexcept {
        execution const& ended = engine_->ended(number);
        if (!ended.exchanged) return false;
        slots_[slot % ring_pieces] = {ended.own, ended.home, !ended.next.empty()};
        return true;
    }

    // Calls `with(tensor, from, count)` for what lies of each tensor in the bucket, `from` being in the tensor.
    template <class With> void each_in(bucket const& b, With const& with) const noexcept {
        std::size_t const end = b.offset + b.elements;
        for (std::size_t i = b.first_tensor; i < plan_.tensors.size() && plan_.tensors[i].offset < end; ++i) {
            placed_tensor const& t = plan_.tensors[i];
            std::size_t const from = std::max(t.offset, b.offset), to = std::min(t.offset + t.elements, end);
            if (from < to) with(i, from - t.offset, to - from);
        }
    }
    bool is_borrowed(bucket const& b) const noexcept {
        bool any = false;
        each_in(b, [&](std::size_t i, std::size_t, std::size_t) { any = any || !callers_[i].empty(); });
        return any;
    }
    // Element `from` of tensor i, in memory of the caller's or of the reducer's.
    Element* origin(std::size_t i, std::size_t from) noexcept {
        return callers_[i].empty() ? memory() + plan_.tensors[i].offset + from : callers_[i].data() + from;
    }
    // The bucket that follows bucket `number` in its slot, if it is known by now, all of one tensor and not above `most` elements.
    std::span<Element const> next_in_slot(std::size_t number, std::size_t most) noexcept {
        if (plan_.buckets.size() - number <= ring_pieces) return {};
        for (std::size_t b = number + 1; b <= number + ring_pieces; ++b)
            if (!is_borrowed(plan_.buckets[b])) return {}; // it may take no slot
        bucket const& next = plan_.buckets[number + ring_pieces];
        std::span<Element const> found;
        each_in(next, [&](std::size_t i, std::size_t from, std::size_t count) {
            if (count == next.elements && count <= most && !callers_[i].empty())
                found = {origin(i, from), count};
        });
        return found;
    }
    place copied_in(bucket const& b, std::size_t number) noexcept {
        Element* const slot = slot_of(number);
        bool const filled = std::exchange(slots_[number % ring_pieces].filled, false);
        lent_part* const parts = parts_of(number);
        std::size_t count_of_parts = 0;
        each_in(b, [&](std::size_t i, std::size_t from, std::size_t count) {
            std::size_t const at = plan_.tensors[i].offset + from - b.offset;
            Element* const theirs = origin(i, from);
            if (!filled) std::memcpy(slot + at, theirs, count * sizeof(Element));
            // Behind a tensor, up to the next one's cache line.
            std::fill(slot + at + count,
                      slot + std::min(detail::round_up(at + count, plan_.grain), b.elements), Element{});
            auto* const bytes = reinterpret_cast<std::byte*>(theirs);
            parts[count_of_parts++] = {bytes, bytes, at, count};
        });
        return {slots_[number % ring_pieces].own, slots_[number % ring_pieces].home, {parts, count_of_parts}};
    }
    void copy_out(bucket const& b, Element const* slot) noexcept {
        each_in(b, [&](std::size_t i, std::size_t from, std::size_t count) {
            std::memcpy(origin(i, from), slot + (plan_.tensors[i].offset + from - b.offset),
                        count * sizeof(Element));
        });
    }

    // ---- of tensors on a device ---------------------------------------------------------------------------------------

    /// Has the device bring the next execution, of this bucket; returns where it will lie on the host.
    std::byte* load(bucket const& of) noexcept {
        if (untold_) node_->after(stream_);
        untold_ = false;
        auto const number = static_cast<std::uint32_t>(next_bucket_);
        node_->pack(number, of.first_tensor, copies([this, &of](auto const& take) {
                        for (std::size_t i = of.first_tensor; i < of.first_tensor + of.tensors; ++i)
                            if (!callers_[i].empty()) take(i, false);
                    }));
        return node_->load(engine_->requested(), number, of.offset * sizeof(Element),
                           of.elements * sizeof(Element), of.tensors == 0);
    }

    // Copies between the callers' tensors and the reducer's, back or forth; `which` takes tensors.
    template <class Which> auto copies(Which const& which) noexcept {
        std::size_t count = 0;
        which([&](std::size_t i, bool back) {
            void* const own = memory() + plan_.tensors[i].offset;
            void* const theirs = callers_[i].data();
            copies_[count++] = {back ? theirs : own, back ? own : theirs, callers_[i].size_bytes()};
        });
        return std::span(std::as_const(copies_).data(), count);
    }

    /// Returns how many executions are submitted with this one.
    std::uint64_t submit(bucket const& b, shard const* shards, place const& at, std::size_t label,
                         std::uint32_t fingerprint) noexcept {
        std::uint64_t const number =
            engine_->submit({.shards = shards + b.first_shard,
                             .shard_count = b.shards,
                             .path = b.path,
                             .own = at.own,
                             .home = at.home,
                             .elements = b.elements,
                             .fingerprint = fingerprint,
                             .label = static_cast<std::uint32_t>(label),
                             .lent_parts = static_cast<std::uint32_t>(at.lent.size()),
                             .lent = at.lent.data(),
                             .next = std::as_bytes(at.next)});
        driver_->submitted();
        return number + 1;
    }

    status finish(std::uint64_t count, time_point deadline) noexcept {
        driver_->until(count, deadline);
        if (failure const* const why = engine_->failed()) return status(*why);
        engine_->settle_account();
        return {};
    }

    // ---- buffers of the caller's ----------------------------------------------------------------------------------

    bool needs_ring() const noexcept {
        return map_.largest_node() > 1 || (Transport::facts.registers_memory && plan_.nodes > 1);
    }

    /// Elements of a ring's piece: small enough that all pieces stay in cache, large enough for its flags.
    std::size_t ring_piece() const noexcept {
        std::size_t const ranks = static_cast<std::size_t>(plan_.largest_node);
        std::size_t const bytes =
            plan_.nodes == 1 ? (ranks <= 2 ? 64_KiB : 256_KiB)
                             : 2 * ranks * static_cast<std::size_t>(plan_.nodes) * plan_.tuning.chunk_bytes;
        return std::max(bytes / sizeof(Element) / plan_.grain, std::size_t{1}) * plan_.grain;
    }

    void divide(std::size_t elements, bucket& made, std::vector<shard>& shards) {
        bucket_tensor const whole{0, 0, elements};
        shards.clear();
        made = {};
        detail::divide<Sharding>(made, {elements, plan_.grain, std::span(&whole, 1)}, plan_, shards,
                                 {ranks_.rank(), "all_reduce"});
    }

    status reduce_buffer(std::span<Element const> in, std::span<Element> out, time_point deadline) {
        (void)holds<detail::only_on_host<on_device>>;
        call const here(*this, "all_reduce");
        if (failure const* const why = engine_->failed()) return status(*why);
        if (ready_ > 0)
            refuse(
                errc::bad_state, "all_reduce",
                {"a step is under way: ", ready_, " of ", size(), " tensors are ready; call wait() first"});
        if (in.data() != out.data() || in.size() != out.size()) check_apart(in, out);
        if (out.empty()) return {};
        std::size_t const bytes = out.size_bytes();
        bool const small =
            plan_.nodes == 1 && bytes <= plan_.tuning.mailbox_bytes; // copied to a mailbox anyway
        if (in.data() != out.data() && (small || !needs_ring())) std::memcpy(out.data(), in.data(), bytes);
        status const ended =
            needs_ring() && !small ? reduce_by_ring(in, out, deadline) : reduce_in_place(out, deadline);
        rethrow_of_handlers();
        return ended;
    }

    HERRING_SETUP void check_apart(std::span<Element const> in, std::span<Element> out) {
        if (in.size() != out.size())
            refuse(errc::bad_argument, "all_reduce",
                   {"one size is due: ", in.size(), " elements in, ", out.size(), " out"});
        auto const from = reinterpret_cast<std::uintptr_t>(in.data());
        auto const to = reinterpret_cast<std::uintptr_t>(out.data());
        if (from < to + out.size_bytes() && to < from + in.size_bytes())
            refuse(errc::bad_argument, "all_reduce",
                   {"the buffers of ", in.size(), " elements overlap, ", (from < to ? to - from : from - to),
                    " bytes apart: give one buffer, or two that do not overlap"});
    }

    status reduce_in_place(std::span<Element> inout, time_point deadline) {
        bucket whole;
        divide(inout.size(), whole, scratch_);
        if (needs_ring()) whole.path = route::mailbox; // memory that the others do not see
        return finish(submit(whole, scratch_.data(), {.own = reinterpret_cast<std::byte*>(inout.data())},
                             no_bucket, fingerprint_of(inout.size(), no_bucket)),
                      deadline);
    }

    status reduce_by_ring(std::span<Element const> from, std::span<Element> to, time_point deadline) {
        std::size_t const pieces = detail::divide_up(to.size(), piece_);
        std::size_t const tail = to.size() - (pieces - 1) * piece_;
        bucket last = whole_piece_;
        if (tail != piece_) divide(tail, last, scratch_);
        auto const count = [&](std::size_t piece) { return piece + 1 < pieces ? piece_ : tail; };
        std::uint64_t const before = engine_->requested();
        auto const piece_of = [&](std::size_t piece) { return from.subspan(piece * piece_, count(piece)); };
        std::size_t in = 0;
        for (std::size_t out = 0; out < pieces; ++out) {
            for (; in < pieces && in < out + ring_pieces; ++in) {
                std::span<Element const> const here = piece_of(in);
                if (!std::exchange(slots_[in % ring_pieces].filled, false))
                    std::memcpy(slot_of(in), here.data(), here.size_bytes());
                *parts_of(in) = {reinterpret_cast<std::byte const*>(here.data()),
                                 reinterpret_cast<std::byte*>(to.data() + in * piece_), 0, here.size()};
                bool const whole = here.size() == piece_;
                (void)submit(
                    whole ? whole_piece_ : last, whole ? piece_shards_.data() : scratch_.data(),
                    {slots_[in % ring_pieces].own,
                     slots_[in % ring_pieces].home,
                     {parts_of(in), 1},
                     in + ring_pieces < pieces ? piece_of(in + ring_pieces) : std::span<Element const>()},
                    no_bucket, fingerprint_of(to.size(), no_bucket - in));
            }
            driver_->until(before + out + 1, deadline);
            if (failure const* const why = engine_->failed()) return status(*why);
            if (!taken_over(before + out, out))
                std::memcpy(to.data() + out * piece_, slot_of(out), count(out) * sizeof(Element));
        }
        return finish(before + pieces, deadline);
    }

    // As many pieces as the ring has are under way at once, each in another place: copied in, summed, exchanged, copied out.
    status reduce_on_device(device_span<Element> inout, stream in, time_point deadline) {
        std::size_t const pieces = detail::divide_up(inout.size(), piece_);
        std::size_t const tail = inout.size() - (pieces - 1) * piece_;
        bucket last = whole_piece_;
        if (tail != piece_) divide(tail, last, scratch_);
        auto const slot = [&](std::size_t piece) { return ring_at_ + piece % ring_pieces * piece_; };
        auto const count = [&](std::size_t piece) { return piece + 1 < pieces ? piece_ : tail; };
        std::uint64_t const before = engine_->requested();
        std::size_t entered = 0;
        node_->after(in);
        for (std::size_t out = 0; out < pieces; ++out) {
            for (; entered < pieces && entered < out + ring_pieces; ++entered) {
                std::size_t const bytes = count(entered) * sizeof(Element);
                node_->copy_in({memory() + slot(entered), inout.data() + entered * piece_, bytes});
                std::byte* const own =
                    node_->load(engine_->requested(), no_bucket, slot(entered) * sizeof(Element), bytes);
                bool const whole = count(entered) == piece_;
                (void)submit(whole ? whole_piece_ : last, whole ? piece_shards_.data() : scratch_.data(),
                             {.own = own}, no_bucket, fingerprint_of(inout.size(), no_bucket - entered));
            }
            driver_->until(before + out + 1, deadline);
            if (failure const* const why = engine_->failed()) return status(*why);
            node_->results(in, before + out + 1);
            node_->copy_out(
                in, {inout.data() + out * piece_, memory() + slot(out), count(out) * sizeof(Element)});
            node_->taken(in); // before the next piece is copied in there
        }
        if (failure const* const why = node_->failed()) {
            engine_->fail(*why);
            return status(*why);
        }
        return finish(before + pieces, deadline);
    }

    world ranks_; // a handle of its own: the program's may be moved
    layout layout_;
    topology map_;
    herring::plan plan_;
    [[no_unique_address]] Trace trace_{};
    detail::private_memory staging_;
    detail::manual_lifetime<IntraNode> node_;
    detail::manual_lifetime<Transport> transport_;
    detail::manual_lifetime<engine_type> engine_;
    detail::manual_lifetime<driver_type> driver_;

    detail::call_mark in_call_;

    // the step
    detail::fixed_array<std::uint8_t> is_ready_;
    detail::fixed_array<std::uint32_t> missing_; // tensors of a bucket that are not ready
    std::size_t ready_ = 0;
    std::size_t next_bucket_ = 0;
    std::uint64_t step_end_ = 0;
    bool through_ring_ =
        false; // the caller's tensors are copied into a ring and out of it, not into the reducer's
    std::size_t next_out_ = 0; // bucket whose result is to be copied out, if it is to
    std::uint64_t taken_ = 0;  // executions, of buckets before that one
    std::size_t ring_in_ = 0, ring_out_ = 0;
    detail::fixed_array<tensor_span> callers_;
    detail::append_buffer<std::size_t> borrowed_;
    detail::fixed_array<typename detail::tensor_memory<Element, IntraNode>::copy> copies_;
    [[no_unique_address]] stream stream_{}; // of tensors that are ready and whose bucket has not left
    bool untold_ = false;                   // the node has not been told of it
    failure misuse_{};                      // the last one

    // all_reduce
    std::byte* ring_ = nullptr;
    slot_place slots_[ring_pieces]; // of the ring; where two ranks exchange, some in the other's region
    std::size_t most_parts_ = 1;    // of the caller's memory in a bucket
    detail::fixed_array<lent_part> parts_; // of each slot
    std::size_t piece_ = 0;                // elements
    std::size_t slot_ = 0;                 // room for one, or for a bucket that goes through the ring
    std::size_t ring_at_ = 0;              // of tensors on a device: where the ring begins among them
    bucket whole_piece_;
    std::vector<shard> piece_shards_;
    std::vector<shard> scratch_;
    detail::manual_lifetime<detail::reducer_entry> registration_; // the first to go: it refers to the engine
};

/// What a refused pack becomes: the sentence is printed already, and nothing else shall complain. So it takes
/// every call that a reducer takes, and returns the same types.
template <class Element> class basic_reducer<rejected<Element>> {
  public:
    using element_type = Element;
    explicit basic_reducer(world&) noexcept {}
    template <class... Anything> basic_reducer(world&, layout const&, Anything&&...) noexcept {}
    basic_reducer(basic_reducer const&) = delete;
    basic_reducer& operator=(basic_reducer const&) = delete;
    ~basic_reducer() {} // as a reducer's: an object that is only constructed is not «unused»

    std::size_t size() const noexcept { return 0; }
    std::span<Element> tensor(std::size_t) { return {}; }
    void ready(std::size_t) {}
    void ready(std::size_t, std::span<Element>) {}
    void wait() {}
    status wait(std::chrono::milliseconds) { return {}; }
    status wait(time_point) { return {}; }
    void poll() {}
    bool done() { return true; }
    void all_reduce(std::span<Element>) {}
    status all_reduce(std::span<Element>, std::chrono::milliseconds) { return {}; }
    status all_reduce(std::span<Element>, time_point) { return {}; }
    void all_reduce(std::span<Element const>, std::span<Element>) {}
    status all_reduce(std::span<Element const>, std::span<Element>, std::chrono::milliseconds) { return {}; }
    status all_reduce(std::span<Element const>, std::span<Element>, time_point) { return {}; }
    Element all_reduce(Element value) { return value; }
    status all_reduce(Element&, std::chrono::milliseconds) { return {}; }
    status all_reduce(Element&, time_point) { return {}; }
    herring::plan const& plan() const noexcept { return plan_; }
    herring::counters counters() const noexcept { return {}; }

    struct inert {
        template <class... Anything> void operator()(Anything&&...) const noexcept {}
    };
    inert& trace() noexcept { return inert_; }
    inert& transport() noexcept { return inert_; }
    inert& intra_node() noexcept { return inert_; }

  private:
    herring::plan plan_;
    inert inert_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_REDUCER_HPP
