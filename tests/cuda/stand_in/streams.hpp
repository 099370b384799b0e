// herring: a stand-in for CUDA's runtime: streams, each a thread; events, of this process or shared; captures and graphs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CUDA_STAND_IN_STREAMS_HPP
#define HERRING_TESTS_CUDA_STAND_IN_STREAMS_HPP

#include "cuda/stand_in/memory.hpp"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace stand_in {

inline constexpr std::chrono::seconds forever{24 * 3600}, patience{100};

/// Something that will be reached: a place in a stream, or one record of an event.
struct mark {
    std::shared_ptr<progress> of;
    std::uint32_t due = 0;
    bool reached() const noexcept { return of->reached() >= due; }
};

/// What a stream does, once all that it needs is reached.
struct operation {
    std::function<cudaError_t()> run;
    std::vector<mark> needs{};
};

/// Operations that were captured, and whose they are.
struct capture {
    cudaStreamCaptureMode mode;
    std::thread::id by;
    std::vector<operation> kept{};
    bool invalid = false;
};

/// An event: how often it was recorded, and which of these records are done. In a page of its own where it is shared.
struct event_state {
    static constexpr std::uint32_t records = 255; // that may be outstanding at once
    std::atomic<std::uint32_t> recorded{0};
    progress done[records];
};
struct event_handle {
    pid_t process;
    int file;
    int page;
    int device;
};
static_assert(sizeof(event_handle) <= sizeof(cudaIpcEventHandle_t));

} // namespace stand_in

struct CUstream_st : std::enable_shared_from_this<CUstream_st> {
    int device = 0;
    bool blocking = true, legacy = false;
    std::optional<stand_in::capture> capturing{};

    // Under the process's guard: what is put in last, and in which order.
    std::uint32_t put_in = 0;
    std::shared_ptr<stand_in::progress> done = std::make_shared<stand_in::progress>();
    stand_in::mark tail() const { return {done, put_in}; }

    void push(stand_in::operation next) {
        ++put_in;
        std::lock_guard const lock(guard_);
        queue_.push_back(std::move(next));
        came_.notify_one();
    }
    void start(std::uint64_t seed) {
        std::thread([self = shared_from_this(), seed] { self->work(seed); }).detach();
    }
    void close() {
        std::lock_guard const lock(guard_);
        closed_ = true;
        came_.notify_one();
    }

  private:
    void work(std::uint64_t seed) {
        std::uint32_t finished = 0;
        bool const lazy = (seed >> 50) % 4 == 0; // some are late with everything
        while (true) {
            stand_in::operation next;
            {
                std::unique_lock lock(guard_);
                came_.wait(lock, [&] { return closed_ || !queue_.empty(); });
                if (queue_.empty()) return;
                next = std::move(queue_.front());
                queue_.pop_front();
            }
            for (stand_in::mark const& need : next.needs) (void)need.of->wait(need.due, stand_in::forever);
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            std::uint64_t const dice = seed >> 40;
            if (lazy ? dice % 2 == 0 : dice % 8 == 0) { // a pause, mostly short
                timespec const nap{0, static_cast<long>(dice / 8 % (dice % 64 == 0 ? 2'000'000 : 100'000))};
                ::nanosleep(&nap, nullptr);
            }
            auto& broken = stand_in::here().broken;
            cudaError_t expected = cudaSuccess;
            if (broken.load() == cudaSuccess && next.run)
                if (cudaError_t const result = next.run(); result != cudaSuccess)
                    broken.compare_exchange_strong(expected, result);
            if (broken.load() == cudaSuccess) done->advance(++finished);
        }
    }

    std::mutex guard_;
    std::condition_variable came_;
    std::deque<stand_in::operation> queue_;
    bool closed_ = false;
};

struct CUevent_st {
    int device = 0;
    unsigned flags = 0;
    std::shared_ptr<stand_in::event_state> state = std::make_shared<stand_in::event_state>();
    int page = -1;       // of this process's file of events
    bool opened = false; // it is another process's
    CUstream_st const* captured_in = nullptr;
    std::shared_ptr<std::atomic<std::int64_t>> when = std::make_shared<std::atomic<std::int64_t>>(0); // ns

    stand_in::mark at(std::uint32_t record) const {
        auto* const done = &state->done[record % stand_in::event_state::records];
        return {std::shared_ptr<stand_in::progress>(state, done), record};
    }
    stand_in::mark last() const { return at(state->recorded); }
};

struct CUgraph_st {
    std::vector<stand_in::operation> kept;
};
struct CUgraphExec_st {
    std::shared_ptr<std::vector<stand_in::operation> const> kept;
};

namespace stand_in {

/// What the process has made and not destroyed, under its guard.
struct objects {
    std::map<CUstream_st*, std::shared_ptr<CUstream_st>> streams;
    std::map<CUevent_st*, std::unique_ptr<CUevent_st>> events;
    std::map<CUgraph_st*, std::unique_ptr<CUgraph_st>> graphs;
    std::map<CUgraphExec_st*, std::unique_ptr<CUgraphExec_st>> launchable;
    std::shared_ptr<CUstream_st> legacy[most_devices];
    int event_file = -1, event_pages = 0;
    std::uint64_t seed = static_cast<std::uint64_t>(setting("HERRING_STAND_IN_SEED", std::time(nullptr)));

    static objects& all() {
        static objects* const made = new objects;
        return *made;
    }
    template <class Table, class Handle> static auto* known(Table& table, Handle handle, char const* what) {
        auto const found = table.find(handle);
        if (found == table.end())
            complain("%s %p, which was never made, or is destroyed", what, static_cast<void*>(handle));
        return found == table.end() ? nullptr : found->second.get();
    }
    std::shared_ptr<CUstream_st> make_stream(int device, bool blocking, bool legacy_one) {
        auto made = std::make_shared<CUstream_st>();
        made->device = device;
        made->blocking = blocking;
        made->legacy = legacy_one;
        made->start(seed = seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(here().id));
        return made;
    }
    CUstream_st* stream(cudaStream_t given) {
        if (given != nullptr && given != cudaStreamLegacy) return known(streams, given, "stream");
        auto& one = legacy[mine().device];
        if (!one) one = make_stream(mine().device, false, true);
        return one.get();
    }
    template <class Each> void blocking_streams(int device, Each&& each) {
        for (auto& [handle, one] : streams)
            if (one->blocking && one->device == device) each(*one);
    }

    /// What this thread may not do while somebody captures: it ends that capture.
    cudaError_t unsafe() {
        if (mine().mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
        for (auto& [handle, one] : streams) {
            if (!one->capturing) continue;
            bool const own = one->capturing->by == std::this_thread::get_id();
            if (own ? one->capturing->mode != cudaStreamCaptureModeRelaxed
                    : one->capturing->mode == cudaStreamCaptureModeGlobal &&
                          mine().mode == cudaStreamCaptureModeGlobal) {
                one->capturing->invalid = true;
                return cudaErrorStreamCaptureUnsupported;
            }
        }
        return cudaSuccess;
    }
    /// Puts an operation into a stream, or into what is captured from it.
    cudaError_t put(CUstream_st& in, operation what) {
        if (in.capturing) {
            if (in.capturing->invalid) return cudaErrorStreamCaptureInvalidated;
            in.capturing->kept.push_back(std::move(what));
            return cudaSuccess;
        }
        cudaError_t result = cudaSuccess;
        if (in.legacy)
            blocking_streams(in.device, [&](CUstream_st& other) {
                if (other.capturing) {
                    other.capturing->invalid = true;
                    result = cudaErrorStreamCaptureImplicit;
                }
                what.needs.push_back(other.tail());
            });
        else if (in.blocking && legacy[in.device])
            what.needs.push_back(legacy[in.device]->tail());
        if (result == cudaSuccess) in.push(std::move(what));
        return result;
    }
    /// All that is in a stream now; of the legacy one: and in those that it waits for.
    std::vector<mark> all_of(CUstream_st& in) {
        std::vector<mark> found{in.tail()};
        if (in.legacy)
            blocking_streams(in.device, [&](CUstream_st& other) { found.push_back(other.tail()); });
        return found;
    }
    std::vector<mark> all_of_device(int device) {
        std::vector<mark> found;
        for (auto& [handle, one] : streams)
            if (one->device == device) found.push_back(one->tail());
        if (legacy[device]) found.push_back(legacy[device]->tail());
        return found;
    }
};

/// With the process's guard held.
template <class Body> cudaError_t with_objects(Body&& body) {
    return call([&] {
        std::lock_guard const lock(here().guard);
        return body(objects::all());
    });
}
/// The same with a stream.
template <class Body> cudaError_t in_stream(cudaStream_t given, Body&& body) {
    return with_objects([&](objects& all) {
        CUstream_st* const in = all.stream(given);
        return in == nullptr ? cudaErrorInvalidResourceHandle : body(all, *in);
    });
}
template <class Body> cudaError_t with_event(cudaEvent_t given, Body&& body) {
    return with_objects([&](objects& all) {
        CUevent_st* const event = objects::known(all.events, given, "event");
        return event == nullptr ? cudaErrorInvalidResourceHandle : body(all, *event);
    });
}
/// For calls that a capture forbids, and that do not touch streams.
template <class Body> cudaError_t unsafe_call(Body&& body) {
    return call([&] {
        {
            std::lock_guard const lock(here().guard);
            if (cudaError_t const refused = objects::all().unsafe(); refused != cudaSuccess) return refused;
        }
        return body();
    });
}

inline cudaError_t wait_for(std::vector<mark> const& all, char const* call) {
    for (mark const& one : all)
        if (!one.of->wait(one.due, patience)) {
            if (cudaError_t const why = here().broken.load(); why != cudaSuccess) return why;
            complain("%s has waited for %d s: it would hang", call, static_cast<int>(patience.count()));
            return cudaErrorUnknown;
        }
    return cudaSuccess;
}
inline cudaError_t look_at(std::vector<mark> const& all) {
    for (mark const& one : all)
        if (!one.reached()) return cudaErrorNotReady;
    return cudaSuccess;
}

// ---- events -----------------------------------------------------------------------------------------------------

inline std::shared_ptr<event_state> event_page(int file, int page) {
    void* const at = ::mmap(nullptr, address_space::page, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            static_cast<off_t>(page) * static_cast<off_t>(address_space::page));
    if (at == MAP_FAILED) return nullptr;
    return {static_cast<event_state*>(at), [](event_state* gone) { ::munmap(gone, address_space::page); }};
}

inline cudaError_t make_event(cudaEvent_t* made, unsigned flags) {
    return with_objects([&](objects& all) {
        auto event = std::make_unique<CUevent_st>();
        event->device = mine().device;
        event->flags = flags;
        if ((flags & cudaEventInterprocess) != 0) {
            constexpr int most = 1 << 16;
            if ((flags & cudaEventDisableTiming) == 0) return cudaErrorInvalidValue;
            if (all.event_file < 0) {
                all.event_file = ::memfd_create("events", MFD_CLOEXEC);
                if (::ftruncate(all.event_file, static_cast<off_t>(most * address_space::page)) != 0)
                    return cudaErrorMemoryAllocation;
            }
            event->page = all.event_pages++;
            event->state = event->page < most ? event_page(all.event_file, event->page) : nullptr;
            if (!event->state) return cudaErrorMemoryAllocation;
            ::new (event->state.get()) event_state;
        }
        *made = event.get();
        all.events.emplace(*made, std::move(event));
        return cudaSuccess;
    });
}

inline cudaError_t record(cudaEvent_t given, cudaStream_t stream) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        CUevent_st* const event = objects::known(all.events, given, "event");
        if (event == nullptr || event->device != in.device) return cudaErrorInvalidResourceHandle;
        event->captured_in = in.capturing ? &in : nullptr;
        if (in.capturing) return in.capturing->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
        mark const made = event->at(event->state->recorded + 1);
        if (slips("records")) made.of->advance(made.due);
        cudaError_t const put = all.put(in, {[made, when = event->when] {
                                            *when =
                                                std::chrono::steady_clock::now().time_since_epoch().count();
                                            made.of->advance(made.due);
                                            return cudaSuccess;
                                        }});
        if (put == cudaSuccess) ++event->state->recorded;
        return put;
    });
}

inline cudaError_t wait_event(cudaStream_t stream, cudaEvent_t given) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        CUevent_st* const event = objects::known(all.events, given, "event");
        if (event == nullptr) return cudaErrorInvalidResourceHandle;
        if (in.capturing) {
            if (in.capturing->invalid) return cudaErrorStreamCaptureInvalidated;
            if (event->captured_in == &in) return cudaSuccess;
            in.capturing->invalid = true;
            return cudaErrorStreamCaptureIsolation;
        }
        if (event->captured_in != nullptr) return cudaErrorStreamCaptureUnsupported; // a fork: not done here
        mark const last = event->last();
        if (last.due == 0 || slips("waits")) return cudaSuccess;
        return all.put(in, {nullptr, {last}});
    });
}

inline cudaError_t query(cudaEvent_t given) {
    return with_event(given, [&](objects& all, CUevent_st& event) {
        if (cudaError_t const refused = all.unsafe(); refused != cudaSuccess) return refused;
        if (event.captured_in != nullptr) return cudaErrorCapturedEvent;
        return look_at({event.last()});
    });
}

inline cudaError_t hand_out(cudaIpcEventHandle_t* made, cudaEvent_t given) {
    return with_event(given, [&](objects& all, CUevent_st& event) {
        if (event.page < 0) return cudaErrorInvalidResourceHandle;
        event_handle const handle{here().id, all.event_file, event.page,
                                  here().devices[static_cast<std::size_t>(event.device)]};
        std::memcpy(static_cast<void*>(made), &handle, sizeof handle);
        return cudaSuccess;
    });
}

inline cudaError_t take_in(cudaEvent_t* made, cudaIpcEventHandle_t const& from) {
    event_handle handle;
    std::memcpy(&handle, &from, sizeof handle);
    return with_objects([&](objects& all) {
        if (handle.process == here().id) return cudaErrorDeviceUninitialized;
        std::string const path =
            "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.file);
        int const file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (file < 0) return cudaErrorMapBufferObjectFailed;
        auto event = std::make_unique<CUevent_st>();
        event->state = event_page(file, handle.page);
        ::close(file);
        if (!event->state) return cudaErrorMapBufferObjectFailed;
        event->device = mine().device;
        event->opened = true;
        *made = event.get();
        all.events.emplace(*made, std::move(event));
        return cudaSuccess;
    });
}

// ---- captures ---------------------------------------------------------------------------------------------------

inline cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode) {
    return in_stream(stream, [&](objects&, CUstream_st& in) {
        if (in.legacy) return cudaErrorStreamCaptureUnsupported;
        if (in.capturing) return cudaErrorIllegalState;
        in.capturing = capture{mode, std::this_thread::get_id()};
        return cudaSuccess;
    });
}
inline cudaError_t end_capture(cudaStream_t stream, cudaGraph_t* made) {
    *made = nullptr;
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        if (!in.capturing) return cudaErrorIllegalState;
        if (in.capturing->mode != cudaStreamCaptureModeRelaxed &&
            in.capturing->by != std::this_thread::get_id())
            return cudaErrorStreamCaptureWrongThread;
        capture const ended = std::move(*in.capturing);
        in.capturing.reset();
        if (ended.invalid) return cudaErrorStreamCaptureInvalidated;
        auto graph = std::make_unique<CUgraph_st>(CUgraph_st{ended.kept});
        *made = graph.get();
        all.graphs.emplace(*made, std::move(graph));
        return cudaSuccess;
    });
}
inline cudaError_t is_capturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        *status = !in.capturing           ? cudaStreamCaptureStatusNone
                  : in.capturing->invalid ? cudaStreamCaptureStatusInvalidated
                                          : cudaStreamCaptureStatusActive;
        bool implicit = false;
        if (in.legacy)
            all.blocking_streams(in.device,
                                 [&](CUstream_st& other) { implicit |= other.capturing.has_value(); });
        return implicit ? cudaErrorStreamCaptureImplicit : cudaSuccess;
    });
}
inline cudaError_t instantiate(cudaGraphExec_t* made, cudaGraph_t given) {
    return with_objects([&](objects& all) {
        CUgraph_st const* const graph = objects::known(all.graphs, given, "graph");
        if (graph == nullptr) return cudaErrorInvalidValue;
        auto exec = std::make_unique<CUgraphExec_st>();
        exec->kept = std::make_shared<std::vector<operation> const>(graph->kept);
        *made = exec.get();
        all.launchable.emplace(*made, std::move(exec));
        return cudaSuccess;
    });
}
inline cudaError_t launch_graph(cudaGraphExec_t given, cudaStream_t stream) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        CUgraphExec_st const* const exec = objects::known(all.launchable, given, "graph");
        if (exec == nullptr) return cudaErrorInvalidValue;
        return all.put(in, {[kept = exec->kept] {
                           for (operation const& one : *kept)
                               if (cudaError_t const result = one.run(); result != cudaSuccess) return result;
                           return cudaSuccess;
                       }});
    });
}

// ---- copies -----------------------------------------------------------------------------------------------------

/// Where a copy's memory is, and whether it is what the copy's kind says. Under the guard.
inline std::byte* side(void const* at, std::size_t bytes, bool on_device, char const* which) noexcept {
    address_space& all = address_space::of_process();
    range const* const whole = all.find(at, bytes);
    range const* const some = all.find(at);
    if (whole == nullptr && some == nullptr && !on_device)
        return static_cast<std::byte*>(const_cast<void*>(at)); // pageable
    if (whole == nullptr || whole->of_host() == on_device) {
        complain("a copy %s %zu bytes at %p: %s", which, bytes, at,
                 whole != nullptr  ? "the other kind of memory than it says"
                 : some != nullptr ? "beyond the end of what lies there"
                                   : "which is no memory of a device's");
        return nullptr;
    }
    return all.real(*whole, at);
}

/// Puts a copy into a stream. Pageable memory of the host's is read at once, and is written before this returns.
inline cudaError_t copy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream, bool waits) {
    std::vector<mark> due;
    cudaError_t const result = in_stream(stream, [&](objects& all, CUstream_st& in) {
        if (bytes == 0) return cudaSuccess;
        bool const to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
        bool const from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
        if (side(to, bytes, to_device, "to") == nullptr || side(from, bytes, from_device, "from") == nullptr)
            return cudaErrorInvalidValue;
        address_space& space = address_space::of_process();
        std::shared_ptr<std::vector<std::byte>> staged;
        if (!from_device && space.find(from) == nullptr) {
            auto const* const first = static_cast<std::byte const*>(from);
            staged = std::make_shared<std::vector<std::byte>>(first, first + bytes);
        }
        waits = waits || (!to_device && space.find(to) == nullptr);
        if (waits && in.capturing) {
            in.capturing->invalid = true;
            return cudaErrorStreamCaptureUnsupported;
        }
        cudaError_t const put =
            all.put(in, {[=] {
                        std::byte *target = nullptr, *source = nullptr;
                        {
                            std::lock_guard const lock(here().guard);
                            target = side(to, bytes, to_device, "under way to");
                            source =
                                staged ? staged->data() : side(from, bytes, from_device, "under way from");
                        }
                        if (target == nullptr || source == nullptr) return cudaErrorIllegalAddress;
                        std::memcpy(target, source, bytes);
                        return cudaSuccess;
                    }});
        if (waits) due = all.all_of(in);
        return put;
    });
    return result == cudaSuccess && waits ? call([&] { return wait_for(due, "cudaMemcpy"); }) : result;
}

inline cudaError_t set(void* at, int value, std::size_t bytes, cudaStream_t stream) {
    return in_stream(stream, [&](objects& all, CUstream_st& in) {
        if (side(at, bytes, true, "(cudaMemset) of") == nullptr) return cudaErrorInvalidValue;
        return all.put(in, {[=] {
                           std::unique_lock lock(here().guard);
                           std::byte* const target = side(at, bytes, true, "(cudaMemset) under way to");
                           lock.unlock();
                           if (target == nullptr) return cudaErrorIllegalAddress;
                           std::memset(target, value, bytes);
                           return cudaSuccess;
                       }});
    });
}

/// What the process has made and not released, in words; "" is nothing.
inline std::string left_over() {
    std::lock_guard const lock(here().guard);
    objects const& all = objects::all();
    std::size_t of[5] = {};
    for (auto const& [at, held] : address_space::of_process().ranges) ++of[static_cast<int>(held.kind)];
    std::string text;
    auto const say = [&](std::size_t count, char const* what) {
        if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + what;
    };
    say(all.streams.size(), "streams");
    say(all.events.size(), "events");
    say(all.graphs.size() + all.launchable.size(), "graphs");
    say(of[static_cast<int>(memory_kind::device)], "pieces of device memory");
    say(of[static_cast<int>(memory_kind::imported)], "pieces of other processes' memory");
    say(of[static_cast<int>(memory_kind::host)], "pieces of pinned memory");
    say(of[static_cast<int>(memory_kind::registered)], "registered ranges");
    return text;
}

} // namespace stand_in

#endif // HERRING_TESTS_CUDA_STAND_IN_STREAMS_HPP
