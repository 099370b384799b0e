// herring: reads the times and the links of a world from options and variables.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_TIMEOUTS_HPP
#define HERRING_CONTROL_TIMEOUTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/world_times.hpp"
#include "herring/model/links.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Returns "5 s", "250 ms" or "never".
HERRING_SETUP inline std::string timeout_text(std::chrono::milliseconds time) {
    return time >= never ? std::string("never") : duration_text(time);
}

/// Reads "500ms", "5s" or "never"; `not_given` for any other text.
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

/// Returns one of a world's times: the program's, else `text`, of the variable; `not_given` where neither has
/// one.
///
/// Errors: `bad_argument` naming the option or variable, and its value.
HERRING_SETUP inline std::chrono::milliseconds read_timeout(std::chrono::milliseconds option,
                                                            std::string_view option_name,
                                                            std::string_view text, time_name const& name,
                                                            std::string_view operation) {
    bool const given = option != not_given;
    if (!given && text.empty()) return not_given;
    std::chrono::milliseconds const time = given ? option : timeout_of(text);
    if (time == not_given)
        throw error(
            errc::bad_argument, -1, -1, operation,
            {name.variable, " is '", text, "', which is not a time; write for example 500ms, 5s or never"});
    std::string_view const who = given ? option_name : std::string_view(name.variable);
    bool const endless = name.variable != nullptr;
    if (time < name.least)
        throw error(errc::bad_argument, -1, -1, operation,
                    {who, " is ", time.count(), " ms; give at least ", name.least.count(), " ms",
                     endless ? ", or never" : ""});
    if (!endless && time > std::chrono::hours(1))
        throw error(errc::bad_argument, -1, -1, operation,
                    {who, " is ", timeout_text(time), "; give at most an hour"});
    return time < never ? time : never;
}

/// Returns the times that the program and the variables give. `options`: the name of the struct, for errors.
/// Errors: `bad_argument` also for times that contradict each other.
HERRING_SETUP inline world_times read_times(failure_detector_options const& detector,
                                            std::chrono::milliseconds call, variables const& from,
                                            std::string_view options, std::string_view operation) {
    world_times const given{detector, call};
    world_times found;
    for (std::size_t i = 0; i < world_times::count; ++i)
        found[i] = read_timeout(given[i], text({options, "::", time_names[i].member}),
                                time_names[i].variable == nullptr ? std::string_view()
                                                                  : from.text(time_names[i].variable),
                                time_names[i], operation);
    failure_detector_options const times = resolve(found).detector;
    if (times.heartbeat > times.peer_timeout / 2)
        throw error(errc::bad_argument, -1, -1, operation,
                    {options, "::failure_detector.heartbeat is ", timeout_text(times.heartbeat),
                     ", more than half of the peer_timeout, ", timeout_text(times.peer_timeout),
                     ": every rank would be given up; give a shorter heartbeat, or leave it out"});
    if (times.verdict_timeout < times.reply_timeout)
        throw error(errc::bad_argument, -1, -1, operation,
                    {options, "::failure_detector.verdict_timeout is ", timeout_text(times.verdict_timeout),
                     ", less than the reply_timeout, ", timeout_text(times.reply_timeout),
                     ": no verdict could be reached; give a longer one, or leave it out"});
    return found;
}

/// Returns the links of the program, or else of HERRING_LINKS: "latency=10000,rate=100000", "probe".
///
/// Errors: `bad_argument` for a figure that is unknown, given twice or out of bounds, and without a rate.
HERRING_SETUP inline links read_links(links const& option, variables const& from,
                                      std::string_view operation) {
    std::string_view const all = option == links{} ? from.text("HERRING_LINKS") : std::string_view();
    links found = option;
    for (std::string_view rest = all; !rest.empty();) {
        std::string_view const entry = rest.substr(0, rest.find(','));
        rest.remove_prefix(std::min(entry.size() + 1, rest.size()));
        std::size_t i = 0;
        while (i < links::count && !entry.starts_with(link_names[i])) ++i;
        long long const value =
            i < links::count ? number_in(entry.substr(entry.find('=') + 1), 1, most_link) : -1;
        if (entry == "probe")
            found.probe = true;
        else if (value < 0 || found[i] != 0)
            bad_setting({"HERRING_LINKS is '", all, "', where '", entry,
                         "' is not one of latency=, rack_latency=, send=, receive= (ns), rate=, local_rate=, "
                         "uplink_rate= (Mbit/s), queue= (bytes), each once with a number from 1 to ",
                         most_link, ", and probe; write for example latency=10000,rate=100000"},
                        operation);
        else
            found[i] = static_cast<std::uint32_t>(value);
    }
    bool bounded = true;
    for (std::size_t i = 0; i < links::count; ++i) bounded = bounded && found[i] <= most_link;
    if (!bounded || (found != links{} && found.rate_mbit == 0 && !found.probe))
        bad_setting({"the links are ", to_string(found),
                     bounded ? ", without a rate; add rate=, of a node's network in Mbit/s, or probe"
                             : "; no figure is above 1000000000"},
                    operation);
    return found;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_TIMEOUTS_HPP
