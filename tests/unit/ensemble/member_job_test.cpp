// herring: tests of ensemble/member.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/member.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ensemble_job_test {

using herring::decline;
using herring::job_end;

/// Notes what jobs ask of it.
struct noting_core {
    using element = float;
    std::array<std::byte, 3> request{};
    std::array<float, 2> values{};
    std::vector<std::pair<std::uint32_t, herring::decline>> declined;
    std::vector<std::uint32_t> encoded, sent;
    std::chrono::nanoseconds left{5};

    std::span<std::byte const> input(std::uint32_t) const noexcept { return request; }
    std::span<float> row(std::uint32_t) noexcept { return values; }
    std::chrono::nanoseconds remaining(std::uint32_t) const noexcept { return left; }
    std::size_t frontend(std::uint32_t slot) const noexcept { return slot + 1; }
    std::uint64_t id(std::uint32_t slot) const noexcept { return slot * 10; }
    bool encode(std::uint32_t slot) noexcept {
        encoded.push_back(slot);
        return slot % 2 == 0;
    }
    job_end send(std::uint32_t slot) noexcept {
        sent.push_back(slot);
        return job_end::sent;
    }
    job_end decline(std::uint32_t slot, herring::decline why) noexcept {
        declined.emplace_back(slot, why);
        return job_end::declined;
    }
};
using job = herring::detail::ensembles::job<noting_core>;
static_assert(std::is_nothrow_move_constructible_v<job> && std::is_nothrow_move_assignable_v<job>);
static_assert(!std::is_copy_constructible_v<job> && !std::is_copy_assignable_v<job>);

TEST_CASE("ensemble job: it is what its member says of it") {
    noting_core core;
    job const some(core, 4);
    CHECK(some);
    CHECK(some.input().data() == core.request.data());
    CHECK(some.row().data() == core.values.data());
    CHECK(some.frontend() == 5);
    CHECK(some.id() == 40);
    CHECK(some.remaining().count() == 5);
    CHECK_FALSE(some.expired());
    core.left = {};
    CHECK(some.expired());
}

TEST_CASE("ensemble job: it is answered once, and what is destroyed unanswered declines") {
    noting_core core;
    {
        job one(core, 1), two(core, 2);
        job moved(std::move(one));
        CHECK_FALSE(one);
        CHECK(moved.send() == job_end::sent);
        CHECK_FALSE(moved);
        moved = std::move(two);
        CHECK(moved.id() == 20);
        CHECK(moved.decline(decline::overloaded) == job_end::declined);
        job const left(core, 3);
        job kept(core, 4);
        kept = job(core, 5); // declines what it held
        CHECK(core.declined.back() == std::pair(4u, decline::unspecified));
    }
    CHECK(core.sent == std::vector<std::uint32_t>{1});
    CHECK(core.declined == std::vector<std::pair<std::uint32_t, decline>>{{2, decline::overloaded},
                                                                          {4, decline::unspecified},
                                                                          {5, decline::unspecified},
                                                                          {3, decline::unspecified}});
}

TEST_CASE("ensemble job: it can be encoded as often as wanted before it is answered") {
    noting_core core;
    job good(core, 2), bad(core, 3);
    CHECK(good.encode());
    CHECK(good.encode());
    CHECK_FALSE(bad.encode());
    CHECK(core.encoded == std::vector<std::uint32_t>{2, 2, 3});
    CHECK(core.sent.empty());
    CHECK(good); // unanswered
    good.send();
    CHECK(core.encoded.size() == 3);
}

TEST_CASE("ensemble job: after its answer it says so") {
    noting_core core;
    job some(core, 1);
    some.send();
    for (auto const call : std::initializer_list<void (*)(job&)>{
             [](job& j) { (void)j.send(); }, [](job& j) { (void)j.decline(); },
             [](job& j) { (void)j.encode(); }, [](job& j) { (void)j.input(); }, [](job& j) { (void)j.row(); },
             [](job& j) { (void)j.remaining(); }, [](job& j) { (void)j.id(); }})
        CHECK_THROWS_WITH_AS(call(some), doctest::Contains("it is empty, answered, or was moved away"),
                             herring::error);
    CHECK(core.sent.size() == 1);
    CHECK(core.encoded.empty());
}

TEST_CASE("ensemble job: each end has a name of its own") {
    std::vector<std::string> names;
    for (int i = 0; i < herring::job_ends; ++i) {
        std::string const name = herring::to_string(static_cast<job_end>(i));
        CHECK(name != "unknown");
        for (auto const& other : names) CHECK(other != name);
        names.push_back(name);
    }
    CHECK(std::string(herring::to_string(static_cast<job_end>(herring::job_ends))) == "unknown");
}

} // namespace ensemble_job_test
