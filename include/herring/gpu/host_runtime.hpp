// herring: a model of devices on the host: queues whose work is done late, by threads or by turns, in any order that is allowed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_HOST_RUNTIME_HPP
#define HERRING_GPU_HOST_RUNTIME_HPP

#include "herring/gpu/fold.hpp"
#include "herring/gpu/inspection.hpp"
#include "herring/gpu/reach.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/gpu/sharing.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace herring::gpu {

namespace detail {

/// One record of an event: whoever waits for it waits for no other.
using host_record = std::shared_ptr<std::atomic<bool>>;

class host_event {
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
    enum class kind { copy, copies, fold, call, record, wait } what = kind::copy;
    std::byte* to = nullptr;
    std::byte const* from = nullptr;
    std::size_t bytes = 0;
    std::span<copy_item const> list{}; // read when its turn comes, as a device does
    fold_work sum{};
    void (*run)(fold_work const&) = nullptr;
    void (*call)(void*) = nullptr;
    void* argument = nullptr;
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
            for (copy_item const& c : work.list)
                if (c.bytes > 0) std::memcpy(c.to, c.from, c.bytes);
            return true;
        case host_work::kind::fold:
            work.run(work.sum);
            return true;
        case host_work::kind::call:
            work.call(work.argument);
            return true;
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
};

/// A machine with devices, made by a test before its ranks. While it lives, `host_runtime` uses it.
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
        current() = nullptr;
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

    // Whose device memory is.
    void enter(std::byte const* from, std::size_t bytes, int device) {
        std::lock_guard const lock(guard_);
        owned_.push_back({from, bytes, device});
    }
    void erase(std::byte const* from) {
        std::lock_guard const lock(guard_);
        std::erase_if(owned_, [&](piece const& p) { return p.from == from; });
    }
    /// The device that the memory is of; −1: none.
    int owner(void const* place) {
        std::lock_guard const lock(guard_);
        for (piece const& p : owned_)
            if (static_cast<std::size_t>(static_cast<std::byte const*>(place) - p.from) < p.bytes)
                return p.device;
        return -1;
    }

  private:
    struct piece {
        std::byte const* from;
        std::size_t bytes;
        int device;
    };
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
        for (std::uint64_t round = 0; !stop_.load(std::memory_order_relaxed); ++round) {
            if (round % 64 == 0) {
                std::lock_guard const lock(guard_);
                queues = queues_;
            }
            if (queues.empty() || !queues[next(random_) % queues.size()]->turn()) ::sched_yield();
        }
    }

    std::mutex guard_;
    std::vector<std::shared_ptr<detail::host_queue>> queues_;
    std::vector<piece> owned_;
    std::atomic<std::uint64_t> random_;
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<bool> stop_{false};
    std::vector<pthread_t> workers_;
};

/// The model of `runtime_policy`: what goes into a queue is done some time later, beside what is in others. So a pipeline
/// that forgets an event computes wrong sums, or is a data race.
///
/// Ranks are threads of one process. Device memory is memory of the host, each piece on its own.
class host_runtime {
  public:
    static constexpr char const* name = "host_runtime";
    using stream_handle = detail::host_queue*;

    /// Collective where a node's ranks may share devices.
    explicit host_runtime(world& ranks) : rank_(ranks.rank()), machine_(host_machine::current()) {
        if (machine_ == nullptr)
            throw error(errc::unsupported, rank_, -1, "host_runtime",
                        "there is no host_machine; make one before the reducer");
        int const devices = machine_->options.devices;
        number_ = devices > 0 ? ranks.local_rank() % devices : ranks.local_rank();
        if (devices > 0 &&
            tell_if_shared(ranks, std::as_bytes(std::span(&number_, 1)), number_, "model of a device"))
            ++machine_->shared_devices;
    }
    host_runtime(host_runtime const&) = delete;
    host_runtime& operator=(host_runtime const&) = delete;

    class memory {
      public:
        memory() = default;
        memory(host_runtime& on, std::size_t bytes) : machine_(on.machine_), bytes_(bytes) {
            if (bytes == 0) return;
            if (machine_->device_used.fetch_add(bytes) + bytes > machine_->options.device_bytes) {
                machine_->device_used -= bytes;
                throw error(errc::no_resources, on.rank_, -1, "construction",
                            {"no ", bytes, " bytes of device memory; use a smaller layout"});
            }
            data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
            std::memset(data_, 0, bytes);
            machine_->enter(data_, bytes, on.number_);
        }
        memory(memory&& other) noexcept
            : machine_(other.machine_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
        memory& operator=(memory&&) = delete;
        ~memory() {
            if (data_ == nullptr) return;
            machine_->erase(data_);
            ::operator delete (data_, std::align_val_t{256});
            machine_->device_used -= bytes_;
        }
        std::byte* data() const noexcept { return data_; }
        /// It is not freed any more.
        void leave() noexcept { data_ = nullptr; }

      private:
        host_machine* machine_ = nullptr;
        std::byte* data_ = nullptr;
        std::size_t bytes_ = 0;
    };

    class pinned {
      public:
        pinned(host_runtime& on, std::span<std::byte> pages) : machine_(on.machine_), pages_(pages) {
            if (machine_->pinned_used.fetch_add(pages.size()) + pages.size() >
                machine_->options.pinned_bytes) {
                machine_->pinned_used -= pages.size();
                throw error(errc::no_resources, on.rank_, -1, "construction",
                            {"no ", pages.size(), " bytes of pinned memory; use smaller buckets"});
            }
        }
        pinned(pinned const&) = delete;
        pinned& operator=(pinned const&) = delete;
        ~pinned() { machine_->pinned_used -= pages_.size(); }
        /// As a kernel sees a place in it.
        std::byte* on_device(std::byte* place) const noexcept { return place; }
        bool holds(std::byte const* place, std::size_t bytes) const noexcept {
            return place >= pages_.data() && place + bytes <= pages_.data() + pages_.size();
        }

      private:
        host_machine* machine_;
        std::span<std::byte> pages_;
    };

    class stream {
      public:
        explicit stream(host_runtime& on) : machine_(on.machine_), queue_(machine_->make_queue()) {}
        stream(stream const&) = delete;
        stream& operator=(stream const&) = delete;
        ~stream() {
            machine_->drain(*queue_);
            machine_->drop(queue_);
        }
        stream_handle handle() const noexcept { return queue_.get(); }

      private:
        host_machine* machine_;
        std::shared_ptr<detail::host_queue> queue_;
    };

    class event {
      public:
        event(host_runtime&, bool) : state(std::make_shared<detail::host_event>()) {}
        void leave() noexcept {}
        std::shared_ptr<detail::host_event> state;
    };

    /// A list of copies, as kernels read it.
    class batch {
      public:
        batch(host_runtime&, std::size_t copies) : items(copies) {}
        void leave() noexcept {}
        std::vector<copy_item> items;
    };

    class counter {
      public:
        explicit counter(host_runtime&) {}
        findings value() const noexcept {
            return {count.load(std::memory_order_acquire), squares.load(std::memory_order_acquire)};
        }
        std::atomic<std::uint64_t> count{0};
        std::atomic<double> squares{0};
    };

    /// What was captured.
    class graph {
      public:
        std::vector<detail::host_work> work;
    };

    // Threads of one process: what is exported is a pointer.
    struct export_of_memory {
        std::byte* data;
        int device;
    };
    struct export_of_event {
        std::shared_ptr<detail::host_event> const* state;
    };
    export_of_memory exported(memory const& own) const noexcept { return {own.data(), number_}; }
    static export_of_event exported(event const& own) noexcept { return {&own.state}; }

    struct imported_memory {
        imported_memory(host_runtime& on, export_of_memory const& of, int peer) : data_(of.data) {
            if (!on.machine_->options.peers && of.device != on.number_)
                throw error(out_of_reach({on.rank_, on.number_, "model of a device"},
                                         {peer, of.device, "model of a device"}));
        }
        std::byte* data() const noexcept { return data_; }

      private:
        std::byte* data_;
    };
    struct imported_event : event {
        imported_event(host_runtime& on, export_of_event const& of, int) : event(on, true) {
            state = *of.state;
        }
    };

    void record(event& mark, stream_handle in) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::record;
        work.mark = mark.state->renew();
        if (!in->put(std::move(work)))
            refuse("record: an event cannot be captured; record it behind the replay");
    }
    void wait(stream_handle in, event& mark) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::wait;
        work.mark = mark.state->last();
        if (!in->put(std::move(work)))
            refuse("wait: an event cannot be captured; wait for it before the replay");
    }
    bool done(event& mark) noexcept {
        return !refused() && mark.state->last()->load(std::memory_order_acquire);
    }
    void to_host(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        copy(in, to, from, bytes);
    }
    void to_device(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        copy(in, to, from, bytes);
    }
    template <class Update, class T> void fold(stream_handle in, fold_work const& sum) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::fold;
        work.sum = sum;
        work.run = [](fold_work const& what) { fold_on_host<Update, T>(what); };
        in->put(std::move(work));
    }
    void copy(stream_handle in, copy_item const& what) noexcept {
        copy(in, static_cast<std::byte*>(what.to), static_cast<std::byte const*>(what.from), what.bytes);
    }
    void list(batch& many, std::size_t at, std::span<copy_item const> copies) noexcept {
        if (!refused())
            std::copy(copies.begin(), copies.end(), many.items.begin() + static_cast<std::ptrdiff_t>(at));
    }
    void copy_many(stream_handle in, batch& many, std::size_t at, std::size_t count) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::copies;
        work.list = std::span<copy_item const>(many.items).subspan(at, count);
        in->put(std::move(work));
    }
    bool ended(event& mark) noexcept { return machine_->done(*mark.state->last()); }
    template <class T>
    void inspect(stream_handle in, T const* from, std::size_t count, counter& into) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.what = detail::host_work::kind::fold;
        work.sum.sources[0] = from;
        work.sum.targets[0] = &into;
        work.sum.where.elements = count;
        work.run = [](fold_work const& what) {
            auto& counted = *static_cast<counter*>(what.targets[0]);
            findings const found =
                gpu::inspect(static_cast<T const*>(what.sources[0]), what.where.elements, 0, 1);
            counted.squares.store(found.squares, std::memory_order_release);
            counted.count.fetch_add(found.not_finite, std::memory_order_release);
        };
        in->put(std::move(work));
    }

    void capture(stream_handle in) noexcept {
        if (!refused()) in->capture();
    }
    bool captured(stream_handle in, graph& into) noexcept {
        std::vector<detail::host_work> work = in->captured();
        if (refused()) return false;
        into.work = std::move(work);
        return true;
    }
    void replay(stream_handle in, graph const& what) noexcept {
        if (refused()) return;
        for (detail::host_work work : what.work) in->put(std::move(work));
    }

    void flush() noexcept {}
    int number() const noexcept { return number_; }
    bool stuck() const noexcept { return false; }
    char const* check_stream(stream_handle given) const noexcept {
        return given->capturing() ? stream_is_captured : nullptr;
    }
    char const* check_tensor(void const* place) const noexcept {
        int const owner = machine_->owner(place);
        if (owner == number_) return nullptr;
        return owner < 0 ? "it is memory of the host" : "it is memory of another device than the reducer's";
    }
    failure const* failed() const noexcept {
        return failing_.load(std::memory_order_acquire) ? &why_ : nullptr;
    }

    /// A kernel of a test's: `call(argument)`.
    static void launch(stream_handle in, void (*call)(void*), void* argument) {
        detail::host_work work;
        work.what = detail::host_work::kind::call;
        work.call = call;
        work.argument = argument;
        in->put(std::move(work));
    }

  private:
    void copy(stream_handle in, std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        if (refused()) return;
        detail::host_work work;
        work.to = to;
        work.from = from;
        work.bytes = bytes;
        in->put(std::move(work));
    }
    bool refused() noexcept {
        if (failed() != nullptr) return true;
        if (!machine_->fails(rank_)) return false;
        refuse("a call was made to fail");
        return true;
    }
    void refuse(char const* why) noexcept {
        std::lock_guard const lock(guard_);
        if (failed() != nullptr) return;
        char text[200];
        std::snprintf(text, sizeof text, "device %d: %s", number_, why);
        why_ = failure::make(errc::device, rank_, -1, "host_runtime", text);
        failing_.store(true, std::memory_order_release);
    }

    int rank_;
    int number_ = 0;
    host_machine* machine_;
    std::mutex guard_;
    std::atomic<bool> failing_{false};
    failure why_{};
};
static_assert(runtime_policy<host_runtime>);

} // namespace herring::gpu

#endif // HERRING_GPU_HOST_RUNTIME_HPP
