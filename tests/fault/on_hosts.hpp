// herring: ranks on hosts of their own, and a nemesis that does something to the network between them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_ON_HOSTS_HPP
#define HERRING_TESTS_FAULT_ON_HOSTS_HPP

#include "hosts.hpp"
#include "scene.hpp"

namespace fault {

constexpr int rendezvous_port = 24'779;

struct played {
    bool made = false; // as root
    report seen{};
};

/// `rank(world&, board&)` on each of `ranks` hosts; `nemesis(hosts&, board&)` once all have entered. `name`: of the test, for
/// the line that says that it was skipped.
template <class Rank, class Nemesis>
played on_hosts(char const* name, int ranks, herring::join_options const& common, Rank rank, Nemesis nemesis,
                milliseconds most = plenty) {
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
                    how.address = hosts::address(0) + ":" + std::to_string(rendezvous_port);
                    how.timeout = plenty;
                    how.secret = std::string(64, '5'); // the network is not the loopback
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
        backstage::reap_all(pids, statuses, most, hung);
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
    if (!p.made) std::printf("SKIPPED: fault: %s: %s\n", name, hosts::needs);
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

inline void all_done(played const& p) {
    if (!p.made) return;
    INFO(p.seen.text());
    CHECK_FALSE(p.seen.hung);
    for (report::one const& one : p.seen.ranks) CHECK(one.how == state::done);
}

/// Both ways of a host's link: so many kbit/s, so many bytes wait.
inline void slow_link(hosts const& net, int host, int kbit, int queue_bytes) {
    require(net.slow_down(host, kbit, queue_bytes) &&
                shell("tc qdisc replace dev port" + std::to_string(host) + " root tbf rate " +
                      std::to_string(kbit) + "kbit burst 8kb limit " + std::to_string(queue_bytes)),
            "tbf makes a link slow");
}
/// As at first, with what waits in the queues.
inline void fast_link(hosts const& net, int host) { slow_link(net, host, 1'000'000, 3'000'000); }

/// All-reduces of 4 MiB until the test says that it is enough.
inline void sums(world& w, board& b) {
    flat reduce(w, layout{{"small", 100}, {"large", 1'000'000}});
    step(reduce, w, 0);
    b.entered.fetch_add(1);
    for (int number = 1;; ++number) {
        std::vector<float> enough(1, w.rank() == 0 && b.steps.load() != 0 ? 1.0f : 0.0f);
        reduce.all_reduce(std::span<float>(enough));
        if (enough[0] != 0) return;
        step(reduce, w, number);
    }
}

/// Steps with set-up collectives between them, which need the control connections, until the test says that it is enough.
inline void barriers(world& w, board& b) {
    flat reduce(w, layout{{"small", 100}});
    step(reduce, w, 0);
    b.entered.fetch_add(1);
    for (int number = 1;; ++number) {
        std::vector<float> enough(1, w.rank() == 0 && b.steps.load() != 0 ? 1.0f : 0.0f);
        reduce.all_reduce(std::span<float>(enough));
        w.barrier();
        if (enough[0] != 0) return;
        step(reduce, w, number);
        sleep_for(ns(0.01));
    }
}

/// The network forgets the control connection of rank 2 of three for good, as NAT and connection tracking do, and after `seconds`
/// that of which has taken its place. `outage`: of the whole host, seconds, with the first.
inline played forgotten(char const* name, milliseconds peer_timeout, double seconds, double outage = 0) {
    herring::join_options how;
    how.failure_detector.peer_timeout = peer_timeout;
    how.default_timeout = plenty;
    return on_hosts(name, 3, how, barriers, [=](hosts const& net, board& b) {
        int const pid = b.ranks[2].pid.load();
        b.strike();
        require(net.cut_connections(2, pid, rendezvous_port) == 1, "rank 2 has one control connection");
        if (outage > 0) {
            net.cut_at_switch(2);
            sleep_for(ns(outage));
            net.heal(2);
        }
        sleep_for(ns(seconds));
        require(net.cut_connections(2, pid, rendezvous_port) >= 1, "rank 2 has another one");
        sleep_for(ns(seconds));
        b.steps.store(1);
    });
}

/// A link of four hosts falls to so many kbit/s, with 3 MB of queue, and is itself again after a while; all-reduces go on.
inline played collapse(char const* name, int host, int kbit, milliseconds peer_timeout, double seconds) {
    herring::join_options how;
    how.failure_detector.peer_timeout = peer_timeout;
    how.default_timeout = plenty * 2;
    return on_hosts(
        name, 4, how, sums,
        [=](hosts const& net, board& b) {
            slow_link(net, host, kbit, 3'000'000);
            b.strike();
            sleep_for(ns(seconds));
            fast_link(net, host);
            b.steps.store(1);
        },
        plenty * 2);
}

} // namespace fault

#endif // HERRING_TESTS_FAULT_ON_HOSTS_HPP
