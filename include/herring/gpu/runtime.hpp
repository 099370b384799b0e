// herring: what the pipelines of GPUs ask of a device: memory, queues, events, copies, one kernel.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_RUNTIME_HPP
#define HERRING_GPU_RUNTIME_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/gpu/kernel/fold_args.hpp"
#include "herring/gpu/kernel/inspection_result.hpp"
#include "herring/update/sum.hpp"
#include "herring/world.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::gpu {

/// One of many copies within a device.
struct copy_item {
    void* to = nullptr;
    void const* from = nullptr;
    std::size_t bytes = 0;

    friend bool operator==(copy_item const&, copy_item const&) = default;
};

/// What is wrong with a stream that is being captured in a graph.
inline constexpr char const* stream_is_captured =
    "the stream is being captured in a graph, and what other ranks do cannot be: call it before the capture "
    "begins or after it has ended";

namespace clauses {
template <class Runtime>
concept types = requires {
    typename Runtime::stream_handle;
    typename Runtime::memory;
    typename Runtime::pinned;
    typename Runtime::stream;
    typename Runtime::event;
    typename Runtime::batch;
    typename Runtime::counter;
    typename Runtime::graph;
    typename Runtime::export_of_memory;
    typename Runtime::export_of_event;
    typename Runtime::imported_memory;
    typename Runtime::imported_event;
};
template <class Runtime>
concept made = std::constructible_from<Runtime, world&> &&
    std::constructible_from<typename Runtime::memory, Runtime&, std::size_t> &&
    std::constructible_from<typename Runtime::pinned, Runtime&, std::span<std::byte>> &&
    std::constructible_from<typename Runtime::stream, Runtime&> &&
    std::constructible_from<typename Runtime::batch, Runtime&, std::size_t> &&
    std::constructible_from<typename Runtime::event, Runtime&, bool> &&
    std::default_initializable<typename Runtime::graph>;
template <class Runtime>
concept moves = requires(Runtime& r, typename Runtime::stream_handle s, typename Runtime::event& e,
                         std::byte* to, std::byte const* from, std::size_t bytes, fold_args const& work,
                         typename Runtime::batch& many, std::span<copy_item const> copies,
                         typename Runtime::counter& counted, typename Runtime::graph& recorded) {
    { r.record(e, s) }
    noexcept;
    { r.wait(s, e) }
    noexcept;
    { r.done(e) }
    noexcept->std::same_as<bool>;
    { r.to_host(s, to, from, bytes) }
    noexcept;
    { r.to_device(s, to, from, bytes) }
    noexcept;
    { r.template fold<herring::update::sum, float>(s, work) }
    noexcept;
    { r.copy(s, copies[0]) }
    noexcept;
    { r.list(many, bytes, copies) }
    noexcept;
    { r.copy_many(s, many, bytes, bytes) }
    noexcept;
    { many.leave() }
    noexcept;
    { r.ended(e) }
    noexcept->std::same_as<bool>;
    { r.inspect(s, static_cast<float const*>(nullptr), bytes, counted) }
    noexcept;
    { counted.value() }
    noexcept->std::same_as<inspection_result>;
    { r.flush() }
    noexcept;
    { r.number() }
    noexcept->std::same_as<int>;
    { r.capture(s) }
    noexcept;
    { r.captured(s, recorded) }
    noexcept->std::same_as<bool>;
    { r.replay(s, recorded) }
    noexcept;
    { r.failed() }
    noexcept->std::same_as<failure const*>;
    { r.check_stream(s) }
    noexcept->std::same_as<char const*>;
    { r.stuck() }
    noexcept->std::same_as<bool>;
    { r.check_tensor(static_cast<void const*>(from)) }
    noexcept->std::same_as<char const*>;
};
} // namespace clauses

/// A device as the pipelines see it. Queues (streams) run what is put into them in order; queues of one device run beside
/// each other, and only events order them.
///
/// - Made from the world: takes the device that is current in the calling thread. `memory` (zeroed), `pinned` (locks pages
///   of the host's), `stream`, `event(r, shared)` own what they name and throw `error` when there is none to be had.
/// - `record(event, stream)`: the event is done when what is in the stream now is. `wait(stream, event)`: what is put into
///   the stream from now on waits for the last record of the event. `done(event)`: asked by the host.
/// - `to_host`, `to_device`, `copy` (within the device), `fold<Update, Element>` go into a stream and return at once; so does
///   `copy_many(stream, batch, at, n)`, of the n copies that `list(batch, at, copies)` wrote to place `at` of the batch. The
///   device reads the list when it gets there: until then it must not be written again.
/// - `ended(event)`, in destructors: waits until the event is done, as the end of a `stream` waits for what is in it; false:
///   it is not, and what it is about must be left where it is (`batch.leave()`). `stuck()`: whether something did not end.
/// - `inspect(stream, from, n, counter)`: `counter.value()` tells the host, some time later, how many elements were infinite
///   or NaN in all that was looked at, and the sum of squares of what was looked at last.
/// - `capture(stream)`: what this thread puts into the stream from now on is not done but kept, until `captured(stream,
///   graph)`, which makes it the graph's; false when that failed. `replay(stream, graph)` puts it into the stream, each time.
///   Copies and kernels can be captured; `record` and `wait` cannot, and neither can the host look: events stay in front of
///   a replay and behind it. `list` is not captured: a replay reads what is there when its turn comes.
/// - `flush()`: what the network has written to the device's memory is there for what is put into streams from now on.
///   `number()`: the device's, in this process.
/// - `check_tensor(p)`: what is wrong with a caller's pointer as device memory, or nullptr; `check_stream(s)`: with its stream.
/// - Nothing of this but `ended` blocks the host; nothing throws or returns an error: the first one is kept, `failed()` tells it, and later
///   calls do nothing.
/// - Exports are plain bytes for a rank of the same node, which imports them, in this process or another.
///
/// Threads: any; streams and events are used by one thread at a time each.
template <class Runtime>
concept runtime_policy = clauses::types<Runtime> && clauses::made<Runtime> && clauses::moves<Runtime>;

/// What a reducer asks of an intra-node policy whose tensors lie on devices.
struct device_needs {
    std::size_t tensor_bytes = 0; ///< device memory of a rank
    std::size_t bucket_bytes = 0; ///< the largest bucket
    std::size_t part_ratio = 1;   ///< size of a partial sum for each size of an element
    std::size_t executions = 1;   ///< outstanding at once, at most
    std::size_t loads = 1;        ///< of them, at most, those that do not come in with the one before
    std::size_t separate_results =
        1; ///< so many, whose results are taken by themselves, may follow one not yet taken
    std::size_t tensors = 0;
    int nodes = 1;
    bool parts_on_device = false; ///< the transport takes memory of the device
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_RUNTIME_HPP
