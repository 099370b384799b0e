// herring: a combine rule, a codec and a quorum of one's own, as docs/writing-a-policy.md has them.
// SPDX-License-Identifier: Apache-2.0
//
// What stands between [snippet] and [end] is shown on that page; tests/docs/check_snippets.sh compares.
#include "conformance/combine_suite.hpp"
#include "conformance/quorum_suite.hpp"
#include "conformance/wire_suite.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "herring/ensemble.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/quorum.hpp"
#include "herring/wire/wire.hpp"

namespace {

// [snippet rule]
/// The mean of the least and the greatest of the rows.
struct midrange {
    using axis = herring::axes::combine;
    using space = herring::space::value; // what a member's row is, and in which numbers rows are combined
    using weighting = herring::weighting::none;                           // all rows count alike
    static constexpr char const* name = "midrange";                       // frontend and members compare it
    static constexpr herring::combine_facts facts{.takes_vectors = true}; // made of operators and ?: alone

    /// One element of all rows that count, in the order of the roster: numbers, or vectors of so many elements.
    template <class Lane>
    static Lane combine(std::span<Lane> rows, std::span<float const> /*weights*/) noexcept {
        Lane least = rows[0], most = rows[0];
        for (Lane const& x : rows) {
            least = x < least ? x : least;
            most = x > most ? x : most;
        }
        return (least + most) * 0.5f;
    }
};
static_assert(herring::checked_policy<midrange>);
// [end]

// [snippet codec]
/// Sends 32 elements as 8 bits each, and their largest magnitude as a float; −128 is a masked logit.
struct int8 {
    using axis = herring::axes::wire;
    static constexpr char const* name = "int8";
    static constexpr herring::wire_facts facts{.group = 32, .largest = 1e30f};
    static constexpr float masked =
        -std::numeric_limits<float>::infinity(); // a logit that rules its class out
    template <class T> static constexpr bool supports = std::is_same_v<herring::accumulator<T>, float>;

    template <class T> static constexpr std::size_t bytes(std::size_t elements) noexcept {
        return elements + (elements + 31) / 32 * sizeof(float);
    }
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        std::byte* to = out.data();
        for (std::size_t i = 0; i < numbers.size(); i += 32) {
            auto const group = numbers.subspan(i, std::min<std::size_t>(32, numbers.size() - i));
            float most = 0;
            for (float const x : group) most = std::max(most, x == masked ? 0 : std::abs(x));
            std::memcpy(to, &most, sizeof most);
            to += sizeof most;
            for (float const x : group)
                *to++ = static_cast<std::byte>(x == masked ? -128
                                               : most > 0  ? std::lrint(x / most * 127)
                                                           : 0);
        }
    }
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        std::byte const* from = bytes.data();
        for (std::size_t i = 0; i < numbers.size(); i += 32) {
            float most = 0;
            std::memcpy(&most, from, sizeof most);
            from += sizeof most;
            for (std::size_t j = i; j < std::min(i + 32, numbers.size()); ++j) {
                auto const code = static_cast<std::int8_t>(*from++);
                numbers[j] = code == -128 ? masked : static_cast<float>(code) / 127 * most;
            }
        }
    }
};
static_assert(herring::checked_policy<int8>);
// [end]

// [snippet quorum]
/// More than half of the roster; the others for half as long again.
struct majority {
    using axis = herring::axes::quorum;
    static constexpr herring::quorum_tuning tuning{.grace_percent = 50};

    static constexpr std::size_t least(std::size_t roster) noexcept { return roster / 2 + 1; }
};
static_assert(herring::checked_policy<majority>);
// [end]

// [snippet outputs]
/// The largest minus the smallest of the rows, in one element.
template <class Answer> float range_of(Answer const& answer, std::size_t element) {
    std::vector<float> row(answer.values().size());
    float least = std::numeric_limits<float>::infinity(), most = -least;
    answer.member_rows([&](auto const& from) {
        if (from.copy_to(std::span(row)) == 0) return;
        least = std::min(least, row[element]);
        most = std::max(most, row[element]);
    });
    return most - least;
}
// [end]

} // namespace

TEST_CASE("a combine rule and a codec of one's own pass the suites of their axes") {
    // [snippet suites]
    using namespace herring::conformance; // tests/conformance/combine_suite.hpp, wire_suite.hpp
    CHECK(text(combine_suite<midrange>()) == "");
    CHECK(text(wire_suite<int8>({.absolute = 0.5 / 127 + 1e-6})) == "");
    // [end]
}

TEST_CASE("a quorum of one's own passes the suite of its axis") {
    // [snippet quorum_suite]
    using namespace herring::conformance; // tests/conformance/quorum_suite.hpp
    CHECK(text(quorum_suite<majority>()) == "");
    // [end]
}

TEST_CASE(
    "an ensemble with a rule and a quorum of one's own, and an output that is a function of the answer") {
    using voters = herring::ensemble<float, midrange, majority>;
    voters::frontend front(
        {.listen = "127.0.0.1:0", .members = {"a", "b", "c"}, .elements = 2, .request_bytes = 1});
    std::vector<std::thread> members;
    for (int i = 0; i < 3; ++i)
        members.emplace_back([&, i] {
            voters::member me({.frontends = {front.address()},
                               .name = std::string(1, static_cast<char>('a' + i)),
                               .elements = 2,
                               .request_bytes = 1});
            auto job = me.next();
            job.row()[0] = job.row()[1] = static_cast<float>(i * i);
            job.send();
            (void)me.leave(std::chrono::seconds(60));
        });
    while (front.admitted() < 3) std::this_thread::yield();
    std::byte const input[1] = {};
    auto const answer = front.ask(input, std::chrono::seconds(60), {.k = 3});
    REQUIRE(answer.outcome() == herring::outcome::full);
    CHECK(answer.values()[1] == 2);
    CHECK(range_of(answer, 1) == 4);
    for (auto& each : members) each.join();
    CHECK_FALSE(front.ready());
}
