// herring: tests of control/timeouts.hpp: what options and variables say, and what is refused by name.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/timeouts.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring::detail;
using herring::errc;
using herring::never;
using std::chrono::milliseconds;

namespace {

timeouts read(milliseconds peer, milliseconds call, char const* peer_variable = nullptr,
              char const* call_variable = nullptr) {
    return read_timeouts(
        peer, call,
        [&](char const* name) {
            return std::string(name) == "HERRING_PEER_TIMEOUT"      ? peer_variable
                   : std::string(name) == "HERRING_DEFAULT_TIMEOUT" ? call_variable
                                                                    : "?";
        },
        "join_options", "join");
}

void check_refused(milliseconds option, char const* variable, char const* said) {
    for (bool const peer : {true, false}) {
        std::string const words =
            std::string(said).replace(std::string(said).find('*'), 1, peer ? "peer" : "default");
        try {
            peer ? read(option, not_given, variable) : read(not_given, option, nullptr, variable);
            FAIL("it is taken: " << words);
        } catch (herring::error const& why) {
            CHECK(why.code() == errc::bad_argument);
            CHECK(std::string(why.operation()) == "join");
            std::string text = why.what();
            if (std::size_t const at = text.find(peer ? "HERRING_PEER_" : "HERRING_DEFAULT_");
                at != std::string::npos)
                text.replace(at, peer ? 13 : 16, peer ? "HERRING_peer_" : "HERRING_default_");
            CAPTURE(text);
            CHECK(text.find(words) != std::string::npos);
        }
    }
}

} // namespace

TEST_CASE("timeouts: the program goes before the variables, and both before what is usual") {
    timeouts found = read(not_given, not_given);
    CHECK(found.peer == milliseconds(5'000));
    CHECK(found.call == milliseconds(30'000));
    CHECK_FALSE(found.peer_given);
    CHECK_FALSE(found.call_given);
    found = read(not_given, not_given, "", ""); // an empty text is as good as none
    CHECK_FALSE(found.peer_given);
    found = read(not_given, not_given, "500ms", "2s");
    CHECK(found.peer == milliseconds(500));
    CHECK(found.call == milliseconds(2'000));
    CHECK(found.peer_given);
    CHECK(found.call_given);
    found = read(milliseconds(700), never, "500ms", "2s");
    CHECK(found.peer == milliseconds(700));
    CHECK(found.call == never);
    found = read(not_given, milliseconds(50), "never");
    CHECK(found.peer == never);
    CHECK(found.call == milliseconds(50));
    CHECK(read(milliseconds::max(), not_given).peer == never);
    CHECK(read(not_given, not_given, "999999999999s").peer == never);
}

TEST_CASE("timeouts: what is no time, or too short, is refused by name") {
    check_refused(milliseconds(0), nullptr, "join_options::*_timeout is 0 ms; give at least 50 ms, or never");
    check_refused(milliseconds(-1), "5s", "join_options::*_timeout is -1 ms");
    check_refused(milliseconds(49), nullptr, "join_options::*_timeout is 49 ms");
    check_refused(not_given, "0s", "HERRING_*_TIMEOUT is 0 ms; give at least 50 ms, or never");
    for (char const* const wrong :
         {"5", "s", "ms", "-5s", "5 s", "0.5s", "5m", "forever", "NEVER", "1234567890123s"})
        check_refused(not_given, wrong, "HERRING_*_TIMEOUT is '");
    check_refused(not_given, "5",
                  "HERRING_*_TIMEOUT is '5', which is not a time; write for example 500ms, 5s or never");
}

TEST_CASE("timeouts: in words") {
    CHECK(timeout_text(milliseconds(5'000)) == "5 s");
    CHECK(timeout_text(milliseconds(250)) == "250 ms");
    CHECK(timeout_text(never) == "never");
}
