// herring: a stand-in for NCCL over the one for CUDA's runtime: collectives of threads and processes, by a shared mapping.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/stand_in/streams.hpp"

#include "herring/element.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <nccl.h>

// What is forbidden of NCCL is a misuse, as calls that CUDA forbids are: a call beside one that is under way, an end that was not
// waited for, collectives that differ between ranks. A communicator that is aborted ends what its own rank waits for, and
// nothing of the others'.
//
//     HERRING_STAND_IN_NCCL_FAILS    rank of a node whose communicator reports an error from its third group on [none]

namespace {

constexpr int most_ranks = 8;
constexpr std::size_t block_bytes = 1 << 16;

enum class kind : std::uint32_t { none, all_reduce, reduce_scatter, all_gather };

/// What the ranks of a communicator share; zero at first.
struct clique {
    std::atomic<std::uint32_t> joined, finished;
    std::atomic<int> device[most_ranks]; // as the machine numbers them, and 1
    std::atomic<std::uint64_t> met;      // ranks that have come to a barrier, of all barriers
    struct call {
        kind what;
        std::uint32_t type, by;
        std::uint64_t count;
        bool operator==(call const&) const = default;
    };
    call calls[most_ranks];
    alignas(64) std::byte blocks[most_ranks][block_bytes];
};

/// A communicator's id: where the mapping is.
struct place {
    pid_t process;
    int file;
};

struct work {
    clique::call what{};
    std::byte const* from = nullptr;
    std::byte* to = nullptr;
    cudaStream_t in = nullptr;
};

template <class T>
void combine(clique& all, std::uint32_t ranks, ncclRedOp_t by, std::size_t bytes, std::byte* to) {
    using wide = herring::accumulator<T>;
    for (std::size_t at = 0; at < bytes; at += sizeof(T)) {
        wide total{};
        for (std::uint32_t r = ranks; r-- > 0;) { // not in the order of ranks
            T one;
            std::memcpy(&one, all.blocks[r] + at, sizeof one);
            wide next = static_cast<wide>(one);
            if (by == ncclAvg) next /= static_cast<wide>(ranks);
            total = r + 1 == ranks   ? next
                    : by == ncclMin  ? std::min(total, next)
                    : by == ncclMax  ? std::max(total, next)
                    : by == ncclProd ? herring::update::product::combine(total, next)
                                     : herring::update::sum::combine(total, next);
            total = static_cast<wide>(static_cast<T>(total));
        }
        T const rounded = static_cast<T>(total);
        std::memcpy(to + at, &rounded, sizeof rounded);
    }
}

void combine(ncclDataType_t type, clique& all, std::uint32_t ranks, ncclRedOp_t by, std::size_t bytes,
             std::byte* to) {
    switch (type) {
    case ncclInt32:
        return combine<std::int32_t>(all, ranks, by, bytes, to);
    case ncclUint32:
        return combine<std::uint32_t>(all, ranks, by, bytes, to);
    case ncclInt64:
        return combine<std::int64_t>(all, ranks, by, bytes, to);
    case ncclUint64:
        return combine<std::uint64_t>(all, ranks, by, bytes, to);
    case ncclFloat16:
        return combine<herring::float16>(all, ranks, by, bytes, to);
    case ncclFloat32:
        return combine<float>(all, ranks, by, bytes, to);
    case ncclFloat64:
        return combine<double>(all, ranks, by, bytes, to);
    case ncclBfloat16:
        return combine<herring::bfloat16>(all, ranks, by, bytes, to);
    default:
        return stand_in::complain("NCCL: a type that Herring has not");
    }
}
std::size_t bytes_of(ncclDataType_t type) noexcept {
    return type == ncclFloat16 || type == ncclBfloat16                      ? 2
           : type == ncclInt64 || type == ncclUint64 || type == ncclFloat64 ? 8
                                                                            : 4;
}

} // namespace

struct ncclComm {
    std::shared_ptr<clique> all;
    std::uint32_t ranks, rank;
    int device;
    std::atomic<bool> aborted{false};
    std::uint64_t barriers = 0; // of the stream's thread
    std::vector<work> group{};
    int looks = 0, groups = 0;
    bool finishing = false, failed = false;

    // False: this rank has aborted.
    bool meet() {
        std::uint64_t const due = ++barriers * ranks;
        ++all->met;
        while (all->met.load() < due) {
            if (aborted) return false;
            ::usleep(20);
        }
        return !aborted;
    }
    // The real address, while it is memory of a device's.
    static std::byte* real(void const* at, std::size_t bytes) {
        std::lock_guard const lock(stand_in::here().guard);
        return stand_in::side(at, bytes, true, "of NCCL's, of");
    }

    cudaError_t run(work const& one) {
        auto const type = static_cast<ncclDataType_t>(one.what.type);
        auto const by = static_cast<ncclRedOp_t>(one.what.by);
        std::size_t const bytes = one.what.count * bytes_of(type);
        all->calls[rank] = one.what;
        if (!meet()) return cudaSuccess;
        for (std::uint32_t r = 0; r < ranks; ++r)
            if (all->calls[r] != one.what)
                stand_in::complain("NCCL: ranks %u and %u call collectives that differ", rank, r);
        bool const parted = one.what.what != kind::all_reduce;
        for (std::uint32_t part = 0; part < (parted ? ranks : 1); ++part)
            for (std::size_t at = 0; at < bytes; at += block_bytes) {
                std::size_t const some = std::min(block_bytes, bytes - at);
                bool const gathers = one.what.what == kind::all_gather;
                if (!gathers || part == rank) {
                    std::size_t const begin = (gathers ? 0 : part * bytes) + at;
                    std::byte const* const from = real(one.from + begin, some);
                    if (from == nullptr) return cudaErrorIllegalAddress;
                    std::memcpy(all->blocks[rank], from, some);
                }
                if (!meet()) return cudaSuccess;
                if (gathers || !parted || part == rank) {
                    std::byte* const to = real(one.to + (gathers ? part * bytes : 0) + at, some);
                    if (to == nullptr) return cudaErrorIllegalAddress;
                    if (gathers)
                        std::memcpy(to, all->blocks[part], some);
                    else
                        combine(type, *all, ranks, by, some, to);
                }
                if (!meet()) return cudaSuccess;
            }
        return cudaSuccess;
    }

    ncclResult_t state() {
        if (failed) return ncclSystemError;
        if (all->joined.load() < ranks) return ncclInProgress;
        for (std::uint32_t r = 0; r < rank; ++r)
            if (all->device[r].load() == device) return ncclInvalidUsage;
        if (finishing) return all->finished.load() < ranks ? ncclInProgress : ncclSuccess;
        if (looks > 0 && --looks > 0) return ncclInProgress;
        for (work const& one : group) {
            auto self = kept.lock();
            cudaError_t const put = stand_in::in_stream(one.in, [&](auto& objects, CUstream_st& in) {
                return objects.put(in, {[self, one] { return self->run(one); }, {}});
            });
            if (put != cudaSuccess) return ncclUnhandledCudaError;
        }
        group.clear();
        return ncclSuccess;
    }
    bool is_busy(char const* call) {
        bool const busy = looks > 0 || !group.empty();
        if (busy) stand_in::complain("NCCL: %s beside a call that is under way", call);
        return busy;
    }
    std::weak_ptr<ncclComm> kept;
};

namespace {

/// Communicators of this process.
struct all_of_process {
    std::mutex guard;
    std::vector<std::shared_ptr<ncclComm>> made;
};
all_of_process& communicators() {
    static auto* const all = new all_of_process;
    return *all;
}
void forget(ncclComm_t gone) {
    std::lock_guard const lock(communicators().guard);
    std::erase_if(communicators().made, [&](auto const& one) { return one.get() == gone; });
}

thread_local int depth = 0;
thread_local std::vector<ncclComm_t> grouped;

ncclResult_t add(kind what, void const* from, void* to, std::size_t count, ncclDataType_t type,
                 ncclRedOp_t by, ncclComm_t comm, cudaStream_t stream) {
    if (depth == 0) {
        stand_in::complain("NCCL: a collective outside a group");
        return ncclInvalidUsage;
    }
    if (std::find(grouped.begin(), grouped.end(), comm) == grouped.end()) {
        if (comm->is_busy("a collective")) return ncclInvalidUsage;
        grouped.push_back(comm);
    }
    comm->group.push_back({{what, static_cast<std::uint32_t>(type), static_cast<std::uint32_t>(by), count},
                           static_cast<std::byte const*>(from),
                           static_cast<std::byte*>(to),
                           stream});
    return ncclSuccess;
}

} // namespace

extern "C" {

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
    int const file = ::memfd_create("nccl", MFD_CLOEXEC); // stays open: ranks may join at any time
    if (file < 0 || ::ftruncate(file, sizeof(clique)) != 0) return ncclSystemError;
    place const here{::getpid(), file};
    std::memcpy(id, &here, sizeof here);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* made, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
    if (config->blocking != 0 || ranks < 1 || ranks > most_ranks || rank < 0 || rank >= ranks) {
        stand_in::complain("NCCL: a communicator that blocks, or of %d ranks", ranks);
        return ncclInvalidArgument;
    }
    place at{};
    std::memcpy(&at, &id, sizeof at);
    std::string const path = "/proc/" + std::to_string(at.process) + "/fd/" + std::to_string(at.file);
    int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return ncclSystemError;
    void* const mapped = ::mmap(nullptr, sizeof(clique), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (mapped == MAP_FAILED) return ncclSystemError;
    auto one = std::make_shared<ncclComm>();
    one->all = {static_cast<clique*>(mapped), [](clique* gone) { ::munmap(gone, sizeof(clique)); }};
    one->ranks = static_cast<std::uint32_t>(ranks);
    one->rank = static_cast<std::uint32_t>(rank);
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return ncclUnhandledCudaError;
    one->device = stand_in::here().devices[static_cast<std::size_t>(device)] + 1;
    one->kept = one;
    one->all->device[rank].store(one->device);
    ++one->all->joined;
    *made = one.get();
    std::lock_guard const lock(communicators().guard);
    communicators().made.push_back(std::move(one));
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* now) {
    *now = comm->state();
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
    if (comm->is_busy("ncclCommFinalize")) return ncclInvalidUsage;
    comm->finishing = true;
    ++comm->all->finished;
    return comm->state();
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    if (!comm->finishing || comm->state() != ncclSuccess)
        stand_in::complain("NCCL: ncclCommDestroy of a communicator that is not finalized");
    forget(comm);
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->aborted = true;
    forget(comm);
    return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess ? "no error" : "an error of the stand-in for NCCL";
}

ncclResult_t ncclGroupStart() {
    ++depth;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
    if (depth == 0 || --depth > 0) return depth == 0 ? ncclInvalidUsage : ncclSuccess;
    ncclResult_t result = ncclSuccess;
    static long const fails = stand_in::setting("HERRING_STAND_IN_NCCL_FAILS", -1);
    for (ncclComm_t const comm : grouped) {
        comm->looks = static_cast<int>(++comm->groups % 3 == 0 ? 0 : comm->groups % 3 + 1);
        comm->failed = fails == static_cast<long>(comm->rank) && comm->groups >= 3;
        if (comm->looks > 0 || comm->failed)
            result = comm->failed ? ncclSystemError : ncclInProgress;
        else
            result = comm->state();
    }
    grouped.clear();
    return result;
}

ncclResult_t ncclAllReduce(void const* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t by,
                           ncclComm_t comm, cudaStream_t stream) {
    return add(kind::all_reduce, from, to, count, type, by, comm, stream);
}
ncclResult_t ncclReduceScatter(void const* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t by,
                               ncclComm_t comm, cudaStream_t stream) {
    return add(kind::reduce_scatter, from, to, count, type, by, comm, stream);
}
ncclResult_t ncclAllGather(void const* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
    return add(kind::all_gather, from, to, count, type, ncclSum, comm, stream);
}

} // extern "C"
