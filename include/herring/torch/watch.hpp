// herring: finds calls of a backend of PyTorch that wait because ranks are in different ones.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_WATCH_HPP
#define HERRING_TORCH_WATCH_HPP

#include "herring/base/error.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/work.hpp"

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
/// a second a rank writes number and words of its call to the store, where another has not yet, and else
/// compares them.
///
/// Cost:     one request of the store a rank and call that takes longer than that, whatever the ranks.
/// Lifetime: `of` and `runs` outlive it.
class watch {
  public:
    using worker_type = work::worker_type;

    /// `prefix`: of the group's keys in the store.
    watch(table const& calls, group& of, worker_type& runs, c10::intrusive_ptr<::c10d::Store> store,
          std::string prefix, int rank)
        : calls_(calls), of_(of), runs_(runs), store_(std::move(store)), key_(std::move(prefix) + "call"),
          rank_(rank), thread_([this] { loop(); }) {}
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

    /// Entry of the store: the last call that a rank was long in, and the first rank of those in it.
    struct entry {
        std::uint64_t number;
        int rank;
        std::string words;

        explicit entry(std::string const& text) {
            std::size_t at = 0, length = 0;
            number = std::stoull(text, &length);
            at += length + 1;
            rank = std::stoi(text.substr(at), &length);
            words = text.substr(at + length + 1);
        }
    };

    void loop() {
        std::unique_lock lock(mutex_);
        while (!wake_.wait_for(lock, interval, [&] { return stop_; })) {
            auto const now = runs_.running();
            if (now.task == nullptr || now.number == compared_ ||
                std::chrono::steady_clock::now() - now.since < patience)
                continue;
            lock.unlock();
            try {
                compare(now.number, now.task->describes());
            } catch (...) { // the store has gone: the call has its deadline
            }
            lock.lock();
        }
    }
    void compare(std::uint64_t number, std::string const& words) {
        std::string const mine = std::to_string(number) + " " + std::to_string(rank_) + " " + words;
        std::string before, found = store_->compareSet(key_, before, mine);
        while (found != mine) {
            entry const other(found);
            if (other.number > number || found == before)
                return; // the other is in a later call; again at the next look
            if (other.number == number) {
                compared_ = number;
                if (other.words != words) fail(other, words);
                return;
            }
            before = found;
            found = store_->compareSet(key_, before, mine);
        }
        compared_ = number;
    }
    void fail(entry const& other, std::string const& words) {
        std::string const text = "rank " + std::to_string(other.rank) + " is in " + other.words + ", rank " +
                                 std::to_string(rank_) + " in " + words +
                                 "; see that all ranks make the same calls in the same order";
        calls_.fail(&of_, static_cast<std::int32_t>(errc::mismatch), other.rank,
                    words.substr(0, words.find(' ')).c_str(), text.c_str());
    }

    table const& calls_;
    group& of_;
    worker_type& runs_;
    c10::intrusive_ptr<::c10d::Store> const store_;
    std::string const key_;
    int const rank_;
    std::mutex mutex_;
    std::condition_variable wake_;
    std::uint64_t compared_ = 0;
    bool stop_ = false;
    std::thread thread_; // the last: it uses all others
};

} // namespace herring::torch

#endif // HERRING_TORCH_WATCH_HPP
