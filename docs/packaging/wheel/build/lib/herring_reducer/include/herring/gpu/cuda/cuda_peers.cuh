// herring: device memory and events that ranks of a node share: between threads, or by CUDA IPC.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_CUDA_PEERS_CUH
#define HERRING_GPU_CUDA_CUDA_PEERS_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_objects.cuh"
#include "herring/gpu/node_devices.hpp"

#include <cstring>
#include <utility>

#include <cuda.h> // types only: see pointer_attributes
#include <cuda_runtime_api.h>

namespace HERRING_NAMESPACE::gpu {

/// Handles of device memory and of an event, for other ranks of the node.
struct exported_cuda_memory {
    detail::process_mark process;
    detail::bus_name bus;
    int device;
    void* data;
    cudaError_t shareable;
    cudaIpcMemHandle_t handle;
    std::uint64_t id = 0; ///< number of an allocation of the program
    std::byte* first() const noexcept { return static_cast<std::byte*>(data); }
};
struct exported_cuda_event {
    detail::process_mark process;
    cudaEvent_t event;
    cudaError_t shareable;
    cudaIpcEventHandle_t handle;
};
HERRING_SETUP inline exported_cuda_memory exported(cuda_device const& on, cuda_memory const& own) noexcept {
    exported_cuda_memory result{
        detail::process_mark::mine(), on.bus(), on.number(), own.data(), cudaSuccess, {}};
    detail::current_device const current(on.number());
    if (own.data() != nullptr) result.shareable = cudaIpcGetMemHandle(&result.handle, own.data());
    if (result.shareable != cudaSuccess) (void)cudaGetLastError(); // threads of a process need no handle
    return result;
}
HERRING_SETUP inline exported_cuda_event exported(cuda_device const& on, cuda_event const& own) noexcept {
    exported_cuda_event result{detail::process_mark::mine(), own.handle(), cudaSuccess, {}};
    detail::current_device const current(on.number());
    result.shareable = cudaIpcGetEventHandle(&result.handle, own.handle());
    if (result.shareable != cudaSuccess) (void)cudaGetLastError();
    return result;
}

namespace detail {

/// Returns the driver's function for attributes of an address, or nullptr. It is found at the first call, so
/// that the program need not link the driver.
using ask_driver = CUresult(CUDAAPI*)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);
inline ask_driver pointer_attributes() noexcept {
    static ask_driver const found = [] {
        void* at = nullptr;
        cudaDriverEntryPointQueryResult how{};
        if (cudaGetDriverEntryPointByVersion("cuPointerGetAttributes", &at, 12000, cudaEnableDefault, &how) !=
                cudaSuccess ||
            how != cudaDriverEntryPointSuccess) {
            (void)cudaGetLastError();
            return ask_driver{};
        }
        return reinterpret_cast<ask_driver>(at);
    }();
    return found;
}

} // namespace detail

/// Returns the export of the program's allocation that holds `place`. It is not `shareable` if it is not of
/// cudaMalloc, or if the driver is too old to tell.
inline exported_cuda_memory lent(cuda_device const& on, std::byte* place) noexcept {
    exported_cuda_memory result{detail::process_mark::mine(), on.bus(), on.number(), place,
                                cudaErrorNotSupported,        {}};
    detail::ask_driver const ask = detail::pointer_attributes();
    if (ask == nullptr) return result;
    unsigned openable = 0;
    CUdeviceptr first = 0;
    unsigned long long id = 0;
    CUpointer_attribute facts[] = {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_BUFFER_ID};
    void* values[] = {&openable, &first, &id};
    detail::current_device const current(on.number(), on.elsewhere());
    if (ask(3, facts, values, reinterpret_cast<CUdeviceptr>(place)) != CUDA_SUCCESS || openable == 0)
        return result;
    result.data = reinterpret_cast<void*>(first);
    result.id = id;
    result.shareable = cudaIpcGetMemHandle(&result.handle, result.data);
    if (result.shareable != cudaSuccess) (void)cudaGetLastError();
    return result;
}

namespace detail {

HERRING_SETUP inline void import(cuda_device const& on, cudaError_t result, char const* call, int peer) {
    if (result == cudaSuccess) return;
    (void)cudaGetLastError();
    throw error(
        cuda_failure(on.rank(), on.number(), result, call, 0,
                     "processes must see each other's devices (CUDA_VISIBLE_DEVICES) and share an IPC "
                     "namespace; else use intra_node::pcie_staging",
                     "construction", peer));
}

/// Enables access to the device of rank `peer`; throws if there is none.
HERRING_SETUP inline void enable_peer_access(cuda_device const& on, exported_cuda_memory const& of,
                                             int peer) {
    if (std::memcmp(of.bus.text, on.bus().text, sizeof on.bus().text) == 0) return;
    device_of_rank const own{on.rank(), on.number(), on.bus().text};
    int other = -1;
    if (cudaDeviceGetByPCIBusId(&other, of.bus.text) != cudaSuccess) {
        (void)cudaGetLastError();
        throw error(peer_access_error(own, {peer, -1, of.bus.text}));
    }
    int reaches = 0;
    on.set_up(cudaDeviceCanAccessPeer(&reaches, on.number(), other), "cudaDeviceCanAccessPeer");
    if (reaches == 0) throw error(peer_access_error(own, {peer, other, of.bus.text}));
    if (!(of.process == detail::process_mark::mine())) return;
    detail::current_device const current(on.number());
    cudaError_t const enabled = cudaDeviceEnablePeerAccess(other, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled)
        (void)cudaGetLastError();
    else
        on.set_up(enabled, "cudaDeviceEnablePeerAccess");
}

} // namespace detail

/// Memory of another rank, as this device sees it: opened by IPC, or, in one process, the same pointer.
class imported_cuda_memory {
  public:
    HERRING_SETUP imported_cuda_memory(cuda_device& on, exported_cuda_memory const& of, int peer) : on_(on) {
        detail::enable_peer_access(on, of, peer);
        if (of.data == nullptr) return;
        detail::current_device const current(on.number());
        if (of.process == detail::process_mark::mine()) {
            data_ = of.data;
            return;
        }
        detail::import(on, of.shareable, "cudaIpcGetMemHandle", peer);
        detail::import(on, cudaIpcOpenMemHandle(&data_, of.handle, cudaIpcMemLazyEnablePeerAccess),
                       "cudaIpcOpenMemHandle", peer);
        opened_ = true;
    }
    imported_cuda_memory(imported_cuda_memory&& other) noexcept
        : on_(other.on_), data_(std::exchange(other.data_, nullptr)),
          opened_(std::exchange(other.opened_, false)) {}
    imported_cuda_memory& operator=(imported_cuda_memory&&) = delete;
    ~imported_cuda_memory() {
        if (!opened_ || on_.stuck()) return;
        detail::current_device const current(on_.number());
        detail::quietly(cudaIpcCloseMemHandle(data_));
    }
    std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

  private:
    cuda_device& on_;
    void* data_ = nullptr;
    bool opened_ = false;
};

class imported_cuda_event : public cuda_event {
  public:
    HERRING_SETUP imported_cuda_event(cuda_device& on, exported_cuda_event const& of, int peer)
        : cuda_event(opened(on, of, peer)), owned_(!(of.process == detail::process_mark::mine())) {}
    imported_cuda_event(imported_cuda_event&& other) noexcept
        : cuda_event(std::move(other)), owned_(other.owned_) {}
    imported_cuda_event& operator=(imported_cuda_event&&) = delete;
    ~imported_cuda_event() {
        if (!owned_) (void)release(); // a rank of this process owns it
    }

  private:
    static cudaEvent_t opened(cuda_device& on, exported_cuda_event const& of, int peer) {
        if (of.process == detail::process_mark::mine()) return of.event;
        detail::current_device const current(on.number());
        detail::import(on, of.shareable, "cudaIpcGetEventHandle", peer);
        cudaEvent_t event = nullptr;
        detail::import(on, cudaIpcOpenEventHandle(&event, of.handle), "cudaIpcOpenEventHandle", peer);
        return event;
    }
    bool owned_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_CUDA_CUDA_PEERS_CUH
