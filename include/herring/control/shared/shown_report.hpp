// herring: a rank's blocked_report, in memory that the other ranks read while it is written.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_SHOWN_REPORT_HPP
#define HERRING_CONTROL_SHARED_SHOWN_REPORT_HPP

#include "herring/base/config.hpp"
#include "herring/control/failure/deadlock.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace HERRING_NAMESPACE::detail {

/// One rank's last report, under a sequence lock: a writer never waits, and a reader that meets a writer has no report.
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

    /// Leaves `report` as it is while one is written.
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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHOWN_REPORT_HPP
