// herring: networks that fail between hosts: cut in both directions or in one, for good or for a while, lossy, or with resets.
// SPDX-License-Identifier: Apache-2.0
#include "on_hosts.hpp"

using namespace fault;

namespace {

constexpr int ranks = 3;               // rank r on host r
constexpr milliseconds missed{1'500};  // peer_timeout
constexpr milliseconds noticed{4'000}; // by when everyone has heard of it

/// Rank r on host r.
template <class Rank, class Nemesis>
played on_hosts(herring::join_options const& common, Rank rank, Nemesis nemesis) {
    return fault::on_hosts("partition", ranks, common, rank, nemesis);
}

void all_name(played const& p, std::initializer_list<int> right, int except = -1) {
    if (!p.made) return;
    INFO(p.seen.text());
    CHECK_FALSE(p.seen.hung);
    for (int r = 0; r < ranks; ++r) {
        if (r == except) continue;
        CAPTURE(r);
        auto const& one = p.seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.what == errc::peer_lost);
        CHECK(std::find(right.begin(), right.end(), one.why.peer) != right.end());
        CHECK(one.after_ms <= static_cast<double>(noticed.count() * slower));
    }
}
herring::join_options impatient() {
    herring::join_options how;
    how.failure_detector.peer_timeout = missed;
    return how;
}

} // namespace

TEST_CASE("partition: a host is cut off: both sides hear of it") {
    for (int const host : {2, 0}) {
        played const p = on_hosts(
            impatient(), [](world& w, board& b) { go_on<flat>(w, b, 0); },
            [host](hosts const& net, board& b) {
                b.strike();
                net.cut(host);
            });
        all_name(p, {host}, host); // whom the lonely one names is its own affair
        if (p.made) CHECK(p.seen.ranks[static_cast<std::size_t>(host)].how == state::error);
    }
}

TEST_CASE("partition: nothing gets from a host to the others, all gets there") {
    played const p = on_hosts(
        impatient(), [](world& w, board& b) { go_on<flat>(w, b, 0); },
        [](hosts const& net, board& b) {
            b.strike();
            net.cut(2, 0);
            net.cut(2, 1);
        });
    all_name(p, {2}, 2);
    if (p.made) CHECK(p.seen.ranks[2].how == state::error);
}

TEST_CASE("partition: a host is cut off while nobody calls anything") {
    auto const idle = [](world& w, board& b) {
        flat reduce(w, layout{{"small", 100}});
        step(reduce, w, 0);
        b.entered.fetch_add(1);
        time_point const until = clock::now() + plenty;
        while (w.failed() == nullptr) {
            require(clock::now() < until, "a rank that calls nothing is told");
            sleep_for(ns(0.005));
        }
        throw herring::error(*w.failed());
    };
    played const p = on_hosts(impatient(), idle, [](hosts const& net, board& b) {
        b.strike();
        net.cut(1);
    });
    all_name(p, {1}, 1);
}

TEST_CASE("partition: a cut of a second is survived") {
    played const p = on_hosts(
        {}, [](world& w, board& b) { go_on<shared>(w, b, 0); },
        [](hosts const& net, board& b) {
            for (int const host : {2, 0}) {
                net.cut(host);
                sleep_for(ns(1));
                net.heal(host);
                sleep_for(ns(0.2));
            }
            b.steps.store(1);
        });
    all_done(p);
}

TEST_CASE("partition: with 3 % of packets lost in each direction results are right, and nobody is given up") {
    played const p = on_hosts(
        {}, [](world& w, board& b) { go_on<flat>(w, b, 0); },
        [](hosts const& net, board& b) {
            for (int h = 0; h < ranks; ++h) net.lose(h, 30);
            sleep_for(ns(3));
            b.steps.store(1);
        });
    all_done(p);
}

TEST_CASE("partition: the connections of two ranks are reset: one of them is named at once") {
    int const pairs[][2] = {{0, 1}, {1, 2}};
    for (auto const& pair : pairs) {
        played const p = on_hosts(
            {}, [](world& w, board& b) { go_on<flat>(w, b, 0); },
            [&](hosts const& net, board& b) {
                b.strike();
                require(net.reset(pair[0], b.ranks[pair[0]].pid.load(), b.ranks[pair[1]].pid.load()) > 0,
                        "they have connections");
            });
        all_name(p, {pair[0], pair[1]});
    }
}
