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
#include "herring/control/world_state.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// One rank's handle on a region: the backend of launched worlds.
class control_shared {
  public:
    /// Takes over one hold on the region.
    static control_handle make(shared_region* region, int rank, failure_handler const& on_failure = {}) {
        return control_handle::of(*new control_shared(region, rank, on_failure));
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
        if (at_.state->blocked(mine)) region_->report_blocked(at_.rank, mine);
    }
    void leave() noexcept { region_->leave(at_.rank); }
    void destroy() noexcept {
        shared_region* const region = region_;
        region->leave(at_.rank);
        delete this; // its thread ends
        region->release();
    }
    control_board board() noexcept { return region_->board(at_.rank); }

  private:
    control_shared(shared_region* region, int rank, failure_handler const& on_failure)
        : region_(region), at_(region->cursor_of(rank)), watch_(region->news_of(rank), rank, on_failure) {}

    shared_region* region_;
    shared_region::collective_cursor at_;
    failure_watch watch_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SHARED_SHARED_CONTROL_HPP
