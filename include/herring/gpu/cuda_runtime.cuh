// herring: the runtime of CUDA devices: every call checked, everything released by its owner.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_CUDA_RUNTIME_CUH
#define HERRING_GPU_CUDA_RUNTIME_CUH

#include "herring/detail/identity.hpp"
#include "herring/gpu/kernels.cuh"
#include "herring/gpu/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <utility>

#include <pthread.h>
#include <unistd.h>

#include <cub/device/device_memcpy.cuh>
#include <cuda_runtime_api.h>

namespace herring::gpu {

namespace detail {

/// Makes a device current and, unless it is to stay so, afterwards what was current before.
class current_device {
  public:
    explicit current_device(int wanted, bool stays = false) noexcept {
        if (cudaGetDevice(&before_) != cudaSuccess) before_ = wanted;
        if (before_ != wanted) (void)cudaSetDevice(wanted);
        changed_ = before_ != wanted && !stays;
    }
    current_device(current_device const&) = delete;
    current_device& operator=(current_device const&) = delete;
    ~current_device() {
        if (changed_) (void)cudaSetDevice(before_);
    }

  private:
    int before_ = 0;
    bool changed_ = false;
};

/// Errors that come up late, in whatever call is next: of a kernel that ran before it, whoever's that was.
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
        return true;
    default:
        return false;
    }
}

/// Tells processes apart, also of other containers.
struct process_mark {
    long id;
    std::uint64_t token;
    static process_mark mine() noexcept {
        static std::uint64_t const token = herring::detail::random_bits();
        return {static_cast<long>(::getpid()), token};
    }
    friend bool operator==(process_mark const&, process_mark const&) = default;
};

/// A device's name that is the same in all processes.
struct bus_name {
    char text[16] = {};
};

} // namespace detail

/// Gives each local rank a device, by turns, and makes it current. To be called before anything else of CUDA, in the
/// process or thread of the rank. Returns the device's number.
///
/// Errors: `unsupported` where there is no device, naming the driver's reason.
HERRING_SETUP inline int use_device(world& ranks) {
    int count = 0;
    cudaError_t const result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess || count == 0)
        throw error(errc::unsupported, ranks.rank(), -1, "use_device",
                    {"no CUDA device: cudaGetDeviceCount: ",
                     result == cudaSuccess ? "there is none" : cudaGetErrorString(result),
                     "; look at nvidia-smi and CUDA_VISIBLE_DEVICES, and let no process fork after its first "
                     "call of CUDA"});
    int const device = ranks.local_rank() % count;
    if (cudaError_t const set = cudaSetDevice(device); set != cudaSuccess)
        throw error(errc::device, ranks.rank(), -1, "use_device",
                    {"device ", device, ": cudaSetDevice: ", cudaGetErrorString(set)});
    return device;
}

/// The device that is current in the thread that makes it. See runtime_policy.
///
/// Errors name the rank, the device and the call. One that a kernel left behind which ran before is said to be that.
class cuda_runtime {
  public:
    static constexpr char const* name = "cuda_runtime";
    using stream_handle = cudaStream_t;

    /// Collective. Says so, once a device, on stderr, when local ranks share it.
    HERRING_SETUP explicit cuda_runtime(world& ranks) : rank_(ranks.rank()) {
        int count = 0;
        cudaError_t const result = cudaGetDeviceCount(&count);
        if (result != cudaSuccess || count == 0)
            throw error(errc::unsupported, rank_, -1, "construction",
                        {"no CUDA device: cudaGetDeviceCount: ",
                         result == cudaSuccess ? "there is none" : cudaGetErrorString(result),
                         "; look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use intra_node::shared_memory"});
        set_up(cudaGetDevice(&device_), "cudaGetDevice");
        set_up(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device_),
               "cudaDeviceGetAttribute");
        set_up(cudaDeviceGetPCIBusId(bus_.text, sizeof bus_.text, device_), "cudaDeviceGetPCIBusId");
        tell_if_shared(ranks);
    }
    cuda_runtime(cuda_runtime const&) = delete;
    cuda_runtime& operator=(cuda_runtime const&) = delete;

    int device() const noexcept { return device_; }

    // ---- what is owned ----------------------------------------------------------------------------------------------

    class memory {
      public:
        HERRING_SETUP memory(cuda_runtime& on, std::size_t bytes) : device_(on.device_) {
            if (bytes == 0) return;
            detail::current_device const current(device_);
            // In whole blocks of the driver's, for a block is shared with another process as a whole.
            std::size_t const whole = (bytes + block - 1) / block * block;
            on.set_up(cudaMalloc(&data_, whole), "cudaMalloc", whole,
                      "use a smaller layout, or free memory of the device");
            cudaError_t result = cudaMemset(data_, 0, whole);
            if (result == cudaSuccess) result = cudaStreamSynchronize(cudaStreamLegacy);
            if (result != cudaSuccess) {
                (void)cudaFree(std::exchange(data_, nullptr));
                on.set_up(result, "cudaMemset");
            }
        }
        memory(memory const&) = delete;
        memory& operator=(memory const&) = delete;
        ~memory() {
            if (data_ == nullptr) return;
            detail::current_device const current(device_);
            (void)cudaFree(data_);
        }
        std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }
        /// It is not freed before the process ends.
        void leave() noexcept { data_ = nullptr; }

      private:
        static constexpr std::size_t block = std::size_t{2} << 20;
        int device_;
        void* data_ = nullptr;
    };

    class pinned {
      public:
        HERRING_SETUP pinned(cuda_runtime& on, std::span<std::byte> pages)
            : device_(on.device_), pages_(pages) {
            detail::current_device const current(device_);
            on.set_up(cudaHostRegister(pages.data(), pages.size(),
                                       cudaHostRegisterPortable | cudaHostRegisterMapped),
                      "cudaHostRegister", pages.size(),
                      "use smaller buckets or fewer slots, or raise the limit of locked memory (ulimit -l)");
            void* seen = nullptr;
            cudaError_t const result = cudaHostGetDevicePointer(&seen, pages.data(), 0);
            if (result != cudaSuccess) {
                (void)cudaHostUnregister(pages_.data());
                on.set_up(result, "cudaHostGetDevicePointer");
            }
            seen_ = static_cast<std::byte*>(seen);
        }
        pinned(pinned const&) = delete;
        pinned& operator=(pinned const&) = delete;
        ~pinned() {
            detail::current_device const current(device_);
            (void)cudaHostUnregister(pages_.data());
        }
        std::byte* on_device(std::byte* place) const noexcept { return seen_ + (place - pages_.data()); }

      private:
        int device_;
        std::span<std::byte> pages_;
        std::byte* seen_ = nullptr;
    };

    class stream {
      public:
        HERRING_SETUP explicit stream(cuda_runtime& on) : device_(on.device_) {
            detail::current_device const current(device_);
            // Before the program's own kernels where both are due: other ranks wait for what is in it.
            int least = 0, most = 0;
            on.set_up(cudaDeviceGetStreamPriorityRange(&least, &most), "cudaDeviceGetStreamPriorityRange");
            on.set_up(cudaStreamCreateWithPriority(&made_, cudaStreamNonBlocking, most), "cudaStreamCreate");
        }
        stream(stream const&) = delete;
        stream& operator=(stream const&) = delete;
        ~stream() {
            detail::current_device const current(device_);
            (void)cudaStreamSynchronize(made_); // what is in it uses what goes next
            (void)cudaStreamDestroy(made_);
        }
        cudaStream_t handle() const noexcept { return made_; }

      private:
        int device_;
        cudaStream_t made_ = nullptr;
    };

    class event {
      public:
        /// `shared`: ranks of other processes wait for it.
        HERRING_SETUP event(cuda_runtime& on, bool shared) {
            detail::current_device const current(on.device_);
            unsigned const flags = cudaEventDisableTiming | (shared ? cudaEventInterprocess : 0u);
            on.set_up(cudaEventCreateWithFlags(&made_, flags), "cudaEventCreate");
        }
        event(event&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
        event& operator=(event&&) = delete;
        ~event() {
            if (made_ != nullptr) (void)cudaEventDestroy(made_);
        }
        cudaEvent_t handle() const noexcept { return made_; }

      protected:
        explicit event(cudaEvent_t made) noexcept : made_(made) {}
        cudaEvent_t release() noexcept { return std::exchange(made_, nullptr); }

      private:
        cudaEvent_t made_ = nullptr;
    };

    /// A list of copies in memory that host and device see, and what `cub::DeviceMemcpy` needs beside it.
    class batch {
      public:
        HERRING_SETUP batch(cuda_runtime& on, std::size_t copies)
            : used_(on, false), temporary_bytes_(needed(on, copies)), temporary_(on, temporary_bytes_) {
            if (copies == 0) return;
            detail::current_device const current(on.device_);
            void* lists = nullptr;
            on.set_up(cudaHostAlloc(&lists, copies * (2 * sizeof(void*) + sizeof(std::size_t)),
                                    cudaHostAllocMapped),
                      "cudaHostAlloc", copies * 24, "raise the limit of locked memory (ulimit -l)");
            to_ = static_cast<void**>(lists);
            from_ = const_cast<void const**>(to_ + copies);
            bytes_ = reinterpret_cast<std::size_t*>(to_ + 2 * copies);
            for (std::size_t i = 0; i < copies; ++i) from_[i] = to_[i] = nullptr, bytes_[i] = 0;
        }
        batch(batch const&) = delete;
        batch& operator=(batch const&) = delete;
        ~batch() {
            if (to_ == nullptr) return;
            (void)cudaEventSynchronize(used_.handle());
            (void)cudaFreeHost(to_);
        }

      private:
        friend class cuda_runtime;
        static std::size_t needed(cuda_runtime& on, std::size_t copies) {
            if (copies == 0) return 0;
            std::size_t bytes = 0;
            on.set_up(cub::DeviceMemcpy::Batched(
                          nullptr, bytes, static_cast<void const**>(nullptr), static_cast<void**>(nullptr),
                          static_cast<std::size_t*>(nullptr), static_cast<std::int64_t>(copies)),
                      "cub::DeviceMemcpy::Batched");
            return bytes;
        }
        bool holds(std::size_t at, std::span<copy_item const> items) const noexcept {
            for (std::size_t i = 0; i < items.size(); ++i)
                if (from_[at + i] != items[i].from || to_[at + i] != items[i].to ||
                    bytes_[at + i] != items[i].bytes)
                    return false;
            return true;
        }

        event used_;
        std::size_t temporary_bytes_;
        memory temporary_;
        void const** from_ = nullptr;
        void** to_ = nullptr;
        std::size_t* bytes_ = nullptr;
    };

    /// A count on the device, and where the host finds it.
    class counter {
      public:
        HERRING_SETUP explicit counter(cuda_runtime& on) : device_(on, sizeof(unsigned long long)) {
            detail::current_device const current(on.device_);
            on.set_up(cudaHostAlloc(&seen_, sizeof(unsigned long long), cudaHostAllocPortable),
                      "cudaHostAlloc", sizeof(unsigned long long),
                      "raise the limit of locked memory (ulimit -l)");
            *static_cast<unsigned long long*>(seen_) = 0;
        }
        counter(counter const&) = delete;
        counter& operator=(counter const&) = delete;
        ~counter() { (void)cudaFreeHost(seen_); }
        std::uint64_t value() const noexcept {
            return *static_cast<unsigned long long const volatile*>(seen_);
        }

      private:
        friend class cuda_runtime;
        memory device_;
        void* seen_ = nullptr;
    };

    // ---- what ranks of a node share ---------------------------------------------------------------------------------

    struct export_of_memory {
        detail::process_mark process;
        detail::bus_name bus;
        int device;
        void* data;
        cudaError_t shareable;
        cudaIpcMemHandle_t handle;
    };
    struct export_of_event {
        detail::process_mark process;
        cudaEvent_t made;
        cudaError_t shareable;
        cudaIpcEventHandle_t handle;
    };
    HERRING_SETUP export_of_memory exported(memory const& own) const noexcept {
        export_of_memory made{detail::process_mark::mine(), bus_, device_, own.data(), cudaSuccess, {}};
        detail::current_device const current(device_);
        if (own.data() != nullptr) made.shareable = cudaIpcGetMemHandle(&made.handle, own.data());
        if (made.shareable != cudaSuccess) (void)cudaGetLastError(); // threads do not need it
        return made;
    }
    HERRING_SETUP export_of_event exported(event const& own) const noexcept {
        export_of_event made{detail::process_mark::mine(), own.handle(), cudaSuccess, {}};
        detail::current_device const current(device_);
        made.shareable = cudaIpcGetEventHandle(&made.handle, own.handle());
        if (made.shareable != cudaSuccess) (void)cudaGetLastError();
        return made;
    }

    class imported_memory {
      public:
        HERRING_SETUP imported_memory(cuda_runtime& on, export_of_memory const& of, int peer)
            : device_(on.device_) {
            on.check_reach(of, peer);
            if (of.data == nullptr) return;
            detail::current_device const current(device_);
            if (of.process == detail::process_mark::mine()) {
                data_ = of.data;
                return;
            }
            on.import(of.shareable, "cudaIpcGetMemHandle", peer);
            on.import(cudaIpcOpenMemHandle(&data_, of.handle, cudaIpcMemLazyEnablePeerAccess),
                      "cudaIpcOpenMemHandle", peer);
            opened_ = true;
        }
        imported_memory(imported_memory&& other) noexcept
            : device_(other.device_), data_(std::exchange(other.data_, nullptr)),
              opened_(std::exchange(other.opened_, false)) {}
        imported_memory& operator=(imported_memory&&) = delete;
        ~imported_memory() {
            if (!opened_) return;
            detail::current_device const current(device_);
            (void)cudaIpcCloseMemHandle(data_);
        }
        std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

      private:
        int device_;
        void* data_ = nullptr;
        bool opened_ = false;
    };

    class imported_event : public event {
      public:
        HERRING_SETUP imported_event(cuda_runtime& on, export_of_event const& of, int peer)
            : event(opened(on, of, peer)), owned_(!(of.process == detail::process_mark::mine())) {}
        imported_event(imported_event&& other) noexcept : event(std::move(other)), owned_(other.owned_) {}
        imported_event& operator=(imported_event&&) = delete;
        ~imported_event() {
            if (!owned_) (void)release(); // of a thread of this process, which destroys it
        }

      private:
        static cudaEvent_t opened(cuda_runtime& on, export_of_event const& of, int peer) {
            if (of.process == detail::process_mark::mine()) return of.made;
            detail::current_device const current(on.device_);
            on.import(of.shareable, "cudaIpcGetEventHandle", peer);
            cudaEvent_t made = nullptr;
            on.import(cudaIpcOpenEventHandle(&made, of.handle), "cudaIpcOpenEventHandle", peer);
            return made;
        }
        bool owned_;
    };

    // ---- what goes into streams -------------------------------------------------------------------------------------

    void record(event& mark, cudaStream_t in) noexcept {
        checked("cudaEventRecord", [&] { return cudaEventRecord(mark.handle(), in); });
    }
    void wait(cudaStream_t in, event& mark) noexcept {
        checked("cudaStreamWaitEvent", [&] { return cudaStreamWaitEvent(in, mark.handle(), 0); });
    }
    bool done(event& mark) noexcept {
        if (failed() != nullptr) return false;
        detail::current_device const current(device_, elsewhere());
        cudaError_t const result = cudaEventQuery(mark.handle());
        if (result == cudaSuccess) return true;
        if (result != cudaErrorNotReady) {
            keep(result, "cudaEventQuery");
            return false;
        }
        if (cudaPeekAtLastError() == cudaErrorNotReady)
            (void)cudaGetLastError(); // no error for the program to find
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
    template <class Update, class T> void fold(cudaStream_t in, fold_work const& work) noexcept {
        checked("launch of a sum", [&] { return fold_on_device<Update, T>(work, in, processors_); });
    }
    void copy_many(cudaStream_t in, batch& many, std::size_t at, std::span<copy_item const> items) noexcept {
        if (items.empty()) return;
        if (items.size() == 1)
            return checked("cudaMemcpyAsync within the device", [&] {
                return cudaMemcpyAsync(items[0].to, items[0].from, items[0].bytes, cudaMemcpyDeviceToDevice,
                                       in);
            });
        if (!many.holds(at, items)) {
            checked("cudaEventSynchronize", [&] { return cudaEventSynchronize(many.used_.handle()); });
            for (std::size_t i = 0; i < items.size(); ++i) {
                many.from_[at + i] = items[i].from;
                many.to_[at + i] = items[i].to;
                many.bytes_[at + i] = items[i].bytes;
            }
        }
        checked("cub::DeviceMemcpy::Batched", [&] {
            std::size_t bytes = many.temporary_bytes_;
            return cub::DeviceMemcpy::Batched(many.temporary_.data(), bytes, many.from_ + at, many.to_ + at,
                                              many.bytes_ + at, static_cast<std::int64_t>(items.size()), in);
        });
        record(many.used_, in);
    }

    template <class T>
    void count_not_finite(cudaStream_t in, T const* from, std::size_t count, counter& into) noexcept {
        auto* const total = reinterpret_cast<unsigned long long*>(into.device_.data());
        checked("launch of a count", [&] { return count_on_device(from, count, total, in, processors_); });
        checked("cudaMemcpyAsync of a count", [&] {
            return cudaMemcpyAsync(into.seen_, total, sizeof *total, cudaMemcpyDeviceToHost, in);
        });
    }

    char const* check_tensor(void const* place) const noexcept {
        cudaPointerAttributes facts{};
        if (cudaPointerGetAttributes(&facts, place) != cudaSuccess) {
            (void)cudaGetLastError();
            return "CUDA does not know it";
        }
        if (facts.type == cudaMemoryTypeUnregistered || facts.type == cudaMemoryTypeHost)
            return "it is memory of the host: give device memory, or use a reducer with "
                   "intra_node::shared_memory";
        if (facts.type == cudaMemoryTypeDevice && facts.device != device_)
            return "it is memory of another device than the reducer's: make the reducer with that device "
                   "current";
        return nullptr;
    }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept {
        return failing_.load(std::memory_order_acquire) ? &why_ : nullptr;
    }

  private:
    // In a thread of the reducer's, and wherever else it is moved from than where it was made, the device stays current:
    // to make the one before it current again would make a context there.
    bool elsewhere() const noexcept { return ::pthread_equal(::pthread_self(), made_in_) == 0; }

    template <class Call> void checked(char const* call, Call&& calling) noexcept {
        if (failed() != nullptr) return;
        detail::current_device const current(device_, elsewhere());
        if (cudaError_t const result = calling(); result != cudaSuccess) keep(result, call);
    }

    HERRING_SETUP failure failure_of(cudaError_t result, char const* call, std::size_t bytes,
                                     char const* advice, char const* operation, int peer) const noexcept {
        errc const what = result == cudaErrorMemoryAllocation ? errc::no_resources : errc::device;
        if (detail::of_earlier_work(result))
            advice = "it came up now, but is of a kernel or copy that ran before, of the program's own most "
                     "likely: "
                     "run the program under compute-sanitizer";
        char text[sizeof(failure::text)];
        int used = std::snprintf(text, sizeof text, "device %d: %s", device_, call);
        auto const left = [&] { return sizeof text - static_cast<std::size_t>(used); };
        if (bytes > 0) used += std::snprintf(text + used, left(), " of %zu bytes", bytes);
        std::snprintf(text + used, left(), ": %s (%s)%s%s", cudaGetErrorString(result),
                      cudaGetErrorName(result), advice != nullptr ? "; " : "",
                      advice != nullptr ? advice : "");
        return failure::make(what, rank_, peer, operation, text);
    }
    HERRING_SETUP void keep(cudaError_t result, char const* call) noexcept {
        std::lock_guard const lock(guard_);
        if (failed() != nullptr) return;
        why_ = failure_of(result, call, 0, nullptr, "reduce", -1);
        failing_.store(true, std::memory_order_release);
    }
    HERRING_SETUP void set_up(cudaError_t result, char const* call, std::size_t bytes = 0,
                              char const* advice = nullptr) const {
        if (result == cudaSuccess) return;
        if (!detail::of_earlier_work(result)) (void)cudaGetLastError(); // told here; not for the next call
        throw error(failure_of(result, call, bytes, advice, "construction", -1));
    }
    HERRING_SETUP void import(cudaError_t result, char const* call, int peer) const {
        if (result == cudaSuccess) return;
        (void)cudaGetLastError();
        throw error(
            failure_of(result, call, 0,
                       "processes must see each other's devices (CUDA_VISIBLE_DEVICES) and share an IPC "
                       "namespace; else use intra_node::pcie_staging",
                       "construction", peer));
    }

    /// Whether this device reaches that rank's memory.
    HERRING_SETUP void check_reach(export_of_memory const& of, int peer) const {
        if (std::memcmp(of.bus.text, bus_.text, sizeof bus_.text) == 0) return;
        int there = -1;
        if (cudaDeviceGetByPCIBusId(&there, of.bus.text) != cudaSuccess) {
            (void)cudaGetLastError();
            throw error(errc::unsupported, rank_, peer, "construction",
                        {"device ", device_, " (", bus_.text,
                         "): this process does not see that rank's device ", of.bus.text,
                         "; widen CUDA_VISIBLE_DEVICES, or use intra_node::pcie_staging"});
        }
        int reaches = 0;
        set_up(cudaDeviceCanAccessPeer(&reaches, device_, there), "cudaDeviceCanAccessPeer");
        if (reaches == 0)
            throw error(errc::unsupported, rank_, peer, "construction",
                        {"device ", device_, " (", bus_.text, ") of this rank cannot reach device ", there,
                         " (", of.bus.text, ") of that one; use intra_node::pcie_staging"});
        if (!(of.process == detail::process_mark::mine())) return;
        detail::current_device const current(device_);
        cudaError_t const enabled = cudaDeviceEnablePeerAccess(there, 0);
        if (enabled == cudaErrorPeerAccessAlreadyEnabled)
            (void)cudaGetLastError();
        else
            set_up(enabled, "cudaDeviceEnablePeerAccess");
    }

    HERRING_SETUP void tell_if_shared(world& ranks) const {
        gathered const all = ranks.all_gather(std::as_bytes(std::span(&bus_, 1)));
        int others = 0, first = -1;
        for (int const rank : ranks.map().members(ranks.node())) {
            auto const theirs = all[static_cast<std::size_t>(rank)];
            if (theirs.size() != sizeof bus_ || std::memcmp(theirs.data(), &bus_, sizeof bus_) != 0) continue;
            if (first < 0) first = rank;
            ++others;
        }
        if (first == rank_ && others > 1)
            std::fprintf(
                stderr,
                "herring: rank %d: %d ranks of this node share device %d (%s): they work by turns; start one "
                "rank a device\n",
                rank_, others, device_, bus_.text);
    }

    int rank_;
    pthread_t made_in_ = ::pthread_self();
    int device_ = 0;
    int processors_ = 1;
    detail::bus_name bus_{};
    std::mutex guard_;
    std::atomic<bool> failing_{false};
    failure why_{};
};
static_assert(runtime_policy<cuda_runtime>);

} // namespace herring::gpu

#endif // HERRING_GPU_CUDA_RUNTIME_CUH
