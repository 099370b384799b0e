// herring: the memory that all ranks of a launch map: a slot, a failure, two areas and a report a rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_REGION_LAYOUT_HPP
#define HERRING_CONTROL_SHARED_REGION_LAYOUT_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace HERRING_NAMESPACE::detail {

/// One rank's last report, under a sequence lock: a writer never waits, and a reader that meets a writer gets
/// no report.
///
/// Shape:    memory that is zero at first holds no report.
/// Threads:  `show` from one thread at a time, `read` from any, also in other processes.
class alignas(64) shown_report {
  public:
    void show(blocked_report const& mine) noexcept {
        std::uint64_t words[count];
        std::memcpy(words, &mine, sizeof mine);
        std::uint64_t const version = version_.load(std::memory_order_relaxed) | 1;
        version_.store(version, std::memory_order_seq_cst); // odd: it is being written
        for (std::size_t i = 0; i < count; ++i) words_[i].store(words[i], std::memory_order_seq_cst);
        version_.store(version + 1, std::memory_order_seq_cst);
    }

    /// Reads the report; leaves `report` as it is while one is being written.
    void read(blocked_report& report) const noexcept {
        std::uint64_t words[count];
        std::uint64_t const version = version_.load(std::memory_order_seq_cst);
        for (std::size_t i = 0; i < count; ++i) words[i] = words_[i].load(std::memory_order_seq_cst);
        if (version % 2 != 0 || version_.load(std::memory_order_seq_cst) != version) return;
        std::memcpy(static_cast<void*>(&report), words, sizeof report);
        if (!report.sound()) report = {};
    }

  private:
    static constexpr std::size_t count = sizeof(blocked_report) / 8;
    static_assert(sizeof(blocked_report) % 8 == 0);

    std::atomic<std::uint64_t> version_;
    std::atomic<std::uint64_t> words_[count];
};

/// The places of the parts of one mapping, which every rank sees at the same address. Holds no pointers.
///
/// Shape:   the object that derives from it (`head_bytes`), a slot and a failure for each rank and one for
///          the launcher, two areas of `area_bytes`, a report and a number for each rank.
class region_layout {
  public:
    static constexpr std::size_t area_bytes = 4096;

    region_layout(region_layout const&) = delete;
    region_layout& operator=(region_layout const&) = delete;

    int ranks() const noexcept { return ranks_; }
    /// The failures: entry `rank`, or `ranks()` of the launcher.
    failure const* failures() const noexcept {
        return reinterpret_cast<failure const*>(base() + failures_at());
    }

  protected:
    enum class collective_kind : std::uint32_t { none, barrier, all_gather, split };

    struct contribution {
        collective_kind kind = collective_kind::none;
        std::size_t bytes = 0;
    };

    /// The part that a rank shows to the others.
    struct alignas(64) slot {
        std::atomic<std::uint64_t> arrived{0}; // number of the last collective that this rank entered
        std::atomic<std::uint32_t> left{0};
        std::atomic<std::uint32_t> announced{0}; // its failure is taken
        contribution contributions[2];           // to a collective, by the lowest bit of its number
        std::atomic<std::uint64_t> waits{wait_report::not_waiting};
        std::atomic<std::uint32_t> stopped{0}; // written by the launcher
        std::atomic<std::uint32_t> news{0};    // see failure_news
    };
    static_assert(sizeof(slot) == 64);

    region_layout(int ranks, std::size_t head_bytes) noexcept : ranks_(ranks), head_bytes_(head_bytes) {
        for (int r = 0; r < ranks; ++r) launched_rank(r) = r;
        for (int r = 0; r <= ranks; ++r) {
            ::new (static_cast<void*>(&slot_of(r))) slot;
            ::new (static_cast<void*>(base() + failures_at() + sizeof(failure) * index(r))) failure;
        }
    }

    /// The bytes of a whole mapping.
    static std::size_t bytes_for(int ranks, std::size_t head_bytes) noexcept {
        return aligned(aligned(head_bytes) + (sizeof(slot) + sizeof(failure)) * (index(ranks) + 1)) +
               (2 * area_bytes + sizeof(shown_report)) * index(ranks) + aligned(sizeof(int) * index(ranks));
    }

    slot& slot_of(int rank) noexcept {
        return *reinterpret_cast<slot*>(base() + aligned(head_bytes_) + sizeof(slot) * index(rank));
    }
    failure& failure_of(int rank) noexcept {
        return *(reinterpret_cast<failure*>(base() + failures_at()) + rank);
    }
    /// The area where `rank` puts its part of an all_gather. `half`: lowest bit of the collective's number.
    std::byte* area(int rank, std::size_t half) noexcept {
        return base() + areas_at() + area_bytes * (2 * index(rank) + half);
    }
    shown_report& report_of(int rank) noexcept {
        return *reinterpret_cast<shown_report*>(base() + reports_at() + sizeof(shown_report) * index(rank));
    }
    /// The number of `rank` in the launched world; of groups written before others know of the group.
    int& launched_rank(int rank) noexcept {
        return *reinterpret_cast<int*>(base() + reports_at() + sizeof(shown_report) * index(ranks_) +
                                       sizeof(int) * index(rank));
    }

    int const ranks_;

  private:
    static constexpr std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }
    static constexpr std::size_t aligned(std::size_t bytes) noexcept { return round_up(bytes, 64); }
    std::size_t failures_at() const noexcept {
        return aligned(head_bytes_) + sizeof(slot) * (index(ranks_) + 1);
    }
    std::size_t areas_at() const noexcept {
        return aligned(failures_at() + sizeof(failure) * (index(ranks_) + 1));
    }
    std::size_t reports_at() const noexcept { return areas_at() + 2 * area_bytes * index(ranks_); }
    std::byte* base() noexcept { return reinterpret_cast<std::byte*>(this); }
    std::byte const* base() const noexcept { return reinterpret_cast<std::byte const*>(this); }

    std::size_t const head_bytes_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_REGION_LAYOUT_HPP
