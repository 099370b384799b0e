// herring: tests of bench/timeline_links.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "../../../bench/timeline_links.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using bench::timeline_links, herring::timeline_data;
using timelines::schedule, timelines::trace_event;

namespace {

/// Two ranks over a network of 10 us, 0.5 and 0.7 us a message, 1,000 bytes a microsecond (8,000 Mbit/s): bursts of
/// three messages of `bytes`, `count` times, on a clock of rank 1 that is 5 ms ahead. Every third burst is late.
struct recorded {
    schedule ranks[2] = {schedule(0, 2), schedule(1, 2)};
    std::int64_t now = 0;
    std::uint32_t number = 0;

    void bursts(std::uint32_t bytes, int count) {
        for (int b = 0; b < count; ++b, now += 10'000'000) {
            std::int64_t wire = now + 10'000 + 500 + 700 + (b % 3 == 0 ? 50'000 : 0);
            for (int m = 0; m < 3; ++m, ++number) {
                wire += bytes;
                ranks[0].at(now + m * 500, trace_event::part_sent,
                            {.peer = 1, .bytes = bytes, .message = number});
                ranks[1].at(5'000'000 + std::max(wire, now + 11'200 + bytes + m * 700),
                            trace_event::part_arrived, {.peer = 0, .bytes = bytes, .message = number});
            }
            ranks[0].at(now + 2'000, trace_event::wait_begin);
        }
    }
    std::vector<timeline_data> files() {
        std::vector<timeline_data> all{ranks[0].done(), ranks[1].done()};
        all[0].fixes[0] = {0, 0, 0};
        all[1].fixes[0] = {0, -5'000'000, 100};
        all[1].host_id = 1;
        return all;
    }
};

} // namespace

TEST_CASE("timeline links: what the messages took gives the links back, in two digits") {
    recorded job;
    job.bursts(100, 40);
    job.bursts(100'000, 40);
    timeline_links const found(job.files());
    CHECK(found.found().rate_mbit == 8'000);
    CHECK(found.found().latency_ns == 10'000);
    CHECK(found.found().send_ns == 500);
    CHECK(found.found().receive_ns == 700);
    CHECK(found.text() ==
          "  HERRING_LINKS=latency=10000,send=500,receive=700,rate=8000\n  from 240 messages\n");
}

TEST_CASE("timeline links: one size, few messages, clocks that were not compared, or one end tell nothing") {
    recorded one_size, few, good;
    one_size.bursts(100'000, 40);
    few.bursts(100, 40);
    few.bursts(100'000, 2);
    good.bursts(100, 40);
    good.bursts(100'000, 40);
    auto unaligned = good.files(), one_end = good.files();
    unaligned[1].fixes[0].bound_ns = -1;
    one_end.pop_back();
    for (auto const& files :
         {one_size.files(), few.files(), unaligned, one_end, std::vector<timeline_data>{}}) {
        timeline_links const found(files);
        CHECK(found.found().rate_mbit == 0);
        CHECK(found.text().find("record steps with small and with large buckets") != std::string::npos);
    }
}

TEST_CASE("timeline links: ranks of one host are told that it is no network") {
    recorded job;
    job.bursts(100, 40);
    job.bursts(100'000, 40);
    auto files = job.files();
    files[1].host_id = files[0].host_id;
    CHECK(timeline_links(files).text().find("these are not figures of a network") != std::string::npos);
}
