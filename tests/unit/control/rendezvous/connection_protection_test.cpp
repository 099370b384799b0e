// herring: tests of sealed control connections over sockets: a rank and rank 0 that seal, that differ, and whose messages are changed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/connection.hpp"

#include "herring/control/rendezvous/rendezvous.hpp"
#include "herring/machine/address.hpp"
#include "herring/world.hpp"

#include "control_peer.hpp"
#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace protection_tests {

using herring::errc;
using herring::failure;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace wire = herring::detail::wire;
namespace rendezvous = herring::detail::rendezvous;
using kind = control_peer::kind;

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};
using listener = control_listener;

/// A real rank of two. Rank 0 takes the listener over.
world join(int rank, listener const& hub, bool seals, milliseconds most = plenty) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = 2;
    made.addresses = detail::fixed_array<detail::endpoint>(1);
    made.addresses[0] = hub.at;
    made.address_text = hub.at.text();
    made.node = made.boot = "a name that is in every hello";
    made.timeout = most;
    made.deadline = herring::clock::now() + most;
    made.secret.emplace(detail::secrets{detail::secret(std::string(64, 'a')), {}, {}});
    if (seals) made.seals = &toy_seals::table();
    if (rank == 0) made.listeners.emplace_back(hub.socket);
    return world(rendezvous::join_world(std::move(made)));
}

failure not_joined(int rank, listener const& hub, bool seals, milliseconds most) {
    try {
        world const w = join(rank, hub, seals, most);
    } catch (herring::error const& why) {
        return why.why();
    }
    return {};
}

bool says(failure const& why, char const* text) {
    bool const found = std::strstr(why.text, text) != nullptr;
    if (!found) MESSAGE("'" << why.text << "' lacks '" << text << "'");
    return found;
}

failure const& await_failure(world& w) {
    auto const until = herring::clock::now() + plenty;
    while (w.failed() == nullptr && herring::clock::now() < until)
        std::this_thread::sleep_for(milliseconds(1));
    REQUIRE(w.failed() != nullptr);
    return *w.failed();
}

/// A real rank 0 that seals, and a rank 1 in the hands of the test, which has joined.
struct sealed_rank_0 {
    listener hub{};
    std::optional<world> here{};
    control_peer rank_1{};

    sealed_rank_0() {
        std::jthread joins([this] { here.emplace(join(0, hub, true)); });
        rank_1.seals = &toy_seals::table();
        try {
            rank_1.join(1, 2, hub.at, &our_secret());
        } catch (std::exception const& why) {
            FAIL_CHECK(why.what());
        }
        joins.join();
    }
};

/// What becomes of rank 0's world, once that was sent in place of two messages of rank 1.
failure fate_of(std::function<void(control_peer&, detail::byte_buffer&, detail::byte_buffer&)> const& send) {
    sealed_rank_0 pair;
    detail::byte_buffer first = pair.rank_1.bytes_of(kind::heartbeat, 0, {});
    detail::byte_buffer second = pair.rank_1.bytes_of(
        kind::fail, 0, wire::write_failure(failure::make(errc::peer_failed, 1, -1, "test", "second came")));
    send(pair.rank_1, first, second);
    failure const seen = await_failure(*pair.here);
    pair.rank_1.close();
    return seen;
}

bool ended_unopened(failure const& why) {
    return why.what == errc::protocol && why.reporter == 0 && why.peer == 1 &&
           says(why, "does not open as the next sealed control message");
}

TEST_CASE(
    "protection: ranks that seal join, derive the same keys and call collectives; no key is left over") {
    {
        listener hub;
        std::optional<world> ends[2];
        std::jthread first([&] { ends[0].emplace(join(0, hub, true)); });
        ends[1].emplace(join(1, hub, true));
        first.join();
        std::array<std::byte, 48> keys[2]{};
        for (int r : {0, 1}) ends[r]->derive_key(keys[r], "a label", 1 - r);
        CHECK(keys[0] == keys[1]);
        std::vector<std::byte> const large(300'001, std::byte{7});
        std::jthread other([&] {
            CHECK(ends[0]->all_gather(large).size() == 2);
            ends[0]->barrier();
        });
        auto const all = ends[1]->all_gather(std::span<std::byte const>());
        CHECK(std::ranges::equal(all[0], large));
        CHECK(all[1].empty());
        ends[1]->barrier();
        other.join();
        std::jthread leaves([&] { ends[0].reset(); });
        ends[1].reset();
        leaves.join();
    }
    CHECK(toy_seals::ciphers == 0);
    CHECK(toy_seals::exchanges == 0);
}

TEST_CASE("protection: nothing that ranks say after the handshake can be read on the way") {
    listener hub;
    std::string_view const marker = "what nobody else may read";
    std::jthread other([&] {
        control_peer rank_0;
        rank_0.seals = &toy_seals::table();
        rank_0.let_in(hub.socket, &our_secret());
        std::vector<int> const zeroes(2);
        rank_0.say(kind::welcome, 0, wire::welcome{1, detail::resolve({}), zeroes, zeroes}.write());
        auto const gave = rank_0.await(kind::contribute);
        auto const in = [&](std::vector<std::byte> const& bytes) {
            auto const words = detail::bytes_of(marker);
            return std::search(bytes.begin(), bytes.end(), words.begin(), words.end()) != bytes.end();
        };
        CHECK(in(gave.body));
        CHECK_FALSE(in(gave.raw));
        rank_0.close();
        hub.close();
    });
    {
        world w = join(1, hub, true);
        CHECK_THROWS_AS((void)w.all_gather(detail::bytes_of(marker)), herring::error);
    }
    other.join();
}

TEST_CASE("protection: a message that is changed, cut, repeated, left out or reordered ends the world") {
    failure const untouched = fate_of([](control_peer& rank_1, auto& first, auto& second) {
        rank_1.send(first);
        rank_1.send(second);
    });
    CHECK(untouched.what == errc::peer_failed);
    for (std::size_t const at : {std::size_t{0}, std::size_t{12}, std::size_t{40}}) // kind, length, tag
        CHECK(ended_unopened(fate_of([&](control_peer& rank_1, auto& first, auto&) {
            first.data()[at] ^= std::byte{1};
            rank_1.send(first);
        })));
    CHECK(ended_unopened(fate_of([](control_peer& rank_1, auto& first, auto& second) {
        second.data()[second.size() - 20] ^= std::byte{1}; // its body
        rank_1.send(first);
        rank_1.send(second);
    })));
    CHECK(ended_unopened(fate_of([](control_peer& rank_1, auto& first, auto&) {
        rank_1.send(first);
        rank_1.send(first);
    })));
    CHECK(ended_unopened(fate_of([](control_peer& rank_1, auto&, auto& second) { rank_1.send(second); })));
    CHECK(ended_unopened(fate_of([](control_peer& rank_1, auto& first, auto& second) {
        rank_1.send(second);
        rank_1.send(first);
    })));
    CHECK(ended_unopened(fate_of([](control_peer& rank_1, auto&, auto&) { // not sealed at all
        detail::byte_buffer plain;
        wire::append_message(plain, kind::heartbeat, 1, 0, {});
        wire::append_message(plain, kind::heartbeat, 1, 0, {});
        rank_1.send(plain);
    })));
    // Cut off in the middle: the end of the connection, without a goodbye.
    failure const cut = fate_of([](control_peer& rank_1, auto& first, auto&) {
        rank_1.send(std::span<std::byte const>(first).first(first.size() - 5));
        rank_1.close();
    });
    CHECK(cut.what == errc::peer_lost);
    CHECK(cut.peer == 1);
}

TEST_CASE("protection: a rank that is told what does not open names rank 0") {
    listener hub;
    std::jthread other([&] {
        control_peer rank_0;
        rank_0.seals = &toy_seals::table();
        rank_0.let_in(hub.socket, &our_secret());
        std::vector<int> const zeroes(2);
        rank_0.say(kind::welcome, 0, wire::welcome{1, detail::resolve({}), zeroes, zeroes}.write());
        auto forged = rank_0.bytes_of(kind::leave, 0, {});
        forged.data()[6] ^= std::byte{1};
        rank_0.send(forged);
        CHECK(rank_0.await(kind::fail).front.rank == 1);
        hub.close();
    });
    world w = join(1, hub, true);
    failure const& why = await_failure(w);
    CHECK(why.what == errc::protocol);
    CHECK(why.reporter == 1);
    CHECK(why.peer == 0);
    other.join();
}

TEST_CASE("protection: where of a rank and rank 0 one seals, both are told, and it is not admitted") {
    for (bool const rank_seals : {false, true}) {
        listener hub;
        failure of_rank_0, of_rank;
        std::jthread first([&] { of_rank_0 = not_joined(0, hub, !rank_seals, milliseconds(1500)); });
        auto const from = herring::clock::now();
        of_rank = not_joined(1, hub, rank_seals, plenty);
        CHECK(herring::clock::now() - from < std::chrono::seconds(5)); // it is proved, and final at once
        first.join();
        char const* const words =
            rank_seals ? "its control connection is to be sealed, rank 0's are authenticated only"
                       : "its control connection is authenticated only, rank 0's are to be sealed";
        CHECK(of_rank.what == errc::mismatch);
        CHECK(of_rank.reporter == 1);
        CHECK(says(of_rank, words));
        CHECK(of_rank_0.what == errc::timeout);
        CHECK(of_rank_0.peer == 1);
        CHECK(says(of_rank_0, words));
    }
}

TEST_CASE("protection: who strips the offer to seal on the way gets nobody in") {
    // Rank 1 seals; what answers has the secret and says that it does not seal, but admits all the same.
    listener hub;
    std::jthread other([&] {
        for (bool const seals : {false, true}) {
            control_peer rank_0;
            if (seals) rank_0.seals = &toy_seals::table();
            rank_0.let_in(hub.socket, &our_secret());
            std::vector<int> const zeroes(2);
            auto const welcome = [&](std::uint64_t job) {
                rank_0.say(kind::welcome, 0, wire::welcome{job, detail::resolve({}), zeroes, zeroes}.write());
            };
            if (seals) {
                welcome(9);
                rank_0.await(kind::leave);
                continue;
            }
            // Sealed, but by keys that whoever gets the secret can make from a recording.
            rank_0.seal.emplace(rank_0.seen->seal(true, toy_seals::table()));
            try {
                welcome(8);
            } catch (std::runtime_error const&) {
                // The rank has closed already.
            }
        }
        hub.close();
    });
    {
        world w = join(1, hub, true);
        CHECK(w.job() == 9);
    }
    other.join();
}

TEST_CASE("protection: a library that fails to seal ends the connection, and sends nothing in the clear") {
    sealed_rank_0 pair;
    toy_seals::fails = true;
    pair.here->fail(failure::make(errc::peer_failed, 0, -1, "test", "this must not be read"));
    toy_seals::fails = false;
    std::byte rest[4096];
    std::string seen;
    for (ssize_t n = 0; (n = ::recv(pair.rank_1.socket, rest, sizeof rest, 0)) > 0;)
        seen.append(reinterpret_cast<char const*>(rest), static_cast<std::size_t>(n));
    CHECK(seen.find("must not") == std::string::npos);
    pair.rank_1.close();
}

} // namespace protection_tests
