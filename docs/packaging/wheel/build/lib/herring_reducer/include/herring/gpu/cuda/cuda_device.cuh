// herring: a rank's CUDA device: its choice, and its errors.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_CUDA_DEVICE_CUH
#define HERRING_GPU_CUDA_CUDA_DEVICE_CUH

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/gpu/node_devices.hpp"
#include "herring/machine/time.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <mutex>
#include <span>

#include <pthread.h>

#include <cuda_runtime_api.h>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// True if a call succeeded. Clears its error, which the program must not read.
inline bool quietly(cudaError_t result) noexcept {
    if (result != cudaSuccess) (void)cudaGetLastError();
    return result == cudaSuccess;
}

/// Makes a device current and, unless it `stays`, restores the previous one in the destructor. Meanwhile
/// calls are allowed that the capture of a graph forbids to this thread or to all threads: no such call uses
/// a captured stream.
class current_device {
  public:
    explicit current_device(int wanted, bool stays = false) noexcept {
        if (!quietly(cudaGetDevice(&before_))) before_ = wanted;
        if (before_ != wanted) quietly(cudaSetDevice(wanted));
        changed_ = before_ != wanted && !stays;
        exchanged_ = quietly(cudaThreadExchangeStreamCaptureMode(&mode_));
    }
    current_device(current_device const&) = delete;
    current_device& operator=(current_device const&) = delete;
    ~current_device() {
        if (exchanged_) quietly(cudaThreadExchangeStreamCaptureMode(&mode_));
        if (changed_) quietly(cudaSetDevice(before_));
    }

  private:
    int before_ = 0;
    bool changed_ = false;
    bool exchanged_ = false;
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed; // after the exchange: the previous mode
};

/// True if the error is asynchronous: of an earlier kernel, Herring's or the program's, of the memory of
/// another device, or of the link to it; not of the call that returned it.
inline bool of_earlier_work(cudaError_t what) noexcept {
    switch (what) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorMpsClientTerminated:
        return true;
    default:
        return false;
    }
}

/// PCI bus id of a device; the same in all processes.
struct bus_name {
    char text[16] = {};
};

/// Returns the failure of a CUDA call on `device`. `bytes`: size of the request, or 0.
HERRING_SETUP inline failure cuda_failure(int rank, int device, cudaError_t result, char const* call,
                                          std::size_t bytes = 0, char const* advice = nullptr,
                                          char const* operation = "construction", int peer = -1) noexcept {
    errc what = result == cudaErrorMemoryAllocation ? errc::no_resources : errc::device;
    if (of_earlier_work(result))
        advice =
            "it came up now, but is of a kernel or copy that ran before, of the program's own most "
            "likely: run the program under compute-sanitizer; or of another device of the node, or the link "
            "to it: look for Xid in dmesg";
    if (result == cudaErrorInitializationError) {
        what = errc::bad_state;
        advice =
            "this process was forked, by herring::launch or the program, after CUDA had been used in its "
            "parent, which CUDA does not allow: call launch before anything of CUDA's, or use "
            "launch_threads";
    }
    char text[sizeof(failure::text)];
    int used = std::snprintf(text, sizeof text, "device %d: %s", device, call);
    auto const left = [&] { return sizeof text - static_cast<std::size_t>(used); };
    if (bytes > 0) used += std::snprintf(text + used, left(), " of %zu bytes", bytes);
    std::snprintf(text + used, left(), ": %s (%s)%s%s", cudaGetErrorString(result), cudaGetErrorName(result),
                  advice != nullptr ? "; " : "", advice != nullptr ? advice : "");
    return failure::make(what, rank, peer, operation, text);
}

} // namespace detail

/// Assigns devices to local ranks round-robin, and makes this rank's device current. To be called before any
/// other CUDA call in the process or thread of the rank. Returns the device's number.
///
/// Errors: `unsupported` if there is no device, with the driver's reason; `bad_state` in a process that was
///         forked after CUDA had been used; `device`.
HERRING_SETUP inline int use_device(world& ranks) {
    int count = 0;
    cudaError_t const result = cudaGetDeviceCount(&count);
    if (!detail::quietly(result) || count == 0)
        throw error(errc::unsupported, ranks.rank(), -1, "use_device",
                    {"no CUDA device: cudaGetDeviceCount: ",
                     result == cudaSuccess ? "there is none" : cudaGetErrorString(result),
                     "; look at nvidia-smi and CUDA_VISIBLE_DEVICES, and let no process fork after its first "
                     "call of CUDA"});
    int const device = ranks.local_rank() % count;
    if (cudaError_t const set = cudaSetDevice(device); !detail::quietly(set))
        throw error(
            detail::cuda_failure(ranks.rank(), device, set, "cudaSetDevice", 0, nullptr, "use_device"));
    return device;
}

/// The device that is current in the constructing thread, and the first error of a call on it.
///
/// Errors: name the rank, the device and the call. The text of an asynchronous error says that it is of
///         earlier work.
class cuda_device {
  public:
    /// Takes the current device; warns on stderr, once per device, if local ranks share it. Collective.
    HERRING_SETUP explicit cuda_device(world& ranks) : ranks_(ranks), rank_(ranks.rank()) {
        int count = 0;
        cudaError_t const result = cudaGetDeviceCount(&count);
        if (!detail::quietly(result) || count == 0)
            throw error(errc::unsupported, rank_, -1, "construction",
                        {"no CUDA device: cudaGetDeviceCount: ",
                         result == cudaSuccess ? "there is none" : cudaGetErrorString(result),
                         "; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use intra_node::shared_memory"});
        set_up(cudaGetDevice(&number_), "cudaGetDevice");
        set_up(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, number_),
               "cudaDeviceGetAttribute");
        set_up(cudaDeviceGetPCIBusId(bus_.text, sizeof bus_.text, number_), "cudaDeviceGetPCIBusId");
        (void)warn_if_shared(ranks, std::as_bytes(std::span(&bus_, 1)), number_, bus_.text);
    }
    cuda_device(cuda_device const&) = delete;
    cuda_device& operator=(cuda_device const&) = delete;

    int rank() const noexcept { return rank_; }
    int number() const noexcept { return number_; }
    int processors() const noexcept { return processors_; }
    detail::bus_name const& bus() const noexcept { return bus_; }

    /// Returns the first failure, or nullptr.
    failure const* failed() const noexcept {
        return failing_.load(std::memory_order_acquire) ? &why_ : nullptr;
    }

    /// Makes a CUDA call with the device current, and keeps its error. Does nothing after an error.
    template <class Call> void checked(char const* call, Call&& calling) noexcept {
        if (failed() != nullptr) return;
        detail::current_device const current(number_, elsewhere());
        if (cudaError_t const result = calling(); result != cudaSuccess) keep(result, call);
    }
    HERRING_SETUP void keep(cudaError_t result, char const* call, char const* advice = nullptr) noexcept {
        if (!detail::of_earlier_work(result)) (void)cudaGetLastError(); // as in `set_up`
        failure const* const of_world = ranks_.failed(); // a possible cause: memory of a dead rank is gone
        keep(of_world != nullptr && detail::of_earlier_work(result)
                 ? *of_world
                 : detail::cuda_failure(rank_, number_, result, call, 0, advice, "reduce"));
    }
    HERRING_SETUP void keep(failure const& why) noexcept {
        std::lock_guard const lock(guard_);
        if (failed() != nullptr) return;
        why_ = why;
        failing_.store(true, std::memory_order_release);
    }
    /// Throws the error of a call, if it failed. For constructors.
    HERRING_SETUP void set_up(cudaError_t result, char const* call, std::size_t bytes = 0,
                              char const* advice = nullptr) const {
        if (result == cudaSuccess) return;
        if (!detail::of_earlier_work(result))
            (void)cudaGetLastError(); // thrown below; the next call must not report it
        throw error(detail::cuda_failure(rank_, number_, result, call, bytes, advice));
    }

    /// Returns the text of an error that the program has not read in this thread, or nullptr. Two codes are
    /// answers that CUDA may keep like errors, and an asynchronous error is left to the next call: nullptr.
    ///
    /// Lifetime: until the next call of `unread`.
    char const* unread() noexcept {
        cudaError_t const left = cudaPeekAtLastError();
        if (left == cudaSuccess || left == cudaErrorNotReady || left == cudaErrorPeerAccessAlreadyEnabled ||
            detail::of_earlier_work(left)) [[likely]]
            return nullptr;
        std::snprintf(
            unread_, sizeof unread_,
            "a call or launch of the program's in this thread has failed (%s), and the program has "
            "not read that: look at cudaGetLastError() behind calls and launches. Nothing was done; "
            "call again once the error is read",
            cudaGetErrorName(left));
        return unread_;
    }

    /// Queries until the work has ended, for at most 30 s, or 2 s after a failure of the world or the device,
    /// because work that waits for a dead peer may never end. For destructors. After a timeout it returns
    /// false, and from then on at once: all destructors leak memory, streams and pinned pages that the work
    /// may access until the process ends.
    template <class Query> HERRING_SETUP bool ended(Query&& query) noexcept {
        detail::current_device const current(number_);
        for (auto const since = clock::now();;) {
            if (query() != cudaErrorNotReady)
                return true; // ended, or the context is broken and nothing runs in it
            if (cudaPeekAtLastError() == cudaErrorNotReady) (void)cudaGetLastError();
            if (stuck()) return false;
            bool const hopeless = failed() != nullptr || ranks_.failed() != nullptr;
            if (clock::now() - since >= std::chrono::seconds(hopeless ? 2 : 30)) break;
            herring::detail::sleep_for(std::chrono::microseconds(50));
        }
        std::fprintf(
            stderr,
            "herring: rank %d: device %d: what is in its streams does not end (it may wait for a peer "
            "that died, or for the program's own stream): its memory, streams and pinned pages are "
            "left to the end of the process\n",
            rank_, number_);
        stuck_.store(true, std::memory_order_release);
        return false;
    }
    /// True if work did not end in time, and its memory is leaked.
    bool stuck() const noexcept { return stuck_.load(std::memory_order_acquire); }

    // True outside the constructing thread. There the device stays current: restoring the previous device
    // would create a context on it.
    bool elsewhere() const noexcept { return ::pthread_equal(::pthread_self(), constructed_in_) == 0; }

  private:
    world& ranks_;
    int rank_;
    pthread_t constructed_in_ = ::pthread_self();
    int number_ = 0;
    int processors_ = 1;
    detail::bus_name bus_{};
    std::mutex guard_;
    std::atomic<bool> failing_{false};
    std::atomic<bool> stuck_{false};
    failure why_{};
    char unread_[sizeof(failure::text)] = {};
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_CUDA_CUDA_DEVICE_CUH
