// herring: the runtime of devices that are a model on the host: what goes into queues, whose work is done late, in any order that is allowed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_RUNTIME_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_RUNTIME_HPP

#include "gpu_model/host_device.hpp"
#include "gpu_model/host_machine.hpp"
#include "gpu_model/host_objects.hpp"
#include "gpu_model/host_peers.hpp"
#include "gpu_model/host_queue.hpp"
#include "herring/base/config.hpp"
#include "herring/gpu/kernel/fold.hpp"
#include "herring/gpu/kernel/inspection.hpp"
#include "herring/gpu/runtime.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// The model of `runtime_policy`: what goes into a queue is done some time later, beside what is in others. So a pipeline
/// that forgets an event computes wrong sums, or is a data race.
///
/// Ranks are threads of one process. Device memory is memory of the host, each piece on its own.
class host_runtime : public host_device {
  public:
    static constexpr char const* name = "host_runtime";
    using stream_handle = detail::host_queue*;
    using memory = host_memory;
    using pinned = host_pinned;
    using stream = host_stream;
    using event = host_event;
    using batch = host_batch;
    using counter = host_counter;
    using graph = host_graph;
    using export_of_memory = exported_host_memory;
    using export_of_event = exported_host_event;
    using imported_memory = imported_host_memory;
    using imported_event = imported_host_event;
    using host_device::host_device;

    export_of_memory exported(memory const& own) const noexcept { return {own.data(), number()}; }
    export_of_memory lent(std::byte const* place) const noexcept {
        host_machine::piece const of = machine().around(place);
        return {of.from, of.device, of.openable, of.id, rank()};
    }
    static bool openable(export_of_memory const& of) noexcept { return of.openable; }
    bool here(export_of_memory const& of) const noexcept {
        return !machine().options.processes || of.rank == rank();
    }
    bool on_same_device(export_of_memory const& of) const noexcept {
        return !machine().options.processes && of.device == number();
    }
    static export_of_event exported(event const& own) noexcept { return {&own.state}; }

    // ---- what goes into streams -------------------------------------------------------------------------------------

    void record(event& mark, stream_handle in) noexcept {
        if (refused()) return;
        with_memory([&] {
            detail::host_work work;
            work.what = detail::host_work::kind::record;
            work.mark = mark.state->renew();
            if (!in->put(std::move(work)))
                refuse("record: an event cannot be captured; record it behind the replay");
        });
    }
    void wait(stream_handle in, event& mark) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::wait;
        work.mark = mark.state->last();
        with_memory([&] {
            if (!in->put(std::move(work)))
                refuse("wait: an event cannot be captured; wait for it before the replay");
        });
    }
    bool done(event& mark) noexcept {
        return !refused() && mark.state->last()->load(std::memory_order_acquire);
    }
    void to_host(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        copy(in, to, from, bytes);
    }
    void to_device(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        copy(in, to, from, bytes);
    }
    template <class Update, class Element> void fold(stream_handle in, fold_args const& sum) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::fold;
        work.sum = sum;
        work.run = [](fold_args const& what) { fold_on_host<Update, Element>(what); };
        put(in, std::move(work));
    }
    template <class Update, class Element> static void prepare_fold(fold_args const&) noexcept {}
    static constexpr bool per_thread(stream_handle) noexcept { return false; }
    void copy(stream_handle in, copy_item const& what) noexcept {
        ++machine().copies;
        copy(in, static_cast<std::byte*>(what.to), static_cast<std::byte const*>(what.from), what.bytes);
    }
    void list(batch& many, std::size_t at, std::span<copy_item const> copies) noexcept {
        if (refused() || copies.empty()) return;
        write_list(many.written.data() + at, copies);
        many.fresh[at] = copies.size();
    }
    void copy_many(stream_handle in, batch& many, std::size_t at, std::size_t count) noexcept {
        if (refused()) return;
        if (std::size_t const entries = std::exchange(many.fresh[at], 0); entries != 0)
            copy(in, reinterpret_cast<std::byte*>(many.on_device.data() + at),
                 reinterpret_cast<std::byte const*>(many.written.data() + at), entries * sizeof(listed_copy));
        detail::host_work work;
        work.what = detail::host_work::kind::copies;
        work.list = std::span<listed_copy const>(many.on_device).subspan(at, count);
        work.chunks = many.written[at + count - 1].end_chunk;
        put(in, std::move(work));
    }
    bool ended(event& mark) noexcept { return machine().done(*mark.state->last()); }
    template <class Element>
    void inspect(stream_handle in, Element const* from, std::size_t count, counter& into) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::fold;
        work.sum.sources[0] = from;
        work.sum.targets[0] = &into;
        work.sum.where.elements = count;
        work.run = [](fold_args const& what) {
            auto& counted = *static_cast<counter*>(what.targets[0]);
            inspection_result const found =
                gpu::inspect(static_cast<Element const*>(what.sources[0]), what.where.elements, 0, 1);
            counted.squares.store(found.squares, std::memory_order_release);
            counted.count.fetch_add(found.not_finite, std::memory_order_release);
        };
        put(in, std::move(work));
    }

    // ---- graphs -----------------------------------------------------------------------------------------------------

    void capture(stream_handle in) noexcept {
        if (!refused()) in->capture();
    }
    bool captured(stream_handle in, graph& into) noexcept {
        std::vector<detail::host_work> work = in->captured();
        if (refused()) return false;
        into.work = std::move(work);
        return true;
    }
    void replay(stream_handle in, graph const& what) noexcept {
        if (refused()) return;
        for (detail::host_work work : what.work) put(in, std::move(work));
    }

    void flush() noexcept {}
    char const* check_stream(stream_handle given) const noexcept {
        return given->capturing() ? stream_is_captured : nullptr;
    }
    char const* check_tensor(void const* place) const noexcept {
        int const owner = machine().owner(place);
        if (owner == number()) return nullptr;
        return owner < 0 ? "it is memory of the host" : "it is memory of another device than the reducer's";
    }

    /// A kernel of a test's: `call(argument)`.
    static void launch(stream_handle in, void (*call)(void*), void* argument) {
        detail::host_work work;
        work.what = detail::host_work::kind::call;
        work.call = call;
        work.argument = argument;
        in->put(std::move(work));
    }

  private:
    void copy(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.to = to;
        work.from = from;
        work.bytes = bytes;
        put(in, std::move(work));
    }
    void put(stream_handle in, detail::host_work&& work) noexcept {
        with_memory([&] { in->put(std::move(work)); });
    }
    // Without memory of the host the device fails, as one does whose driver finds none.
    template <class Work> void with_memory(Work const& work) noexcept {
        try {
            work();
        } catch (std::bad_alloc const&) {
            refuse("no memory of the host for what goes into a stream");
        }
    }
};
static_assert(runtime_policy<host_runtime>);

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_RUNTIME_HPP
