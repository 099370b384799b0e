// herring: the runtime of CUDA devices, the model of `runtime_policy`; every call is checked.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_CUDA_RUNTIME_CUH
#define HERRING_GPU_CUDA_CUDA_RUNTIME_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_device.cuh"
#include "herring/gpu/cuda/cuda_objects.cuh"
#include "herring/gpu/cuda/cuda_peers.cuh"
#include "herring/gpu/kernel/kernels.cuh"
#include "herring/gpu/runtime.hpp"
#include "herring/model/element.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

struct __half;        // cuda_fp16.h defines it
struct __nv_bfloat16; // cuda_bf16.h

namespace HERRING_NAMESPACE {

/// Reducers take CUDA's own types of 16 bits.
template <> struct element<__half> : same_bits_as<float16> {};
template <> struct element<__nv_bfloat16> : same_bits_as<bfloat16> {};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::gpu {

/// The device that is current in the constructing thread. See runtime_policy, and cuda_device for errors.
class cuda_runtime : public cuda_device {
  public:
    static constexpr char const* name = "cuda_runtime";
    using stream_handle = cudaStream_t;
    using memory = cuda_memory;
    using pinned = cuda_pinned;
    using stream = cuda_stream;
    using event = cuda_event;
    using batch = cuda_batch;
    using counter = cuda_counter;
    using graph = cuda_graph;
    using export_of_memory = exported_cuda_memory;
    using export_of_event = exported_cuda_event;
    using imported_memory = imported_cuda_memory;
    using imported_event = imported_cuda_event;

    /// Takes the current device. Collective.
    HERRING_SETUP explicit cuda_runtime(world& ranks) : cuda_device(ranks) {
        int can = 0, orders = 0;
        set_up(cudaDeviceGetAttribute(&can, cudaDevAttrGPUDirectRDMAFlushWritesOptions, number()),
               "cudaDeviceGetAttribute");
        set_up(cudaDeviceGetAttribute(&orders, cudaDevAttrGPUDirectRDMAWritesOrdering, number()),
               "cudaDeviceGetAttribute");
        flushes_ = (can & cudaFlushGPUDirectRDMAWritesOptionHost) != 0 &&
                   orders < cudaGPUDirectRDMAWritesOrderingOwner;
    }

    HERRING_SETUP export_of_memory exported(memory const& own) const noexcept {
        return gpu::exported(*this, own);
    }
    HERRING_SETUP export_of_event exported(event const& own) const noexcept {
        return gpu::exported(*this, own);
    }
    export_of_memory lent(std::byte* place) const noexcept { return gpu::lent(*this, place); }
    static bool openable(export_of_memory const& of) noexcept { return of.shareable == cudaSuccess; }
    static bool here(export_of_memory const& of) noexcept {
        return of.process == detail::process_mark::mine();
    }
    bool on_same_device(export_of_memory const& of) const noexcept {
        return here(of) && std::memcmp(of.bus.text, bus().text, sizeof bus().text) == 0;
    }

    // ---- stream operations --------------------------------------------------------------------------------

    void record(cuda_event& mark, cudaStream_t in) noexcept {
        checked("cudaEventRecord", [&] { return cudaEventRecord(mark.handle(), in); });
    }
    void wait(cudaStream_t in, cuda_event& mark) noexcept {
        checked("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(in, mark.handle(), 0); });
    }
    bool done(cuda_event& mark) noexcept {
        if (failed() != nullptr) return false;
        detail::current_device const current(number(), elsewhere());
        cudaError_t const result = cudaEventQuery(mark.handle());
        if (result == cudaSuccess) return true;
        if (result != cudaErrorNotReady) {
            keep(result, "cudaEventQuery");
            return false;
        }
        if (cudaPeekAtLastError() == cudaErrorNotReady)
            (void)cudaGetLastError(); // no error: the program must not read it
        return false;
    }
    void to_host(cudaStream_t in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        checked("cudaMemcpyAsync to the host",
                [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, in); });
    }
    void to_device(cudaStream_t in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        checked("cudaMemcpyAsync to the device",
                [&] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, in); });
    }
    template <class Update, class Element> void fold(cudaStream_t in, fold_args const& work) noexcept {
        checked("launch of a sum", [&] { return fold_on_device<Update, Element>(work, in, processors()); });
    }
    template <class Update, class Element> void prepare_fold(fold_args const& like) noexcept {
        if (failed() == nullptr) {
            detail::current_device const current(number(), elsewhere());
            load_fold<Update, Element>(like);
        }
    }
    bool ended(cuda_event& mark) noexcept {
        return cuda_device::ended([&] { return cudaEventQuery(mark.handle()); });
    }
    void copy(cudaStream_t in, copy_item const& what) noexcept {
        checked("cudaMemcpyAsync within the device", [&] {
            return cudaMemcpyAsync(what.to, what.from, what.bytes, cudaMemcpyDeviceToDevice, in);
        });
    }
    void list(cuda_batch& many, std::size_t at, std::span<copy_item const> copies) noexcept {
        if (copies.empty()) return;
        write_list(many.host_ + at, copies);
        many.written_[at] = copies.size();
    }
    void copy_many(cudaStream_t in, cuda_batch& many, std::size_t at, std::size_t count) noexcept {
        if (std::size_t const entries = std::exchange(many.written_[at], 0); entries != 0)
            checked("cudaMemcpyAsync of a list of copies", [&] {
                return cudaMemcpyAsync(many.on_device(at), many.host_ + at, entries * sizeof(listed_copy),
                                       cudaMemcpyHostToDevice, in);
            });
        checked("launch of copies", [&] {
            return copy_on_device(many.on_device(at), count, many.host_[at + count - 1].end_chunk, in,
                                  processors());
        });
    }

    template <class Element>
    void inspect(cudaStream_t in, Element const* from, std::size_t count, cuda_counter& into) noexcept {
        auto* const found = reinterpret_cast<inspection_scratch*>(into.device_.data());
        checked("launch of an inspection", [&] { return inspect_on_device(from, count, *found, in); });
        checked("cudaMemcpyAsync of findings", [&] {
            return cudaMemcpyAsync(into.seen_, &found->total, sizeof found->total, cudaMemcpyDeviceToHost,
                                   in);
        });
    }

    // ---- graphs -------------------------------------------------------------------------------------------

    void capture(cudaStream_t in) noexcept {
        checked("cudaStreamBeginCapture",
                [&] { return cudaStreamBeginCapture(in, cudaStreamCaptureModeThreadLocal); });
    }
    bool captured(cudaStream_t in, cuda_graph& into) noexcept {
        detail::current_device const current(number(), elsewhere());
        cudaGraph_t kept = nullptr;
        cudaError_t const result =
            cudaStreamEndCapture(in, &kept); // also after a failure, or the stream would stay captured
        if (!detail::quietly(result) && failed() == nullptr)
            keep(result, "cudaStreamEndCapture: what was called in the capture cannot be captured");
        if (failed() == nullptr) {
            into.clear(); // the driver frees the graph when its last launch is done
            checked("cudaGraphInstantiate", [&] { return cudaGraphInstantiate(&into.handle_, kept, 0); });
        }
        if (kept != nullptr) detail::quietly(cudaGraphDestroy(kept));
        return failed() == nullptr;
    }
    void replay(cudaStream_t in, cuda_graph& what) noexcept {
        checked("cudaGraphLaunch", [&] { return cudaGraphLaunch(what.handle_, in); });
    }

    /// Does nothing on devices that order such writes themselves.
    void flush() noexcept {
        if (flushes_)
            checked("cudaDeviceFlushGPUDirectRDMAWrites", [] {
                return cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                          cudaFlushGPUDirectRDMAWritesToOwner);
            });
    }

    /// True for `cudaStreamPerThread`, and for the default stream if each thread has its own.
    static bool per_thread(cudaStream_t given) noexcept {
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
        if (given == nullptr) return true;
#endif
        return given == cudaStreamPerThread;
    }
    char const* check_stream(cudaStream_t given) noexcept {
        detail::current_device const current(number(), elsewhere());
        cudaStreamCaptureStatus is = cudaStreamCaptureStatusNone;
        cudaError_t const result = cudaStreamIsCapturing(given, &is);
        if (result == cudaSuccess && is == cudaStreamCaptureStatusNone) {
            if (char const* const left = unread()) return left;
            int on = number();
            if (detail::quietly(cudaStreamGetDevice(given, &on)) && on != number())
                return "it is a stream of another device than the reducer's";
            return nullptr;
        }
        if (result != cudaSuccess && !detail::of_earlier_work(result)) (void)cudaGetLastError();
        if (result != cudaSuccess && result != cudaErrorStreamCaptureImplicit)
            return nullptr; // the next call reports the error
        return stream_is_captured;
    }
    char const* check_tensor(void const* place) const noexcept {
        cudaPointerAttributes facts{};
        if (cudaPointerGetAttributes(&facts, place) != cudaSuccess) {
            (void)cudaGetLastError();
            return "CUDA does not know it";
        }
        if (facts.type == cudaMemoryTypeUnregistered || facts.type == cudaMemoryTypeHost)
            return "it is memory of the host, or was freed: give device memory, or use a reducer with "
                   "intra_node::shared_memory";
        if (facts.type == cudaMemoryTypeDevice && facts.device != number())
            return "it is memory of another device than the reducer's: make the reducer with that device "
                   "current";
        return nullptr;
    }

  private:
    bool flushes_ = false;
};
static_assert(runtime_policy<cuda_runtime>);

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_CUDA_CUDA_RUNTIME_CUH
