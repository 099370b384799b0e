// herring: runs tasks in the order of their calls, by one thread, or by the caller's where none is before it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_WORKER_HPP
#define HERRING_TORCH_WORKER_HPP

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace herring::torch {

/// One thread and one queue. At any time at most one task runs, here or in a caller's thread. A task that a
/// running one takes, as a callback does, runs at once within it: the thread that would run it later waits
/// for it now. So do the tasks of the queue, on every rank alike.
///
/// Shape:    `Task`: a smart pointer; `task->run()` throws nothing, and may take a lock of Python's.
/// Threads:  all calls from any thread. The thread starts with the first task that is queued.
/// Lifetime: the destructor waits for all tasks.
template <class Task> class worker {
  public:
    using clock = std::chrono::steady_clock;
    enum class taken { refused, queued, done };
    struct progress {
        Task task{}; ///< that runs now; null: none
        clock::time_point since{};
        std::uint64_t number = 0; ///< of the task, in the order in which tasks began: alike on all ranks
    };

    worker() = default;
    worker(worker const&) = delete;
    worker& operator=(worker const&) = delete;
    ~worker() {
        close();
        drain(clock::time_point::max()); // a task in a caller's thread, too
        work_.notify_one();              // `close` may have come while it ran
        if (thread_.joinable()) thread_.join();
    }

    /// Runs the task, here if `here` and no task is before it, or from within a task; else queues it. After
    /// `close` refuses all but those from within a task.
    taken take(Task task, bool here) {
        std::unique_lock lock(mutex_);
        bool const inner = within(this);
        if (closed_ && !inner) return taken::refused;
        if (inner || (here && queue_.empty() && now_.task == nullptr)) {
            run(std::move(task), lock);
            return taken::done;
        }
        if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
        queue_.push_back(std::move(task));
        if (now_.task == nullptr) work_.notify_one();
        return taken::queued;
    }

    /// Waits until no task is left. Returns false at the deadline.
    bool drain(clock::time_point deadline) {
        std::unique_lock lock(mutex_);
        return idle_.wait_until(lock, deadline, [&] { return queue_.empty() && now_.task == nullptr; });
    }
    /// Refuses tasks from now on; those that are queued are run.
    void close() {
        std::lock_guard const lock(mutex_);
        closed_ = true;
        work_.notify_one();
    }
    progress running() {
        std::lock_guard const lock(mutex_);
        return now_;
    }
    /// True if the calling thread is in a task of that worker, which may have gone.
    static bool within(worker const* one) noexcept {
        frame const* at = innermost_;
        while (at != nullptr && at->of != one) at = at->outer;
        return at != nullptr;
    }

  private:
    /// A task that runs in this thread, perhaps within one of another worker.
    struct frame {
        worker const* of;
        frame const* outer;
    };

    void run(Task task, std::unique_lock<std::mutex>& lock) {
        progress const outer = std::exchange(now_, {task, clock::now(), ++begun_});
        frame const here{this, innermost_};
        innermost_ = &here;
        lock.unlock();
        task->run();
        lock.lock();
        innermost_ = here.outer;
        now_ = outer; // `task` is the last, or somebody else's: it ends without the lock
        if (outer.task != nullptr) return;
        if (queue_.empty())
            idle_.notify_all();
        else
            work_.notify_one();
    }
    void loop() {
        std::unique_lock lock(mutex_);
        while (true) {
            work_.wait(lock, [&] { return now_.task == nullptr && (closed_ || !queue_.empty()); });
            if (queue_.empty()) return;
            Task next = std::move(queue_.front());
            queue_.pop_front();
            run(next, lock);
            lock.unlock();
            next = {};
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable work_, idle_;
    std::deque<Task> queue_;
    progress now_;
    std::uint64_t begun_ = 0;
    bool closed_ = false;
    std::thread thread_;
    static inline thread_local frame const* innermost_ = nullptr;
};

} // namespace herring::torch

#endif // HERRING_TORCH_WORKER_HPP
