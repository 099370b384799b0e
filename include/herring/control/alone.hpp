// herring: the control of a world of one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_ALONE_HPP
#define HERRING_CONTROL_ALONE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/failure_handler.hpp"
#include "herring/error.hpp"
#include "herring/gather_result.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The control of a world of one.
struct control_alone {
    std::atomic<std::uint32_t> claimed{0};
    std::atomic<std::uint32_t> first{0};
    failure cell{};
    failure_handler on_failure{};

    HERRING_SETUP static control make(failure_handler const& called = {}) {
        auto* const made = new control_alone;
        made->on_failure = called;
        control by;
        by.self = made;
        by.first_failure = &made->first;
        by.failures = &made->cell;
        by.all_gather = all_gather;
        by.barrier = barrier;
        by.fail = fail;
        by.destroy = destroy;
        return by;
    }

    static gather_result all_gather(void* self, std::string_view, std::span<std::byte const> mine,
                                    time_point) {
        check(self);
        fixed_array<std::size_t> size(1);
        size[0] = mine.size();
        gather_result all(std::move(size));
        if (!mine.empty()) std::memcpy(all[0].data(), mine.data(), mine.size());
        return all;
    }
    static void barrier(void* self, std::string_view, time_point) { check(self); }
    static void fail(void* self, failure const& why) noexcept {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.claimed.exchange(1) != 0) return;
        alone.cell = why;
        alone.first.store(1, std::memory_order_release);
        alone.on_failure(why);
    }
    static void destroy(void* self) noexcept { delete static_cast<control_alone*>(self); }

    static void check(void* self) {
        auto& alone = *static_cast<control_alone*>(self);
        if (alone.first.load(std::memory_order_acquire) != 0) throw error(as_seen_by(alone.cell, 0));
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_ALONE_HPP
