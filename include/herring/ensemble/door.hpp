// herring: the thread of a frontend's control connections.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_HPP
#define HERRING_ENSEMBLE_DOOR_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/control_sinks.hpp"
#include "herring/ensemble/door_core.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/shape.hpp"

#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Listens for members, admits them, and tells `Sink` who comes, leaves and is lost.
///
/// Threads:  one of its own; the functions may be called from any, also from the sink's.
/// Lifetime: `sink` outlives it. The destructor tells the members, and calls the sink no more; not from the sink's functions.
/// Errors:   `bad_argument` naming an option or a name; `unreachable` for an address that cannot be listened on; `no_resources`.
template <door_sink Sink> class door {
  public:
    HERRING_SETUP door(door_options const& options, shape const& own, std::vector<std::string> members,
                       Sink& sink)
        : core_(options, own, std::move(members)), sink_(sink) {
        core_.share(sink.local_memory());
        auto const body = +[](void* self) -> void* {
            static_cast<door*>(self)->run();
            return nullptr;
        };
        core_.thread().start(body, this, -1, "ensemble");
    }
    ~door() {
        core_.stop();
        core_.thread().join();
    }
    door(door const&) = delete;
    door& operator=(door const&) = delete;

    /// "host:port" that it listens on.
    std::string const& address() const noexcept { return core_.address(); }
    /// Errors: `bad_argument` for a name that is there, or cannot be one.
    void add_member(std::string name) { core_.add_member(std::move(name)); }
    /// A draining peer owes nothing any more: it is let go. `lost` follows.
    void drained(peer_index peer, std::uint64_t incarnation) { core_.drained(peer, incarnation); }
    /// Its lane is broken: it is disconnected, and comes again. `lost` follows.
    void drop(peer_index peer, std::uint64_t incarnation, std::string why) {
        core_.drop(peer, incarnation, std::move(why));
    }
    door_counters counters() noexcept { return core_.counters(); }
    /// Has the thread call `sink.nudged()`, where the sink has that. From any thread.
    void nudge() noexcept { core_.thread().wake(); }

  private:
    HERRING_SETUP void run() noexcept {
        std::vector<door_notice> notices;
        while (core_.turn(notices)) {
            for (door_notice& each : notices) tell(each);
            notices.clear();
            if constexpr (requires { sink_.nudged(); }) sink_.nudged();
        }
    }
    HERRING_SETUP void tell(door_notice& each) {
        using what = door_notice::what;
        switch (each.kind) {
        case what::admitted:
            return sink_.admitted(each.peer, each.incarnation, each.credits, std::move(each.ends));
        case what::draining:
            return sink_.draining(each.peer, each.incarnation);
        case what::lost:
            return sink_.lost(each.peer, each.incarnation, each.text);
        case what::refused:
            return sink_.refused(each.reason, each.text);
        }
    }

    door_core core_;
    Sink& sink_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DOOR_HPP
