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

namespace herring::detail::star {

/// Joins, or throws why not; the world it makes owns this process's end.
HERRING_SETUP inline membership join_star(settings&& from) {
    std::unique_ptr<star_end> end;
    if (from.rank == 0)
        end.reset(new hub(std::move(from)));
    else
        end.reset(new member(std::move(from)));
    end->join();
    membership told = end->told();
    control& by = told.by;
    by.first_failure = &end->first_failure();
    by.failures = end->failures();
    by.all_gather = [](void* self, std::string_view operation, std::span<std::byte const> mine,
                       time_point deadline) {
        return static_cast<star_end*>(self)->all_gather(operation, mine, deadline);
    };
    by.barrier = [](void* self, std::string_view operation, time_point deadline) {
        static_cast<star_end*>(self)->barrier(operation, deadline);
    };
    by.fail = [](void* self, failure const& why) noexcept { static_cast<star_end*>(self)->announce(why); };
    by.accuse = [](void* self, accusation& of) noexcept { static_cast<star_end*>(self)->bring(of); };
    by.question = &end->question();
    by.testifies = &end->testifies();
    by.destroy = [](void* self) noexcept {
        std::unique_ptr<star_end> const mine(static_cast<star_end*>(self));
        mine->leave();
    };
    by.self = end.release();
    return told;
}

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_STAR_HPP
