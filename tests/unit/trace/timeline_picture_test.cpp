// herring: tests of trace/timeline_picture.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_picture.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

using herring::detail::picture_track, herring::detail::picture_slice, herring::detail::timeline_picture;
using timelines::schedule, timelines::trace_event;

namespace {
picture_track const& track(timeline_picture const& of, std::size_t process, std::string const& name) {
    for (picture_track const& t : of.processes[process].tracks)
        if (t.name == name) return t;
    FAIL("no track " << name);
    return of.processes[process].tracks[0];
}
} // namespace

TEST_CASE("picture: slices of a track are within each other, or apart; buckets in flight have lanes") {
    schedule s;
    s.at(0, trace_event::tensor_ready, {.index = 0}).submitted(1, 0, 0);
    s.at(5, trace_event::tensor_ready, {.index = 1}).submitted(6, 1, 1);
    s.wait(10, 50, 2).at(20, trace_event::waits_for, {.peer = 2}).reduced(30, 0, 0).reduced(45, 1, 1);
    std::vector<herring::timeline_data> const all{s.done()};
    timeline_picture const p(all);
    REQUIRE(p.processes.size() == 1);
    for (picture_track const& t : p.processes[0].tracks) {
        std::vector<std::int64_t> open;
        for (picture_slice const& each : t.slices) {
            while (!open.empty() && open.back() <= each.begin_ns) open.pop_back();
            CHECK((open.empty() || each.end_ns <= open.back()));
            if (each.end_ns > each.begin_ns) open.push_back(each.end_ns);
        }
    }
    picture_track const& steps = track(p, 0, "step");
    REQUIRE(steps.slices.size() == 5);
    CHECK(steps.slices[0].name == "backward");
    CHECK(steps.slices[0].end_ns == 10);
    CHECK(steps.slices[1].name == "weight");
    CHECK(steps.slices[3].name == "wait");
    CHECK(steps.slices[3].peer == 2);
    CHECK(steps.slices[4].name == "for rank 2");
    CHECK(steps.slices[4].end_ns == 30);
    CHECK(track(p, 0, "in flight 1").slices[0].name == "bucket 0");
    CHECK(track(p, 0, "in flight 2").slices[0].name == "bucket 1");
}

TEST_CASE("picture: ranks are on rank 0's clock, and a message has one name at both ends") {
    std::vector<herring::timeline_data> all;
    schedule a(0, 2), b(1, 2);
    a.at(1000, trace_event::part_sent, {.peer = 1, .message = 5});
    b.at(7100, trace_event::part_arrived, {.peer = 0, .message = 5}); // 100 later
    b.data.fixes[0] = {0, -6000, 10};
    all.push_back(a.done());
    all.push_back(b.done());
    timeline_picture const p(all);
    picture_slice const sent = track(p, 0, "sent").slices[0], came = track(p, 1, "arrived").slices[0];
    CHECK(sent.begin_ns == 0);
    CHECK(came.begin_ns == 100);
    CHECK(sent.flow_out != 0);
    CHECK(sent.flow_out == came.flow_in);
    CHECK(p.processes[1].name.find("clock to within 1 us") != std::string::npos);
}

TEST_CASE("picture: what has no end is drawn to the last event, and says so") {
    schedule s;
    s.submitted(0, 0, 0).at(10, trace_event::wait_begin).at(70, trace_event::waits_for, {.peer = 3});
    std::vector<herring::timeline_data> const all{s.done()};
    timeline_picture const p(all);
    CHECK(track(p, 0, "in flight 1").slices[0].name == "bucket 0 without result");
    CHECK(track(p, 0, "in flight 1").slices[0].end_ns == 70);
    CHECK(track(p, 0, "step").slices[0].name == "wait without end");
    CHECK(timeline_picture({}).processes.empty());
}

TEST_CASE("picture: a device's copies have a track each way") {
    schedule s;
    s.at(0, trace_event::to_host_begin, {.index = 1, .bytes = 8}).at(20, trace_event::to_host_end);
    s.at(30, trace_event::to_device_begin, {.index = 1}).at(40, trace_event::to_device_end);
    std::vector<herring::timeline_data> const all{s.done()};
    timeline_picture const p(all);
    CHECK(track(p, 0, "copies to the host").slices[0].name == "bucket 1");
    CHECK(track(p, 0, "copies to the host").slices[0].bytes == 8);
    CHECK(track(p, 0, "copies to the device").slices[0].begin_ns == 30);
    CHECK(track(p, 0, "copies to the device").slices[0].end_ns == 40);
}
