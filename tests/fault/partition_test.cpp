// herring: networks that fail between hosts: cut in both directions or in one, for good or for a while, lossy, or with resets.
// SPDX-License-Identifier: Apache-2.0
#include "hosts.hpp"
#include "scene.hpp"

#include <functional>

using namespace fault;

namespace {

constexpr int ranks = 3;               // rank r on host r
constexpr milliseconds missed{1'500};  // peer_timeout
constexpr milliseconds noticed{4'000}; // by when everyone has heard of it

struct played {
    bool made = false; // as root
    report seen{};
};

/// `rank(world&, board&)` on every host; `nemesis(hosts&, board&)` once all have called `begun`.
template <class Rank, class Nemesis>
played on_hosts(herring::join_options const& common, Rank rank, Nemesis nemesis) {
    auto* const b = in_shared_memory<board>();
    auto* const made = in_shared_memory<std::atomic<bool>>();
    std::fflush(nullptr);
    pid_t const stage = ::fork(); // its network is the switch
    if (stage == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int const number : {SIGTERM, SIGINT, SIGABRT, SIGSEGV}) ::signal(number, SIG_DFL);
        hosts const net(ranks);
        if (!net.made()) ::_exit(0);
        made->store(true);
        std::vector<pid_t> pids;
        for (int r = 0; r < ranks; ++r) {
            pid_t const one = ::fork();
            if (one == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                try {
                    require(net.enter(r), "a rank is on its host");
                    herring::join_options how = common;
                    how.rank = r;
                    how.size = ranks;
                    how.address = hosts::address(0) + ":24779";
                    how.timeout = plenty;
                    world w = herring::join(how);
                    backstage::act(w, *b, rank);
                } catch (std::exception const& why) {
                    std::snprintf(b->ranks[r].note, sizeof b->ranks[r].note, "join: %s", why.what());
                    b->ranks[r].how.store(state::other);
                }
                ::_exit(0);
            }
            b->ranks[r].pid.store(one);
            pids.push_back(one);
        }
        time_point const until = clock::now() + plenty;
        while (b->entered.load() < ranks && clock::now() < until) sleep_for(ns(0.002));
        nemesis(net, *b);
        std::vector<int> statuses;
        bool hung = false;
        backstage::reap_all(pids, statuses, plenty, hung);
        ::_exit(hung ? 124 : 0);
    }
    int raw = 0;
    ::waitpid(stage, &raw, 0);
    played p;
    p.made = made->load();
    p.seen.hung = !WIFEXITED(raw) || WEXITSTATUS(raw) != 0;
    for (ending const& e : b->ranks) {
        if (static_cast<int>(p.seen.ranks.size()) == ranks) break;
        report::one one;
        one.how = e.how.load();
        one.why = e.why;
        one.note = e.note;
        one.value = e.value.load();
        if (e.at_ns != 0) one.after_ms = static_cast<double>(e.at_ns - b->struck_ns.load()) * 1e-6;
        p.seen.ranks.push_back(one);
    }
    if (!p.made) std::printf("SKIPPED: fault: partition: %s\n", hosts::needs);
    return p;
}

/// Steps until an error ends it, or the test says that it is enough.
template <class Reducer> void go_on(world& w, board& b, int least) {
    Reducer reduce(w, layout{{"small", 100}, {"large", 60'000}});
    step(reduce, w, 0);
    b.entered.fetch_add(1);
    for (int number = 1;; ++number) {
        std::vector<float> enough(1, w.rank() == 0 && b.steps.load() != 0 && number > least ? 1.0f : 0.0f);
        reduce.all_reduce(std::span<float>(enough));
        if (enough[0] != 0) return;
        step(reduce, w, number);
    }
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
void all_done(played const& p) {
    if (!p.made) return;
    INFO(p.seen.text());
    CHECK_FALSE(p.seen.hung);
    for (report::one const& one : p.seen.ranks) CHECK(one.how == state::done);
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
