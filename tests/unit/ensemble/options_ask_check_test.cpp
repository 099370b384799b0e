// herring: tests of ensemble/options.hpp: what is refused of a request, at its bounds.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/options.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace ensemble_ask_check_test {

using namespace herring;
using namespace std::chrono_literals;
using herring::detail::ensembles::ask_check;

struct format {
    static char const* fault_of_weights(std::span<float const> weights) noexcept {
        return weights[0] < 0 ? "a weight is negative" : nullptr;
    }
};
/// Why it is refused; empty: it is not.
template <class Check> std::string refusal(Check&& check) {
    try {
        check();
    } catch (error const& e) {
        CHECK(e.code() == errc::bad_argument);
        return e.what();
    }
    return "";
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

std::string of_request(std::size_t bytes, std::chrono::nanoseconds within, ask_options const& how = {}) {
    return refusal([&] { ask_check::request<format>(bytes, 100, within, how); });
}
std::string of_roster(ask_options const& how, std::size_t members, std::size_t k = 1) {
    return refusal([&] { ask_check::roster(how, members, k); });
}

TEST_CASE("ask check: an expected id is one that no request of the frontend's own can have") {
    auto const of_id = [](std::uint64_t id) { return refusal([&] { ask_check::expected_id(id); }); };
    CHECK(of_id(1) == "");
    CHECK(of_id(~std::uint64_t{0} >> 1) == "");
    CHECK(has(of_id(0), "is 0; it has to be from 1 to 2^63 - 1"));
    CHECK(has(of_id(std::uint64_t{1} << 63), "is 9223372036854775808"));
    CHECK(of_id(~std::uint64_t{0}) != "");
}

TEST_CASE("ask check: bytes and deadlines at their bounds") {
    CHECK(of_request(100, 0ns) == "");
    CHECK(of_request(0, 24h) == "");
    CHECK(has(of_request(101, 1s), "the request has 101 bytes, and request_bytes is 100"));
    CHECK(has(of_request(std::numeric_limits<std::size_t>::max(), 1s), "request_bytes is 100"));
    CHECK(of_request(1, -1ns) == ""); // it has passed: what comes of that is no error
    CHECK(of_request(1, -24h) == "");
    CHECK(
        has(of_request(1, -24h - 1ns), "the deadline is -86400000000001 ns away; it has to be within a day"));
    CHECK(has(of_request(1, 24h + 1ns), "it has to be within a day"));
    CHECK(of_request(1, std::chrono::nanoseconds::max()) != "");
    CHECK(of_request(1, std::chrono::nanoseconds::min()) != "");
}

TEST_CASE("ask check: weights are the rows' business, and one for each of the roster") {
    float const good[] = {1, 2, 3}, bad[] = {-1, 2, 3};
    CHECK(of_request(1, 1s, {.weights = good}) == "");
    CHECK(has(of_request(1, 1s, {.weights = bad}), "a weight is negative"));
    CHECK(of_roster({.weights = good}, 3) == "");
    CHECK(has(of_roster({.weights = good}, 4), "3 weights are given, and the roster has 4 members"));
    CHECK(of_roster({.weights = good}, 2) != "");
    // One for each of the roster, whoever of it is asked.
    CHECK(of_roster({.among = member_set{1}, .weights = good}, 3) == "");
}

TEST_CASE("ask check: k and among fit the roster") {
    CHECK(of_roster({}, 3, 3) == "");
    CHECK(has(of_roster({}, 3, 4), "k is 4, and 3 members of the roster could answer"));
    CHECK(of_roster({.k = 2}, 3, 4) == ""); // its own k goes before the frontend's
    CHECK(has(of_roster({.k = 4}, 3, 1), "k is 4"));
    CHECK(of_roster({.k = std::numeric_limits<std::size_t>::max()}, 3) != "");
    CHECK(of_roster({.k = 2, .among = member_set{0, 2}}, 3) == "");
    CHECK(has(of_roster({.k = 3, .among = member_set{0, 2}}, 3), "2 members of among could answer"));
    CHECK(has(of_roster({.among = member_set{0, 3}}, 3), "members beyond the roster, which has 3"));
    CHECK(of_roster({.among = member_set{member_set::capacity - 1}}, member_set::capacity) == "");
    CHECK(has(of_request(1, 1s, {.among = member_set{}}), "among has no member"));
    CHECK(of_roster({}, 0) != ""); // nobody is in the roster yet
}

} // namespace ensemble_ask_check_test
