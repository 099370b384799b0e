// herring: tests of ensemble/asio_operations.hpp: one wait at a time, none after it was cancelled.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/asio_operations.hpp"

#include "doctest/doctest.h"

#include <boost/asio/io_context.hpp>

#include <cstdint>

#include <sys/eventfd.h>
#include <unistd.h>

namespace ensemble_asio_readiness_test {

using herring::detail::ensembles::asio_readiness;

TEST_CASE("asio_readiness: one wait at a time; none after cancel; the descriptor stays its owner's") {
    boost::asio::io_context loop;
    int const event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    REQUIRE(event >= 0);
    int calls = 0;
    {
        asio_readiness ready(loop.get_executor(), event, "test");
        ready.wait([&] { ++calls; });
        ready.wait([&] { calls += 100; }); // one is under way
        CHECK(loop.poll() == 0);
        std::uint64_t const one = 1;
        REQUIRE(::write(event, &one, sizeof one) == sizeof one);
        loop.run();
        CHECK(calls == 1);
        ready.wait([&] { calls += 100; }); // not before `done`
        loop.restart();
        CHECK(loop.poll() == 0);
        ready.done();
        ready.wait([&] { ++calls; });
        loop.restart();
        loop.run();
        CHECK(calls == 2);
        ready.done();
        ready.wait([&] { calls += 100; });
        ready.cancel();
        ready.wait([&] { calls += 100; });
        loop.restart();
        loop.run();
        CHECK(calls == 2);
    }
    std::uint64_t value = 0;
    CHECK(::read(event, &value, sizeof value) == sizeof value);
    CHECK(value == 1);
    ::close(event);
    CHECK_THROWS_AS(asio_readiness(loop.get_executor(), -1, "test"), herring::error);
}

} // namespace ensemble_asio_readiness_test
