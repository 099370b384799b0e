// herring: tests of trace/prometheus.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/prometheus.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <set>
#include <sstream>
#include <string>

TEST_CASE("timeline metrics: every line is a series of its own, has its type, and there are few") {
    timelines::schedule s(0, 64);
    for (int peer = 1; peer < 64; ++peer) s.arrived(100 + peer, 0, peer);
    s.submitted(0, 0, 0).wait(150, 400, 63).reduced(300, 0, 0);
    herring::timeline_report const report(s.done());
    std::string const text = herring::detail::timeline_metrics(report).text();
    std::istringstream lines(text);
    std::set<std::string> series;
    std::string type;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("# TYPE ")) type = line.substr(7, line.find(' ', 7) - 7);
        if (line.starts_with('#')) continue;
        CHECK(line.starts_with(type + "{rank=\"0\""));
        CHECK(series.insert(line.substr(0, line.find('}'))).second);
    }
    CHECK(series.size() <= 34);
    CHECK(text.find("herring_timeline_exposed_seconds{rank=\"0\",of=\"mean\"} 2.5e-07\n") !=
          std::string::npos);
    CHECK(text.find("herring_timeline_late_seconds{rank=\"0\",peer=\"63\"} ") != std::string::npos);
}

TEST_CASE("timeline metrics: a file that cannot be written is no error") {
    CHECK_FALSE(herring::write_prometheus("/nowhere/at/all.prom", {}));
}
