// herring: the backend of a world of one rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_ALONE_HPP
#define HERRING_CONTROL_ALONE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The backend of a world of one rank. There is no other rank to ask: a suspicion is the failure.
class control_alone : public no_control {
  public:
    HERRING_SETUP static control_handle make(failure_handler const& on_failure = {}) {
        return control_handle::of(*new control_alone(on_failure));
    }

    gather_result all_gather(std::string_view, std::span<std::byte const> mine, time_point) {
        check();
        fixed_array<std::size_t> size(1);
        size[0] = mine.size();
        gather_result all(std::move(size));
        if (!mine.empty()) std::memcpy(all[0].data(), mine.data(), mine.size());
        return all;
    }
    void barrier(std::string_view, time_point) { check(); }
    split_group split(std::string_view, int colour, int, time_point) {
        check();
        return colour < 0 ? split_group{} : split_group{{0}, ++splits_, make()};
    }
    void fail(failure const& why) noexcept {
        if (claimed_.exchange(1) != 0) return;
        failure_ = why;
        first_failure_.store(1, std::memory_order_release);
        on_failure_(why);
    }
    void report_suspicion(suspicion_report& of) noexcept { fail(of.why); }
    void destroy() noexcept { delete this; }

  private:
    explicit control_alone(failure_handler const& on_failure) : on_failure_(on_failure) {}

    void check() const {
        if (first_failure_.load(std::memory_order_acquire) != 0) throw error(as_seen_by(failure_, 0));
    }

    std::uint64_t splits_ = 0;
    std::atomic<std::uint32_t> claimed_{0};
    failure_handler on_failure_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_ALONE_HPP
