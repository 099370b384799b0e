// herring: a barrier for the ranks of a bench, of whatever program: two counters in a file that all of them map.
// SPDX-License-Identifier: Apache-2.0
//
// Each library's own barrier lets its ranks go at its own pace, and what is measured next would contain that.
#ifndef HERRING_BENCH_MEETING_HPP
#define HERRING_BENCH_MEETING_HPP

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

namespace bench {

/// Where all ranks of a machine meet. The file is `file_bytes` long and zero when the first rank maps it.
class meeting {
  public:
    static constexpr std::size_t file_bytes = 4096;

    meeting(std::string const& path, int ranks) : ranks_(static_cast<std::uint32_t>(ranks)) {
        int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        void* const at =
            file < 0 ? MAP_FAILED : ::mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        if (file >= 0) ::close(file);
        if (at == MAP_FAILED) {
            std::perror(("bench: --meet " + path).c_str());
            std::exit(2);
        }
        shared_ = static_cast<counters*>(at);
    }
    meeting(meeting const&) = delete;
    meeting& operator=(meeting const&) = delete;
    ~meeting() { ::munmap(shared_, file_bytes); }

    /// Returns when all ranks have called it. Yields, so that all go at once; after 5 ms it naps in between.
    void operator()() {
        std::uint32_t const round = shared_->round.load();
        if (shared_->here.fetch_add(1) + 1 == ranks_) {
            shared_->here.store(0);
            shared_->round.store(round + 1);
            return;
        }
        auto const start = std::chrono::steady_clock::now();
        while (shared_->round.load() == round) {
            ::sched_yield();
            auto const waited = std::chrono::steady_clock::now() - start;
            if (waited < std::chrono::milliseconds(5)) continue;
            timespec const nap{0, 20'000};
            ::nanosleep(&nap, nullptr);
            if (waited < std::chrono::minutes(5)) continue;
            std::fprintf(stderr, "bench: a rank has not come for 5 minutes\n");
            std::exit(2);
        }
    }

  private:
    struct counters {
        std::atomic<std::uint32_t> here;  // ranks of this round
        std::atomic<std::uint32_t> round; // how many are over
    };
    static_assert(sizeof(counters) <= file_bytes && std::atomic<std::uint32_t>::is_always_lock_free);
    counters* shared_ = nullptr;
    std::uint32_t ranks_;
};

} // namespace bench

#endif // HERRING_BENCH_MEETING_HPP
