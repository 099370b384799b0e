// herring: the machine of the host's model of devices: who works off its queues, what it has, and which call fails.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_MACHINE_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_MACHINE_HPP

#include "gpu_model/host_queue.hpp"
#include "herring/base/config.hpp"
#include "herring/error.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::gpu {

/// How a model machine behaves.
struct host_machine_options {
    std::uint64_t seed = 1;
    int workers = 1;   ///< threads that do the work; 0: it is done by `turn()` alone
    bool peers = true; ///< devices reach each other's memory
    std::size_t device_bytes = std::size_t{1} << 32; ///< of memory that all devices have together
    std::size_t pinned_bytes = std::size_t{1} << 32; ///< of the host's that may be locked
    std::uint64_t fail_at = 0; ///< the call with this number fails, and all after it; 0: none does
    int fail_rank = -1;        ///< only calls of this rank count; −1: those of all
    int devices = 0;           ///< of each node, which its ranks take by turns; 0: one a rank
    bool processes = false;    ///< ranks open what others lend them, as if each were a process
};

/// A machine with devices, made by a test before its ranks. While it lives, `host_runtime` uses it.
///
/// Its threads, or whoever calls `turn`, work off queues in an order that chance gives.
class host_machine {
  public:
    explicit host_machine(host_machine_options const& how = {}) : options(how), random_(how.seed) {
        current() = this;
        workers_.resize(static_cast<std::size_t>(how.workers));
        for (pthread_t& worker : workers_)
            if (::pthread_create(
                    &worker, nullptr,
                    [](void* self) -> void* {
                        static_cast<host_machine*>(self)->work();
                        return nullptr;
                    },
                    this) != 0)
                std::abort();
    }
    host_machine(host_machine const&) = delete;
    host_machine& operator=(host_machine const&) = delete;
    ~host_machine() {
        stop_.store(true);
        for (pthread_t const worker : workers_) ::pthread_join(worker, nullptr);
        for (std::byte* const memory : kept_) ::operator delete (memory, std::align_val_t{256});
        current() = nullptr;
    }
    /// Memory that a device may still write to: freed when this machine ends.
    void keep(std::byte* memory) {
        std::lock_guard const lock(guard_);
        kept_.push_back(memory);
    }

    static host_machine*& current() noexcept {
        static host_machine* one = nullptr;
        return one;
    }

    /// Tries one queue, chosen by chance; false: there was nothing to be done in it.
    bool turn() {
        std::uint64_t const chance = next(random_);
        std::shared_ptr<detail::host_queue> queue;
        {
            std::lock_guard const lock(guard_);
            if (queues_.empty()) return false;
            queue = queues_[chance % queues_.size()];
        }
        return queue->turn();
    }

    std::shared_ptr<detail::host_queue> make_queue() {
        std::lock_guard const lock(guard_);
        queues_.push_back(std::make_shared<detail::host_queue>());
        return queues_.back();
    }
    void drop(std::shared_ptr<detail::host_queue> const& queue) {
        std::lock_guard const lock(guard_);
        std::erase(queues_, queue);
    }
    /// Until a queue is empty. Work that nothing ever allows is a defect: the program ends.
    void drain(detail::host_queue& queue) {
        if (until([&] { return queue.empty(); })) return;
        std::fputs("herring: model of a device: a queue never ends\n", stderr);
        std::abort();
    }
    /// Until a record is done; false after a time that is long for any test.
    bool done(std::atomic<bool> const& mark) {
        return until([&] { return mark.load(std::memory_order_acquire); });
    }

    /// Counts a call; true: this one fails.
    bool fails(int rank) noexcept {
        if (options.fail_rank >= 0 && rank != options.fail_rank) return false;
        std::uint64_t const number = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
        return options.fail_at != 0 && number >= options.fail_at;
    }
    std::uint64_t calls() const noexcept { return calls_.load(); }

    host_machine_options const options;
    std::atomic<std::size_t> device_used{0}; ///< bytes that are not released yet
    std::atomic<std::size_t> pinned_used{0};
    std::atomic<int> shared_devices{0}; ///< lines that said so
    std::atomic<int> opened{0};   ///< what ranks have open of others' memory, but their reducers' tensors
    std::atomic<int> openings{0}; ///< how often they opened some
    std::atomic<int> copies{0};   ///< copies within a device
    std::atomic<int> refuses{-1}; ///< this rank cannot open what it is lent

    struct piece {
        std::byte* from = nullptr;
        std::size_t bytes = 0;
        int device = -1;
        bool openable = true;
        std::uint64_t id = 0; ///< of this piece alone
    };
    // Whose device memory is.
    void enter(std::byte* from, std::size_t bytes, int device, bool openable) {
        std::lock_guard const lock(guard_);
        owned_.push_back({from, bytes, device, openable, ++entered_});
    }
    void erase(std::byte const* from) {
        std::lock_guard const lock(guard_);
        std::erase_if(owned_, [&](piece const& p) { return p.from == from; });
    }
    /// What the place lies in.
    piece around(void const* place) {
        std::lock_guard const lock(guard_);
        for (piece const& p : owned_)
            if (static_cast<std::size_t>(static_cast<std::byte const*>(place) - p.from) < p.bytes) return p;
        return {};
    }
    /// The device that the memory is of; −1: none.
    int owner(void const* place) { return around(place).device; }

  private:
    template <class Done> bool until(Done const& so) {
        time_point const patience = clock::now() + std::chrono::seconds(60);
        while (!so()) {
            if (clock::now() > patience) return false;
            if (options.workers == 0)
                turn();
            else
                ::sched_yield();
        }
        return true;
    }
    static std::uint64_t next(std::atomic<std::uint64_t>& state) noexcept {
        std::uint64_t mixed = state.fetch_add(0x9e3779b97f4a7c15u, std::memory_order_relaxed);
        mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
        mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
        return mixed ^ (mixed >> 31);
    }
    void work() {
        // Its own copy of the list: a lock that all workers take would order what nothing else orders.
        std::vector<std::shared_ptr<detail::host_queue>> queues;
        int idle = 0; // rounds; who finds nothing to do for long sleeps, for ranks need the cores
        for (std::uint64_t round = 0; !stop_.load(std::memory_order_relaxed); ++round) {
            if (round % 64 == 0) {
                std::lock_guard const lock(guard_);
                queues = queues_;
            }
            if (!queues.empty() && queues[next(random_) % queues.size()]->turn())
                idle = 0;
            else if (++idle < 200)
                ::sched_yield();
            else
                ::usleep(50);
        }
    }

    std::mutex guard_;
    std::vector<std::shared_ptr<detail::host_queue>> queues_;
    std::vector<std::byte*> kept_;
    std::vector<piece> owned_;
    std::uint64_t entered_ = 0;
    std::atomic<std::uint64_t> random_;
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<bool> stop_{false};
    std::vector<pthread_t> workers_;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_MACHINE_HPP
