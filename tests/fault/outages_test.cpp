// herring: outages and slow links with the usual times, for the full run: some 40 s.
// SPDX-License-Identifier: Apache-2.0
#include "on_hosts.hpp"

using namespace fault;

TEST_CASE("outages: one of 4 s to 4.5 s is survived with a peer_timeout of 5 s") {
    for (double const seconds : {4.0, 4.3, 4.5}) {
        played const p = on_hosts(
            "outages", 3, {}, [](world& w, board& b) { go_on<flat>(w, b, 0); },
            [seconds](hosts const& net, board& b) {
                b.strike();
                net.cut(2);
                sleep_for(ns(seconds));
                net.heal(2);
                sleep_for(ns(2));
                b.steps.store(1);
            });
        CAPTURE(seconds);
        all_done(p);
    }
}

TEST_CASE("outages: the network forgets a control connection, alone, or with an outage of 4 s or 10 s") {
    all_done(forgotten("outages", milliseconds(5'000), 6));
    all_done(forgotten("outages", milliseconds(5'000), 6, 4));
    all_done(forgotten("outages", milliseconds(15'000), 16, 10));
}

TEST_CASE("outages: a link falls to 1 Mbit/s, and data of 6 s waits in its queue") {
    for (int const host : {3, 0}) all_done(collapse("outages", host, 1'000, milliseconds(5'000), 14));
}
