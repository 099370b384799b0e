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

/// `work` with the role that `end` has.
template <class Work> HERRING_SETUP auto as_role(star_end& end, bool is_hub, Work&& work) {
    if (is_hub) return work(static_cast<hub&>(end));
    return work(static_cast<member&>(end));
}

inline void star_end::begin() {
    as_role(*this, is_.rank == 0, [](auto& role) { role.begin(); });
}
inline void star_end::give_up() {
    as_role(*this, is_.rank == 0, [](auto& role) { role.give_up(); });
}
inline void star_end::take_part(message kind, std::uint64_t sequence, std::span<std::byte const> mine,
                                time_point deadline) {
    as_role(*this, is_.rank == 0, [&](auto& role) { role.take_part(kind, sequence, mine, deadline); });
}
inline void star_end::accuse(failure const& why, bool certain) {
    as_role(*this, is_.rank == 0, [&](auto& role) { role.accuse(why, certain); });
}
inline time_point star_end::before_sleep(time_point now) {
    return as_role(*this, is_.rank == 0, [now](auto& role) { return role.before_sleep(now); });
}
inline void star_end::overslept(clock::duration late) {
    as_role(*this, is_.rank == 0, [late](auto& role) { role.overslept(late); });
}
inline bool star_end::occurred(std::uint64_t key) {
    return as_role(*this, is_.rank == 0, [key](auto& role) { return role.occurred(key); });
}
inline void star_end::connected(link& l) {
    as_role(*this, is_.rank == 0, [&l](auto& role) { role.connected(l); });
}
inline void star_end::heard(link& from, head const& h, std::span<std::byte const> body) {
    as_role(*this, is_.rank == 0, [&](auto& role) { role.heard(from, h, body); });
}
inline void star_end::stranger(link& l) {
    as_role(*this, is_.rank == 0, [&l](auto& role) { role.stranger(l); });
}
inline void star_end::expired(link& l) {
    as_role(*this, is_.rank == 0, [&l](auto& role) { role.expired(l); });
}
inline void star_end::ended(link& l, int why) {
    as_role(*this, is_.rank == 0, [&](auto& role) { role.ended(l, why); });
}
inline void star_end::ending::operator()(star_end* end) const noexcept {
    as_role(*end, end->is_.rank == 0, [](auto& role) { delete &role; });
}

/// Joins, or throws why not; the world it makes owns this process's end.
HERRING_SETUP inline membership join_star(settings&& from) {
    std::unique_ptr<star_end, star_end::ending> end;
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
        std::unique_ptr<star_end, star_end::ending> const mine(static_cast<star_end*>(self));
        mine->leave();
    };
    by.self = end.release();
    return told;
}

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_STAR_HPP
