// herring: control over TCP: rank 0 is the hub, every other rank has one connection to it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_CONTROL_STAR_HPP
#define HERRING_DETAIL_CONTROL_STAR_HPP

#include "herring/detail/control.hpp"
#include "herring/detail/control_end.hpp"
#include "herring/detail/control_hub.hpp"
#include "herring/detail/control_member.hpp"
#include "herring/detail/control_settings.hpp"
#include "herring/detail/control_wire.hpp"
#include "herring/error.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace herring::detail::star {

/// Joins as `End`, which is `hub` or `member`, or throws why not; the world it makes owns the end.
template <class End> membership joined_as(settings from) {
    auto end = std::make_unique<End>(std::move(from));
    end->join();
    membership told = end->told();
    control& by = told.by;
    by.first_failure = &end->first_failure();
    by.failures = end->failures();
    by.all_gather = [](void* self, std::string_view operation, std::span<std::byte const> mine,
                       std::vector<std::vector<std::byte>>& all, time_point deadline) {
        static_cast<End*>(self)->collective(message::give, operation, mine, &all, deadline);
    };
    by.barrier = [](void* self, std::string_view operation, time_point deadline) {
        static_cast<End*>(self)->collective(message::barrier, operation, {}, nullptr, deadline);
    };
    by.fail = [](void* self, failure const& why) noexcept { static_cast<End*>(self)->announce(why); };
    by.accuse = [](void* self, accusation& of) noexcept { static_cast<End*>(self)->bring(of); };
    by.question = &end->question();
    by.testifies = &end->testifies();
    by.destroy = [](void* self) noexcept {
        std::unique_ptr<End> const mine(static_cast<End*>(self));
        mine->leave();
    };
    by.self = end.release();
    return told;
}

/// Joins, or throws why not.
inline membership join_star(settings from) {
    return from.rank == 0 ? joined_as<hub>(std::move(from)) : joined_as<member>(std::move(from));
}

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_STAR_HPP
