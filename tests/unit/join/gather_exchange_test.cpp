// herring: tests of join/gather_exchange.hpp: no bytes that a gather returns are believed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/gather_exchange.hpp"

#include "doctest/doctest.h"
#include "herring/control/all_or_none.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace herring::detail;
using herring::errc;
using herring::failure;
using herring::gather_result;

namespace {

using bytes = std::vector<std::byte>;

/// What rank `rank` gives to a call, with nothing behind it.
bytes given_by(std::size_t rank, int call = 1, std::size_t size = 2,
               std::string_view version = HERRING_VERSION_STRING, bytes const& behind = {}) {
    gather_front front;
    front.call = static_cast<std::uint8_t>(call);
    front.version = version;
    front.rank = static_cast<std::uint32_t>(rank);
    front.size = static_cast<std::uint32_t>(size);
    front.bytes = static_cast<std::uint32_t>(behind.size());
    byte_buffer written = front.write();
    written.append(behind);
    return bytes(written.begin(), written.end());
}

/// Rank 0 of two. `returns` makes what gather returns of the bytes that this rank gave.
struct rank_0 {
    std::function<std::vector<bytes>(bytes const&)> returns{};
    gather_exchange exchange{gather_call::by(*this), 0, 2, "gather"};

    rank_0() = default;
    rank_0(rank_0 const&) = delete;
    std::vector<bytes> operator()(std::span<std::byte const> mine) const {
        return returns(bytes(mine.begin(), mine.end()));
    }
    /// A call in which rank 1 gives `peer`.
    failure call(bytes const& peer) {
        returns = [&](bytes const& mine) { return std::vector<bytes>{mine, peer}; };
        return call();
    }
    failure call() {
        return failure_of(0, "join", [&] { (void)exchange({}); });
    }
};

bool says(failure const& why, std::string_view words) {
    return std::string_view(why.text).find(words) != std::string_view::npos;
}

} // namespace

TEST_CASE("gather_exchange: every rank gets what each gave, and a digest of it") {
    sha256_digest seen[2];
    for (sha256_digest& each : seen) {
        rank_0 here;
        bytes const peer = given_by(1, 1, 2, HERRING_VERSION_STRING, {std::byte{7}});
        here.returns = [&](bytes const& mine) { return std::vector<bytes>{mine, peer}; };
        gather_result const all = here.exchange({});
        REQUIRE(all.size() == 2);
        CHECK(all[0].empty());
        REQUIRE(all[1].size() == 1);
        CHECK(all[1][0] == std::byte{7});
        each = here.exchange.identity();
        CHECK(here.call(given_by(1, 2)).what == errc::ok);
        CHECK(here.exchange.identity() == each);
        CHECK_FALSE(here.exchange.broken());
    }
    CHECK(seen[0] == seen[1]);
    rank_0 other;
    CHECK(other.call(given_by(1, 1, 2, HERRING_VERSION_STRING, {std::byte{8}})).what == errc::ok);
    CHECK(other.exchange.identity() != seen[0]);
}

TEST_CASE("gather_exchange: too few and too many replies") {
    for (std::size_t const count : {0u, 1u, 3u, 1000u}) {
        rank_0 here;
        here.returns = [&](bytes const& mine) { return std::vector<bytes>(count, mine); };
        failure const why = here.call();
        CHECK(why.what == errc::bad_argument);
        CHECK(why.reporter == 0);
        CHECK(says(why, "the bytes of " + std::to_string(count) + " ranks in a world of 2"));
    }
}

TEST_CASE("gather_exchange: an empty reply, one that is cut short, and any other bytes") {
    rank_0 empty;
    failure why = empty.call(bytes());
    CHECK(why.what == errc::mismatch);
    CHECK(why.peer == -1); // the fault is of this rank's gather
    CHECK(says(why, "gather returned no bytes of rank 1 in call 1"));
    bytes const good = given_by(1, 1, 2, HERRING_VERSION_STRING, bytes(40));
    for (std::size_t size = 1; size < good.size(); ++size) {
        rank_0 here;
        why = here.call(bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
        CHECK(why.what == errc::mismatch);
        CHECK(says(why, " bytes of rank 1 that no rank gives to call 1: they are cut short"));
    }
    std::mt19937 random(1);
    for (int round = 0; round < 500; ++round) {
        bytes hostile = good;
        std::size_t const at = random() % (hostile.size() - 40);
        hostile[at] ^= static_cast<std::byte>(1 + random() % 255);
        rank_0 here;
        CHECK(here.call(hostile).what == errc::mismatch);
    }
}

TEST_CASE("gather_exchange: replies in another order, of another size, call or version") {
    rank_0 order;
    failure why = order.call(given_by(0));
    CHECK(says(why, "the bytes of rank 0 in place of rank 1's"));
    rank_0 size;
    why = size.call(given_by(1, 1, 3));
    CHECK(why.peer == 1);
    CHECK(says(why, "it joins a world of 3 ranks, this rank one of 2"));
    rank_0 call;
    CHECK(says(call.call(given_by(1, 2)), "that no rank gives to call 1"));
    rank_0 version;
    why = version.call(given_by(1, 1, 2, "9.8.7"));
    CHECK(why.what == errc::mismatch);
    CHECK(says(why, "it runs Herring 9.8.7, this rank " HERRING_VERSION_STRING "; run one version"));
    // Another version need have no more than its name in common.
    bytes later = given_by(1, 1, 2, "9.8.7");
    later.resize(20);
    rank_0 shorter;
    CHECK(says(shorter.call(later), "it runs Herring 9.8.7"));
    rank_0 colours;
    CHECK(says(colours.call(given_by(1, 1, 2, "\x1b[31m9")), "that no rank gives"));
}

TEST_CASE("gather_exchange: another process with this rank, and a reply of another call") {
    rank_0 here;
    here.returns = [&](bytes const&) { return std::vector<bytes>{given_by(0, 2), given_by(1)}; };
    failure const why = here.call();
    CHECK(why.what == errc::mismatch);
    CHECK(why.peer == -1);
    CHECK(says(why, "another process says that it is rank 0"));
}

TEST_CASE("gather_exchange: ranks that have been given other bytes do not take each other's address") {
    rank_0 here;
    REQUIRE(here.call(given_by(1)).what == errc::ok);
    std::vector<std::byte> words(here.exchange.identity().begin(), here.exchange.identity().end());
    CHECK(here.exchange.of_same_job(words, 1).empty());
    words.push_back(std::byte{1});
    CHECK(here.exchange.of_same_job(words, 1).size() == 1);
    words[31] ^= std::byte{1};
    for (std::size_t const size : {0u, 31u, 32u, 33u}) {
        failure const why = failure_of(0, "join", [&] {
            (void)here.exchange.of_same_job(std::span<std::byte const>(words).first(size), 1);
        });
        CHECK(why.what == errc::mismatch);
        CHECK(why.peer == 1);
        CHECK(says(why, "gather has given it other bytes than this rank"));
    }
}

TEST_CASE("gather_exchange: a gather that throws is named, and is broken") {
    rank_0 here;
    here.returns = [](bytes const&) -> std::vector<bytes> { throw std::runtime_error("no route"); };
    failure why = here.call();
    CHECK(why.what == errc::unreachable);
    CHECK(why.reporter == 0);
    CHECK(says(why, "gather threw in call 1 of 2: no route"));
    CHECK(here.exchange.broken());
    rank_0 full;
    full.returns = [](bytes const&) -> std::vector<bytes> { throw std::bad_alloc(); };
    CHECK(full.call().what == errc::no_resources);
    rank_0 own;
    own.returns = [](bytes const&) -> std::vector<bytes> {
        throw herring::error(errc::unsupported, -1, -1, "store", "in its own words");
    };
    why = own.call();
    CHECK(why.what == errc::unsupported);
    CHECK(std::string_view(why.text) == "in its own words");
    CHECK(own.exchange.broken());
    rank_0 odd;
    odd.returns = [](bytes const&) -> std::vector<bytes> { throw 42; };
    CHECK_THROWS_AS(odd.call(), int);
}

TEST_CASE("gather_exchange: what a rank gives first is read with bounds") {
    gathered_rank given, read;
    given.node = 42;
    given.has_secret = true;
    byte_buffer const good = given.write();
    CHECK(read.read(good));
    CHECK(read.node == 42);
    CHECK(read.has_secret);
    for (std::size_t size = 0; size < good.size(); ++size)
        CHECK_FALSE(read.read(std::span<std::byte const>(good).first(size)));
    bytes longer(good.begin(), good.end());
    longer.back() = std::byte{2};
    CHECK_FALSE(read.read(longer));
    longer.back() = std::byte{1};
    longer.push_back(std::byte{0});
    CHECK_FALSE(read.read(longer));
}
