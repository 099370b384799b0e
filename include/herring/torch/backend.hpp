// herring: a backend of PyTorch's distributed package (c10d), over the table of a policy pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_BACKEND_HPP
#define HERRING_TORCH_BACKEND_HPP

#include "herring/base/error.hpp"
#include "herring/torch/device.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/worker.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace herring::torch {

/// A collective under way, as PyTorch sees it.
///
/// Threads: `run` in one; all others from any.
class work : public ::c10d::Work {
  public:
    /// `describes`: what has to be alike on all ranks, in words.
    work(int rank, ::c10d::OpType type, char const* title, std::vector<at::Tensor> results,
         std::uint64_t number, std::string describes, device_order order)
        : Work(rank, type, title, results), results_(std::move(results)), number_(number),
          describes_(std::move(describes)), order_(std::move(order)) {}

    void run() noexcept {
        outcome ended;
        std::exception_ptr why;
        try {
            order_.run([&] { body(ended); });
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
        {
            std::lock_guard const lock(mutex_);
            if (future_) return future_;
            future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()),
                                                               order_.devices());
            over = over_;
        }
        if (over) settle(*future_, exception_);
        return future_;
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
    virtual void body(outcome& result) = 0;

    void settle(c10::ivalue::Future& future, std::exception_ptr const& why) noexcept {
        try {
            if (why)
                future.setError(why);
            else
                future.markCompleted(c10::IValue(results_));
        } catch (...) { // of a callback: it is in the future that `then` returned
        }
    }

    std::vector<at::Tensor> results_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    std::uint64_t number_;
    std::string describes_;
    device_order order_;
    bool over_ = false;
};

template <class Body> class work_of final : public work {
  public:
    template <class... Arguments>
    explicit work_of(Body body, Arguments&&... arguments)
        : work(std::forward<Arguments>(arguments)...), body_(std::move(body)) {}

  private:
    void body(outcome& result) override {
        (*body_)(result);
        body_.reset(); // the tensors that it holds
    }
    std::optional<Body> body_;
};

/// The backend of a process group: one worker thread and one queue over `table`. A call that does not ask for
/// an asynchronous result, and has none before it, runs in the caller's thread.
///
/// Types:    float32, float64, bfloat16, float16, int32, int64 are reduced; 8- and 16-bit integers and bool
///           as int32. All types are moved.
/// Threads:  calls of one group in the same order on all ranks; `abort`, `getError` and `setTimeout` from
///           any. Python's lock (GIL) is free wherever the group waits.
/// Errors:   `torch.distributed.DistBackendError` with the message of `herring::failure`: of a bad argument
///           at once, and the group goes on; else by `wait` and the future, and the group has ended.
class process_group : public ::c10d::Backend {
    using milliseconds = std::chrono::milliseconds;
    using work_pointer = c10::intrusive_ptr<work>;
    using result = c10::intrusive_ptr<::c10d::Work>;
    using tensors = std::vector<at::Tensor>;
    using tensor_lists = std::vector<std::vector<at::Tensor>>;

  public:
    /// Joins the ranks of a group through its store. Collective.
    ///
    /// Blocks: until all ranks are here, at most `timeout`.
    process_group(table const& calls, c10::intrusive_ptr<::c10d::Store> store, int rank, int size,
                  milliseconds timeout, std::string name = "herring")
        : Backend(rank, size), calls_(calls), store_(std::move(store)), timeout_ms_(timeout.count()),
          name_(std::move(name)) {
        if (calls.abi != abi || calls.size != sizeof(table))
            refuse("join", "its collectives were compiled with another version of herring/torch/table.hpp; "
                           "compile them again with the headers of this module");
        prefix_ = "herring/" + std::to_string(store_->add("herring/" + std::to_string(rank), 1)) + "/";
        outcome joined;
        gather_function const through{this,
                                      [](void* self, void const* mine, std::size_t bytes, void* to,
                                         void (*reply)(void*, void const*, std::size_t)) -> char const* {
                                          return static_cast<process_group*>(self)->gather_by_store(
                                              mine, bytes, to, reply);
                                      }};
        group_ = calls.open(rank, size, through, timeout.count(), joined);
        if (group_ == nullptr) throw work::error_of(joined.text);
        worker_ = std::make_unique<worker<work_pointer>>();
        if (size > 1) watch_ = std::make_unique<watch>(*this);
        std::lock_guard const lock(all().mutex);
        all().groups.insert(this);
    }
    ~process_group() override {
        {
            std::lock_guard const lock(all().mutex);
            all().groups.erase(this);
        }
        outside_of_python([this] { end(milliseconds::max()); });
    }

    const std::string getBackendName() const override { return name_; }

    // ---- collectives

    result allreduce(tensors& inout, ::c10d::AllreduceOptions const& options) override {
        return reduce_all(::c10d::OpType::ALLREDUCE, {one("all_reduce", inout)}, options);
    }
    result allreduce_coalesced(tensors& inout, ::c10d::AllreduceCoalescedOptions const& options) override {
        return reduce_all(::c10d::OpType::ALLREDUCE_COALESCED, inout, options);
    }
    result reduce(tensors& inout, ::c10d::ReduceOptions const& options) override {
        constexpr char const* operation = "reduce";
        at::Tensor const tensor = one(operation, inout);
        check(operation, tensor, true);
        int const root = root_of(operation, options.rootRank);
        reduction const by = reduction_of(operation, tensor, options.reduceOp);
        return start(::c10d::OpType::REDUCE, operation, tensor.device(), options, inout,
                     in_words(operation, {tensor}, &by, root), [=, this](runner const& run) {
                         at::Tensor const in = by.widened(tensor);
                         at::Tensor const total = rank_ == root ? in : at::empty_like(in);
                         run(calls_.all_reduce[by.index()], by.call_of(run, in, total));
                         if (rank_ == root) by.narrow(total, tensor);
                     });
    }
    result broadcast(tensors& inout, ::c10d::BroadcastOptions const& options) override {
        constexpr char const* operation = "broadcast";
        at::Tensor const tensor = one(operation, inout);
        check(operation, tensor, true);
        int const root = root_of(operation, options.rootRank);
        return start(::c10d::OpType::BROADCAST, operation, tensor.device(), options, inout,
                     in_words(operation, {tensor}, nullptr, root), [=, this](runner const& run) {
                         run(calls_.broadcast,
                             {.out = run.memory.change(tensor), .count = tensor.nbytes(), .root = root});
                     });
    }
    result _allgather_base(at::Tensor& out, at::Tensor& in,
                           ::c10d::AllgatherOptions const& options) override {
        return gather_all(::c10d::OpType::_ALLGATHER_BASE, {out}, {in}, options);
    }
    result allgather_into_tensor_coalesced(tensors& out, tensors& in,
                                           ::c10d::AllgatherOptions const& options) override {
        return gather_all(::c10d::OpType::COALESCED, out, in, options);
    }
    result allgather(tensor_lists& out, tensors& in, ::c10d::AllgatherOptions const& options) override {
        one("all_gather", in);
        return gather_lists(::c10d::OpType::ALLGATHER, out, in, options);
    }
    /// The lists of results are by rank: `out[r][i]` is tensor i of rank r.
    result allgather_coalesced(tensor_lists& out, tensors& in,
                               ::c10d::AllgatherOptions const& options) override {
        tensor_lists by_tensor(in.size());
        for (auto const& of_rank : out) {
            if (of_rank.size() != in.size())
                refuse("all_gather", "a list of results has another number of tensors than the input");
            for (std::size_t i = 0; i < in.size(); ++i) by_tensor[i].push_back(of_rank[i]);
        }
        return gather_lists(::c10d::OpType::ALLGATHER_COALESCED, by_tensor, in, options);
    }
    result _reduce_scatter_base(at::Tensor& out, at::Tensor& in,
                                ::c10d::ReduceScatterOptions const& options) override {
        return scatter_reduced(::c10d::OpType::_REDUCE_SCATTER_BASE, {out}, {in}, options);
    }
    result reduce_scatter_tensor_coalesced(tensors& out, tensors& in,
                                           ::c10d::ReduceScatterOptions const& options) override {
        return scatter_reduced(::c10d::OpType::COALESCED, out, in, options);
    }
    result reduce_scatter(tensors& out, tensor_lists& in,
                          ::c10d::ReduceScatterOptions const& options) override {
        constexpr char const* operation = "reduce_scatter";
        at::Tensor const mine = one(operation, out);
        check_list(operation, in, mine);
        return scatter_reduced(::c10d::OpType::REDUCE_SCATTER, {mine}, {joined(in[0])}, options);
    }
    result gather(tensor_lists& out, tensors& in, ::c10d::GatherOptions const& options) override {
        constexpr char const* operation = "gather";
        at::Tensor const mine = one(operation, in);
        check(operation, mine);
        int const root = root_of(operation, options.rootRank);
        if (rank_ == root) check_list(operation, out, mine);
        tensors const to = rank_ == root ? out[0] : tensors();
        return start(::c10d::OpType::GATHER, operation, mine.device(), options, to,
                     in_words(operation, {mine}, nullptr, root), [=, this](runner const& run) {
                         at::Tensor const all = rank_ == root ? room_for(to) : at::Tensor();
                         if (run(calls_.gather, {.in = run.memory.read(mine),
                                                 .out = rank_ == root ? run.memory.write(all) : nullptr,
                                                 .count = mine.nbytes(),
                                                 .root = root}))
                             split(all, to);
                     });
    }
    result scatter(tensors& out, tensor_lists& in, ::c10d::ScatterOptions const& options) override {
        constexpr char const* operation = "scatter";
        at::Tensor const mine = one(operation, out);
        check(operation, mine);
        int const root = root_of(operation, options.rootRank);
        if (rank_ == root) check_list(operation, in, mine);
        at::Tensor const all = rank_ == root ? joined(in[0]) : at::Tensor();
        return start(::c10d::OpType::SCATTER, operation, mine.device(), options, out,
                     in_words(operation, {mine}, nullptr, root), [=, this](runner const& run) {
                         run(calls_.scatter, {.in = rank_ == root ? run.memory.read(all) : nullptr,
                                              .out = run.memory.write(mine),
                                              .count = mine.nbytes(),
                                              .root = root});
                     });
    }
    result alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& out_splits,
                         std::vector<std::int64_t>& in_splits,
                         ::c10d::AllToAllOptions const& options) override {
        constexpr char const* operation = "all_to_all";
        check_pair(operation, in, out);
        return exchange(::c10d::OpType::ALLTOALL_BASE, {out}, in, out,
                        bytes_of_splits(operation, in, in_splits),
                        bytes_of_splits(operation, out, out_splits), options);
    }
    result alltoall(tensors& out, tensors& in, ::c10d::AllToAllOptions const& options) override {
        constexpr char const* operation = "all_to_all";
        if (in.size() != ranks() || out.size() != ranks())
            refuse(operation, "it takes one tensor for each rank and one from each rank");
        std::vector<std::size_t> sends, receives;
        for (std::size_t r = 0; r < ranks(); ++r) {
            check_pair(operation, in[0], in[r]);
            check_pair(operation, in[0], out[r]);
            sends.push_back(in[r].nbytes());
            receives.push_back(out[r].nbytes());
        }
        return exchange(::c10d::OpType::ALLTOALL, out, joined(in), room_for(out), std::move(sends),
                        std::move(receives), options);
    }
    result barrier(::c10d::BarrierOptions const& options) override {
        return start(::c10d::OpType::BARRIER, "barrier", at::Device(at::kCPU), options, {}, "barrier",
                     [this](runner const& run) { run(calls_.barrier, {}); });
    }
    result send(tensors&, int, int) override { refuse_pairs("send"); }
    result recv(tensors&, int, int) override { refuse_pairs("recv"); }
    result recvAnysource(tensors&, int) override { refuse_pairs("recv"); }

    // ---- the group
    // Without `override`: older versions of c10d have fewer of them.

    /// The timeout of calls from now on that name none.
    virtual void setTimeout(milliseconds timeout) { timeout_ms_.store(timeout.count()); }
    /// Ends the group for all ranks, and every call of it.
    virtual void abort() {
        if (forked_off() || group_ == nullptr) return;
        calls_.fail(group_, static_cast<std::int32_t>(errc::peer_failed), rank_, "abort",
                    "it called abort() of the process group; destroy it on all ranks, and make a new one");
    }
    /// Leaves the group in order, after what is queued.
    virtual void shutdown() {
        outside_of_python([this] { end(milliseconds::max()); });
    }
    virtual ::c10d::ErrorType getError() {
        outcome why;
        std::lock_guard const lock(ending_);
        if (forked_off() || group_ == nullptr || !calls_.failed(group_, why))
            return ::c10d::ErrorType::SUCCESS;
        switch (static_cast<errc>(why.code)) {
        case errc::timeout:
            return ::c10d::ErrorType::TIMEOUT;
        case errc::peer_lost:
        case errc::peer_failed:
            return ::c10d::ErrorType::REMOTE_ERROR;
        default:
            return ::c10d::ErrorType::COMM_ERROR;
        }
    }
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return number_.load(); }

    /// Ends all groups of the process, for its end: waits at most `patience` for what is queued, and then
    /// aborts it.
    static void end_all(milliseconds patience) {
        std::lock_guard const lock(all().mutex);
        for (process_group* one : all().groups) one->end(patience);
    }
    /// Calls a function while the calling thread does not hold Python's lock. Set by the Python module.
    static inline void (*release_python)(void (*run)(void*), void* with) = nullptr;

  private:
    struct registry {
        std::mutex mutex;
        std::set<process_group*> groups;
    };
    static registry& all() {
        static registry* const here = new registry; // not destroyed: groups may live longer than statics
        return *here;
    }

    /// Watches for a call that takes long because ranks are in different ones. A reducer compares the calls
    /// that reach it; ranks in calls of different types wait in different reducers until the deadline. After
    /// a second a rank writes the words of its call to the store, and compares those of the others.
    class watch {
      public:
        explicit watch(process_group& of) : of_(of), thread_([this] { loop(); }) {}
        ~watch() {
            {
                std::lock_guard const lock(mutex_);
                stop_ = true;
            }
            wake_.notify_one();
            thread_.join();
        }

      private:
        static constexpr milliseconds interval{500}, patience{1000};

        void loop() {
            std::unique_lock lock(mutex_);
            while (!wake_.wait_for(lock, interval, [&] { return stop_; })) {
                auto const now = of_.worker_->running();
                if (now.task == nullptr || std::chrono::steady_clock::now() - now.since < patience) continue;
                lock.unlock();
                try {
                    compare(*now.task);
                } catch (...) { // the store has gone: the call has its deadline
                }
                lock.lock();
            }
        }
        std::string key(int rank) const { return of_.prefix_ + "call/" + std::to_string(rank); }
        void compare(work const& mine) {
            std::string const number = std::to_string(mine.getSequencenumber()) + " ";
            if (number != written_) of_.store_->set(key(of_.rank_), number + mine.describes());
            written_ = number;
            for (int r = 0; r < of_.size_; ++r) {
                if (r == of_.rank_ || !of_.store_->check({key(r)})) continue;
                std::string const theirs = of_.store_->get_to_str(key(r));
                if (theirs.compare(0, number.size(), number) != 0) continue;
                std::string const other = theirs.substr(number.size());
                if (other == mine.describes()) continue;
                std::string const text = "rank " + std::to_string(r) + " is in " + other + ", rank " +
                                         std::to_string(of_.rank_) + " in " + mine.describes() +
                                         "; see that all ranks make the same calls in the same order";
                of_.calls_.fail(of_.group_, static_cast<std::int32_t>(errc::mismatch), r,
                                mine.describes().substr(0, mine.describes().find(' ')).c_str(), text.c_str());
                return;
            }
        }

        process_group& of_;
        std::mutex mutex_;
        std::condition_variable wake_;
        std::string written_;
        bool stop_ = false;
        std::thread thread_; // the last: it uses all others
    };

    std::size_t ranks() const noexcept { return static_cast<std::size_t>(size_); }
    bool forked_off() const noexcept { return ::getpid() != process_; }

    // ---- set-up and end

    /// Rank 0 collects what the ranks write, and writes it for all: two requests a rank.
    char const* gather_by_store(void const* mine, std::size_t bytes, void* to,
                                void (*reply)(void*, void const*, std::size_t)) {
        std::string const round = prefix_ + std::to_string(gathers_++) + "/";
        auto const key = [&](int rank) { return round + std::to_string(rank); };
        auto const first = static_cast<std::uint8_t const*>(mine);
        std::string missing;
        try {
            milliseconds const timeout(timeout_ms_.load());
            store_->set(key(rank_), std::vector<std::uint8_t>(first, first + bytes));
            std::vector<std::uint8_t> all;
            if (rank_ == 0) {
                for (int r = 0; r < size_; ++r) {
                    missing = "rank " + std::to_string(r);
                    store_->wait({key(r)}, timeout);
                    auto const one = store_->get(key(r));
                    auto const length = static_cast<std::uint64_t>(one.size());
                    for (int byte = 0; byte < 8; ++byte)
                        all.push_back(static_cast<std::uint8_t>(length >> 8 * byte));
                    all.insert(all.end(), one.begin(), one.end());
                }
                store_->set(round + "all", all);
            } else {
                missing = "rank 0";
                store_->wait({round + "all"}, timeout);
                all = store_->get(round + "all");
            }
            std::size_t at = 0;
            for (int r = 0; r < size_; ++r) {
                if (all.size() - at < 8) return "what the store holds of rank 0 is cut off";
                std::uint64_t length = 0;
                for (unsigned byte = 0; byte < 8; ++byte)
                    length |= static_cast<std::uint64_t>(all[at + byte]) << 8 * byte;
                at += 8;
                if (all.size() - at < length) return "what the store holds of rank 0 is cut off";
                reply(to, all.data() + at, static_cast<std::size_t>(length));
                at += static_cast<std::size_t>(length);
            }
            return nullptr;
        } catch (std::exception const& e) {
            gather_fault_ = missing + " has written nothing to the store of the process group: " +
                            std::string(e.what()).substr(0, 200);
            return gather_fault_.c_str();
        }
    }
    template <class Run> static void outside_of_python(Run run) {
        if (release_python == nullptr) return run();
        release_python([](void* with) { (*static_cast<Run*>(with))(); }, &run);
    }
    void end(milliseconds patience) noexcept {
        if (forked_off()) { // of another process: neither its threads nor its connections are here
            (void)worker_.release();
            (void)watch_.release();
            return;
        }
        std::lock_guard const once(ending_);
        if (group_ == nullptr) return;
        auto const never = std::chrono::steady_clock::time_point::max();
        auto const deadline =
            patience == milliseconds::max() ? never : std::chrono::steady_clock::now() + patience;
        worker_->close();
        if (!worker_->drain(deadline)) {
            calls_.fail(group_, static_cast<std::int32_t>(errc::peer_failed), rank_, "exit",
                        "it ends with calls in flight; wait for them, and call destroy_process_group()");
            worker_->drain(never);
        }
        watch_.reset();
        calls_.close(group_);
        group_ = nullptr;
    }

    // ---- calls

    /// Runs a function of the table, for a call that is under way.
    struct runner {
        process_group& of;
        outcome& ended;
        std::int64_t timeout_ms;
        host_memory& memory;

        /// Returns true after success, with the results where they belong. After a failure the next ones of
        /// the call are left out.
        bool operator()(table::function what, call with) const {
            if (ended.code != 0) return false;
            with.timeout_ms = timeout_ms;
            what(of.group_, with, ended);
            if (ended.code == 0) memory.finish();
            return ended.code == 0;
        }
    };

    /// `body(runner)`: the call. It holds the tensors until it has returned.
    template <class Options, class Body>
    result start(::c10d::OpType type, char const* operation, at::Device device, Options const& options,
                 tensors results, std::string describes, Body body) {
        if (forked_off())
            refuse(operation,
                   "this process was forked off a rank, and is none; make process groups after the fork",
                   errc::bad_state);
        std::int64_t const timeout_ms =
            options.timeout == ::c10d::kUnsetTimeout ? timeout_ms_.load() : options.timeout.count();
        auto run = [this, timeout_ms, body = std::move(body)](outcome& ended) {
            host_memory memory;
            body(runner{*this, ended, timeout_ms, memory});
        };
        std::string const title = std::string("herring:") + operation; // in PyTorch's profiler
        auto task = c10::make_intrusive<work_of<decltype(run)>>(std::move(run), rank_, type, title.c_str(),
                                                                std::move(results), ++number_,
                                                                std::move(describes), device_order(device));
        if (worker_->take(task, !options.asyncOp) == worker<work_pointer>::taken::refused)
            refuse(operation,
                   "the process group is destroyed; make it again by init_process_group or new_group",
                   errc::bad_state);
        return task;
    }

    result reduce_all(::c10d::OpType type, tensors const& inout, ::c10d::AllreduceOptions const& options) {
        constexpr char const* operation = "all_reduce";
        std::vector<reduction> by;
        if (inout.empty()) refuse(operation, "it takes at least one tensor");
        for (auto const& tensor : inout) {
            check(operation, tensor, true);
            if (tensor.device() != inout[0].device()) refuse_devices(operation, inout[0], tensor);
            by.push_back(reduction_of(operation, tensor, options.reduceOp));
        }
        std::string words = in_words(operation, inout, by.data());
        return start(type, operation, inout[0].device(), options, inout, std::move(words),
                     [=, this](runner const& run) {
                         for (std::size_t i = 0; i < inout.size(); ++i) {
                             at::Tensor const in = by[i].widened(inout[i]);
                             if (run(calls_.all_reduce[by[i].index()], by[i].call_of(run, in, in)))
                                 by[i].narrow(in, inout[i]);
                         }
                     });
    }
    result gather_all(::c10d::OpType type, tensors const& out, tensors const& in,
                      ::c10d::AllgatherOptions const& options) {
        constexpr char const* operation = "all_gather";
        check_counts(operation, out, in);
        for (std::size_t i = 0; i < in.size(); ++i) {
            check_pair(operation, in[i], out[i]);
            if (out[i].numel() != in[i].numel() * size_)
                refuse(operation, "the result has " + std::to_string(out[i].numel()) +
                                      " elements: it needs those of the input times the ranks, " +
                                      std::to_string(in[i].numel() * size_));
        }
        return start(type, operation, in[0].device(), options, out, in_words(operation, in, nullptr),
                     [=, this](runner const& run) {
                         for (std::size_t i = 0; i < in.size(); ++i)
                             run(calls_.all_gather, {.in = run.memory.read(in[i]),
                                                     .out = run.memory.write(out[i]),
                                                     .count = in[i].nbytes()});
                     });
    }
    /// `out[i]`: the list of results of tensor i.
    result gather_lists(::c10d::OpType type, tensor_lists const& out, tensors const& in,
                        ::c10d::AllgatherOptions const& options) {
        constexpr char const* operation = "all_gather";
        if (out.size() != in.size()) refuse(operation, "it needs one list of results for each tensor");
        tensors results;
        for (std::size_t i = 0; i < in.size(); ++i) {
            check(operation, in[i]);
            check_list(operation, {out[i]}, in[i]);
            results.insert(results.end(), out[i].begin(), out[i].end());
        }
        return start(type, operation, in[0].device(), options, std::move(results),
                     in_words(operation, in, nullptr), [=, this](runner const& run) {
                         for (std::size_t i = 0; i < in.size(); ++i) {
                             at::Tensor const all = room_for(out[i]);
                             if (run(calls_.all_gather, {.in = run.memory.read(in[i]),
                                                         .out = run.memory.write(all),
                                                         .count = in[i].nbytes()}))
                                 split(all, out[i]);
                         }
                     });
    }
    result scatter_reduced(::c10d::OpType type, tensors const& out, tensors const& in,
                           ::c10d::ReduceScatterOptions const& options) {
        constexpr char const* operation = "reduce_scatter";
        check_counts(operation, out, in);
        std::vector<reduction> by;
        for (std::size_t i = 0; i < in.size(); ++i) {
            check_pair(operation, in[i], out[i]);
            if (in[i].numel() != out[i].numel() * size_)
                refuse(operation, "the input has " + std::to_string(in[i].numel()) +
                                      " elements: it needs those of the result times the ranks, " +
                                      std::to_string(out[i].numel() * size_));
            by.push_back(reduction_of(operation, in[i], options.reduceOp));
        }
        std::string words = in_words(operation, in, by.data());
        return start(type, operation, in[0].device(), options, out, std::move(words),
                     [=, this](runner const& run) {
                         for (std::size_t i = 0; i < in.size(); ++i) {
                             at::Tensor const from = by[i].widened(in[i]), to = by[i].widened(out[i]);
                             if (run(calls_.reduce_scatter[by[i].index()], by[i].call_of(run, from, to)))
                                 by[i].narrow(to, out[i]);
                         }
                     });
    }
    result exchange(::c10d::OpType type, tensors const& out, at::Tensor const& in, at::Tensor const& all,
                    std::vector<std::size_t> sends, std::vector<std::size_t> receives,
                    ::c10d::AllToAllOptions const& options) {
        constexpr char const* operation = "all_to_all";
        // Sizes differ between ranks: they are not in the words.
        return start(type, operation, in.device(), options, out, operation, [=, this](runner const& run) {
            if (run(calls_.all_to_all, {.in = run.memory.read(in),
                                        .out = run.memory.write(all),
                                        .sends = sends.data(),
                                        .receives = receives.data()}))
                if (!all.is_same(out[0])) split(all, out);
        });
    }

    // ---- arguments

    [[noreturn]] void refuse(char const* operation, std::string const& text,
                             errc what = errc::bad_argument) const {
        throw work::error_of("herring: rank " + std::to_string(rank_) + ": " + operation + ": " +
                             to_string(what) + ": " + text);
    }
    [[noreturn]] void refuse_pairs(char const* operation) const {
        refuse(operation,
               "herring has collectives only, no messages between two ranks; make a group for these by "
               "new_group(backend=\"gloo\")",
               errc::unsupported);
    }
    [[noreturn]] void refuse_devices(char const* operation, at::Tensor const& a, at::Tensor const& b) const {
        refuse(operation, "the tensors lie on " + a.device().str() + " and " + b.device().str() +
                              ": a call takes those of one device");
    }
    at::Tensor const& one(char const* operation, tensors const& given) const {
        if (given.size() != 1) refuse(operation, "it takes one tensor");
        return given[0];
    }
    int root_of(char const* operation, std::int64_t root) const {
        if (root < 0 || root >= size_)
            refuse(operation,
                   "there is no rank " + std::to_string(root) + " in a group of " + std::to_string(size_));
        return static_cast<int>(root);
    }
    /// `any_order`: the strides may be permuted, as those of channels_last.
    void check(char const* operation, at::Tensor const& tensor, bool any_order = false) const {
        if (!tensor.defined()) refuse(operation, "a tensor is not defined");
        if (tensor.layout() != at::kStrided)
            refuse(operation, std::string("the tensor's layout is ") + c10::str(tensor.layout()) +
                                  ": it needs a dense one; call to_dense() first");
        if (!tensor.is_cpu() && !tensor.is_cuda())
            refuse(operation,
                   "the tensor lies on " + tensor.device().str() +
                       ", and this backend is of tensors of the CPU and of CUDA; call cpu() first");
        if (!(any_order ? tensor.is_non_overlapping_and_dense() : tensor.is_contiguous()))
            refuse(operation, "the tensor is not contiguous; call contiguous() first");
    }
    void check_pair(char const* operation, at::Tensor const& in, at::Tensor const& out) const {
        check(operation, in);
        check(operation, out);
        if (in.device() != out.device()) refuse_devices(operation, in, out);
        if (in.scalar_type() != out.scalar_type())
            refuse(operation, std::string("the tensors have different types, ") +
                                  c10::toString(in.scalar_type()) + " and " +
                                  c10::toString(out.scalar_type()));
    }
    void check_counts(char const* operation, tensors const& out, tensors const& in) const {
        if (in.size() != out.size() || in.empty())
            refuse(operation, "it takes as many tensors as results, and at least one");
    }
    /// `lists`: one list, with a tensor like `mine` for each rank.
    void check_list(char const* operation, tensor_lists const& lists, at::Tensor const& mine) const {
        if (lists.size() != 1 || lists[0].size() != ranks())
            refuse(operation, "it needs a list of one tensor for each rank, " + std::to_string(size_));
        for (auto const& tensor : lists[0]) {
            check_pair(operation, mine, tensor);
            if (tensor.numel() != mine.numel())
                refuse(operation, "the tensors of the list have " + std::to_string(tensor.numel()) +
                                      " elements, that of this rank " + std::to_string(mine.numel()));
        }
    }
    std::vector<std::size_t> bytes_of_splits(char const* operation, at::Tensor const& tensor,
                                             std::vector<std::int64_t> const& splits) const {
        std::int64_t const rows = tensor.dim() == 0 ? 1 : tensor.size(0);
        std::size_t const row = rows == 0 ? 0 : tensor.nbytes() / static_cast<std::size_t>(rows);
        if (splits.empty()) {
            if (rows % size_ != 0)
                refuse(operation, "the first dimension, " + std::to_string(rows) +
                                      ", cannot be divided by the ranks; name the sizes of the splits");
            return std::vector<std::size_t>(ranks(), tensor.nbytes() / ranks());
        }
        std::vector<std::size_t> bytes;
        std::int64_t sum = 0;
        for (std::int64_t const split : splits) {
            if (split < 0) refuse(operation, "a split has a negative size");
            sum += split;
            bytes.push_back(static_cast<std::size_t>(split) * row);
        }
        if (splits.size() != ranks() || sum != rows)
            refuse(operation,
                   "the splits need to be one a rank, and as many rows together as the tensor has");
        return bytes;
    }

    static at::Tensor joined(tensors const& list) {
        tensors parts;
        for (auto const& tensor : list) parts.push_back(tensor.reshape({-1}));
        return at::cat(parts);
    }
    static at::Tensor room_for(tensors const& list) {
        std::int64_t elements = 0;
        for (auto const& tensor : list) elements += tensor.numel();
        return at::empty({elements}, list[0].options());
    }
    static void split(at::Tensor const& all, tensors const& list) {
        std::int64_t at = 0;
        for (auto const& tensor : list) {
            tensor.copy_(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
            at += tensor.numel();
        }
    }

    /// The type and the rule of a reduction. Small integers are reduced as int32: the low bits of the result
    /// are those of their own arithmetic, which wraps.
    struct reduction {
        type of = type::float32;
        rule by = rule::sum;
        bool widens = false;

        std::size_t index() const noexcept { return static_cast<std::size_t>(of); }
        at::Tensor widened(at::Tensor const& tensor) const { return widens ? tensor.to(at::kInt) : tensor; }
        void narrow(at::Tensor const& total, at::Tensor const& to) const {
            if (widens) to.copy_(total);
        }
        call call_of(runner const& run, at::Tensor const& in, at::Tensor const& out) const {
            void* const to = out.is_same(in) ? run.memory.change(out) : run.memory.write(out);
            return {.in = out.is_same(in) ? to : run.memory.read(in),
                    .out = to,
                    .count = static_cast<std::size_t>(in.numel()),
                    .by = by};
        }
    };
    reduction reduction_of(char const* operation, at::Tensor const& tensor,
                           ::c10d::ReduceOp const& op) const {
        reduction found;
        switch (tensor.scalar_type()) {
        case at::kFloat:
            break;
        case at::kDouble:
            found.of = type::float64;
            break;
        case at::kBFloat16:
            found.of = type::bfloat16;
            break;
        case at::kHalf:
            found.of = type::float16;
            break;
        case at::kLong:
            found.of = type::int64;
            break;
        case at::kBool:
        case at::kByte:
        case at::kChar:
        case at::kShort:
            found.widens = true;
            [[fallthrough]];
        case at::kInt:
            found.of = type::int32;
            break;
        default:
            refuse(operation, std::string("elements of type ") + c10::toString(tensor.scalar_type()) +
                                  " are not reduced; convert them to float32 or int64");
        }
        switch (op.op_) {
        case ::c10d::ReduceOp::SUM:
            break;
        case ::c10d::ReduceOp::AVG:
            found.by = rule::average;
            break;
        case ::c10d::ReduceOp::PRODUCT:
            found.by = rule::product;
            break;
        case ::c10d::ReduceOp::MIN:
            found.by = rule::min;
            break;
        case ::c10d::ReduceOp::MAX:
            found.by = rule::max;
            break;
        default:
            refuse(operation, "the rule has to be SUM, AVG, MIN, MAX or PRODUCT", errc::unsupported);
        }
        if ((calls_.by_type[found.index()] >> static_cast<unsigned>(found.by) & 1u) == 0)
            refuse(operation,
                   std::string(c10::toString(tensor.scalar_type())) + " has no " +
                       rule_names[static_cast<std::size_t>(found.by)] +
                       ": it would be rounded; take SUM, or convert to float32",
                   errc::unsupported);
        return found;
    }

    /// A call in words, for the comparison with other ranks: "all_reduce of 10 Float by SUM".
    static std::string in_words(char const* operation, tensors const& given, reduction const* by,
                                int root = -1) {
        std::string words = operation;
        for (std::size_t i = 0; i < given.size(); ++i)
            words += (i == 0 ? " of " : ", ") + std::to_string(given[i].numel()) + " " +
                     c10::toString(given[i].scalar_type());
        if (by != nullptr && !given.empty())
            words += std::string(" by ") + rule_names[static_cast<std::size_t>(by->by)];
        if (root >= 0) words += ", root " + std::to_string(root);
        return words;
    }

    table const& calls_;
    c10::intrusive_ptr<::c10d::Store> store_;
    std::atomic<std::int64_t> timeout_ms_;
    std::string name_;
    std::string prefix_; ///< of this group's keys in the store
    int gathers_ = 0;
    std::string gather_fault_;
    std::atomic<std::uint64_t> number_{0};
    pid_t const process_ = ::getpid();
    std::mutex ending_;
    struct group* group_ = nullptr;
    std::unique_ptr<worker<work_pointer>> worker_;
    std::unique_ptr<watch> watch_;
};

/// The backend of a policy pack: `table_of<Policies...>` lies in the translation unit that includes
/// herring/torch/collectives.hpp, and instantiates it there; this one or another.
///
/// Example: c10::intrusive_ptr<c10d::Backend> group = c10::make_intrusive<
///              herring::torch::backend<herring::transport::tcp>>(store, rank, size, timeout);
template <class... Policies> class backend : public process_group {
  public:
    backend(c10::intrusive_ptr<::c10d::Store> store, int rank, int size, std::chrono::milliseconds timeout)
        : process_group(table_of<Policies...>(), std::move(store), rank, size, timeout) {}
};

} // namespace herring::torch

#endif // HERRING_TORCH_BACKEND_HPP
