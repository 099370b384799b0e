// herring: tests of trace/chrome.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/chrome.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <string>
#include <vector>

using timelines::schedule, timelines::trace_event;

namespace {
std::size_t count(std::string const& text, std::string const& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
}
} // namespace

TEST_CASE(
    "chrome: events with microseconds, one track a bucket in flight, arrows with one name at both ends") {
    schedule a(0, 2), b(1, 2);
    a.submitted(0, 0, 0).submitted(500, 1, 1).reduced(2000, 0, 0).reduced(2500, 1, 1);
    a.at(700, trace_event::part_sent, {.peer = 1, .bytes = 8, .message = 3});
    b.arrived(1700, 0, 0, 3);
    std::vector<herring::timeline_data> all;
    all.push_back(a.done());
    all.push_back(b.done());
    std::string const text = herring::detail::chrome_trace(all).text();
    CHECK(text.find("{\"ph\":\"X\",\"pid\":0,\"tid\":1,\"name\":\"bucket 0\",\"ts\":0.000,\"dur\":2.000,"
                    "\"args\":{\"bytes\":1000,\"execution\":0}}") != std::string::npos);
    CHECK(text.find("{\"ph\":\"X\",\"pid\":0,\"tid\":2,\"name\":\"bucket 1\",\"ts\":0.500,\"dur\":2.000") !=
          std::string::npos);
    CHECK(text.find("\"name\":\"part to rank 1\",\"ts\":0.700,\"dur\":0.001") != std::string::npos);
    CHECK(count(text, "\"ph\":\"s\"") == 1);
    CHECK(count(text, "\"ph\":\"f\"") == 1);
    std::size_t const id = text.find("\"id\":\"");
    CHECK(count(text, text.substr(id, 22)) == 2);
    CHECK(std::count(text.begin(), text.end(), '{') == std::count(text.begin(), text.end(), '}'));
    CHECK(std::count(text.begin(), text.end(), '[') == std::count(text.begin(), text.end(), ']'));
    CHECK(text.find(",]") == std::string::npos);
    CHECK(text.find("},\n]") == std::string::npos);
}

TEST_CASE("chrome: names are quoted") {
    CHECK(herring::detail::chrome_trace::quoted("a\"b\\c\nd") == "a\\\"b\\\\c?d");
    CHECK_FALSE(herring::write_chrome("/nowhere/at/all", std::vector<herring::timeline_data>{}));
}
