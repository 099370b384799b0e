// herring: the backend of launched worlds: one rank's handle on the memory that all ranks map.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP
#define HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/shared/failure_watch.hpp"
#include "herring/control/shared/shared_region.hpp"
#include "herring/control/split.hpp"
#include "herring/control/world_state.hpp"
#include "herring/machine/monitor.hpp"

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// One rank's hold on the memory of a launched world, which its groups share.
struct launched_memory {
    shared_region& region;
    monitor reports{}; // one thread shows this rank's report at a time
    std::atomic<int> users{0};

    explicit launched_memory(shared_region& held) noexcept : region(held) {}
    void release() noexcept {
        if (users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
        region.release();
        delete this;
    }
};

/// One rank's handle on a region: the backend of launched worlds and their groups.
class control_shared {
  public:
    /// Takes over one hold on the region.
    static control_handle make(shared_region* region, int rank, failure_handler const& on_failure = {}) {
        auto* const memory = new launched_memory(*region);
        try {
            return control_handle::of(*new control_shared(region, rank, on_failure, *memory));
        } catch (...) {
            delete memory;
            throw;
        }
    }

    split_group split(std::string_view operation, int colour, int key, time_point deadline) {
        shared_region* const made = region_->split(at_, operation, {colour, key}, deadline);
        if (made == nullptr) return {};
        std::vector<int> ranks = made->ranks_in(*region_);
        int const rank = place_in(ranks, at_.rank);
        try {
            auto* const own = new control_shared(made, rank, {}, memory_);
            return {std::move(ranks), made->number(), control_handle::of(*own)};
        } catch (...) {
            made->give_back(rank);
            throw;
        }
    }

    gather_result all_gather(std::string_view operation, std::span<std::byte const> mine,
                             time_point deadline) {
        return region_->all_gather(at_, operation, mine, deadline);
    }
    void barrier(std::string_view operation, time_point deadline) {
        region_->barrier(at_, operation, deadline);
    }
    void fail(failure const& why) noexcept { region_->fail(at_.rank, why); }
    void report_suspicion(suspicion_report& of) noexcept { region_->report_suspicion(at_.rank, of); }
    void attach(world_state& state) noexcept { at_.state = &state; }
    void check_deadlock() noexcept {
        blocked_report mine;
        monitor::guard const held(memory_.reports);
        if (at_.state->blocked(mine)) region_->report_blocked(at_.rank, mine);
    }
    void leave() noexcept { region_->leave(at_.rank); }
    void destroy() noexcept {
        launched_memory& memory = memory_;
        if (region_->number() != 0)
            region_->give_back(at_.rank);
        else
            region_->leave(at_.rank);
        delete this; // its thread ends
        memory.release();
    }
    control_board board() noexcept { return region_->board(at_.rank); }

  private:
    control_shared(shared_region* region, int rank, failure_handler const& on_failure,
                   launched_memory& memory)
        : region_(region), memory_(memory), at_(region->cursor_of(rank)),
          watch_(region->news_of(rank), rank, on_failure) {
        memory.users.fetch_add(1, std::memory_order_relaxed);
    }

    shared_region* region_;
    launched_memory& memory_;
    shared_region::collective_cursor at_;
    failure_watch watch_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP
