// herring: tests of ensemble/member_links.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member_links.hpp"

#include "doctest/doctest.h"

#include "herring/ensemble/control_options.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>

namespace ensemble_member_inbox_test {

using namespace herring::detail::ensembles;
using herring::errc;
using herring::failure;
using herring::frontend_status;
using herring::detail::descriptor;

/// Counts how many of it there are; cannot be made of 13 credits.
struct counted_lane {
    struct memory {
        std::uint32_t credits = 0;
        memory() = default;
        explicit memory(admission const& facts) : credits(facts.credits) {
            if (credits == 99) throw std::bad_alloc();
        }
        descriptor offer() const { return descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }
    };
    static inline std::atomic<int> alive{0};
    std::uint32_t of_memory;

    counted_lane(lane_ends, admission const& facts, memory&& mine) : of_memory(mine.credits) {
        if (facts.credits == 13) throw herring::error(errc::protocol, -1, -1, "member", "an unlucky number");
        ++alive;
    }
    ~counted_lane() { --alive; }
};
using inbox = member_inbox<counted_lane>;
static_assert(dialler_sink<inbox>);

admission of(std::uint32_t credits) {
    admission facts;
    facts.credits = credits;
    facts.row_bytes = 100;
    return facts;
}
struct news {
    std::size_t frontend;
    std::unique_ptr<inbox::link> link;
    std::string broken;
};
std::vector<news> taken(inbox& from) {
    std::vector<news> all;
    from.take([&](std::size_t frontend, std::unique_ptr<inbox::link> link, std::string_view broken) {
        all.push_back({frontend, std::move(link), std::string(broken)});
    });
    return all;
}

TEST_CASE("ensemble member inbox: links come, are replaced and end") {
    {
        herring::detail::poller bell("test");
        inbox box({"a:1", "b:2"}, 100, bell);
        CHECK(taken(box).empty());
        box.connected(1, of(4), {});
        CHECK(box.has_news());
        CHECK_FALSE(box.is_current(1));
        auto first = taken(box);
        REQUIRE(first.size() == 1);
        CHECK(first[0].frontend == 1);
        REQUIRE(first[0].link != nullptr);
        CHECK(first[0].link->frontend == 1);
        CHECK(box.is_current(1));
        CHECK_FALSE(box.has_news());

        box.disconnected(1, "silent");
        box.connected(1, of(4), {}); // before anybody looked
        auto second = taken(box);
        REQUIRE(second.size() == 1);
        CHECK(second[0].link != nullptr);

        box.connected(0, of(4), {});
        box.disconnected(0, "silent"); // it was never taken
        auto third = taken(box);
        REQUIRE(third.size() == 1);
        CHECK(third[0].link == nullptr);
        CHECK(third[0].broken.empty());
        box.connected(0, of(4), {}); // and this one not either
    }
    CHECK(counted_lane::alive == 0);
}

TEST_CASE("ensemble member inbox: what each frontend's status is") {
    herring::detail::poller bell("test");
    inbox box({"a:1", "b:2"}, 100, bell);
    box.connected(0, of(4), {});
    lane_ends local;
    local.wake_up = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    box.connected(1, of(4), std::move(local));
    box.disconnected(0, "silent");
    auto status = box.status();
    CHECK(status[0].address == "a:1");
    CHECK(status[0].now == frontend_status::state::connecting);
    CHECK(status[0].why == "silent");
    CHECK(status[0].times == 1);
    CHECK_FALSE(status[0].shared);
    CHECK(status[1].now == frontend_status::state::connected);
    CHECK(status[1].shared);
    auto const why = failure::make(errc::refused, -1, -1, "member", "replaced");
    box.refused(1, why);
    CHECK_FALSE(box.all_refused());
    box.refused(0, why);
    CHECK(box.all_refused());
    status = box.status();
    CHECK(status[1].now == frontend_status::state::refused);
    CHECK(status[1].why == "replaced");
    CHECK(std::string(herring::to_string(status[1].now)) == "refused");
}

TEST_CASE("ensemble member inbox: a lane that cannot be made is told with its reason") {
    herring::detail::poller bell("test");
    inbox box({"a:1"}, 100, bell);
    box.connected(0, of(13), {});
    auto found = taken(box);
    REQUIRE(found.size() == 1);
    CHECK(found[0].link == nullptr);
    CHECK(found[0].broken == "an unlucky number");
    admission other = of(4);
    other.row_bytes = 99;
    box.connected(0, other, {});
    found = taken(box);
    REQUIRE(found.size() == 1);
    CHECK(found[0].broken == "it takes rows of 99 bytes where those of this member have 100");
}

TEST_CASE("ensemble member inbox: memory that was offered goes with the lane that follows") {
    herring::detail::poller bell("test");
    inbox box({"a:1"}, 100, bell);
    CHECK(box.local_memory(0, of(5)).get() >= 0);
    box.connected(0, of(5), {});
    box.connected(0, of(5), {}); // without an offer
    auto found = taken(box);
    REQUIRE(found.size() == 1);
    CHECK(found[0].link->lane.of_memory == 0);
    (void)box.local_memory(0, of(6));
    box.connected(0, of(6), {});
    CHECK(taken(box)[0].link->lane.of_memory == 6);
    CHECK(box.local_memory(0, of(99)).get() < 0); // there is none
}

TEST_CASE("ensemble member inbox: what another thread tells is seen, or seen to have ended") {
    herring::detail::poller bell("test");
    inbox box({"a:1"}, 100, bell);
    std::thread other([&] {
        for (int i = 0; i < 500; ++i) {
            box.connected(0, of(4), {});
            if (i % 3 == 0) box.disconnected(0, "gone");
        }
        box.disconnected(0, "the last");
    });
    std::unique_ptr<inbox::link> open;
    while (box.status()[0].why != "the last") {
        epoll_event found[1];
        (void)bell.wait(found, 1, 1);
        for (auto& each : taken(box)) open = std::move(each.link);
    }
    other.join();
    for (auto& each : taken(box)) open = std::move(each.link);
    CHECK(open == nullptr);
    CHECK(counted_lane::alive == 0);
}

} // namespace ensemble_member_inbox_test
