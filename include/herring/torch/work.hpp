// herring: a collective of a backend of PyTorch, under way: its state, its future, its exception.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_WORK_HPP
#define HERRING_TORCH_WORK_HPP

#include "herring/base/error.hpp"
#include "herring/torch/device.hpp"
#include "herring/torch/streams.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/worker.hpp"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace herring::torch {

/// A collective under way, as PyTorch sees it.
///
/// Threads: `run` in one; all others from any.
class work : public ::c10d::Work {
  public:
    using worker_type = worker<c10::intrusive_ptr<work>>;

    /// `runs`: the worker that is to run it. `describes`: what has to be alike on all ranks, in words.
    work(worker_type const* runs, int rank, ::c10d::OpType type, char const* title,
         std::vector<at::Tensor> results, std::uint64_t number, std::string describes,
         device_order<torch_device> order)
        : Work(rank, type, title, results), runs_(runs), results_(std::move(results)), number_(number),
          describes_(std::move(describes)), order_(std::move(order)) {}

    void run() noexcept {
        outcome ended;
        std::exception_ptr why;
        try {
            c10::NoGradGuard const no_gradients; // of copies between tensors: a thread has its own mode
            order_.run([&] { body(ended, order_.device()); });
            if (ended.code != 0) why = std::make_exception_ptr(error_of(ended.text));
        } catch (...) { // of torch: a copy between tensors
            why = std::current_exception();
        }
        c10::intrusive_ptr<c10::ivalue::Future> future;
        {
            std::lock_guard const lock(mutex_);
            over_ = true;
            exception_ = why;
            future = future_;
        }
        if (future) settle(*future, why);
        finish(why);
    }

    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
        bool over = false;
        std::exception_ptr why;
        {
            std::lock_guard const lock(mutex_);
            if (future_) return future_;
            future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                               devices_of(order_.device()));
            over = over_;
            why = exception_; // which `finish` writes
        }
        if (over) settle(*future_, why);
        return future_;
    }
    /// A callback may not wait for its own call, or for one behind it: the call would wait for the callback.
    bool wait(std::chrono::milliseconds timeout) override {
        if (worker_type::within(runs_) && !isCompleted())
            throw error_of(
                "herring: rank " + std::to_string(rank_) + ": " + describes_ + ": " +
                to_string(errc::bad_state) +
                ": a callback of a call waits for it, or for one behind it, which cannot end before "
                "the callback does; wait outside, or chain it by get_future().then()");
        return Work::wait(timeout);
    }
    /// Called by `wait`.
    void synchronize() override { order_.wait(); }
    std::vector<at::Tensor> result() override { return results_; }
    std::uint64_t getSequencenumber() const override { return number_; }
    std::string const& describes() const noexcept { return describes_; }

    static c10::DistBackendError error_of(std::string text) {
        return c10::DistBackendError({__func__, __FILE__, static_cast<std::uint32_t>(__LINE__)},
                                     std::move(text));
    }

  private:
    virtual void body(outcome& result, std::optional<torch_device> const& device) = 0;

    void settle(c10::ivalue::Future& future, std::exception_ptr const& why) noexcept {
        try {
            if (why) {
                future.setError(why);
            } else {
                order_.wait(); // the future's events come behind the results
                future.markCompleted(c10::IValue(results_));
            }
        } catch (...) { // of a callback: it is in the future that `then` returned
        }
    }

    worker_type const* const runs_; // its address alone: it may have gone
    std::vector<at::Tensor> results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::uint64_t number_;
    std::string describes_;
    device_order<torch_device> order_;
    bool over_ = false;
};

template <class Body> class work_of final : public work {
  public:
    template <class... Arguments>
    explicit work_of(Body body, Arguments&&... arguments)
        : work(std::forward<Arguments>(arguments)...), body_(std::move(body)) {}

  private:
    void body(outcome& result, std::optional<torch_device> const& device) override {
        (*body_)(result, device);
        body_.reset(); // the tensors that it holds
    }
    std::optional<Body> body_;
};

} // namespace herring::torch

#endif // HERRING_TORCH_WORK_HPP
