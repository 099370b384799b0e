// herring: signs of life where the network is slow, or away for a while: nobody who is alive is given up.
// SPDX-License-Identifier: Apache-2.0
#include "on_hosts.hpp"

using namespace fault;

namespace {

constexpr char const* name = "signs of life";

herring::join_options patience(milliseconds peer_timeout) {
    herring::join_options how;
    how.failure_detector.peer_timeout = peer_timeout;
    how.default_timeout = plenty;
    return how;
}

} // namespace

TEST_CASE("signs of life: a link becomes slow, and data of seconds waits in its queue") {
    for (int const host : {3, 0}) all_done(collapse(name, host, 2'500, milliseconds(2'000), 6));
}

TEST_CASE("signs of life: an outage that is a little shorter than peer_timeout is survived") {
    played const p = fault::on_hosts(
        name, 3, patience(milliseconds(2'000)), [](world& w, board& b) { go_on<flat>(w, b, 0); },
        [](hosts const& net, board& b) {
            b.strike();
            for (int const host : {2, 0}) {
                net.cut(host);
                sleep_for(ns(1.7));
                net.heal(host);
                sleep_for(ns(1));
            }
            b.steps.store(1);
        });
    all_done(p);
}

TEST_CASE("signs of life: the network forgets a control connection, twice: another one takes its place") {
    all_done(forgotten(name, milliseconds(2'000), 2.5));
}

TEST_CASE("signs of life: the data path of a pair is cut: both are named, and the network between them") {
    played const p = fault::on_hosts(
        name, 4, patience(milliseconds(2'000)), [](world& w, board& b) { go_on<flat>(w, b, 0); },
        [](hosts const& net, board& b) {
            b.strike();
            net.cut(1, 2);
        });
    if (!p.made) return;
    INFO(p.seen.text());
    CHECK_FALSE(p.seen.hung);
    for (report::one const& one : p.seen.ranks) {
        CHECK(one.how == state::error);
        CHECK(one.why.what == errc::unreachable);
        CHECK((one.why.peer == 1 || one.why.peer == 2));
        CHECK(std::string(one.why.text).find("network") != std::string::npos);
        CHECK(one.after_ms <= 6'000.0 * slower);
    }
}
