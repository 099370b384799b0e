// herring: a stand-in for CUDA's runtime: what a process has of it: its devices, its first fatal error, what it did wrong.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_STAND_IN_PROCESS_HPP
#define HERRING_TESTS_CUDA_STAND_IN_PROCESS_HPP

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cuda_runtime_api.h>

/// Stands in for CUDA's runtime library where there is no GPU: streams are threads, device memory is memory of the host that
/// the program cannot touch, kernels are functions of the host that `kernels.hpp` knows. A test double: it shows what is out
/// of order, freed too soon, or called where CUDA forbids it. It shows nothing of a device's speed, memory model or compiler.
///
/// The environment, read at a process's first call:
///     HERRING_STAND_IN_DEVICES   how many devices there are [1]; CUDA_VISIBLE_DEVICES says which of them are seen
///     HERRING_STAND_IN_PEERS     0: no device reaches another's memory [1]
///     HERRING_STAND_IN_SEED      of the pauses between what streams do [of the time]
///     HERRING_STAND_IN_UNKNOWN   0: a kernel that it does not know does nothing, and is no error [1]
///     HERRING_STAND_IN_SLIP      waits: no stream waits for an event; records: events are done at once. For tests of the tests
namespace stand_in {

inline constexpr int most_devices = 8;

/// What all processes of a run count together: made before the first of them forks.
struct tally {
    std::atomic<int> complaints{0}; ///< calls that CUDA's documentation forbids
    std::atomic<int> left{0};       ///< objects that were not released when a rank ended well
    std::atomic<int> copies{0};     ///< copies within a device
    std::atomic<int> opened{0};     ///< how often memory of another process was opened
};
inline tally* const counted = [] {
    void* const at =
        ::mmap(nullptr, sizeof(tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? new tally : ::new (at) tally;
}();

/// Tells of a misuse, in a line, and counts it.
[[gnu::format(printf, 1, 2)]] inline void complain(char const* format, ...) noexcept {
    char text[400];
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
    std::fprintf(stderr, "stand-in for CUDA: process %d: misuse: %s\n", static_cast<int>(::getpid()), text);
    ++counted->complaints;
}

inline long setting(char const* name, long otherwise) noexcept {
    char const* const text = std::getenv(name);
    return text != nullptr && *text != 0 ? std::atol(text) : otherwise;
}
inline bool slips(std::string_view what) noexcept {
    static char const* const slip = std::getenv("HERRING_STAND_IN_SLIP");
    return slip != nullptr && what == slip;
}

/// A process, from its first call on. What is in it is never destroyed: threads of streams end with the process.
struct process {
    std::mutex guard; ///< of all that processes' threads share; held for no wait
    pid_t const id = ::getpid();
    std::vector<int> devices; ///< that it sees, as the machine numbers them
    bool const peers = setting("HERRING_STAND_IN_PEERS", 1) != 0;
    bool reaches[most_devices][most_devices] = {}; ///< what cudaDeviceEnablePeerAccess was called for
    std::atomic<cudaError_t> broken{cudaSuccess};  ///< sticky: every call returns it from then on

    static inline bool used = false; ///< whether there is one

    process() {
        used = true;
        int const all = static_cast<int>(setting("HERRING_STAND_IN_DEVICES", 1));
        char const* seen = std::getenv("CUDA_VISIBLE_DEVICES");
        std::string const none = "0,1,2,3,4,5,6,7";
        for (char const* at = seen != nullptr ? seen : none.c_str(); *at >= '0' && *at <= '9';) {
            char* end = nullptr;
            long const number = std::strtol(at, &end, 10);
            if (number >= all || number >= most_devices) break;
            devices.push_back(static_cast<int>(number));
            at = *end == ',' ? end + 1 : end;
        }
        for (int d = 0; d < most_devices; ++d) reaches[d][d] = true;
    }
};
inline process& here() {
    static process* const made = new process;
    return *made;
}

/// What a thread has.
struct thread {
    cudaError_t last = cudaSuccess;
    int device = 0;
    cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
inline thread& mine() noexcept {
    thread_local thread own;
    return own;
}

/// What every call does: refused after a fork or a fatal error; what it returns is the last error.
template <class Body> cudaError_t call(Body&& body) noexcept {
    process& p = here();
    cudaError_t result = p.id != ::getpid()  ? cudaErrorInitializationError
                         : p.devices.empty() ? cudaErrorNoDevice
                                             : p.broken.load(std::memory_order_acquire);
    if (result == cudaSuccess) result = body();
    if (result != cudaSuccess) mine().last = result;
    return result;
}

/// A number that grows, and who waits for it, in this process or another.
class progress {
  public:
    std::uint32_t reached() const noexcept { return reached_.load(std::memory_order_acquire); }
    void advance(std::uint32_t to) noexcept {
        std::uint32_t now = reached();
        while (now < to && !reached_.compare_exchange_weak(now, to, std::memory_order_acq_rel)) {
        }
        ::syscall(SYS_futex, &reached_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
    /// False when the context broke, or patience ended.
    bool wait(std::uint32_t due, std::chrono::seconds patience) noexcept {
        auto const since = std::chrono::steady_clock::now();
        for (std::uint32_t now = reached(); now < due; now = reached()) {
            if (here().broken.load() != cudaSuccess) return false;
            if (std::chrono::steady_clock::now() - since > patience) return false;
            timespec const nap{0, 50'000'000};
            ::syscall(SYS_futex, &reached_, FUTEX_WAIT, now, &nap, nullptr, 0);
        }
        return true;
    }

  private:
    std::atomic<std::uint32_t> reached_{0};
};

} // namespace stand_in

#endif // HERRING_TESTS_CUDA_STAND_IN_PROCESS_HPP
