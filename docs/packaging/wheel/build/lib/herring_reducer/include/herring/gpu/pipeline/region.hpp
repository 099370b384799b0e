// herring: host memory of a rank with a device: the shared mapping of its node, with page-locked slots.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_REGION_HPP
#define HERRING_GPU_PIPELINE_REGION_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/runtime.hpp"
#include "herring/intra_node/shared_memory.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include <unistd.h>

namespace HERRING_NAMESPACE::gpu {

/// Host memory of the pipelines: the node's shared mapping with its flags, this rank's slots in it, and the
/// polling interval while a device is busy, for a device cannot wake a thread.
///
/// Shape:    every rank's region: `bytes` for the engine, then slots, at the same offset on every rank.
/// Lifetime: the pages of the slots are locked; none of them holds memory of another rank.
template <class Runtime> class region {
  public:
    region(world& ranks, Runtime& device, std::size_t bytes, std::size_t slot_bytes, std::size_t slots)
        // A spare page before the slots, because the first slot's page is locked from its start.
        : slots_at_(up(bytes) + page()), slot_bytes_(up(slot_bytes)), slots_(slots),
          bytes_(slots_at_ + slot_bytes_ * slots_ + (slots_ > 0 ? page() : 0)), device_(device),
          shared_(std::make_unique<intra_node::shared_memory>(alike(ranks), bytes_)),
          base_(shared_->memory()) {
        if (slots_ == 0) return;
        std::byte* const first = slot(0);
        auto const over = reinterpret_cast<std::uintptr_t>(first) % page();
        // From the first slot's page to the last slot's page, inclusive; both pages are this rank's.
        lock_.emplace(device,
                      std::span<std::byte>(first - over, slot_bytes_ * slots_ + (over > 0 ? page() : 0)));
    }

    region(region const&) = delete;
    region& operator=(region const&) = delete;
    ~region() {
        if (device_.stuck())
            (void)shared_.release(); // leaked: its pages are still locked, and the device may write to them
    }

    intra_node::shared_memory& flags() noexcept { return *shared_; }
    std::byte* slot(std::uint64_t number) const noexcept {
        return base_ + slots_at_ + number % (slots_ > 0 ? slots_ : 1) * slot_bytes_;
    }
    std::size_t bytes() const noexcept { return bytes_; }
    std::size_t slots() const noexcept { return slots_; }
    std::size_t slot_stride() const noexcept { return slot_bytes_; }
    std::byte* on_device(std::byte* place) const noexcept { return lock_->on_device(place); }

    /// Returns the time of the next poll: while `busy` after an interval, which grows to 200 us, else
    /// `until`.
    time_point nap(time_point until) noexcept {
        if (!busy) return until;
        if (nap_ < longest) nap_ += nap_ / 8 + std::chrono::microseconds(10);
        time_point const soon = clock::now() + nap_;
        return soon < until ? soon : until;
    }
    /// Ends a wait: the next one starts with a short interval.
    void awake() noexcept { nap_ = std::chrono::nanoseconds(0); }

    bool busy = false; ///< this rank waits for its device; used by the thread that polls

  private:
    static std::size_t page() noexcept {
        static std::size_t const bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        return bytes;
    }
    static constexpr std::chrono::microseconds longest{200};
    static std::size_t up(std::size_t bytes) noexcept { return (bytes + page() - 1) / page() * page(); }

    // Throws if local ranks have different slots: each computes addresses in others by its own.
    HERRING_SETUP world& alike(world& ranks) const {
        std::uint64_t const mine[] = {slots_at_, slot_bytes_, slots_};
        gather_result const all = ranks.all_gather(std::as_bytes(std::span(mine)));
        for (int const rank : ranks.topology().members(ranks.node())) {
            auto const other = all[static_cast<std::size_t>(rank)];
            if (other.size() != sizeof mine || std::memcmp(other.data(), mine, sizeof mine) != 0)
                throw error(
                    errc::mismatch, ranks.rank(), rank, "construction",
                    "it has other slots in pinned memory; give the intra-node reducer the same tuning on "
                    "every rank");
        }
        return ranks;
    }

    std::size_t slots_at_;
    std::size_t slot_bytes_;
    std::size_t slots_;
    std::size_t bytes_;
    Runtime& device_;
    std::unique_ptr<intra_node::shared_memory> shared_;
    std::byte* base_; // start of this rank's memory
    std::optional<typename Runtime::pinned> lock_;
    std::chrono::nanoseconds nap_{0};
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_REGION_HPP
