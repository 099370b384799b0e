// herring: tests of ensemble/asio_operations.hpp: handlers are kept, called once on their executor, and destroyed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/asio_operations.hpp"

#include "doctest/doctest.h"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/io_context.hpp>

#include <array>
#include <memory>
#include <vector>

namespace ensemble_asio_operations_test {

using herring::detail::ensembles::asio_operations;
using operations = asio_operations<int>;
using executor = boost::asio::any_io_executor;

TEST_CASE("asio_operations: places are limited, and used again") {
    boost::asio::io_context loop;
    operations all(2);
    std::vector<int> results;
    auto handler = [&](int x) { results.push_back(x); };
    auto first = handler, second = handler, third = handler;
    executor const other = loop.get_executor();
    std::size_t const a = all.add(first, other), b = all.add(second, other);
    CHECK(a != b);
    CHECK(all.add(third, other) == operations::none);
    CHECK(all.count() == 2);
    all.complete(b, 7, nullptr);
    CHECK(results.empty()); // not within the call
    CHECK(all.add(third, other) == b);
    all.discard(a);
    all.complete_all([] { return 9; });
    CHECK(all.count() == 0);
    loop.run();
    CHECK(results == std::vector<int>{7, 9});
}

TEST_CASE(
    "asio_operations: a handler larger than a place, on an executor of its own, keeps what it is given") {
    boost::asio::io_context loop, own;
    auto const alive = std::make_shared<int>(1), kept = std::make_shared<int>(2);
    int result = 0;
    {
        operations all(1);
        std::array<char, 600> const large{};
        auto handler = boost::asio::bind_executor(
            own, [alive, large, &result](int x) { result = x + static_cast<int>(large[0]); });
        executor const other = loop.get_executor();
        std::size_t const at = all.add(handler, other);
        all.began<decltype(handler), executor>(at, [] {});
        CHECK(own.poll() == 0);
        CHECK_FALSE(own.stopped()); // it has work
        all.complete(at, 5, kept);
    }
    CHECK(kept.use_count() == 2);
    loop.run();
    CHECK(result == 0);
    own.run();
    CHECK(result == 5);
    CHECK(kept.use_count() == 1);
    CHECK(alive.use_count() == 1);
}

TEST_CASE("asio_operations: what is left at the end is destroyed, not called") {
    boost::asio::io_context loop;
    auto const alive = std::make_shared<int>(1);
    bool called = false;
    {
        operations all(4);
        executor const other = loop.get_executor();
        auto handler = [alive, &called](int) { called = true; };
        for (int i = 0; i < 3; ++i) {
            auto copy = handler;
            (void)all.add(copy, other);
        }
    }
    CHECK(alive.use_count() == 1);
    loop.run();
    CHECK_FALSE(called);
}

} // namespace ensemble_asio_operations_test
