// herring: a backend of PyTorch's distributed package (c10d), over the table of a policy pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_BACKEND_HPP
#define HERRING_TORCH_BACKEND_HPP

#include "herring/base/error.hpp"
#include "herring/torch/arguments.hpp"
#include "herring/torch/device.hpp"
#include "herring/torch/gathering.hpp"
#include "herring/torch/streams.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/watch.hpp"
#include "herring/torch/work.hpp"
#include "herring/torch/worker.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/version.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace herring::torch {

/// The backend of a process group: one worker thread and one queue over `table`. A call that does not ask for
/// an asynchronous result, and has none before it, runs in the caller's thread.
///
/// Types:    float32, float64, bfloat16, float16, int64, int32, int16, int8, uint8 and bool are reduced. All
///           types are moved.
/// Threads:  calls of one group in the same order on all ranks; `abort`, `getError` and `setTimeout` from
///           any. Python's lock (GIL) is free wherever the group waits.
/// Errors:   `torch.distributed.DistBackendError` with the message of `herring::failure`: of a bad argument
///           at once, and the group goes on; else by `wait` and the future, and the group has ended.
class process_group : public ::c10d::Backend {
    using milliseconds = std::chrono::milliseconds;
    using worker_type = work::worker_type;
    using result = c10::intrusive_ptr<::c10d::Work>;
    static constexpr auto never = worker_type::clock::time_point::max();

  public:
    /// Joins the ranks of a group through its store. Collective.
    ///
    /// Blocks: until all ranks are here, at most `timeout`.
    process_group(table const& calls, c10::intrusive_ptr<::c10d::Store> store, int rank, int size,
                  milliseconds timeout, std::string name = "herring")
        : Backend(rank, size), calls_(calls), given_(calls, rank, size), store_(std::move(store)),
          timeout_ms_(timeout.count()), name_(std::move(name)) {
        if (calls.abi != abi || calls.size != sizeof(table))
            given_.refuse("join",
                          "its collectives were compiled with another version of herring/torch/table.hpp; "
                          "compile them again with the headers of this module");
        std::string const prefix =
            "herring/" + std::to_string(store_->add("herring/" + std::to_string(rank), 1)) + "/";
        outcome joined;
        gathering through(*store_, prefix, rank, size, timeout);
        group_ = calls.open(rank, size, through.function(), timeout.count(), joined);
        if (group_ == nullptr) throw work::error_of(joined.text);
        try {
            worker_ = std::make_unique<worker_type>();
            if (size > 1) watch_ = std::make_unique<watch>(calls, *group_, *worker_, store_, prefix, rank);
            std::lock_guard const lock(all().mutex);
            all().groups.push_back(this);
        } catch (...) {     // no thread, or no memory
            watch_.reset(); // it uses the group
            calls.close(group_);
            throw;
        }
    }
    ~process_group() override {
        {
            std::lock_guard const lock(all().mutex);
            std::erase(all().groups, this);
        }
        outside_of_python([this] { end(never); });
    }

    const std::string getBackendName() const override { return name_; }

    // ---- collectives

    result allreduce(tensors& inout, ::c10d::AllreduceOptions const& options) override {
        return reduce_all(::c10d::OpType::ALLREDUCE, {given_.one("all_reduce", inout)}, options);
    }
    result allreduce_coalesced(tensors& inout, ::c10d::AllreduceCoalescedOptions const& options) override {
        return reduce_all(::c10d::OpType::ALLREDUCE_COALESCED, inout, options);
    }
    result reduce(tensors& inout, ::c10d::ReduceOptions const& options) override {
        constexpr char const* operation = "reduce";
        at::Tensor const tensor = given_.one(operation, inout);
        given_.check(operation, tensor, true);
        int const root = given_.root_of(operation, options.rootRank);
        reduction const by = given_.reduction_of(operation, tensor, options.reduceOp);
        return start(::c10d::OpType::REDUCE, operation, tensor.device(), options, inout,
                     in_words(operation, {tensor}, &by, root), [=, this](runner const& run) {
                         at::Tensor const total = rank_ == root ? tensor : at::empty_like(tensor);
                         run(calls_.all_reduce[by.index()], by.call_of(run.memory, tensor, total));
                     });
    }
    result broadcast(tensors& inout, ::c10d::BroadcastOptions const& options) override {
        constexpr char const* operation = "broadcast";
        at::Tensor const tensor = given_.one(operation, inout);
        given_.check(operation, tensor, true);
        int const root = given_.root_of(operation, options.rootRank);
        return start(
            ::c10d::OpType::BROADCAST, operation, tensor.device(), options, inout,
            in_words(operation, {tensor}, nullptr, root), [=, this](runner const& run) {
                run(calls_.broadcast,
                    {.out = run.memory.change(memory_of(tensor)), .count = tensor.nbytes(), .root = root});
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
        given_.one("all_gather", in);
        return gather_lists(::c10d::OpType::ALLGATHER, out, in, options);
    }
    /// The lists of results are by rank: `out[r][i]` is tensor i of rank r.
    result allgather_coalesced(tensor_lists& out, tensors& in,
                               ::c10d::AllgatherOptions const& options) override {
        tensor_lists by_tensor(in.size());
        for (auto const& of_rank : out) {
            if (of_rank.size() != in.size())
                given_.refuse("all_gather", "a list of results has another number of tensors than the input");
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
        at::Tensor const mine = given_.one(operation, out);
        given_.check_list(operation, in, mine);
        return scatter_reduced(::c10d::OpType::REDUCE_SCATTER, {mine}, {joined(in[0])}, options);
    }
    result gather(tensor_lists& out, tensors& in, ::c10d::GatherOptions const& options) override {
        constexpr char const* operation = "gather";
        at::Tensor const mine = given_.one(operation, in);
        given_.check(operation, mine);
        int const root = given_.root_of(operation, options.rootRank);
        if (rank_ == root) given_.check_list(operation, out, mine);
        tensors const to = rank_ == root ? out[0] : tensors();
        return start(
            ::c10d::OpType::GATHER, operation, mine.device(), options, to,
            in_words(operation, {mine}, nullptr, root), [=, this](runner const& run) {
                at::Tensor const all = rank_ == root ? room_for(to) : at::Tensor();
                if (run(calls_.gather, {.in = run.memory.read(memory_of(mine)),
                                        .out = rank_ == root ? run.memory.write(memory_of(all)) : nullptr,
                                        .count = mine.nbytes(),
                                        .root = root}))
                    copy_parts(all, to);
            });
    }
    result scatter(tensors& out, tensor_lists& in, ::c10d::ScatterOptions const& options) override {
        constexpr char const* operation = "scatter";
        at::Tensor const mine = given_.one(operation, out);
        given_.check(operation, mine);
        int const root = given_.root_of(operation, options.rootRank);
        if (rank_ == root) given_.check_list(operation, in, mine);
        at::Tensor const all = rank_ == root ? joined(in[0]) : at::Tensor();
        return start(::c10d::OpType::SCATTER, operation, mine.device(), options, out,
                     in_words(operation, {mine}, nullptr, root), [=, this](runner const& run) {
                         run(calls_.scatter, {.in = rank_ == root ? run.memory.read(memory_of(all)) : nullptr,
                                              .out = run.memory.write(memory_of(mine)),
                                              .count = mine.nbytes(),
                                              .root = root});
                     });
    }
    result alltoall_base(at::Tensor& out, at::Tensor& in, std::vector<std::int64_t>& out_splits,
                         std::vector<std::int64_t>& in_splits,
                         ::c10d::AllToAllOptions const& options) override {
        constexpr char const* operation = "all_to_all";
        given_.check_pair(operation, in, out);
        return exchange(::c10d::OpType::ALLTOALL_BASE, {out}, in, out,
                        given_.bytes_of_splits(operation, in, in_splits),
                        given_.bytes_of_splits(operation, out, out_splits), options);
    }
    result alltoall(tensors& out, tensors& in, ::c10d::AllToAllOptions const& options) override {
        constexpr char const* operation = "all_to_all";
        if (in.size() != ranks() || out.size() != ranks())
            given_.refuse(operation, "it takes one tensor for each rank and one from each rank");
        std::vector<std::size_t> sends, receives;
        for (std::size_t r = 0; r < ranks(); ++r) {
            given_.check_pair(operation, in[0], in[r]);
            given_.check_pair(operation, in[0], out[r]);
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
    result send(tensors&, int, int) override { given_.refuse_pairs("send"); }
    result recv(tensors&, int, int) override { given_.refuse_pairs("recv"); }
    result recvAnysource(tensors&, int) override { given_.refuse_pairs("recv"); }

    // ---- the group
    // Without `override`: older versions of c10d have fewer of them.

    /// The timeout of calls from now on that name none.
    virtual void setTimeout(milliseconds timeout) { timeout_ms_.store(timeout.count()); }
    /// Ends the group for all ranks, and every call of it.
    virtual void abort() {
        if (forked_off()) return;
        std::lock_guard const lock(living_);
        if (group_ == nullptr) return;
        calls_.fail(group_, static_cast<std::int32_t>(errc::peer_failed), rank_, "abort",
                    "it called abort() of the process group; destroy it on all ranks, and make a new one");
    }
    /// Leaves the group in order, after what is queued.
    virtual void shutdown() {
        outside_of_python([this] { end(never); });
    }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR > 6 // before, c10d does not ask
    virtual ::c10d::ErrorType getError() {
        if (forked_off()) return ::c10d::ErrorType::SUCCESS;
        outcome why;
        std::lock_guard const lock(living_);
        if (group_ == nullptr || !calls_.failed(group_, why)) return ::c10d::ErrorType::SUCCESS;
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
#endif
    void setSequenceNumberForGroup() override {}
    std::uint64_t getSequenceNumberForGroup() override { return number_.load(); }

    /// Ends all groups of the process, the youngest first, for its end: waits at most `patience` for what is
    /// queued in all of them, and then aborts it.
    static void end_all(milliseconds patience) {
        auto const deadline = worker_type::clock::now() + patience;
        std::lock_guard const lock(all().mutex);
        for (auto one = all().groups.rbegin(); one != all().groups.rend(); ++one) (*one)->end(deadline);
    }
    /// Calls a function while the calling thread does not hold Python's lock. Set by the Python module.
    static inline void (*release_python)(void (*run)(void*), void* with) = nullptr;

  private:
    struct registry {
        std::mutex mutex;
        std::vector<process_group*> groups; // in the order of their construction, which is that of all ranks
    };
    static registry& all() {
        static registry* const here = new registry; // not destroyed: groups may live longer than statics
        return *here;
    }

    std::size_t ranks() const noexcept { return static_cast<std::size_t>(size_); }
    bool forked_off() const noexcept { return ::getpid() != process_; }
    /// Options of older versions of c10d do not say: all calls ask for an asynchronous result.
    template <class Options> static bool is_asynchronous(Options const& options) noexcept {
        if constexpr (requires { options.asyncOp; })
            return options.asyncOp;
        else
            return true;
    }

    // ---- set-up and end

    template <class Run> static void outside_of_python(Run run) {
        if (release_python == nullptr) return run();
        release_python([](void* with) { (*static_cast<Run*>(with))(); }, &run);
    }
    void end(worker_type::clock::time_point deadline) noexcept {
        if (forked_off()) { // of another process: neither its threads nor its connections are here
            (void)worker_.release();
            (void)watch_.release();
            return;
        }
        std::lock_guard const once(ending_);
        if (group_ == nullptr) return;
        worker_->close();
        if (!worker_->drain(deadline)) {
            calls_.fail(group_, static_cast<std::int32_t>(errc::peer_failed), rank_, "exit",
                        "it ends with calls in flight; wait for them, and call destroy_process_group()");
            worker_->drain(never);
        }
        watch_.reset();
        struct group* ended = nullptr;
        {
            std::lock_guard const lock(living_);
            std::swap(ended, group_);
        }
        calls_.close(ended);
    }

    // ---- calls

    /// Runs a function of the table, for a call that is under way.
    struct runner {
        process_group& of;
        outcome& ended;
        std::int64_t timeout_ms;
        host_memory<torch_device>& memory;

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
            given_.refuse(
                operation,
                "this process was forked off a rank, and is none; make process groups after the fork",
                errc::bad_state);
        std::int64_t const timeout_ms =
            options.timeout == ::c10d::kUnsetTimeout ? timeout_ms_.load() : options.timeout.count();
        auto run = [this, timeout_ms, body = std::move(body)](outcome& ended,
                                                              std::optional<torch_device> const& on) {
            host_memory<torch_device> memory(on);
            body(runner{*this, ended, timeout_ms, memory});
        };
        std::string const title = std::string("herring:") + operation; // in PyTorch's profiler
        auto task = c10::make_intrusive<work_of<decltype(run)>>(
            std::move(run), worker_.get(), rank_, type, title.c_str(), std::move(results), ++number_,
            std::move(describes), device_order<torch_device>(device_of(device)));
        if (worker_->take(task, !is_asynchronous(options)) == worker_type::taken::refused)
            given_.refuse(operation,
                          "the process group is destroyed; make it again by init_process_group or new_group",
                          errc::bad_state);
        return task;
    }

    result reduce_all(::c10d::OpType type, tensors const& inout, ::c10d::AllreduceOptions const& options) {
        constexpr char const* operation = "all_reduce";
        std::vector<reduction> by;
        if (inout.empty()) given_.refuse(operation, "it takes at least one tensor");
        for (auto const& tensor : inout) {
            given_.check(operation, tensor, true);
            if (tensor.device() != inout[0].device()) given_.refuse_devices(operation, inout[0], tensor);
            by.push_back(given_.reduction_of(operation, tensor, options.reduceOp));
        }
        std::string words = in_words(operation, inout, by.data());
        return start(type, operation, inout[0].device(), options, inout, std::move(words),
                     [=, this](runner const& run) {
                         for (std::size_t i = 0; i < inout.size(); ++i)
                             run(calls_.all_reduce[by[i].index()],
                                 by[i].call_of(run.memory, inout[i], inout[i]));
                     });
    }
    result gather_all(::c10d::OpType type, tensors const& out, tensors const& in,
                      ::c10d::AllgatherOptions const& options) {
        constexpr char const* operation = "all_gather";
        given_.check_counts(operation, out, in);
        for (std::size_t i = 0; i < in.size(); ++i) {
            given_.check_pair(operation, in[i], out[i]);
            if (out[i].numel() != in[i].numel() * size_)
                given_.refuse(operation, "the result has " + std::to_string(out[i].numel()) +
                                             " elements: it needs those of the input times the ranks, " +
                                             std::to_string(in[i].numel() * size_));
        }
        return start(type, operation, in[0].device(), options, out, in_words(operation, in, nullptr),
                     [=, this](runner const& run) {
                         for (std::size_t i = 0; i < in.size(); ++i)
                             run(calls_.all_gather, {.in = run.memory.read(memory_of(in[i])),
                                                     .out = run.memory.write(memory_of(out[i])),
                                                     .count = in[i].nbytes()});
                     });
    }
    /// `out[i]`: the list of results of tensor i.
    result gather_lists(::c10d::OpType type, tensor_lists const& out, tensors const& in,
                        ::c10d::AllgatherOptions const& options) {
        constexpr char const* operation = "all_gather";
        if (out.size() != in.size() || in.empty())
            given_.refuse(operation, "it needs one list of results for each tensor, and at least one tensor");
        tensors results;
        for (std::size_t i = 0; i < in.size(); ++i) {
            given_.check(operation, in[i]);
            given_.check_list(operation, {out[i]}, in[i]);
            results.insert(results.end(), out[i].begin(), out[i].end());
        }
        return start(type, operation, in[0].device(), options, std::move(results),
                     in_words(operation, in, nullptr), [=, this](runner const& run) {
                         for (std::size_t i = 0; i < in.size(); ++i) {
                             at::Tensor const all = room_for(out[i]);
                             if (run(calls_.all_gather, {.in = run.memory.read(memory_of(in[i])),
                                                         .out = run.memory.write(memory_of(all)),
                                                         .count = in[i].nbytes()}))
                                 copy_parts(all, out[i]);
                         }
                     });
    }
    result scatter_reduced(::c10d::OpType type, tensors const& out, tensors const& in,
                           ::c10d::ReduceScatterOptions const& options) {
        constexpr char const* operation = "reduce_scatter";
        given_.check_counts(operation, out, in);
        std::vector<reduction> by;
        for (std::size_t i = 0; i < in.size(); ++i) {
            given_.check_pair(operation, in[i], out[i]);
            if (in[i].numel() != out[i].numel() * size_)
                given_.refuse(operation, "the input has " + std::to_string(in[i].numel()) +
                                             " elements: it needs those of the result times the ranks, " +
                                             std::to_string(out[i].numel() * size_));
            by.push_back(given_.reduction_of(operation, in[i], options.reduceOp));
        }
        std::string words = in_words(operation, in, by.data());
        return start(
            type, operation, in[0].device(), options, out, std::move(words), [=, this](runner const& run) {
                for (std::size_t i = 0; i < in.size(); ++i)
                    run(calls_.reduce_scatter[by[i].index()], by[i].call_of(run.memory, in[i], out[i]));
            });
    }
    result exchange(::c10d::OpType type, tensors const& out, at::Tensor const& in, at::Tensor const& all,
                    std::vector<std::size_t> sends, std::vector<std::size_t> receives,
                    ::c10d::AllToAllOptions const& options) {
        constexpr char const* operation = "all_to_all";
        // Sizes differ between ranks: they are not in the words.
        return start(type, operation, in.device(), options, out, operation, [=, this](runner const& run) {
            if (run(calls_.all_to_all, {.in = run.memory.read(memory_of(in)),
                                        .out = run.memory.write(memory_of(all)),
                                        .sends = sends.data(),
                                        .receives = receives.data()}))
                if (!all.is_same(out[0])) copy_parts(all, out);
        });
    }

    table const& calls_;
    arguments const given_;
    c10::intrusive_ptr<::c10d::Store> store_;
    std::atomic<std::int64_t> timeout_ms_;
    std::string name_;
    std::atomic<std::uint64_t> number_{0};
    pid_t const process_ = ::getpid();
    std::mutex ending_; // held while calls end
    std::mutex living_; // held while `group_` is used outside of a call, and while it changes
    struct group* group_ = nullptr;
    std::unique_ptr<worker_type> worker_;
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
