// herring: an engine's view of tensors on devices: summed by the host, or by the devices themselves.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_DEVICE_MEMORY_HPP
#define HERRING_ENGINE_DEVICE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/ledger.hpp"
#include "herring/engine/node_memory.hpp"
#include "herring/machine/time.hpp"
#include "herring/trace/trace.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The common base of both: each rank's device loads its tensors before the rank arrives.
///
/// Lifetime: refers to the intra-node reducer.
template <class IntraNode> class loaded_memory {
  public:
    explicit loaded_memory(IntraNode& node) noexcept : node_(node) {}

    failure const* failed() const noexcept { return node_.failed(); }
    bool is_loaded(std::uint64_t number, std::uint64_t submitted) noexcept {
        return node_.loaded(number, submitted);
    }
    time_point nap(time_point until) noexcept { return node_.nap(until); }
    void give_up() noexcept {
        if constexpr (requires { node_.give_up(); }) node_.give_up();
    }

  protected:
    static constexpr char late_text[] = "its device has not come to this operation";

    // This rank first: the others wait for it, and one of them might be named in its place.
    template <class Ask>
    void awaited_here(execution_ledger const& ledger, int local, Ask const& ask) noexcept {
        ask(local, ledger.arrived(), late_text);
    }

    IntraNode& node_;
};

/// Tensors on devices that the host sums: buckets come to memory of the host, and go back when all local
/// ranks have finished.
template <class IntraNode, class Transport>
requires(IntraNode::facts.device_memory &&
         !IntraNode::facts.sums_on_device) class node_memory<IntraNode, Transport>
    : public loaded_memory<IntraNode> {
    using base = loaded_memory<IntraNode>;

  public:
    static constexpr bool parts_on_device = false;
    static void register_parts(IntraNode&, Transport&) noexcept {}

    using base::base;

    void place_sum(execution&) noexcept {}
    template <class...> bool sum([[maybe_unused]] execution_ledger& ledger, int) noexcept {
        if constexpr (IntraNode::facts.sums_in_threads)
            return this->node_.summed(
                ledger.all_arrived(), ledger.arrived(),
                [&ledger](std::uint64_t number) -> execution& { return ledger.at(number); });
        return true;
    }
    template <class...> bool spread(execution_ledger&) noexcept { return true; }
    void store(std::uint64_t number) noexcept { this->node_.store(number); }
    template <class Byte> std::span<Byte> for_transport(std::span<Byte> at) noexcept { return at; }
    template <class Ask> void awaited(execution_ledger const& ledger, int local, Ask const& ask) noexcept {
        this->awaited_here(ledger, local, ask);
        // Or two ranks that sum would wait for each other.
        if constexpr (IntraNode::facts.sums_in_threads)
            if (this->node_.is_summing(ledger.all_arrived()))
                ask(local, ledger.all_arrived(), "it has not finished its share of the node's sum");
    }
    /// Tells of each execution's two copies, where the policy says how many it has begun and whether one has
    /// ended.
    template <class Core>
    requires(Core::is_traced&& requires(IntraNode& node) {
        node.copies_begun();
    }) void trace_copies(Core& core) noexcept {
        execution_ledger const& all = core.ledger;
        auto const tell = [&](trace_event which, std::uint64_t& told, std::uint64_t until) {
            for (; told < until; ++told)
                core.trace.work(which, all.at(told), told, all.at(told).bytes(all.at(told).elements));
        };
        tell(trace_event::to_host_begin, to_host_begun_, this->node_.copies_begun());
        tell(trace_event::to_host_end, to_host_ended_, all.arrived());
        tell(trace_event::to_device_begin, to_device_begun_, all.released().load(std::memory_order_relaxed));
        execution none; // its place may be another's by now
        none.label = no_bucket;
        for (; to_device_ended_ < to_device_begun_ && this->node_.stored(to_device_ended_);
             ++to_device_ended_)
            core.trace.work(trace_event::to_device_end, none, to_device_ended_, 0);
    }

  private:
    // Executions that the trace has.
    std::uint64_t to_host_begun_ = 0, to_host_ended_ = 0, to_device_begun_ = 0, to_device_ended_ = 0;
};

/// Tensors on devices that the devices of the node sum: they leave this rank the sums of its chunks as one
/// part, and spread the results. The first operation of the engine is the one that they compute.
template <class IntraNode, class Transport>
requires(IntraNode::facts.sums_on_device) class node_memory<IntraNode, Transport>
    : public loaded_memory<IntraNode> {
    using base = loaded_memory<IntraNode>;

  public:
    /// Parts that other nodes serve are sent from the device, and results received there.
    static constexpr bool parts_on_device = IntraNode::facts.leaves_parts && Transport::facts.device_memory;
    HERRING_SETUP static void register_parts(IntraNode& node, Transport& transport) {
        if constexpr (parts_on_device) transport.register_device_memory(node.parts(), node.device().number());
    }

    using base::base;

    void place_sum(execution& e) noexcept { e.device_sum = this->node_.part(e.own); }
    template <class Reduce, class...> bool sum(execution_ledger& ledger, int ranks) noexcept {
        return this->node_.template summed<typename Reduce::update, typename Reduce::element>(
            ledger.all_arrived(), ledger.arrived(), ranks,
            [&ledger](std::uint64_t number) -> execution const& { return ledger.at(number); });
    }
    template <class Reduce, class...> bool spread(execution_ledger& ledger) noexcept {
        std::uint64_t const number = ledger.finished();
        return this->node_.template spread<typename Reduce::element>(number, ledger.at(number));
    }
    void store(std::uint64_t) noexcept {} // the devices have spread it
    template <class Byte> std::span<Byte> for_transport(std::span<Byte> at) noexcept {
        if constexpr (parts_on_device) return this->node_.on_device(at);
        return at;
    }
    template <class Ask> void awaited(execution_ledger const& ledger, int local, Ask const& ask) noexcept {
        this->awaited_here(ledger, local, ask);
        // All are here: one device has not enqueued its sum, or has not come to the end of it.
        std::uint64_t const number = ledger.all_arrived();
        if (number < ledger.arrived() && this->node_.first_not_arrived(number) < 0)
            ask(this->node_.slowest_local_rank(number), number, base::late_text);
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_DEVICE_MEMORY_HPP
