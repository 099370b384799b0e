// herring: an engine's view of the memory that a node's tensors lie in; host memory needs nothing.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_NODE_MEMORY_HPP
#define HERRING_ENGINE_NODE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/ledger.hpp"
#include "herring/machine/time.hpp"

#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The memory that a node's tensors lie in, as an engine sees it: what has to be done for an execution
/// besides sums of the host and messages. This one is host memory, where that is nothing.
/// engine/device_memory.hpp has those for devices; the policies' facts choose. The engine calls these
/// functions in this order:
///
/// - `register_parts(node, transport)`: once, at construction of both. `parts_on_device`: the transport
///   accesses parts on devices.
/// - `failed()`: the first failure of a device, or nullptr; it ends the engine.
/// - `is_loaded(e, submitted)`: this rank's tensors of execution e have reached memory of the host, or need
///   not; the rank may arrive. `submitted`: executions that may be started ahead.
/// - `place_sum(e)`: sets `execution::device_sum` where devices sum.
/// - `sum<Operations...>(ledger, ranks)`: all local ranks have arrived at the next execution. True: the
///   devices have summed it, or do not sum.
/// - `for_transport(span)`: the address that the transport sends from or receives into, for memory of an
///   execution.
/// - `spread<Operations...>(ledger)`: the oldest unfinished execution has its results. True: the devices
///   write them to all tensors. False: not yet, or the device failed.
/// - `give_up()`: the engine has failed, and this is the last call: nothing on a device may wait for other
///   ranks from now on.
/// - `store(e)`: all local ranks have finished execution e.
/// - `nap(until)`: until when the engine may sleep, if no device wakes it.
/// - `awaited(ledger, local, ask)`: calls ask(local rank, execution, text) for each rank whose device an
///   execution waits for.
///
/// Cost:    host memory: none; no function is emitted.
/// Threads: of the engine that polls.
template <class IntraNode, class Transport> class node_memory {
    static_assert(!IntraNode::facts.device_memory,
                  "an intra_node policy with device_memory includes herring/engine/device_memory.hpp");

  public:
    static constexpr bool parts_on_device = false;
    HERRING_ALWAYS_INLINE static void register_parts(IntraNode&, Transport&) noexcept {}

    HERRING_ALWAYS_INLINE explicit node_memory(IntraNode&) noexcept {}

    HERRING_ALWAYS_INLINE static failure const* failed() noexcept { return nullptr; }
    HERRING_ALWAYS_INLINE static bool is_loaded(std::uint64_t, std::uint64_t) noexcept { return true; }
    HERRING_ALWAYS_INLINE static void place_sum(execution&) noexcept {}
    template <class...> HERRING_ALWAYS_INLINE static bool sum(execution_ledger&, int) noexcept {
        return true;
    }
    template <class...> HERRING_ALWAYS_INLINE static bool spread(execution_ledger&) noexcept { return true; }
    HERRING_ALWAYS_INLINE static void give_up() noexcept {}
    HERRING_ALWAYS_INLINE static void store(std::uint64_t) noexcept {}
    template <class Byte>
    HERRING_ALWAYS_INLINE static std::span<Byte> for_transport(std::span<Byte> at) noexcept {
        return at;
    }
    HERRING_ALWAYS_INLINE static time_point nap(time_point until) noexcept { return until; }
    template <class Ask>
    HERRING_ALWAYS_INLINE static void awaited(execution_ledger const&, int, Ask const&) noexcept {}
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_NODE_MEMORY_HPP
