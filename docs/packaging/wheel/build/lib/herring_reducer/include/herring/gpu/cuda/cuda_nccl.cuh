// herring: the model of `nccl_policy`: one non-blocking communicator of NCCL's library.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_CUDA_NCCL_CUH
#define HERRING_GPU_CUDA_CUDA_NCCL_CUH

#include "herring/base/config.hpp"
#include "herring/gpu/cuda/cuda_device.cuh"
#include "herring/gpu/cuda/cuda_runtime.cuh"
#include "herring/gpu/nccl.hpp"
#include "herring/model/element.hpp"

#include <cstddef>
#include <cstdio>
#include <span>
#include <type_traits>
#include <utility>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace HERRING_NAMESPACE::gpu {

static_assert(NCCL_VERSION_CODE >= 21400, "herring::intra_node::nccl needs NCCL 2.14 or later: communicators "
                                          "that do not block");

namespace detail {

/// Returns NCCL's name of an element type; all types of devices have one.
template <class Element> constexpr ncclDataType_t nccl_type() noexcept {
    switch (element<Element>::id) {
    case type_id::float32:
        return ncclFloat32;
    case type_id::float64:
        return ncclFloat64;
    case type_id::int32:
        return ncclInt32;
    case type_id::int64:
        return ncclInt64;
    case type_id::uint32:
        return ncclUint32;
    case type_id::uint64:
        return ncclUint64;
    case type_id::bfloat16:
        return ncclBfloat16;
    case type_id::float16:
        return ncclFloat16;
    default:
        break;
    }
    return ncclNumTypes; // need::elements_of_devices has refused it
}

constexpr ncclRedOp_t nccl_operation(reduction by) noexcept {
    return by == reduction::average   ? ncclAvg
           : by == reduction::min     ? ncclMin
           : by == reduction::max     ? ncclMax
           : by == reduction::product ? ncclProd
                                      : ncclSum;
}

} // namespace detail

/// A communicator of NCCL on a rank's device. See nccl_policy.
///
/// Threads: one at a time.
/// Source:  NCCL's user guide, "Creating a communicator with options" and "Error handling and communicator
///          abort".
class cuda_nccl {
  public:
    using unique_id = ncclUniqueId;

    explicit cuda_nccl(cuda_runtime& on) : on_(on) {}
    cuda_nccl(cuda_nccl const&) = delete;
    cuda_nccl& operator=(cuda_nccl const&) = delete;
    ~cuda_nccl() { abort(); }

    /// The PCI bus id, by which NCCL, too, identifies devices.
    std::span<std::byte const> device() const noexcept { return std::as_bytes(std::span(&on_.bus(), 1)); }

    HERRING_SETUP call_state make_id(ncclUniqueId& id) noexcept {
        return here("ncclGetUniqueId", [&] { return ncclGetUniqueId(&id); });
    }
    HERRING_SETUP call_state join(ncclUniqueId const& id, int ranks, int rank) noexcept {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = 0;
        rank_ = rank;
        return here("ncclCommInitRankConfig",
                    [&] { return ncclCommInitRankConfig(&communicator_, ranks, id, rank, &config); });
    }
    call_state state() noexcept {
        if (communicator_ == nullptr || failed_) return failed_ ? call_state::failed : call_state::done;
        ncclResult_t now = ncclSuccess;
        if (ncclResult_t const result = ncclCommGetAsyncError(communicator_, &now); result != ncclSuccess)
            return seen(result, "ncclCommGetAsyncError");
        return seen(now, call_);
    }
    char const* why() const noexcept { return why_; }

    void begin() noexcept {
        (void)here("ncclGroupStart", [] { return ncclGroupStart(); });
    }
    template <class Element>
    void all_reduce(reduction by, std::byte* at, std::size_t count, cudaStream_t in) noexcept {
        (void)here("ncclAllReduce", [&] {
            return ncclAllReduce(at, at, count, detail::nccl_type<Element>(), detail::nccl_operation(by),
                                 communicator_, in);
        });
    }
    template <class Element>
    void reduce_scatter(reduction by, std::byte* at, std::size_t count, cudaStream_t in) noexcept {
        (void)here("ncclReduceScatter", [&] {
            return ncclReduceScatter(at, at + own_part(count, sizeof(Element)), count,
                                     detail::nccl_type<Element>(), detail::nccl_operation(by), communicator_,
                                     in);
        });
    }
    template <class Element> void all_gather(std::byte* at, std::size_t count, cudaStream_t in) noexcept {
        (void)here("ncclAllGather", [&] {
            return ncclAllGather(at + own_part(count, sizeof(Element)), at, count,
                                 detail::nccl_type<Element>(), communicator_, in);
        });
    }
    // Called after an error too: NCCL counts begins and ends.
    call_state end() noexcept {
        detail::current_device const current(on_.number(), on_.elsewhere());
        ncclResult_t const result = ncclGroupEnd();
        return failed_ ? call_state::failed : seen(result, call_);
    }

    HERRING_SETUP call_state finish() noexcept {
        if (communicator_ == nullptr) return call_state::done;
        return here("ncclCommFinalize", [&] { return ncclCommFinalize(communicator_); });
    }
    HERRING_SETUP void close() noexcept { let_go(ncclCommDestroy); }
    HERRING_SETUP void abort() noexcept { let_go(ncclCommAbort); }

  private:
    std::size_t own_part(std::size_t count, std::size_t element_bytes) const noexcept {
        return static_cast<std::size_t>(rank_) * count * element_bytes;
    }
    // Makes a call, unless one has failed.
    template <class Call> call_state here(char const* call, Call&& calling) noexcept {
        if (failed_) return call_state::failed;
        call_ = call;
        detail::current_device const current(on_.number(), on_.elsewhere());
        return seen(calling(), call);
    }
    call_state seen(ncclResult_t result, char const* call) noexcept {
        if (result == ncclSuccess) return call_state::done;
        if (result == ncclInProgress) return call_state::under_way;
        failed_ = true;
        std::snprintf(why_, sizeof why_, "%s: %s", call, ncclGetErrorString(result));
        return call_state::failed;
    }
    HERRING_SETUP void let_go(ncclResult_t (*ending)(ncclComm_t)) noexcept {
        ncclComm_t const ended = std::exchange(communicator_, nullptr);
        if (ended == nullptr) return;
        detail::current_device const current(on_.number(), on_.elsewhere());
        (void)ending(ended);
    }

    cuda_runtime& on_;
    ncclComm_t communicator_ = nullptr;
    int rank_ = 0;
    bool failed_ = false;
    char const* call_ = "";
    char why_[160] = "";
};
static_assert(nccl_policy<cuda_nccl, cuda_runtime>);

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_CUDA_CUDA_NCCL_CUH
