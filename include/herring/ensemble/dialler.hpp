// herring: the thread of a member's control connections to all its frontends.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_HPP
#define HERRING_ENSEMBLE_DIALLER_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/control_sinks.hpp"
#include "herring/ensemble/dialler_core.hpp"
#include "herring/ensemble/shape.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Dials every frontend, again and again unless it was refused for good, and tells `Sink` where it is connected.
///
/// Threads:  one of its own; the functions may be called from any. leave, stop and the destructor not from the sink's functions.
/// Lifetime: `sink` outlives it.
/// Errors:   `bad_argument` naming an option, an address or a name; `no_resources`.
template <dialler_sink Sink> class dialler {
  public:
    HERRING_SETUP dialler(dialler_options const& options, shape const& own, Sink& sink)
        : core_(options, own), sink_(sink) {
        auto const body = +[](void* self) -> void* {
            static_cast<dialler*>(self)->run();
            return nullptr;
        };
        core_.thread().start(body, this, -1, "ensemble");
    }
    ~dialler() { stop(); }
    dialler(dialler const&) = delete;
    dialler& operator=(dialler const&) = delete;

    std::uint64_t incarnation() const noexcept { return core_.incarnation(); }
    /// The lane to this frontend is broken: it is dialled again. `disconnected` follows.
    void drop(std::size_t frontend, std::string why) { core_.drop(frontend, std::move(why)); }
    /// Says so to all frontends, and waits until each has let this member go: it asks nothing more, and has what it was owed. It is not
    /// dialled again.
    ///
    /// Blocks:  for `most` at most; false: not all frontends have.
    bool leave(std::chrono::milliseconds most) noexcept { return core_.leave(most); }
    /// Ends the thread; the sink is called no more, and the frontends see closed connections.
    HERRING_SETUP void stop() noexcept {
        core_.stop();
        core_.thread().join();
    }

  private:
    HERRING_SETUP void run() noexcept {
        std::vector<dialler_notice> notices, more;
        while (core_.turn(notices))
            while (!notices.empty()) {
                for (dialler_notice& each : notices) tell(each, more);
                notices.clear();
                notices.swap(more);
            }
    }
    HERRING_SETUP void tell(dialler_notice& each, std::vector<dialler_notice>& more) {
        using what = dialler_notice::what;
        switch (each.kind) {
        case what::connected:
            return sink_.connected(each.frontend, each.facts, std::move(each.ends));
        case what::disconnected:
            return sink_.disconnected(each.frontend, each.text);
        case what::refused:
            return sink_.refused(each.frontend, each.why);
        case what::wants_memory:
            return core_.give_memory(more, each.frontend, sink_.local_memory(each.frontend, each.facts));
        }
    }

    dialler_core core_;
    Sink& sink_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIALLER_HPP
