// herring: the links of a frontend: one a peer, kept as long as a row is held, and blamed for nothing that another one did.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend_state.hpp"

#include "herring/machine/descriptor.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <memory>

#include <sys/eventfd.h>

namespace ensemble_frontend_links_test {

using namespace herring::detail::ensembles;

int alive = 0;

struct fake_link {
    fake_link(peer_index peer, std::uint64_t incarnation, bool shared) noexcept
        : peer_(peer), incarnation_(incarnation), shared_(shared), descriptor_(::eventfd(0, EFD_CLOEXEC)) {
        ++alive;
    }
    ~fake_link() { --alive; }
    fake_link(fake_link const&) = delete;
    fake_link& operator=(fake_link const&) = delete;

    peer_index peer() const noexcept { return peer_; }
    std::uint64_t incarnation() const noexcept { return incarnation_; }
    std::uint64_t serial() const noexcept { return 100 + incarnation_; }
    bool is_shared() const noexcept { return shared_; }
    bool is_held() const noexcept { return held; }
    int descriptor() const noexcept { return descriptor_.get(); }
    bool wants_write() const noexcept { return false; }
    bool try_sleep() noexcept { return !has_something && (sleeps = true); }
    void awake() noexcept { sleeps = false; }

    bool held = false, has_something = false, sleeps = false, watched_for_write = false;

  private:
    peer_index peer_;
    std::uint64_t incarnation_;
    bool shared_;
    herring::detail::descriptor descriptor_;
};

struct links_of_three {
    wait_set ready{};
    frontend_links<fake_link> links{3, ready};
    fake_link& put(peer_index peer, std::uint64_t incarnation, bool shared = false) {
        auto fresh = std::make_unique<fake_link>(peer, incarnation, shared);
        REQUIRE(links.put(fresh));
        return *links[peer];
    }
};

TEST_CASE("frontend_links: a link that is replaced stays until its last row is let go") {
    {
        links_of_three of;
        fake_link& first = of.put(1, 7);
        CHECK(of.links.any_sockets());
        first.held = true;
        of.put(1, 8, true);
        CHECK(!of.links.any_sockets());
        CHECK(of.links.shared().size() == 1);
        CHECK(of.links.current(1, 7) == nullptr);
        CHECK(of.links.current(1, 8) != nullptr);
        CHECK(of.links.current(9, 8) == nullptr);
        of.links.sweep();
        CHECK(of.links.of_admission(1, 107) == &first);
        CHECK(of.links.of_admission(1, 108) == of.links[1]);
        first.held = false;
        of.links.sweep();
        CHECK(of.links.of_admission(1, 107) == nullptr);
        CHECK(alive == 1);
    }
    CHECK(alive == 0);
}

TEST_CASE("frontend_links: a link that broke is given once, and not the one that has replaced it") {
    links_of_three of;
    fake_link& second = of.put(2, 1);
    of.put(0, 1);
    of.links.broken(0);
    of.links.broken(2);
    of.put(0, 2);
    CHECK(of.links.next_broken() == &second);
    of.links.retire(2);
    CHECK(of.links.next_broken() == nullptr);
}

TEST_CASE("frontend_links: where one lane has something, none is told that this end sleeps") {
    links_of_three of;
    fake_link& quiet = of.put(0, 1, true);
    fake_link& busy = of.put(1, 1, true);
    busy.has_something = true;
    CHECK(!of.links.announce_sleep());
    CHECK(!quiet.sleeps);
    busy.has_something = false;
    CHECK(of.links.announce_sleep());
    CHECK(quiet.sleeps);
    CHECK(busy.sleeps);
    of.links.awake();
    CHECK(!quiet.sleeps);
}

} // namespace ensemble_frontend_links_test
