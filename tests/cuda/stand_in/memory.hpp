// herring: a stand-in for CUDA's runtime: memory of devices, that other processes open, and of the host that devices see.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_STAND_IN_MEMORY_HPP
#define HERRING_TESTS_CUDA_STAND_IN_MEMORY_HPP

#include "cuda/stand_in/process.hpp"

#include <algorithm>
#include <map>

#include <fcntl.h>

#include <cuda.h> // types alone

namespace stand_in {

enum class memory_kind {
    device,     ///< cudaMalloc
    imported,   ///< cudaIpcOpenMemHandle
    host,       ///< cudaHostAlloc: devices see it at its own address
    managed,    ///< cudaMallocManaged: the same, and it belongs to a device
    registered, ///< cudaHostRegister, at the program's address
    mapped      ///< the same as devices see it: elsewhere
};

/// The first page of a file that is device memory.
struct file_head {
    std::uint64_t id = 0;
    std::atomic<int> opened{0}; ///< by other processes, now
};

struct range {
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::device;
    int device = 0;
    std::byte* real = nullptr; ///< where this process finds it
    int file = -1;
    file_head* head = nullptr;
    std::uintptr_t seen = 0; ///< of registered memory: where devices see it
    bool pooled = false;     ///< cudaMallocAsync: other processes cannot open it
    bool asked = false;      ///< whether they can: it is a caller's, of any size

    bool of_host() const noexcept { return kind == memory_kind::host || kind == memory_kind::registered; }
};

/// As another process opens it.
struct memory_handle {
    pid_t process;
    int file;
    int device; // as the machine numbers it
    std::size_t bytes;
    std::uint64_t id;
};
static_assert(sizeof(memory_handle) <= sizeof(cudaIpcMemHandle_t));

/// Addresses and what they are. Device addresses are of a part of the address space that nobody may touch; what they stand
/// for lies `arena_bytes` behind. None is given out twice. All under the process's guard.
class address_space {
  public:
    static constexpr std::size_t page = 4096, block = std::size_t{2} << 20;
    static constexpr std::size_t arena_bytes = std::size_t{1} << 40, device_bytes = std::size_t{4} << 30;

    std::map<std::uintptr_t, range> ranges;
    std::size_t used[most_devices] = {};

    static address_space& of_process() {
        static address_space* const made = new address_space;
        return *made;
    }

    /// What holds all of [at, at + bytes), or nullptr.
    range* find(void const* at, std::size_t bytes = 1) noexcept {
        auto const first = reinterpret_cast<std::uintptr_t>(at);
        auto next = ranges.upper_bound(first);
        if (next == ranges.begin()) return nullptr;
        auto& [begin, held] = *--next;
        return first - begin < held.bytes && bytes <= held.bytes - (first - begin) ? &held : nullptr;
    }
    /// Where this process finds what is at that address of a range.
    std::byte* real(range const& of, void const* at) noexcept {
        auto next = ranges.upper_bound(reinterpret_cast<std::uintptr_t>(at));
        return of.real + (reinterpret_cast<std::uintptr_t>(at) - (--next)->first);
    }

    std::uintptr_t reserve(std::size_t bytes) noexcept {
        std::uintptr_t const at = next_;
        next_ += (bytes + 2 * block - 1) / block * block; // a block between that is nobody's
        return at;
    }
    /// Maps a file's memory, behind its first page. Returns the device address, or 0.
    std::uintptr_t map(int file, std::size_t bytes, range made) {
        std::uintptr_t const at = reserve(bytes);
        void* const head = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        void* const real = ::mmap(reinterpret_cast<void*>(at + arena_bytes), bytes, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_FIXED, file, static_cast<off_t>(page));
        if (head == MAP_FAILED || real == MAP_FAILED) return 0;
        made.head = static_cast<file_head*>(head);
        made.bytes = bytes;
        made.real = static_cast<std::byte*>(real);
        ranges.emplace(at, made);
        return at;
    }
    void unmap(std::uintptr_t at) noexcept {
        range const& gone = ranges.at(at);
        ::mmap(gone.real, gone.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
               0);
        ::munmap(gone.head, page);
        if (gone.file >= 0) ::close(gone.file);
        ranges.erase(at);
    }
    range* at(void const* first) noexcept {
        auto const found = ranges.find(reinterpret_cast<std::uintptr_t>(first));
        return found == ranges.end() ? nullptr : &found->second;
    }

  private:
    address_space() {
        void* const all =
            ::mmap(nullptr, 2 * arena_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED) std::perror("stand-in for CUDA: no address space"), std::abort();
        next_ = (reinterpret_cast<std::uintptr_t>(all) + block - 1) / block * block + block;
    }
    std::uintptr_t next_ = 0;
};

/// What a kernel on this device finds at an address; nullptr, and a line, where it may not go.
inline std::byte* reach(int device, void const* at, std::size_t bytes, char const* kernel) noexcept {
    if (bytes == 0) return reinterpret_cast<std::byte*>(64);
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    range const* const held = all.find(at, bytes);
    char const* why = nullptr;
    if (held == nullptr)
        why = "there is no such memory, or not as much";
    else if (held->kind == memory_kind::registered)
        why = "it is the host's address of registered memory; devices have their own";
    else if (held->kind == memory_kind::device && !here().reaches[device][held->device])
        why = "it is memory of a device that this one may not reach";
    else if (held->kind == memory_kind::imported && !here().reaches[device][held->device])
        why = "it was opened for another device";
    if (why == nullptr) return all.real(*held, at);
    std::fprintf(stderr, "stand-in for CUDA: device %d: %s: %zu bytes at %p: %s\n", device, kernel, bytes, at,
                 why);
    return nullptr;
}

inline cudaError_t allocate(void** made, std::size_t bytes, bool pooled = false) {
    *made = nullptr;
    if (bytes == 0) return cudaSuccess;
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    int const device = mine().device;
    if (bytes > address_space::device_bytes - all.used[device]) return cudaErrorMemoryAllocation;
    int const file = ::memfd_create("device memory", MFD_CLOEXEC);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes + address_space::page)) != 0) {
        if (file >= 0) ::close(file);
        return cudaErrorMemoryAllocation;
    }
    range one{};
    one.device = device;
    one.file = file;
    one.pooled = pooled;
    std::uintptr_t const at = all.map(file, bytes, one);
    if (at == 0) return cudaErrorMemoryAllocation;
    range const& held = all.ranges.at(at);
    held.head->id = at ^ static_cast<std::uint64_t>(::getpid()) << 48;
    std::memset(held.real, 0xa5, std::min(bytes, std::size_t{16} << 20)); // nobody may count on zeroes
    all.used[device] += bytes;
    *made = reinterpret_cast<void*>(at);
    return cudaSuccess;
}

/// When all that was put into the device's streams is done.
inline cudaError_t release(void* at) {
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    range const* const held = all.at(at);
    if (held != nullptr && held->kind == memory_kind::managed) {
        ::munmap(at, held->bytes);
        all.ranges.erase(reinterpret_cast<std::uintptr_t>(at));
        return cudaSuccess;
    }
    if (held == nullptr || held->kind != memory_kind::device) {
        complain("cudaFree of %p, which is no device memory of this process's", at);
        return cudaErrorInvalidValue;
    }
    if (int const opened = held->head->opened.load(); opened != 0)
        complain("cudaFree of memory that other processes have open %d times", opened);
    all.used[held->device] -= held->bytes;
    all.unmap(reinterpret_cast<std::uintptr_t>(at));
    return cudaSuccess;
}

inline cudaError_t hand_out(cudaIpcMemHandle_t* made, void* at) {
    std::lock_guard const lock(here().guard);
    range const* const held = address_space::of_process().find(at);
    if (held == nullptr || held->kind != memory_kind::device || held->pooled) return cudaErrorInvalidValue;
    if (held->bytes % address_space::block != 0 && !held->asked)
        complain("cudaIpcGetMemHandle of %zu bytes: what else lies in their last block is shared as well",
                 held->bytes);
    memory_handle const handle{here().id, held->file, here().devices[static_cast<std::size_t>(held->device)],
                               held->bytes, held->head->id};
    std::memcpy(static_cast<void*>(made), &handle, sizeof handle);
    return cudaSuccess;
}

inline cudaError_t take_in(void** made, cudaIpcMemHandle_t const& from, unsigned flags) {
    memory_handle handle;
    std::memcpy(&handle, &from, sizeof handle);
    process& p = here();
    std::lock_guard const lock(p.guard);
    if (flags != cudaIpcMemLazyEnablePeerAccess) return cudaErrorInvalidValue;
    if (handle.process == p.id) return cudaErrorDeviceUninitialized; // as CUDA says it
    auto const device = std::find(p.devices.begin(), p.devices.end(), handle.device);
    if (device == p.devices.end()) return cudaErrorInvalidDevice;
    int const owner = static_cast<int>(device - p.devices.begin());
    if (owner != mine().device && !p.peers) return cudaErrorPeerAccessUnsupported;
    std::string const path = "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
    int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return cudaErrorMapBufferObjectFailed;
    range one{};
    one.kind = memory_kind::imported;
    one.device = owner;
    std::uintptr_t const at = address_space::of_process().map(file, handle.bytes, one);
    ::close(file);
    if (at == 0) return cudaErrorMapBufferObjectFailed;
    range const& held = address_space::of_process().ranges.at(at);
    if (held.head->id != handle.id) {
        address_space::of_process().unmap(at);
        complain("cudaIpcOpenMemHandle of memory that is freed");
        return cudaErrorInvalidResourceHandle;
    }
    ++held.head->opened;
    ++counted->opened;
    p.reaches[mine().device][owner] = true;
    *made = reinterpret_cast<void*>(at);
    return cudaSuccess;
}

inline cudaError_t put_back(void* at) {
    std::lock_guard const lock(here().guard);
    range const* const held = address_space::of_process().at(at);
    if (held == nullptr || held->kind != memory_kind::imported) {
        complain("cudaIpcCloseMemHandle of %p, which is not open", at);
        return cudaErrorInvalidValue;
    }
    --held->head->opened;
    address_space::of_process().unmap(reinterpret_cast<std::uintptr_t>(at));
    return cudaSuccess;
}

/// What the driver knows of an address. Addresses of other memory than a device's are not known.
inline CUresult pointer_facts(unsigned count, CUpointer_attribute* which, void** values,
                              CUdeviceptr at) noexcept {
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    range* const held = all.find(reinterpret_cast<void*>(at));
    if (held == nullptr || held->kind != memory_kind::device) return CUDA_ERROR_INVALID_VALUE;
    held->asked = true;
    for (unsigned i = 0; i < count; ++i) switch (which[i]) {
        case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
            *static_cast<bool*>(values[i]) = !held->pooled;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *static_cast<CUdeviceptr*>(values[i]) = (--all.ranges.upper_bound(at))->first;
            break;
        case CU_POINTER_ATTRIBUTE_BUFFER_ID:
            *static_cast<unsigned long long*>(values[i]) = held->head->id;
            break;
        default:
            return CUDA_ERROR_NOT_SUPPORTED;
        }
    return CUDA_SUCCESS;
}

inline cudaError_t allocate_of_host(void** made, std::size_t bytes, memory_kind kind = memory_kind::host) {
    std::size_t const whole = (bytes + address_space::page - 1) / address_space::page * address_space::page;
    void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return cudaErrorMemoryAllocation;
    std::lock_guard const lock(here().guard);
    range one{};
    one.bytes = bytes;
    one.kind = kind;
    one.device = mine().device;
    one.real = static_cast<std::byte*>(at);
    address_space::of_process().ranges.emplace(reinterpret_cast<std::uintptr_t>(at), one);
    *made = at;
    return cudaSuccess;
}
inline cudaError_t release_of_host(void* at) {
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    range const* const held = all.at(at);
    if (held == nullptr || held->kind != memory_kind::host) {
        complain("cudaFreeHost of %p, which cudaHostAlloc did not make", at);
        return cudaErrorInvalidValue;
    }
    ::munmap(at, held->bytes);
    all.ranges.erase(reinterpret_cast<std::uintptr_t>(at));
    return cudaSuccess;
}

/// Pages are locked as a whole: nobody else may have locked one of them.
inline cudaError_t lock_pages(void* first, std::size_t bytes) {
    auto const begin = reinterpret_cast<std::uintptr_t>(first) / address_space::page * address_space::page;
    auto const end = reinterpret_cast<std::uintptr_t>(first) + bytes;
    constexpr int populate =
        23; // MADV_POPULATE_WRITE, of Linux 5.14: also says whether they can be written to
    if (::madvise(reinterpret_cast<void*>(begin), end - begin, populate) != 0) return cudaErrorInvalidValue;
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    for (auto const& [at, held] : all.ranges)
        if (held.of_host() && at / address_space::page * address_space::page < end &&
            begin < at + held.bytes) {
            complain("cudaHostRegister of pages of which some are locked already");
            return cudaErrorHostMemoryAlreadyRegistered;
        }
    range one{};
    one.bytes = bytes;
    one.real = static_cast<std::byte*>(first);
    one.kind = memory_kind::mapped;
    // At the same place in its page.
    one.seen = all.reserve(bytes + address_space::page) + reinterpret_cast<std::uintptr_t>(first) - begin;
    all.ranges.emplace(one.seen, one);
    one.kind = memory_kind::registered;
    all.ranges.emplace(reinterpret_cast<std::uintptr_t>(first), one);
    return cudaSuccess;
}
inline cudaError_t unlock_pages(void* first) {
    std::lock_guard const lock(here().guard);
    address_space& all = address_space::of_process();
    range const* const held = all.at(first);
    if (held == nullptr || held->kind != memory_kind::registered) {
        complain("cudaHostUnregister of %p, which is not registered", first);
        return cudaErrorHostMemoryNotRegistered;
    }
    all.ranges.erase(held->seen);
    all.ranges.erase(reinterpret_cast<std::uintptr_t>(first));
    return cudaSuccess;
}

} // namespace stand_in

#endif // HERRING_TESTS_CUDA_STAND_IN_MEMORY_HPP
