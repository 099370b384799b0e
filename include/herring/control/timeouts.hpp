// herring: how long a rank may be silent and how long a call waits, as the program or the variables say.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_TIMEOUTS_HPP
#define HERRING_CONTROL_TIMEOUTS_HPP

#include "herring/base/config.hpp"
#include "herring/control/control.hpp"
#include "herring/control/failure/liveness.hpp"
#include "herring/error.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Shorter ones are refused: threads of a healthy process wait longer for a core.
inline constexpr std::chrono::milliseconds least_timeout{50};

/// The two times of a world. Rank 0's hold for all its ranks.
struct timeouts {
    std::chrono::milliseconds peer = liveness{}.dead; ///< a rank may give no sign of life for so long
    std::chrono::milliseconds call =
        usual_timeout; ///< a call waits for so long that has no deadline of its own
    bool peer_given = false, call_given = false;
};

/// "5 s", "250 ms" or "never".
HERRING_SETUP inline std::string timeout_text(std::chrono::milliseconds time) {
    return time >= never ? std::string("never") : duration_text(time);
}

/// "500ms", "5s" or "never"; `not_given` when it is none of these.
HERRING_SETUP inline std::chrono::milliseconds timeout_of(std::string_view text) noexcept {
    if (text == "never") return never;
    long long unit = 0;
    if (text.ends_with("ms"))
        unit = 1;
    else if (text.ends_with('s'))
        unit = 1000;
    else
        return not_given;
    text.remove_suffix(unit == 1 ? 2 : 1);
    if (text.empty() || text.size() > 12) return not_given;
    long long value = 0;
    for (char const c : text) {
        if (c < '0' || c > '9') return not_given;
        value = value * 10 + (c - '0');
    }
    return std::chrono::milliseconds(value * unit);
}

/// One of the two: what the program gave, else what the variable says; `not_given` where both are silent.
///
/// Errors: `bad_argument` naming who said it, and what.
HERRING_SETUP inline std::chrono::milliseconds read_timeout(std::chrono::milliseconds option,
                                                            std::string_view option_name,
                                                            char const* variable, char const* variable_name,
                                                            std::string_view operation) {
    bool const given = option != not_given;
    std::string_view const text = variable == nullptr ? std::string_view() : std::string_view(variable);
    if (!given && text.empty()) return not_given;
    std::chrono::milliseconds const time = given ? option : timeout_of(text);
    if (time == not_given)
        throw error(
            errc::bad_argument, -1, -1, operation,
            {variable_name, " is '", text, "', which is not a time; write for example 500ms, 5s or never"});
    if (time < least_timeout)
        throw error(errc::bad_argument, -1, -1, operation,
                    {given ? option_name : std::string_view(variable_name), " is ", time.count(),
                     " ms; give at least ", least_timeout.count(), " ms, or never"});
    return time < never ? time : never;
}

/// Both. `look_up`: a variable of the environment, or nullptr. `options`: the name of the struct, for errors.
template <class LookUp>
HERRING_SETUP timeouts read_timeouts(std::chrono::milliseconds peer, std::chrono::milliseconds call,
                                     LookUp const& look_up, std::string_view options,
                                     std::string_view operation) {
    timeouts found;
    auto const read = [&](std::chrono::milliseconds option, char const* member, char const* variable,
                          std::chrono::milliseconds& to) {
        std::chrono::milliseconds const time =
            read_timeout(option, text({options, "::", member}), look_up(variable), variable, operation);
        if (time != not_given) to = time;
        return time != not_given;
    };
    found.peer_given = read(peer, "peer_timeout", "HERRING_PEER_TIMEOUT", found.peer);
    found.call_given = read(call, "default_timeout", "HERRING_DEFAULT_TIMEOUT", found.call);
    return found;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_TIMEOUTS_HPP
