// herring: tests of session/construction.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/construction.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>

using namespace herring;

namespace {

/// What the world hears when a construction ends with `thrown`.
template <class Thrown> failure announced(Thrown const& thrown) {
    world alone;
    try {
        try {
            throw thrown;
        } catch (...) {
            detail::announce_and_rethrow(alone);
        }
    } catch (...) {
    }
    REQUIRE(alone.failed() != nullptr);
    return *alone.failed();
}

} // namespace

TEST_CASE("construction: the sizes of tensors, in order, up to a limit of their sum") {
    layout const tensors{{"a", 10}, {"b", 0}, {"c", 32}};
    auto const counts = detail::element_counts(tensors, 42, 0);
    REQUIRE(counts.size() == 3);
    CHECK(counts[0] == 10);
    CHECK(counts[1] == 0);
    CHECK(counts[2] == 32);
}

TEST_CASE("construction: the tensor with which the sum is too large is named") {
    layout const tensors{{"a", 10}, {"b", 0}, {"c", 32}};
    std::string text;
    try {
        (void)detail::element_counts(tensors, 41, 3);
    } catch (error const& why) {
        text = why.what();
        CHECK(why.why().what == errc::bad_argument);
        CHECK(why.why().reporter == 3);
    }
    CHECK(text.find("tensor 2 ('c') of 32 elements") != std::string::npos);
}

TEST_CASE("construction: what ended it is announced to all ranks") {
    CHECK(announced(error(errc::unreachable, 0, -1, "connect", "no route")).what == errc::unreachable);
    CHECK(announced(error(errc::bad_argument, -1, -1, "make_plan", "no plan")).reporter == 0);
    CHECK(announced(std::bad_alloc()).what == errc::no_resources);
    failure const of_policy = announced(std::runtime_error("my policy"));
    CHECK(of_policy.what == errc::peer_failed);
    CHECK(std::string(of_policy.text).find("my policy") != std::string::npos);
    CHECK(announced(5).what == errc::peer_failed);
}

TEST_CASE("construction: the exception goes on as it was") {
    world alone;
    CHECK_THROWS_AS(
        [&] {
            try {
                throw std::runtime_error("my policy");
            } catch (...) {
                detail::announce_and_rethrow(alone);
            }
        }(),
        std::runtime_error);
}
