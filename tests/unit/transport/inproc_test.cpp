// herring: tests of transport/inproc.hpp; tests/conformance has the suite.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/inproc.hpp"

#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using namespace herring;

TEST_CASE("inproc: a message goes to the receive of its tag, with the bits that it carries") {
    launch_threads(2, [](world& ranks) {
        std::array<int, 1> const peers{1 - ranks.rank()};
        transport::inproc link(
            ranks, {.peers = peers, .receives_per_peer = 4, .sends_per_peer = 4, .largest_message = 64});
        int const mine = 40 + ranks.rank();
        int theirs = 0;
        std::uint64_t carried = 0;
        link.post_send(peer_id{0}, 7 | std::uint64_t{9} << 28, std::as_bytes(std::span(&mine, 1)), 1);
        link.post_receive(peer_id{0}, 7, std::as_writable_bytes(std::span(&theirs, 1)), 2);
        for (int done = 0; done < 2;) {
            link.wait(clock::now() + std::chrono::seconds(10));
            link.poll([&](completion const& c) {
                ++done;
                if (c.what == completion::received) carried = (c.tag & carried_bits) >> 28;
            });
        }
        if (theirs != 41 - ranks.rank() || carried != 9) throw std::string("wrong message");
        ranks.barrier();
    });
}

TEST_CASE("inproc: ranks of other processes are refused, by name") {
    int const ended = launch(2, [](world& ranks) {
        std::array<int, 1> const peers{1 - ranks.rank()};
        try {
            transport::inproc link(ranks, {.peers = peers});
        } catch (error const& refused) {
            return refused.code() == errc::unsupported && refused.peer() >= 0 ? 0 : 2;
        }
        return 1;
    });
    CHECK(ended == 0);
}

TEST_CASE("inproc: a pointer that another rank makes up is not followed") {
    launch_threads(2, [](world& ranks) {
        std::array<int, 1> const peers{1 - ranks.rank()};
        if (ranks.rank() == 0) {
            // The first try tells what rank 1 says of its process; at the second it is repeated.
            auto const told = ranks.all_gather({});
            std::vector<std::byte> const process(told[1].begin(), told[1].end());
            (void)ranks.all_gather(process);
            std::uint64_t const hub = 0x1000;
            (void)ranks.all_gather(std::as_bytes(std::span(&hub, 1)));
            return;
        }
        for (errc const due : {errc::unsupported, errc::protocol}) {
            errc seen = errc::ok;
            try {
                transport::inproc link(ranks, {.peers = peers});
            } catch (error const& refused) {
                seen = refused.code();
                if (refused.peer() != 0) seen = errc::internal;
            }
            if (seen != due) throw std::string("another error: ") + to_string(seen);
        }
    });
}
