// herring: tests of error.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/error.hpp"

#include "doctest/doctest.h"

#include <cstring>
#include <set>
#include <string>
#include <type_traits>

using herring::errc;
using herring::error;
using herring::failure;
using herring::status;

TEST_CASE("error: a failure is plain bytes, and long texts are cut") {
    CHECK(std::is_trivially_copyable_v<failure>);
    failure const made = failure::make(errc::timeout, 2, 3, "all_reduce", "rank 3 did not come");
    failure copy;
    std::memcpy(static_cast<void*>(&copy), &made, sizeof made);
    CHECK(copy.message() == "herring: rank 2: all_reduce: timeout (rank 3): rank 3 did not come");

    failure const cut = failure::make(errc::internal, 0, -1, std::string(1000, 'o'), std::string(1000, 't'));
    CHECK(std::strlen(cut.operation) == sizeof cut.operation - 1);
    CHECK(std::strlen(cut.text) == sizeof cut.text - 1);
    std::string const exact(sizeof cut.text - 1, 'x');
    CHECK(std::string(failure::make(errc::internal, 0, 0, "", exact).text) == exact);
}

TEST_CASE("error: a message leaves out what is not known") {
    CHECK(failure::make(errc::refused, -1, -1, "", "").message() == "herring: refused");
    CHECK(failure::make(errc::refused, 0, -1, "", "why").message() == "herring: rank 0: refused: why");
    CHECK(failure::make(errc::refused, -1, 0, "join", "").message() == "herring: join: refused (rank 0)");
    CHECK(failure{}.message() == "herring: ok");
}

TEST_CASE("error: carries the failure") {
    error const thrown(errc::mismatch, 1, 0, "construction", "tensors differ");
    CHECK(thrown.code() == errc::mismatch);
    CHECK(thrown.reported_by() == 1);
    CHECK(thrown.peer() == 0);
    CHECK(thrown.operation() == std::string("construction"));
    CHECK(thrown.what() == thrown.why().message());
    CHECK(std::is_base_of_v<std::exception, error>);
}

TEST_CASE("error: a status is a failure or ok, and throws when asked for its value") {
    status const good;
    CHECK(good.ok());
    CHECK(bool(good));
    CHECK(good.message() == "ok");
    CHECK_NOTHROW(good.value());
    status const bad(failure::make(errc::peer_lost, 0, 2, "wait", "gone"));
    CHECK_FALSE(bad);
    CHECK(bad.code() == errc::peer_lost);
    CHECK(bad.peer() == 2);
    CHECK_THROWS_WITH_AS(bad.value(), "herring: rank 0: wait: peer lost (rank 2): gone", error);
}

TEST_CASE("error: a status is copied with its failure; one that is ok names nobody") {
    status const bad(failure::make(errc::timeout, 1, 3, "wait", "it is late"));
    status there(bad);
    CHECK(there.code() == errc::timeout);
    CHECK(there.message() == bad.message());
    CHECK(there.why().reporter == 1);
    there = status();
    CHECK(there.ok());
    CHECK(there.peer() == -1);
    CHECK(there.why().what == errc::ok);
    CHECK(std::string_view(there.why().text).empty());
    CHECK(there.message() == "ok");
    there = bad;
    CHECK(there.peer() == 3);
    CHECK(std::string_view(there.why().operation) == "wait");
    CHECK(status(failure()).ok());
}

TEST_CASE("error: every code has a name of its own") {
    std::set<std::string> names;
    int const last = static_cast<int>(errc::internal);
    for (int code = 0; code <= last; ++code) names.insert(to_string(static_cast<errc>(code)));
    CHECK(names.size() == static_cast<std::size_t>(last) + 1);
    CHECK(names.count("unknown") == 0);
    CHECK(to_string(static_cast<errc>(last + 1)) == std::string("unknown"));
}
