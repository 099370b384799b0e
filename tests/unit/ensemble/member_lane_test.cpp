// herring: tests of ensemble/member_lane.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_lane.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace ensemble_member_lane_test {

using namespace herring::detail::ensembles;
using herring::decline;
using herring::detail::descriptor;

struct two {
    int one, other;
    explicit two(int type) {
        int both[2];
        REQUIRE(::socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both) == 0);
        one = both[0];
        other = both[1];
    }
};
admission facts() {
    admission of;
    of.peer = 3;
    of.credits = 2;
    of.in_flight = 2;
    of.request_bytes = 100;
    of.row_bytes = 50;
    return of;
}

struct asks {
    struct one {
        std::uint64_t id;
        std::span<std::byte const> request;
        place_index place;
    };
    std::vector<one> all;
    void asked(std::uint64_t id, std::uint64_t, std::span<std::byte const> request, place_index place) {
        all.push_back({id, request, place});
    }
};
struct answers {
    std::vector<std::pair<std::uint64_t, std::byte>> rows;
    std::vector<std::pair<std::uint64_t, decline>> declines;
    void row(std::uint64_t id, place_index, std::span<std::byte const> bytes) {
        rows.emplace_back(id, bytes.front());
    }
    void declined(std::uint64_t id, decline why) { declines.emplace_back(id, why); }
};

// One request is answered, one declined, and a row comes that nobody asked for.
template <class Frontend> void talk(Frontend& front, member_lane& lane) {
    asks jobs;
    answers got;
    std::vector<std::byte> const request(60, std::byte{7});
    CHECK(lane.poll(jobs));
    REQUIRE(lane.try_sleep());
    REQUIRE(front.ask(0, 11, 1000, request));
    REQUIRE(front.ask(1, 12, 1000, request));
    pollfd rung{lane.descriptor(), POLLIN, 0};
    CHECK(::poll(&rung, 1, 60000) == 1);
    lane.awake();
    CHECK(lane.poll(jobs));
    REQUIRE(jobs.all.size() == 2);
    CHECK(jobs.all[0].request.size() == 60);
    CHECK(jobs.all[0].request[59] == std::byte{7});
    CHECK(lane.holds(jobs.all[0].place));
    REQUIRE(lane.row(jobs.all[0].place).size() == 50);
    lane.row(jobs.all[0].place)[0] = std::byte{1};
    CHECK(lane.send(11, jobs.all[0].place, 50));
    CHECK(lane.decline(12, jobs.all[1].place, decline::bad_input));
    place_index place = 0;
    for (int i = 0; i < 20; ++i) { // taken and given back
        REQUIRE(lane.take(place));
        CHECK(lane.decline(99, place, decline::unspecified));
    }
    REQUIRE(lane.take(place));
    lane.row(place)[0] = std::byte{2};
    CHECK(lane.send(13, place, 50));
    CHECK_FALSE(lane.wants_write());
    CHECK(front.poll(got));
    CHECK(got.rows ==
          std::vector<std::pair<std::uint64_t, std::byte>>{{11, std::byte{1}}, {13, std::byte{2}}});
    CHECK(got.declines == std::vector<std::pair<std::uint64_t, decline>>{{12, decline::bad_input}});
    CHECK(lane.error().empty());
}

TEST_CASE("ensemble member lane: over tcp it owns its socket") {
    two const sockets(SOCK_STREAM);
    lane_ends ends;
    ends.socket = sockets.one;
    member_lane lane(std::move(ends), facts(), {});
    CHECK(ends.socket == -1);
    CHECK(lane.descriptor() == sockets.one);
    CHECK_FALSE(lane.is_shared());
    tcp_lane_frontend front(descriptor(sockets.other), {2, 100, 50});
    talk(front, lane);
}

TEST_CASE("ensemble member lane: through memory of one machine") {
    two const bells(SOCK_SEQPACKET);
    request_region region({2, 100, 4, 2});
    member_lane::memory memory(facts());
    lane_ends at_frontend, at_member;
    at_frontend.wake_up = bells.one;
    at_frontend.memory = memory.offer().release();
    REQUIRE(at_frontend.memory >= 0);
    at_member.wake_up = bells.other;
    at_member.memory = ::fcntl(region.descriptor(), F_DUPFD_CLOEXEC, 0);
    shared_lane_frontend front(region, std::move(at_frontend), 3, 2, 50);
    member_lane lane(std::move(at_member), facts(), std::move(memory));
    CHECK(lane.is_shared());
    talk(front, lane);
}

TEST_CASE("ensemble member lane: without memory there is nothing to offer") {
    CHECK(member_lane::memory().offer().get() < 0);
}

} // namespace ensemble_member_lane_test
