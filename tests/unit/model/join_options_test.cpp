// herring: options of `join` leave everything to the variables, unless the program says otherwise.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/join_options.hpp"

#include "doctest/doctest.h"

TEST_CASE("join_options: left alone, nothing but the time for joining is said") {
    herring::join_options const options;
    CHECK(options.rank == -1);
    CHECK(options.size == -1);
    CHECK(options.address.empty());
    CHECK(options.node.empty());
    CHECK_FALSE(options.secret.has_value());
    CHECK(options.secret_file.empty());
    CHECK_FALSE(options.require_secret);
    CHECK(options.control.seals() == nullptr);
    CHECK(options.interface.empty());
    CHECK(options.timeout == std::chrono::seconds(60));
    CHECK(options.failure_detector.peer_timeout == herring::detail::not_given);
    CHECK(options.default_timeout == herring::detail::not_given);
}
