// herring: finds calls of a backend of PyTorch that wait because ranks are in different ones.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_WATCH_HPP
#define HERRING_TORCH_WATCH_HPP

#include "herring/base/error.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/work.hpp"
#include "herring/torch/worker.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace herring::torch {

/// Watches for a call that takes long because ranks are in different ones. A reducer compares the calls
/// that reach it; ranks in calls of different types wait in different reducers until the deadline. After
/// a second a rank writes the words of its call to the store, and compares those of the others.
///
/// Lifetime: `of` and `runs` outlive it.
class watch {
  public:
    using worker_type = worker<c10::intrusive_ptr<work>>;

    /// `prefix`: of the group's keys in the store.
    watch(table const& calls, group& of, worker_type& runs, c10::intrusive_ptr<::c10d::Store> store,
          std::string prefix, int rank, int size)
        : calls_(calls), of_(of), runs_(runs), store_(std::move(store)), prefix_(std::move(prefix)),
          rank_(rank), size_(size), thread_([this] { loop(); }) {}
    watch(watch const&) = delete;
    watch& operator=(watch const&) = delete;
    ~watch() {
        {
            std::lock_guard const lock(mutex_);
            stop_ = true;
        }
        wake_.notify_one();
        thread_.join();
    }

  private:
    static constexpr std::chrono::milliseconds interval{500}, patience{1000};

    void loop() {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, interval, [&] { return stop_; })) {
            auto const now = runs_.running();
            if (now.task == nullptr || std::chrono::steady_clock::now() - now.since < patience) continue;
            lock.unlock();
            try {
                compare(*now.task);
            } catch (...) { // the store has gone: the call has its deadline
            }
            lock.lock();
        }
    }
    std::string key(int rank) const { return prefix_ + "call/" + std::to_string(rank); }
    void compare(work const& mine) {
        std::string const number = std::to_string(mine.getSequencenumber()) + " ";
        if (number != written_) store_->set(key(rank_), number + mine.describes());
        written_ = number;
        for (int r = 0; r < size_; ++r) {
            if (r == rank_ || !store_->check({key(r)})) continue;
            std::string const theirs = store_->get_to_str(key(r));
            if (theirs.compare(0, number.size(), number) != 0) continue;
            std::string const other = theirs.substr(number.size());
            if (other == mine.describes()) continue;
            std::string const text = "rank " + std::to_string(r) + " is in " + other + ", rank " +
                                     std::to_string(rank_) + " in " + mine.describes() +
                                     "; see that all ranks make the same calls in the same order";
            calls_.fail(&of_, static_cast<std::int32_t>(errc::mismatch), r,
                        mine.describes().substr(0, mine.describes().find(' ')).c_str(), text.c_str());
            return;
        }
    }

    table const& calls_;
    group& of_;
    worker_type& runs_;
    c10::intrusive_ptr<::c10d::Store> const store_;
    std::string const prefix_;
    int const rank_, size_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::string written_;
    bool stop_ = false;
    std::thread thread_; // the last: it uses all others
};

} // namespace herring::torch

#endif // HERRING_TORCH_WATCH_HPP
