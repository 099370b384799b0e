// herring: tests of transport/sealed/set_up.hpp: nonces that all ranks know, and a rank that makes another call.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed/set_up.hpp"

#include "herring/control/alone.hpp"
#include "herring/launch.hpp"
#include "herring/world.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace herring;
using detail::sealed_set_up;

namespace {
transport_needs needs_of(std::vector<int> const& peers) {
    return {.peers = peers, .receives_per_peer = 4, .sends_per_peer = 4, .largest_message = 1000};
}
std::vector<int> others(world const& w) {
    std::vector<int> made;
    for (int r = 0; r < w.size(); ++r)
        if (r != w.rank()) made.push_back(r);
    return made;
}
std::vector<std::byte> bytes(detail::secret_key const& key) {
    return {key.bytes().begin(), key.bytes().end()};
}
} // namespace

TEST_CASE("sealed_set_up: both ends of a direction have its key; two transports of one world share none") {
    std::mutex guard;
    std::multiset<std::vector<std::byte>> all;
    launch_threads(3, [&](world& w) {
        std::vector<int> const peers = others(w);
        sealed_set_up const one(w, needs_of(peers)), two(w, needs_of(peers));
        std::lock_guard const lock(guard);
        for (int const peer : peers)
            for (sealed_set_up const* const of : {&one, &two}) {
                all.insert(bytes(of->key(w.rank(), peer)));
                all.insert(bytes(of->key(peer, w.rank())));
            }
    });
    CHECK(all.size() == 24);
    for (auto const& key : all) CHECK(all.count(key) == 2);
    CHECK(std::set(all.begin(), all.end()).size() == 12);
}

TEST_CASE("sealed_set_up: a rank that makes another call is named") {
    std::atomic<int> told{0};
    launch_threads(2, [&](world& w) {
        std::vector<int> const peers = others(w);
        std::vector<std::byte> const short_word(3), word_of_same_size(48);
        try {
            if (w.rank() == 0)
                sealed_set_up(w, needs_of(peers));
            else
                w.all_gather(word_of_same_size);
        } catch (error const& why) {
            told += why.code() == errc::mismatch && why.peer() == 1 &&
                    std::string(why.what()).find("another call") != std::string::npos;
        }
    });
    CHECK(told == 1);
}

TEST_CASE("sealed_set_up: without peers nobody is asked; without a secret nothing is made") {
    world alone;
    sealed_set_up const none(alone, {});
    detail::membership open;
    open.control = detail::control_alone::make();
    world bare(std::move(open));
    CHECK_THROWS_AS(sealed_set_up(bare, {}), error);
}

// More than any machine has: told before a byte of it is touched.
TEST_CASE("sealed_set_up: memory that is not there is refused on all ranks") {
    std::atomic<int> told{0};
    launch_threads(2, [&](world& w) {
        std::vector<int> const peers = others(w);
        transport_needs needs = needs_of(peers);
        if (w.rank() == 0) needs.largest_message = std::size_t{1} << 45;
        try {
            sealed_set_up(w, needs);
        } catch (error const& why) {
            told += why.code() == (w.rank() == 0 ? errc::no_resources : errc::peer_failed);
        }
    });
    CHECK(told == 2);
}
