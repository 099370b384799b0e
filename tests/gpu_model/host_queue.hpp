// herring: a queue of the host's model of devices: work that is done late, in the order in which it was put in.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_QUEUE_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_QUEUE_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// One record of an event: whoever waits for it waits for no other.
using host_record = std::shared_ptr<std::atomic<bool>>;

/// What an event stands for: its last record.
class host_mark {
  public:
    host_record last() {
        std::lock_guard const lock(guard_);
        return last_;
    }
    host_record renew() {
        auto made = std::make_shared<std::atomic<bool>>(false);
        std::lock_guard const lock(guard_);
        return last_ = std::move(made);
    }

  private:
    std::mutex guard_;
    host_record last_ = std::make_shared<std::atomic<bool>>(true); // not recorded yet: nothing to wait for
};

/// What lies in a queue of the model.
struct host_work {
    enum class kind { copy, copies, fold, call, meet, record, wait } what = kind::copy;
    std::byte* to = nullptr;
    std::byte const* from = nullptr;
    std::size_t bytes = 0;
    std::span<listed_copy const> list{}; // read when its turn comes, as a device does
    std::size_t chunks = 0;              // of the list, as it was when it was put
    fold_args sum{};
    void (*run)(fold_args const&) = nullptr;
    void (*call)(void*) = nullptr;
    void* argument = nullptr;
    std::function<bool()> meets{}; // with other ranks: whether that has happened
    host_record mark{};
};

/// A queue: whoever gets hold of it does the work at its front. Nothing but its own locks orders it against others, so
/// that a missing event is a data race, and ThreadSanitizer sees it.
class host_queue {
  public:
    /// While it captures, work is kept and not done; false: this cannot be kept.
    bool put(host_work&& work) {
        std::lock_guard const lock(guard_);
        if (!capturing_) {
            work_.push_back(std::move(work));
            return true;
        }
        if (work.what == host_work::kind::record || work.what == host_work::kind::wait) return false;
        captured_.push_back(std::move(work));
        return true;
    }
    void capture() {
        std::lock_guard const lock(guard_);
        capturing_ = true;
        captured_.clear();
    }
    bool capturing() {
        std::lock_guard const lock(guard_);
        return capturing_;
    }
    std::vector<host_work> captured() {
        std::lock_guard const lock(guard_);
        capturing_ = false;
        return std::exchange(captured_, {});
    }
    bool empty() {
        std::lock_guard const lock(guard_);
        return work_.empty();
    }
    /// Does what is at the front, if that can be done now.
    bool turn() {
        std::unique_lock const turn_of(turn_, std::try_to_lock);
        if (!turn_of.owns_lock()) return false;
        host_work* front = nullptr;
        {
            std::lock_guard const lock(guard_);
            if (work_.empty()) return false;
            front = &work_.front(); // a deque's elements stay where they are
        }
        if (!done(*front)) return false;
        host_work gone; // destroyed outside the lock
        std::lock_guard const lock(guard_);
        gone = std::move(work_.front());
        work_.pop_front();
        return true;
    }

  private:
    static bool done(host_work& work) {
        switch (work.what) {
        case host_work::kind::copy:
            if (work.bytes > 0) std::memcpy(work.to, work.from, work.bytes);
            return true;
        case host_work::kind::copies:
            for (std::size_t chunk = 0; chunk < work.chunks; ++chunk)
                copy_chunk(work.list.data(), work.list.size(), chunk, 0, 1);
            return true;
        case host_work::kind::fold:
            work.run(work.sum);
            return true;
        case host_work::kind::call:
            work.call(work.argument);
            return true;
        case host_work::kind::meet:
            return work.meets();
        case host_work::kind::record:
            work.mark->store(true, std::memory_order_release);
            return true;
        case host_work::kind::wait:
            return work.mark->load(std::memory_order_acquire);
        }
        return true;
    }

    std::mutex guard_;
    std::mutex turn_;
    std::deque<host_work> work_;
    bool capturing_ = false;
    std::vector<host_work> captured_;
};

} // namespace detail

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_QUEUE_HPP
