// herring: tests of control/all_or_none.hpp: all go on or all throw, and no bytes of another rank are believed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/all_or_none.hpp"

#include "doctest/doctest.h"
#include "herring/intra_node/shared_mapping.hpp"
#include "herring/launch.hpp"

#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

using namespace herring::detail;
using herring::errc;
using herring::failure;
using herring::gather_result;
using herring::world;

namespace {

using bytes = std::vector<std::byte>;

gather_result of(std::vector<bytes> const& answers) {
    fixed_array<std::size_t> sizes(answers.size());
    for (std::size_t r = 0; r < answers.size(); ++r) sizes[r] = answers[r].size();
    gather_result made(std::move(sizes));
    for (std::size_t r = 0; r < answers.size(); ++r)
        if (!answers[r].empty()) std::memcpy(made[r].data(), answers[r].data(), answers[r].size());
    return made;
}

/// What rank 0 of two makes of its own message and of `theirs`.
failure thrown_at(bytes const& theirs, failure const& own = {}) {
    return failure_of(0, "test", [&] {
        (void)all_or_none(0, "test", own, {}, [&](std::span<std::byte const> mine) {
            return of({bytes(mine.begin(), mine.end()), theirs});
        });
    });
}

bytes message_of(failure const& why) {
    bytes made{std::byte{1}};
    auto const body = herring::detail::wire::write_failure(why);
    made.insert(made.end(), body.begin(), body.end());
    return made;
}

} // namespace

TEST_CASE("all_or_none: all have succeeded, and everyone has what each gave") {
    int const given = 42;
    auto const all =
        all_or_none(1, "test", {}, std::as_bytes(std::span(&given, 1)), [](std::span<std::byte const> mine) {
            return of({{std::byte{0}}, bytes(mine.begin(), mine.end())});
        });
    REQUIRE(all.size() == 2);
    CHECK(all[0].empty());
    REQUIRE(all[1].size() == sizeof given);
    CHECK(std::memcmp(all[1].data(), &given, sizeof given) == 0);
}

TEST_CASE("all_or_none: the failure of the lowest rank is thrown, in this rank's words") {
    failure const theirs =
        failure::make(errc::unreachable, 0, -1, "elsewhere", "on purpose"); // it says rank 0
    failure seen = thrown_at(message_of(theirs));
    CHECK(seen.what == errc::peer_failed);
    CHECK(seen.peer == 1); // who sent it
    CHECK(std::string(seen.text).find("rank 1 ended with: unreachable: on purpose") != std::string::npos);
    seen = thrown_at(message_of(theirs), failure::make(errc::no_resources, 0, -1, "here", "mine"));
    CHECK(seen.what == errc::no_resources);
    CHECK(std::string(seen.text) == "mine");
    CHECK(thrown_at({std::byte{0}}).what == errc::ok);
    // A rank that is none of the two.
    failure const nobodys = failure::make(errc::unreachable, 7, -1, "elsewhere", "on purpose");
    CHECK(thrown_at(message_of(nobodys)).what == errc::mismatch);
}

TEST_CASE("all_or_none: bytes that no rank would send are a mismatch, whatever they are") {
    std::mt19937 random(1);
    bytes const good = message_of(failure::make(errc::timeout, 1, 0, "operation", std::string(400, 'x')));
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK(thrown_at(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))).what ==
              errc::mismatch);
    for (std::size_t const size : {1u, 2u, 16u, 476u, 492u, 493u, 5000u}) {
        for (unsigned const first : {1u, 2u, 0x78u, 0xffu}) {
            bytes hostile(size, std::byte{0x78}); // texts without an end
            hostile[0] = static_cast<std::byte>(first);
            CHECK(thrown_at(hostile).what == errc::mismatch);
        }
        for (int round = 0; round < 200; ++round) {
            bytes hostile(size);
            for (std::byte& b : hostile) b = static_cast<std::byte>(random());
            hostile[0] = std::byte{1};
            CHECK(thrown_at(hostile).what != errc::ok);
        }
    }
}

TEST_CASE("all_or_none: a rank that sends a failure of its own making to shared_mapping is named") {
    for (std::size_t const size : {0u, 16u, 17u, 492u, 4000u}) {
        CAPTURE(size);
        int status = 1;
        failure seen{};
        try {
            status = herring::launch_threads(2, [&](world& w) {
                if (w.rank() == 0) {
                    seen = failure_of(0, "test", [&] { shared_mapping const made(w, 4096); });
                    return;
                }
                bytes const hostile(size, std::byte{0x78});
                (void)w.all_gather(hostile);
            });
        } catch (herring::error const&) {
        }
        CHECK(status == 0);
        CHECK(seen.what == errc::mismatch);
        CHECK(seen.peer == 1);
    }
}
