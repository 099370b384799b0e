// herring: a trace that keeps the newest events with their times, in memory or in a file that survives.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_HPP
#define HERRING_TRACE_TIMELINE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/base/version.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/machine/ticks.hpp"
#include "herring/trace/timeline_clocks.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_image.hpp"
#include "herring/trace/timeline_report.hpp"
#include "herring/trace/trace.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Zeroed memory of a timeline's image: private, or mapped from a file that outlives the process.
class timeline_memory {
  public:
    timeline_memory() = default;
    /// Returns private memory; no memory if the system refuses.
    HERRING_SETUP static timeline_memory anonymous(std::size_t bytes) noexcept {
        return timeline_memory(mapped_pages(-1, bytes), false);
    }
    /// Returns the memory of a new file, which replaces an older one of that name. Its blocks are allocated
    /// at once: a disk that is full later does no harm. On failure no memory, and the system's reason in
    /// `why`.
    HERRING_SETUP static timeline_memory file(std::string const& path, std::size_t bytes, std::string& why) {
        if (bytes > file_size_limit()) {
            why = std::strerror(EFBIG);
            return {};
        }
        ::unlink(path.c_str());
        descriptor const opened(
            ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
        int failed = opened.get() < 0 ? errno : ::posix_fallocate(opened.get(), 0, static_cast<off_t>(bytes));
        mapped_pages pages;
        if (failed == 0) {
            pages = mapped_pages(opened.get(), bytes);
            failed = pages.data() == nullptr ? errno : 0;
        }
        if (failed != 0) {
            why = std::strerror(failed);
            if (opened.get() >= 0) ::unlink(path.c_str());
        }
        return timeline_memory(std::move(pages), true);
    }

    std::byte* data() const noexcept { return pages_.data(); }
    std::size_t size() const noexcept { return pages_.size(); }
    bool is_file() const noexcept { return in_file_ && data() != nullptr; }

  private:
    timeline_memory(mapped_pages pages, bool in_file) noexcept
        : pages_(std::move(pages)), in_file_(in_file) {}

    mapped_pages pages_{};
    bool in_file_ = false;
};

/// The recorder of timelines of all sizes.
///
/// Threads:  `record`: the two threads of a reducer, each into its own ring. All else: the caller's thread.
class timeline_rings {
  public:
    explicit timeline_rings(std::size_t records) noexcept
        : slots_(std::bit_ceil(std::max<std::size_t>(records, 64)) / 2) {}
    timeline_rings(timeline_rings const&) = delete;
    timeline_rings& operator=(timeline_rings const&) = delete;
    ~timeline_rings() {
        if (header_ == nullptr || ranks_->forked_off()) return;
        using enum timeline_header::state;
        header_->now = ranks_->failed() == nullptr ? ended : failed;
    }

    /// Records an event; nothing before `attach`.
    void record(trace_event event, trace_details const& of) noexcept {
        ring& r = rings_[is_of_engine(event) ? 1 : 0];
        if (r.first == nullptr) [[unlikely]]
            return;
        constexpr std::uint64_t most = 0xffffffff;
        std::uint64_t const words[] = {ticks_.now(), of.index | (of.execution & most) << 32,
                                       (of.bytes < most ? of.bytes : most) | std::uint64_t{of.message} << 32,
                                       static_cast<std::uint32_t>(of.peer) | static_cast<std::uint64_t>(event)
                                                                                 << 32};
        std::uint64_t* const slot = r.first + (r.head & (slots_ - 1)) * 4;
        std::atomic_thread_fence(
            std::memory_order_release); // a reader that sees a word sees the head before it
        for (int i = 0; i < 4; ++i) std::atomic_ref(slot[i]).store(words[i], std::memory_order_relaxed);
        std::atomic_ref(*r.shown_head).store(++r.head, std::memory_order_release);
        if (event == trace_event::wait_end) note_clock();
    }

    /// Takes memory, or a file in the folder HERRING_TIMELINE_DIR, and measures this rank's clock against
    /// rank 0's.
    ///
    /// Cost:    some milliseconds if every rank has a timeline.
    /// Errors:  `no_resources`. If the file cannot be written: a line on stderr, and the ring is kept in
    ///          memory.
    HERRING_SETUP void attach(trace_context const& context) {
        tick_anchor const first = ticks_.anchor(5);
        std::string names;
        for (tensor_spec const& t : context.tensors) (names += t.name) += '\0';
        world& ranks = context.ranks;
        timeline_header h{};
        std::memcpy(h.magic, timeline_header::expected_magic, sizeof h.magic);
        h.order = timeline_header::expected_order;
        h.format = timeline_header::expected_format;
        copy_text(h.version, HERRING_VERSION_STRING);
        copy_text(h.host, host_name());
        h.host_id = clock_identity();
        h.job = ranks.job();
        h.digest = context.digest;
        h.reducer = static_cast<std::uint32_t>(context.reducer);
        h.pid = static_cast<std::uint32_t>(::getpid());
        h.process_space = process_space();
        h.rank = ranks.rank();
        h.ranks = static_cast<std::uint32_t>(ranks.size());
        h.tensors = static_cast<std::uint32_t>(context.tensors.size());
        h.buckets = static_cast<std::uint32_t>(context.bucket_bytes.size());
        h.names_bytes = static_cast<std::uint32_t>(names.size());
        h.uses_tsc = ticks_.is_tsc();
        h.now = timeline_header::state::running;
        h.first = first;
        h.fixes[0] = h.fixes[1] = {0, 0, -1};
        h.rings[0].slots = h.rings[1].slots = slots_;

        timeline_places const at = timeline_places::of(h);
        take_memory(at.end, h);
        std::byte* const image = memory_.data();
        if (h.buckets > 0)
            std::memcpy(image + at.buckets, context.bucket_bytes.data(), context.bucket_bytes.size_bytes());
        std::memcpy(image + at.nodes, ranks.topology().node_of.data(), h.ranks * sizeof(int));
        if (!names.empty()) std::memcpy(image + at.names, names.data(), names.size());
        if (context.all_attach) h.fixes[0] = measure_clock(ranks);
        h.second = ticks_.anchor(5);
        std::memcpy(image, &h, sizeof h);
        header_ = reinterpret_cast<timeline_header*>(image);
        ranks_ = &ranks;
        for (int i = 0; i < 2; ++i)
            rings_[i] = {reinterpret_cast<std::uint64_t*>(image + at.rings[i]), &header_->rings[i].head, 0};
    }

    /// Returns the image of what is recorded so far, for `read_timeline`; empty without a reducer.
    ///
    /// Cost:    a copy of the records.
    HERRING_SETUP std::vector<std::byte> image() const {
        std::vector<std::byte> copy;
        if (header_ == nullptr) return copy;
        timeline_header h{};
        std::memcpy(static_cast<void*>(&h), header_,
                    offsetof(timeline_header, rings)); // the other thread writes the members behind
        h.rings[0].slots = h.rings[1].slots = slots_;
        std::size_t const tables = timeline_places::of(h).rings[0];
        copy.resize(sizeof h);
        copy.insert(copy.end(), memory_.data() + sizeof h, memory_.data() + tables);
        h.last[h.lasts & 1] = ticks_.anchor(5);
        ++h.lasts;
        for (int which = 0; which < 2; ++which) {
            std::vector<timeline_entry> const kept = records_of(which, h.rings[which].head);
            h.rings[which].slots = kept.size();
            auto const* const from = reinterpret_cast<std::byte const*>(kept.data());
            std::size_t const begin = copy.size();
            copy.resize(begin + kept.size() * sizeof(timeline_entry));
            for (std::size_t i = 0; i < kept.size(); ++i) // record n lies in slot n mod slots
                std::memcpy(copy.data() + begin +
                                (h.rings[which].head - kept.size() + i) % kept.size() *
                                    sizeof(timeline_entry),
                            from + i * sizeof(timeline_entry), sizeof(timeline_entry));
        }
        h.settled = 1;
        std::memcpy(copy.data(), &h, sizeof h);
        return copy;
    }

    /// Returns the timeline recorded so far.
    HERRING_SETUP timeline_data data() const {
        return header_ == nullptr ? timeline_data{} : read_timeline(image());
    }
    /// Returns the numbers of this rank.
    HERRING_SETUP timeline_report report() const { return timeline_report(data()); }

    /// Returns the path of the recorder's file; empty: none.
    std::string const& file() const noexcept { return file_; }
    /// Returns the ranks of the reducer; nullptr before `attach`.
    world* ranks() const noexcept { return ranks_; }
    /// Takes a second measurement of this rank's clock: records in between are corrected for drift.
    void note_fix(clock_fix const& of) noexcept {
        if (header_ != nullptr) header_->fixes[1] = of;
    }

  private:
    struct ring {
        std::uint64_t* first = nullptr;
        std::uint64_t* shown_head = nullptr;
        std::uint64_t head = 0;
    };

    template <std::size_t Size> static void copy_text(char (&to)[Size], std::string_view from) noexcept {
        std::memcpy(to, from.data(), std::min(from.size(), Size - 1));
    }

    HERRING_SETUP void take_memory(std::size_t bytes, timeline_header const& h) {
        std::string const folder(variables::of_process().text("HERRING_TIMELINE_DIR"));
        if (!folder.empty()) {
            char name[80];
            std::snprintf(name, sizeof name, "/herring-%016llx-reducer%u-rank%d.timeline",
                          static_cast<unsigned long long>(h.job), h.reducer, h.rank);
            std::string why;
            file_ = folder + name;
            memory_ = timeline_memory::file(file_, bytes, why);
            if (memory_.data() != nullptr) return;
            std::fprintf(stderr, "herring: rank %d: no recorder: %s: %s; its timeline is kept in memory\n",
                         h.rank, file_.c_str(), why.c_str());
            file_.clear();
        }
        memory_ = timeline_memory::anonymous(bytes);
        if (memory_.data() == nullptr)
            throw error(errc::no_resources, h.rank, -1, "construction",
                        {"no memory for a timeline of ", bytes, " bytes; take fewer records"});
    }

    // Returns the records of a ring, oldest first, without those that were overwritten during the reading;
    // sets `head` to the number of records written.
    HERRING_SETUP std::vector<timeline_entry> records_of(int which, std::uint64_t& head) const {
        ring const& r = rings_[which];
        head = std::atomic_ref(*r.shown_head).load(std::memory_order_acquire);
        std::uint64_t const kept = std::min<std::uint64_t>(head, slots_);
        std::vector<timeline_entry> found(static_cast<std::size_t>(kept));
        for (std::uint64_t i = 0; i < kept; ++i) {
            std::uint64_t words[4];
            for (int w = 0; w < 4; ++w)
                words[w] =
                    std::atomic_ref(
                        r.first[((head - kept + i) & (slots_ - 1)) * 4 + static_cast<std::uint64_t>(w)])
                        .load(std::memory_order_relaxed);
            std::memcpy(&found[i], words, sizeof words);
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        std::uint64_t const now = std::atomic_ref(*r.shown_head).load(std::memory_order_relaxed);
        std::uint64_t const gone = timeline_ring_place{head, slots_}.overwritten(now);
        found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(gone));
        return found;
    }

    // Stores an anchor, so that the times of a killed process are known.
    void note_clock() noexcept {
        header_->last[header_->lasts & 1] = ticks_.anchor();
        std::atomic_signal_fence(std::memory_order_release);
        ++header_->lasts;
    }

    tick_counter ticks_;
    std::uint64_t const slots_; // per ring
    ring rings_[2];
    timeline_header* header_ = nullptr;
    timeline_memory memory_;
    std::string file_;
    world* ranks_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::trace {

/// Keeps the newest events of a reducer with their times, for pictures, for numbers, and for an inspection
/// after a crash.
///
/// `Records`: the number of records, rounded up to a power of two, at least 64: half of them for the caller's
/// events (tensors, buckets, waits), half for the engine's (messages, folds, stalls). Replaced records are
/// counted.
///
///     using traced = herring::reducer<float, transport::tcp, trace::timeline<1 << 16>>;
///     reduce.trace().report().text();                          // numbers of this rank
///     herring::write_perfetto("step.pftrace", reduce.trace()); // all ranks; herring/trace/perfetto.hpp
///
/// With HERRING_TIMELINE_DIR in the environment the ring lies in a file there, which bench/inspect reads,
/// even after the process was killed.
///
/// Units:    times are recorded in ticks of the time-stamp counter and read as nanoseconds
///           (machine/ticks.hpp).
/// Cost:     32 bytes a record; a reading of the counter and five stores an event.
/// Threads:  `data`, `report` and writers: the caller's thread; under progress::thread also while the other
///           one records.
/// Source:   Li et al., MLHPC at SC19 (measures of overlap); Horovod's timeline; PyTorch's flight recorder.
template <std::size_t Records = 65536> class timeline : public detail::timeline_rings {
  public:
    using axis = axes::trace;
    static constexpr char const* name = "timeline";
    static constexpr trace_facts facts{.details = true, .attaches = true};

    timeline() noexcept : timeline_rings(Records) {}
};
static_assert(trace_policy<timeline<>>);

} // namespace HERRING_NAMESPACE::trace

#endif // HERRING_TRACE_TIMELINE_HPP
