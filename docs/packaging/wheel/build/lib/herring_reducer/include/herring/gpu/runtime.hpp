// herring: the concept of a device runtime: memory, streams, events, copies and kernels.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_RUNTIME_HPP
#define HERRING_GPU_RUNTIME_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/gpu/kernel/batched_copy.hpp"
#include "herring/gpu/kernel/fold_args.hpp"
#include "herring/gpu/kernel/inspection.hpp"
#include "herring/update/rules.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::gpu {

/// Text of the error for a stream that is being captured in a graph.
inline constexpr char const* stream_is_captured =
    "the stream is being captured in a graph, and what other ranks do cannot be: call it before the capture "
    "begins or after it has ended";

namespace clauses {

/// The constructor from world& is collective, and takes the device that is current in the calling thread.
/// `number()` is the device's number in this process. No other function throws or returns an error: the first
/// error is kept, `failed()` returns it or nullptr, and later calls do nothing. `check_tensor(p)` and
/// `check_stream(s)` return the defect of a caller's pointer or stream as text, or nullptr.
template <class Runtime>
concept reports_errors = requires(Runtime& r, typename Runtime::stream_handle s, void const* tensor) {
    requires std::constructible_from<Runtime, world&>;
    { r.number() }
    noexcept->std::same_as<int>;
    { r.failed() }
    noexcept->std::same_as<failure const*>;
    { r.check_stream(s) }
    noexcept->std::same_as<char const*>;
    { r.check_tensor(tensor) }
    noexcept->std::same_as<char const*>;
};

/// `memory(r, bytes)` owns zeroed device memory. `pinned(r, pages)` locks pages of the host; `on_device(p)`
/// returns the device's address of byte p in these pages. Both constructors throw `error` if there is no
/// memory. `leave()` leaks the memory until the process ends.
template <class Runtime>
concept owns_memory = requires(typename Runtime::memory& memory, typename Runtime::pinned& pages,
                               std::byte* p) {
    requires std::constructible_from<typename Runtime::memory, Runtime&, std::size_t>;
    requires std::constructible_from<typename Runtime::pinned, Runtime&, std::span<std::byte>>;
    { memory.data() }
    noexcept->std::same_as<std::byte*>;
    { memory.leave() }
    noexcept;
    { pages.on_device(p) }
    noexcept->std::same_as<std::byte*>;
};

/// A `stream` runs its work in order; streams of one device run concurrently, and only events order them.
/// - `record(event, stream)`: the event is done when the present contents of the stream are. `wait(stream,
///   event)`: later work in the stream waits for the last record of the event. `done(event)`: a query by the
///   host.
/// - `per_thread(handle)`: true if the handle stands for another stream in each thread.
/// - `event(r, shared)`: `shared` if other ranks wait for the event, which `leave()` leaks to the end.
/// - For destructors: `ended(event)` waits until the event is done, as the destructor of a `stream` waits for
///   its work. If it returns false, the event is not done, and memory that the work uses must be leaked
///   (`leave()`). `stuck()`: some work did not end in time. No other function blocks the host.
template <class Runtime>
concept orders_streams = requires(Runtime& r, typename Runtime::stream const& stream,
                                  typename Runtime::stream_handle s, typename Runtime::event& e) {
    requires std::constructible_from<typename Runtime::stream, Runtime&>;
    requires std::constructible_from<typename Runtime::event, Runtime&, bool>;
    { stream.handle() }
    noexcept->std::same_as<typename Runtime::stream_handle>;
    { r.record(e, s) }
    noexcept;
    { r.wait(s, e) }
    noexcept;
    { r.done(e) }
    noexcept->std::same_as<bool>;
    { r.ended(e) }
    noexcept->std::same_as<bool>;
    { r.stuck() }
    noexcept->std::same_as<bool>;
    { r.per_thread(s) }
    noexcept->std::same_as<bool>;
    { e.leave() }
    noexcept;
};

/// Copies are enqueued on a stream and return at once: `to_host`, `to_device` and `copy` (within the device).
/// `copy_many(stream, batch, at, n)` enqueues the first n ≥ 1 of the copies that the last `list(batch, at,
/// copies)` wrote from index `at` of the batch on. The device reads the list when the copies run: it must not
/// be rewritten before. The streams of two `copy_many` of one list are ordered.
template <class Runtime>
concept copies = requires(Runtime& r, typename Runtime::stream_handle s, std::byte* to, std::byte const* from,
                          std::size_t n, typename Runtime::batch& batch, std::span<copy_item const> items) {
    requires std::constructible_from<typename Runtime::batch, Runtime&, std::size_t>;
    { r.to_host(s, to, from, n) }
    noexcept;
    { r.to_device(s, to, from, n) }
    noexcept;
    { r.copy(s, items[0]) }
    noexcept;
    { r.list(batch, n, items) }
    noexcept;
    { r.copy_many(s, batch, n, n) }
    noexcept;
    { batch.leave() }
    noexcept;
};

/// `fold<Update, Element>(stream, args)` enqueues one k-way sum. `prepare_fold<Update, Element>(args)` loads
/// the kernel for sums with as many sources, which may wait for the whole device; a second call does nothing.
/// After `flush()`, later work sees data that the network adapter has written to device memory.
template <class Runtime>
concept folds = requires(Runtime& r, typename Runtime::stream_handle s, fold_args const& work) {
    { r.template fold<herring::update::sum, float>(s, work) }
    noexcept;
    { r.template prepare_fold<herring::update::sum, float>(work) }
    noexcept;
    { r.flush() }
    noexcept;
};

/// `inspect(stream, from, n, counter)` enqueues an inspection. `counter.value()`, on the host, after
/// inspections: infinities and NaNs in all of them, and the sum of squares of the last.
template <class Runtime>
concept inspects = requires(Runtime& r, typename Runtime::stream_handle s, float const* from, std::size_t n,
                            typename Runtime::counter& counter) {
    requires std::constructible_from<typename Runtime::counter, Runtime&>;
    { r.inspect(s, from, n, counter) }
    noexcept;
    { counter.value() }
    noexcept->std::same_as<inspection_result>;
};

/// After `capture(stream)`, work that this thread enqueues on the stream is kept instead of run, until
/// `captured(stream, graph)` stores it in the graph, or returns false on failure. `replay(stream, graph)`
/// enqueues the graph. Copies and kernels can be captured; `record`, `wait` and queries by the host cannot:
/// events stand before and after a replay. `list` is not captured: a graph that holds a `copy_many` is valid
/// for the list as it was at the capture. After another `list` at that index, the copies are captured anew.
template <class Runtime>
concept captures = requires(Runtime& r, typename Runtime::stream_handle s, typename Runtime::graph& graph) {
    requires std::default_initializable<typename Runtime::graph>;
    { r.capture(s) }
    noexcept;
    { r.captured(s, graph) }
    noexcept->std::same_as<bool>;
    { r.replay(s, graph) }
    noexcept;
};

/// `exported(memory)` and `exported(event)` return plain bytes, from which another rank of the node
/// constructs `imported_memory` and `imported_event`, in this process or another; their constructors throw
/// `error`.
/// - `lent(place)` returns the export of a caller's allocation; `first()` is the address where the allocation
///   begins, and its `id` is unique.
/// - `openable`: other ranks of the node reach the allocation: by its address, if `here(export)` (it is of
///   this process), else by an import. `on_same_device`: it is of this process and this device.
/// - `keep(failure)` keeps a failure as the first error, if there is none yet.
template <class Runtime>
concept shares_with_peers = requires(Runtime& r, typename Runtime::memory const& memory,
                                     typename Runtime::event const& event,
                                     typename Runtime::imported_memory const& imported,
                                     typename Runtime::imported_event& other,
                                     typename Runtime::stream_handle s,
                                     typename Runtime::export_of_memory const& exported, failure const& why) {
    requires std::is_trivially_copyable_v<typename Runtime::export_of_memory>;
    requires std::is_trivially_copyable_v<typename Runtime::export_of_event>;
    requires std::constructible_from<typename Runtime::imported_memory, Runtime&,
                                     typename Runtime::export_of_memory const&, int>;
    requires std::constructible_from<typename Runtime::imported_event, Runtime&,
                                     typename Runtime::export_of_event const&, int>;
    { r.exported(memory) }
    noexcept->std::same_as<typename Runtime::export_of_memory>;
    { r.exported(event) }
    noexcept->std::same_as<typename Runtime::export_of_event>;
    { r.lent(memory.data()) }
    noexcept->std::same_as<typename Runtime::export_of_memory>;
    { r.openable(exported) }
    noexcept->std::same_as<bool>;
    { r.here(exported) }
    noexcept->std::same_as<bool>;
    { r.on_same_device(exported) }
    noexcept->std::same_as<bool>;
    { exported.first() }
    noexcept->std::same_as<std::byte*>;
    r.keep(why);
    { imported.data() }
    noexcept->std::same_as<std::byte*>;
    { r.wait(s, other) }
    noexcept;
    { r.done(other) }
    noexcept->std::same_as<bool>;
};

} // namespace clauses

/// A device as the pipelines use it. Each clause documents its part. `nvlink` uses all clauses,
/// `pcie_staging` neither `folds` nor `shares_with_peers`.
///
/// Threads: any; a stream or an event is used by one thread at a time, except that `done` may run beside
///          `wait` for an event.
template <class Runtime>
concept runtime_policy = clauses::reports_errors<Runtime> && clauses::owns_memory<Runtime> &&
    clauses::orders_streams<Runtime> && clauses::copies<Runtime> && clauses::folds<Runtime> &&
    clauses::inspects<Runtime> && clauses::captures<Runtime> && clauses::shares_with_peers<Runtime>;

/// Requirements of a reducer on an intra-node policy whose tensors lie on devices.
struct device_needs {
    std::size_t tensor_bytes = 0; ///< device memory of a rank
    std::size_t bucket_bytes = 0; ///< the largest bucket
    std::size_t part_ratio = 1;   ///< bytes of an accumulator per byte of an element
    std::size_t executions = 1;   ///< upper bound on outstanding executions
    std::size_t loads = 1; ///< upper bound on outstanding loads; the parts of a split bucket are one load
    std::size_t separate_results = 1; ///< upper bound on executions whose results are taken one by one
    std::size_t tensors = 0;
    int nodes = 1;
    bool parts_on_device = false; ///< the transport takes memory of the device
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_RUNTIME_HPP
