// herring: tests of ensemble/member_links.hpp and member_jobs.hpp: frontends in turn, and links that live as long as their jobs.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_links.hpp"

#include "doctest/doctest.h"
#include "herring/net/poller.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include <sys/eventfd.h>
#include <unistd.h>

namespace ensemble_member_links_test {

namespace ensembles = herring::detail::ensembles;

int alive = 0;

struct fake_lane {
    int event = ::eventfd(0, EFD_NONBLOCK);
    bool has_something = false, sleeps = false;

    fake_lane() { ++alive; }
    fake_lane(fake_lane const&) = delete;
    ~fake_lane() { ::close(event), --alive; }
    int descriptor() const noexcept { return event; }
    bool wants_write() const noexcept { return false; }
    bool try_sleep() noexcept { return sleeps = !has_something; }
    void awake() noexcept { sleeps = false; }
};

using link = ensembles::member_link<fake_lane>;

TEST_CASE("member_links: requests of the frontends are taken in turn") {
    herring::detail::poller bell("test");
    ensembles::member_links<link> links(3, 1, bell);
    CHECK(links.with_requests() == nullptr);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(links.put(std::make_unique<link>(i, 4u)));
    for (std::uint64_t id = 0; id < 2; ++id)
        for (std::size_t i : {0u, 2u}) links[i]->push({.id = id});
    std::size_t taken[4];
    for (std::size_t& from : taken) {
        link* const next = links.with_requests();
        REQUIRE(next != nullptr);
        ensembles::waiting_request request;
        CHECK(next->pop(request));
        links.taken_from(*next);
        from = next->frontend;
    }
    CHECK(taken[0] == 0);
    CHECK(taken[1] == 2);
    CHECK(taken[2] == 0);
    CHECK(taken[3] == 2);
    CHECK(links.with_requests() == nullptr);
}

TEST_CASE("member_links: a closed link stays as long as a job has bytes of it") {
    {
        herring::detail::poller bell("test");
        ensembles::member_links<link> links(2, 1, bell);
        ensembles::member_jobs<float, link> jobs(5, 1);
        REQUIRE(links.put(std::make_unique<link>(0, 4u)));
        REQUIRE(links.put(std::make_unique<link>(1, 4u)));
        links[1]->push({.id = 7});
        REQUIRE(jobs.any_free());
        auto const slot = jobs.take({.id = 3}, *links[0]);
        CHECK(!jobs.any_free());
        CHECK(jobs[slot].request.id == 3);
        CHECK(jobs.row(slot).size() == 5);
        CHECK(jobs.row(slot).data() != jobs.spare_row().data());
        CHECK(links.close(0) == 0);
        CHECK(links.close(1) == 1); // waited, and nobody holds a job of it
        CHECK(links.close(1) == 0);
        CHECK(alive == 1);
        link& from = jobs.give(slot);
        CHECK(!from.is_open);
        CHECK(from.jobs == 0);
        CHECK(jobs.any_free());
        links.bury(from);
        CHECK(alive == 0);
    }
    CHECK(alive == 0);
}

TEST_CASE("member_links: all lanes are told before a sleep, also where one has something") {
    herring::detail::poller bell("test");
    ensembles::member_links<link> links(2, 1, bell);
    REQUIRE(links.put(std::make_unique<link>(0, 4u)));
    REQUIRE(links.put(std::make_unique<link>(1, 4u)));
    links[0]->lane.has_something = true;
    CHECK(!links.try_sleep());
    CHECK(links[1]->lane.sleeps);
    links[0]->lane.has_something = false;
    CHECK(links.try_sleep());
    links.awake();
    CHECK(!links[0]->lane.sleeps);
    CHECK(!links[1]->lane.sleeps);
}

} // namespace ensemble_member_links_test
