// herring: owners of a rank's CUDA objects: memory, streams, events, lists, graphs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_CUDA_OBJECTS_CUH
#define HERRING_GPU_CUDA_CUDA_OBJECTS_CUH

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/gpu/cuda/cuda_device.cuh"
#include "herring/gpu/kernel/batched_copy.hpp"
#include "herring/gpu/kernel/kernels.cuh"
#include "herring/gpu/runtime.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <cuda_runtime_api.h>

namespace HERRING_NAMESPACE::gpu {

/// Zeroed device memory.
class cuda_memory {
  public:
    HERRING_SETUP cuda_memory(cuda_device& on, std::size_t bytes) : on_(on) {
        if (bytes == 0) return;
        detail::current_device const current(on.number());
        // Whole blocks of the driver, because a block is exported to other processes as a whole.
        std::size_t const whole = (bytes + block - 1) / block * block;
        on.set_up(cudaMalloc(&data_, whole), "cudaMalloc", whole,
                  "use a smaller layout, or free memory of the device");
        // In a new stream: the legacy stream would wait for the program's streams and break captures.
        cudaStream_t once = nullptr;
        cudaError_t result = cudaStreamCreateWithFlags(&once, cudaStreamNonBlocking);
        if (result == cudaSuccess) result = cudaMemsetAsync(data_, 0, whole, once);
        if (result == cudaSuccess) result = cudaStreamSynchronize(once);
        if (once != nullptr) detail::quietly(cudaStreamDestroy(once));
        if (result != cudaSuccess) {
            detail::quietly(cudaFree(std::exchange(data_, nullptr)));
            on.set_up(result, "cudaMemsetAsync");
        }
    }
    cuda_memory(cuda_memory const&) = delete;
    cuda_memory& operator=(cuda_memory const&) = delete;
    ~cuda_memory() {
        if (data_ == nullptr || on_.stuck()) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaFree(data_));
    }
    std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
    /// Leaks the memory until the process ends.
    void leave() noexcept { data_ = nullptr; }

  private:
    static constexpr std::size_t block = std::size_t{2} << 20;
    cuda_device& on_;
    void* data_ = nullptr;
};

/// Page-locked host memory that devices can access.
class cuda_pinned {
  public:
    HERRING_SETUP cuda_pinned(cuda_device& on, std::span<std::byte> pages) : on_(on), pages_(pages) {
        detail::current_device const current(on.number());
        on.set_up(
            cudaHostRegister(pages.data(), pages.size(), cudaHostRegisterPortable | cudaHostRegisterMapped),
            "cudaHostRegister", pages.size(),
            "use smaller buckets or fewer slots, or raise the limit of locked memory (ulimit -l)");
        void* seen = nullptr;
        cudaError_t const result = cudaHostGetDevicePointer(&seen, pages.data(), 0);
        if (result != cudaSuccess) {
            detail::quietly(cudaHostUnregister(pages_.data()));
            on.set_up(result, "cudaHostGetDevicePointer");
        }
        seen_ = static_cast<std::byte*>(seen);
    }
    cuda_pinned(cuda_pinned const&) = delete;
    cuda_pinned& operator=(cuda_pinned const&) = delete;
    ~cuda_pinned() {
        if (on_.stuck()) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaHostUnregister(pages_.data()));
    }
    std::byte* on_device(std::byte* place) const noexcept { return seen_ + (place - pages_.data()); }

  private:
    cuda_device& on_;
    std::span<std::byte> pages_;
    std::byte* seen_ = nullptr;
};

/// A stream of high priority. The destructor waits for its work, or leaks the stream (see
/// `cuda_device::ended`).
class cuda_stream {
  public:
    HERRING_SETUP explicit cuda_stream(cuda_device& on) : on_(on) {
        detail::current_device const current(on.number());
        // Higher priority than the program's own kernels, because other ranks wait for this work.
        int least = 0, most = 0;
        on.set_up(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
        on.set_up(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, most), "cudaStreamCreate");
    }
    cuda_stream(cuda_stream const&) = delete;
    cuda_stream& operator=(cuda_stream const&) = delete;
    ~cuda_stream() {
        // Its work uses memory that is released next.
        if (!on_.ended([this] { return cudaStreamQuery(handle_); })) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaStreamDestroy(handle_));
    }
    cudaStream_t handle() const noexcept { return handle_; }

  private:
    cuda_device& on_;
    cudaStream_t handle_ = nullptr;
};

class cuda_event {
  public:
    /// `shared`: ranks of other processes wait for the event.
    HERRING_SETUP cuda_event(cuda_device& on, bool shared) {
        detail::current_device const current(on.number());
        unsigned const flags = cudaEventDisableTiming | (shared ? cudaEventInterprocess : 0u);
        on.set_up(cudaEventCreateWithFlags(&handle_, flags), "cudaEventCreate");
    }
    cuda_event(cuda_event&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    cuda_event& operator=(cuda_event&&) = delete;
    ~cuda_event() {
        if (handle_ != nullptr) detail::quietly(cudaEventDestroy(handle_));
    }
    cudaEvent_t handle() const noexcept { return handle_; }
    /// Leaks the event until the process ends.
    void leave() noexcept { handle_ = nullptr; }

  protected:
    explicit cuda_event(cudaEvent_t handle) noexcept : handle_(handle) {}
    cudaEvent_t release() noexcept { return std::exchange(handle_, nullptr); }

  private:
    cudaEvent_t handle_ = nullptr;
};

/// Lists of copies: in page-locked memory, for writing, and on the device, for the kernel.
class cuda_batch {
  public:
    HERRING_SETUP cuda_batch(cuda_device& on, std::size_t copies)
        : on_(on), device_(on, copies * sizeof(listed_copy)), written_(copies) {
        if (copies == 0) return;
        detail::current_device const current(on.number());
        void* list = nullptr;
        on.set_up(cudaHostAlloc(&list, copies * sizeof(listed_copy), cudaHostAllocPortable), "cudaHostAlloc",
                  copies * sizeof(listed_copy), "raise the limit of locked memory (ulimit -l)");
        host_ = static_cast<listed_copy*>(list);
        for (std::size_t i = 0; i < copies; ++i) host_[i] = {};
    }
    cuda_batch(cuda_batch const&) = delete;
    cuda_batch& operator=(cuda_batch const&) = delete;
    ~cuda_batch() {
        if (host_ == nullptr || on_.stuck()) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaFreeHost(host_));
    }
    /// Leaks the lists until the process ends.
    void leave() noexcept {
        host_ = nullptr;
        device_.leave();
    }

  private:
    friend class cuda_runtime;
    listed_copy* on_device(std::size_t at) const noexcept {
        return reinterpret_cast<listed_copy*>(device_.data()) + at;
    }

    cuda_device& on_;
    cuda_memory device_;
    listed_copy* host_ = nullptr;
    herring::detail::fixed_array<std::size_t> written_; // index in the list → entries not on the device yet
};

/// Findings of inspections: on the device, and a copy for the host.
class cuda_counter {
  public:
    HERRING_SETUP explicit cuda_counter(cuda_device& on) : on_(on), device_(on, sizeof(inspection_scratch)) {
        detail::current_device const current(on.number());
        on.set_up(cudaHostAlloc(&seen_, sizeof(inspection_result), cudaHostAllocPortable), "cudaHostAlloc",
                  sizeof(inspection_result), "raise the limit of locked memory (ulimit -l)");
        *static_cast<inspection_result*>(seen_) = {};
    }
    cuda_counter(cuda_counter const&) = delete;
    cuda_counter& operator=(cuda_counter const&) = delete;
    ~cuda_counter() {
        if (on_.stuck()) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaFreeHost(seen_));
    }
    inspection_result value() const noexcept {
        auto const& now = *static_cast<inspection_result const volatile*>(seen_);
        return {now.not_finite, now.squares};
    }

  private:
    friend class cuda_runtime;
    cuda_device& on_;
    cuda_memory device_;
    void* seen_ = nullptr;
};

/// A captured graph, ready to be launched.
class cuda_graph {
  public:
    cuda_graph() = default;
    cuda_graph(cuda_graph const&) = delete;
    cuda_graph& operator=(cuda_graph const&) = delete;
    ~cuda_graph() { clear(); }

  private:
    friend class cuda_runtime;
    void clear() noexcept {
        if (handle_ != nullptr) detail::quietly(cudaGraphExecDestroy(std::exchange(handle_, nullptr)));
    }
    cudaGraphExec_t handle_ = nullptr;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_CUDA_CUDA_OBJECTS_CUH
