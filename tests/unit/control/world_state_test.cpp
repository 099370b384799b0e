// herring: tests of control/world_state.hpp: freed by its last holder, ended by its world, told of steps under way.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/world_state.hpp"

#include "herring/world.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

using namespace herring;
using detail::for_reducer;
using detail::reducer_entry;

namespace {
struct backend : detail::no_control {
    int left = 0, destroyed = 0;
    failure told{};

    world make() {
        detail::membership made;
        made.control = detail::control_handle::of(*this);
        return world(std::move(made));
    }
    void fail(failure const& why) noexcept { told = why; }
    void leave() noexcept { ++left; }
    void destroy() noexcept { ++destroyed; }
};

struct counts {
    std::atomic<std::uint64_t> submitted{0}, released{0};
    std::size_t ready = 0;
    detail::reducer_counts refer() { return {.submitted = submitted, .released = released, .ready = ready}; }
};
} // namespace

TEST_CASE("world_state: without a reducer, the world's end is the control's") {
    backend by;
    {
        world first = by.make();
        world const second = std::move(first);
        CHECK(by.destroyed == 0);
    }
    CHECK(by.destroyed == 1);
    CHECK(by.left == 1); // before it waits for what it sent last
}

TEST_CASE("world_state: the last holder frees the control, and a handle knows that the world has ended") {
    backend by;
    {
        auto own = std::make_unique<world>(by.make());
        world handle(*own, for_reducer{});
        CHECK_FALSE(handle.ended());
        own.reset();
        CHECK(by.left == 1);
        CHECK(by.destroyed == 0);
        CHECK(handle.ended());
        CHECK(by.told.what == errc::ok);
        try {
            handle.barrier();
            FAIL("its world has ended");
        } catch (error const& why) {
            CHECK(why.code() == errc::bad_state);
        }
    }
    CHECK(by.destroyed == 1);
    {
        world own = by.make();
        world const handle(own, for_reducer{});
        own = world(); // as if it were destroyed
        CHECK(by.left == 2);
        CHECK(handle.ended());
    }
    CHECK(by.destroyed == 2);
}

TEST_CASE("world_state: a world that ends in the middle of a step says so") {
    for (int const which : {0, 1, 2, 3}) {
        backend by;
        counts idle, busy, gone;
        gone.ready = 1;
        if (which == 1) busy.ready = 1;
        if (which == 2) busy.submitted = 1;
        auto own = std::make_unique<world>(by.make());
        world handle(*own, for_reducer{});
        reducer_entry const first(handle.state(), idle.refer());
        {
            reducer_entry const between(handle.state(), gone.refer());
            reducer_entry const after(handle.state(), idle.refer());
        }
        reducer_entry const second(handle.state(), busy.refer());
        reducer_entry const third(handle.state(), idle.refer());
        own.reset();
        bool const in_step = which == 1 || which == 2;
        CHECK((by.told.what == errc::peer_failed) == in_step);
        if (in_step) CHECK(std::string(by.told.text).find("destroyed its world") != std::string::npos);
    }
}

TEST_CASE("world_state: of a world that was moved from, there is no handle") {
    backend by;
    world first = by.make();
    world const second = std::move(first);
    CHECK_THROWS_AS(world(first, for_reducer{}), error); // NOLINT: on purpose
    CHECK(first.failed() == nullptr);
}
