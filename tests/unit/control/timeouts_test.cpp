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

world_times read_all(herring::failure_detector_options const& detector, milliseconds call,
                     char const* peer_variable = nullptr, char const* call_variable = nullptr) {
    std::string const peer = std::string("HERRING_PEER_TIMEOUT=") + (peer_variable ? peer_variable : "");
    std::string const calls = std::string("HERRING_DEFAULT_TIMEOUT=") + (call_variable ? call_variable : "");
    char const* entries[] = {"HERRING_HEARTBEAT=?", nullptr, nullptr, nullptr}; // the first is not read
    std::size_t count = 1;
    if (peer_variable != nullptr) entries[count++] = peer.c_str();
    if (call_variable != nullptr) entries[count++] = calls.c_str();
    return read_times(detector, call, variables(entries), "join_options", "join");
}

world_times read(milliseconds peer, milliseconds call, char const* peer_variable = nullptr,
                 char const* call_variable = nullptr) {
    return read_all({.peer_timeout = peer}, call, peer_variable, call_variable);
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
            if (std::size_t const at = text.find("failure_detector."); at != std::string::npos)
                text.erase(at, std::string("failure_detector.").size());
            if (std::size_t const at = text.find(peer ? "HERRING_PEER_" : "HERRING_DEFAULT_");
                at != std::string::npos)
                text.replace(at, peer ? 13 : 16, peer ? "HERRING_peer_" : "HERRING_default_");
            CAPTURE(text);
            CHECK(text.find(words) != std::string::npos);
        }
    }
}

/// In the words of one rank; empty: they are taken.
std::string refusal_of(herring::failure_detector_options const& detector) {
    try {
        read_all(detector, not_given);
    } catch (herring::error const& why) {
        CHECK(why.code() == errc::bad_argument);
        return why.what();
    }
    return {};
}
bool says(std::string const& text, char const* words) {
    CAPTURE(text);
    return text.find(words) != std::string::npos;
}

} // namespace

TEST_CASE("timeouts: the program goes before the variables, and both before what is usual") {
    world_times found = read(not_given, not_given);
    CHECK(found == world_times{});              // nobody says anything
    found = read(not_given, not_given, "", ""); // an empty text is as good as none
    CHECK(found == world_times{});
    found = read(not_given, not_given, "500ms", "2s");
    CHECK(found.detector.peer_timeout == milliseconds(500));
    CHECK(found.call == milliseconds(2'000));
    found = read(milliseconds(700), never, "500ms", "2s");
    CHECK(found.detector.peer_timeout == milliseconds(700));
    CHECK(found.call == never);
    found = read(not_given, milliseconds(50), "never");
    CHECK(found.detector.peer_timeout == never);
    CHECK(found.call == milliseconds(50));
    CHECK(read(milliseconds::max(), not_given).detector.peer_timeout == never);
    CHECK(read(not_given, not_given, "999999999999s").detector.peer_timeout == never);
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

TEST_CASE("timeouts: the other times have limits, and times that contradict each other are refused") {
    CHECK(refusal_of({.peer_timeout = milliseconds(500),
                      .heartbeat = milliseconds(50),
                      .reply_timeout = milliseconds(100),
                      .verdict_timeout = milliseconds(100),
                      .long_wait = milliseconds(50)})
              .empty());
    CHECK(says(refusal_of({.heartbeat = milliseconds(0)}),
               "join_options::failure_detector.heartbeat is 0 ms; give at least 5 ms"));
    CHECK(says(refusal_of({.reply_timeout = milliseconds(99)}),
               "reply_timeout is 99 ms; give at least 100 ms"));
    CHECK(says(refusal_of({.verdict_timeout = milliseconds(-5)}), "verdict_timeout is -5 ms"));
    CHECK(says(refusal_of({.long_wait = milliseconds(49)}), "long_wait is 49 ms"));
    CHECK(says(refusal_of({.long_wait = never}), "long_wait is never; give at most an hour"));
    CHECK(says(refusal_of({.peer_timeout = milliseconds(500), .heartbeat = milliseconds(251)}),
               "failure_detector.heartbeat is 251 ms, more than half of the peer_timeout, 500 ms"));
    CHECK(says(refusal_of({.verdict_timeout = milliseconds(999)}),
               "failure_detector.verdict_timeout is 999 ms, less than the reply_timeout, 1 s"));
}

TEST_CASE("timeouts: in words") {
    CHECK(timeout_text(milliseconds(5'000)) == "5 s");
    CHECK(timeout_text(milliseconds(250)) == "250 ms");
    CHECK(timeout_text(never) == "never");
}
