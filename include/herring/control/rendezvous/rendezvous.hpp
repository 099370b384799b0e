// herring: control over TCP: rank 0 is the hub, every other rank has one connection to it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP
#define HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP

#include "herring/base/config.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/coordinator.hpp"
#include "herring/control/rendezvous/endpoint.hpp"
#include "herring/control/rendezvous/participant.hpp"
#include "herring/control/rendezvous/settings.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/error.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::star {

// What a role does: the hub at rank 0, else the member.
inline hub& star_end::as_hub() noexcept { return static_cast<hub&>(*this); }
inline member& star_end::as_member() noexcept { return static_cast<member&>(*this); }

inline void star_end::begin() { is_hub() ? as_hub().begin() : as_member().begin(); }
inline void star_end::give_up() { is_hub() ? as_hub().give_up() : as_member().give_up(); }
inline void star_end::take_part(message kind, std::uint64_t sequence, std::span<std::byte const> mine,
                                time_point deadline) {
    is_hub() ? as_hub().take_part(kind, sequence, mine, deadline)
             : as_member().take_part(kind, sequence, mine, deadline);
}
inline void star_end::accuse(failure const& why, bool certain) {
    is_hub() ? as_hub().accuse(why, certain) : as_member().accuse(why, certain);
}
inline void star_end::stands(blocked_report const& mine) {
    is_hub() ? as_hub().stands(mine) : as_member().stands(mine);
}
inline time_point star_end::before_sleep(time_point now) {
    return is_hub() ? as_hub().before_sleep(now) : as_member().before_sleep(now);
}
inline void star_end::overslept(clock::duration late) {
    is_hub() ? as_hub().overslept(late) : as_member().overslept(late);
}
inline bool star_end::occurred(std::uint64_t key) {
    return is_hub() ? as_hub().occurred(key) : as_member().occurred(key);
}
inline void star_end::connected(link& l) { is_hub() ? as_hub().connected(l) : as_member().connected(l); }
inline void star_end::heard(link& from, head const& h, std::span<std::byte const> body) {
    is_hub() ? as_hub().heard(from, h, body) : as_member().heard(from, h, body);
}
inline void star_end::stranger(link& l) { is_hub() ? as_hub().stranger(l) : as_member().stranger(l); }
inline void star_end::expired(link& l) { is_hub() ? as_hub().expired(l) : as_member().expired(l); }
inline void star_end::ended(link& l, int why) {
    is_hub() ? as_hub().ended(l, why) : as_member().ended(l, why);
}
inline void star_end::ending::operator()(star_end* end) const noexcept {
    if (end->is_hub())
        delete &end->as_hub();
    else
        delete &end->as_member();
}

inline void star_end::destroy() noexcept {
    std::unique_ptr<star_end, star_end::ending> const mine(this);
    leave();
}

/// Joins, or throws why not; the world it makes owns this process's end.
HERRING_SETUP inline membership join_star(settings&& from) {
    std::unique_ptr<star_end, star_end::ending> end;
    if (from.rank == 0)
        end.reset(new hub(std::move(from)));
    else
        end.reset(new member(std::move(from)));
    end->join();
    membership told = end->joined();
    told.control = control_handle::of(*end.release());
    return told;
}

} // namespace HERRING_NAMESPACE::detail::star

#endif // HERRING_CONTROL_RENDEZVOUS_RENDEZVOUS_HPP
