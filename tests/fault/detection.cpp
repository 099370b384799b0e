// herring: measures how long it takes from a fault to the last survivor's error, and whether all blame the right rank.
// SPDX-License-Identifier: Apache-2.0
#include "hosts.hpp"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/transport/tcp.hpp"
#if __has_include(<rdma/fabric.h>)
#include "herring/transport/ofi.hpp"
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace fault;
using herring::errc;
using herring::world;
using std::chrono::milliseconds;

namespace {

constexpr int ranks = 4; // rank r on host r; shared memory: all on host 0

struct rank_seen {
    std::atomic<int> pid{0};
    std::atomic<bool> ready{false};
    std::atomic<std::int64_t> at_ns{0};
    std::atomic<bool> wrong{false};
    herring::failure why{};
};
struct world_seen {
    rank_seen of[ranks];
    std::int64_t struck_ns = 0;
    int victim = 0, other = -1; // other: both ends of a path are right
};

enum class fault_kind { killed, killed_idle, stopped, partition, silent_path, reset };
constexpr char const* faults[] = {"kill", "idle", "stop", "partition", "silent", "reset"};
constexpr char const* names[] = {
    "SIGKILL in operations", "SIGKILL, no operation",        "SIGSTOP",
    "host cut off",          "path between two ranks drops", "connections of two ranks reset"};

struct options {
    std::string transport = "tcp";
    fault_kind fault = fault_kind::killed;
    int draws = 30, together = 1;
    unsigned seed = 1;
    int kbit = 0; // a second, of each host's link, both ways; 0: as fast as it is
    std::size_t elements = 20'000;
};

void note(rank_seen& mine, herring::failure const& why) {
    if (mine.at_ns.load() != 0) return;
    mine.why = why;
    mine.at_ns.store(monotonic_ns());
}

template <class Reducer> void reduce_until_it_fails(options const& o, world& w, rank_seen& mine) {
    Reducer r(w);
    std::vector<float> x(o.elements);
    auto const once = [&] {
        for (float& v : x) v = static_cast<float>(1 << w.rank());
        r.all_reduce(std::span<float>(x));
        for (float const v : x)
            if (v != 15) mine.wrong.store(true);
    };
    try {
        once();
        mine.ready.store(true);
        while (o.fault == fault_kind::killed_idle) sleep_for(ns(0.01)); // the failure's handler ends it
        for (;;) {
            once();
            sleep_for(ns(0.001));
        }
    } catch (herring::error const& why) {
        note(mine,
             why.why()); // before the world says goodbye, which takes time where a rank cannot be reached
        throw;
    }
}

void live(options const& o, hosts const& net, world_seen& seen, int rank, int port) {
    rank_seen& mine = seen.of[rank];
    bool const one_host = o.transport == "shm", idle = o.fault == fault_kind::killed_idle;
    if (!net.enter(one_host ? 0 : rank)) ::_exit(9);
    herring::join_options how;
    how.rank = rank;
    how.size = ranks;
    how.address = hosts::address(0) + ":" + std::to_string(port);
    how.node = one_host ? "all" : "host" + std::to_string(rank);
    if (idle)
        how.on_failure = [&mine](herring::failure const& why) {
            note(mine, why);
            ::_exit(0);
        };
    try {
        world w = herring::join(how);
        using herring::transport::tcp;
        if (one_host)
            reduce_until_it_fails<
                herring::reducer<float, tcp, herring::update::sum, herring::intra_node::shared_memory>>(o, w,
                                                                                                        mine);
        else if (o.transport == "tcp")
            reduce_until_it_fails<herring::reducer<float, tcp, herring::update::sum>>(o, w, mine);
#if __has_include(<rdma/fabric.h>)
        else if (o.transport == "ofi")
            reduce_until_it_fails<herring::reducer<float, herring::transport::ofi<herring::provider::tcp>,
                                                   herring::update::sum>>(o, w, mine);
#endif
    } catch (herring::error const& why) {
        note(mine, why.why());
        if (!mine.ready.load()) std::fprintf(stderr, "rank %d: %s\n", rank, why.what());
    }
    ::_exit(0); // without leaving: others shall not hear of this rank's end instead of the fault
}

struct result {
    std::vector<double> last_ms;
    int same = 0, right = 0, of = 0, wrong = 0, without = 0;
    std::string sample;
};

void batch(options const& o, hosts const& net, std::mt19937& random, int count, int port, result& all) {
    std::vector<world_seen*> worlds;
    for (int h = 0; o.kbit != 0 && h < net.count(); ++h)
        if (!net.slow_down(h, o.kbit, 3'000'000) || !net.slow_down_at_switch(h, o.kbit, 3'000'000))
            std::puts("a link is as fast as before: see tc");
    std::fflush(nullptr);
    for (int i = 0; i < count; ++i) {
        worlds.push_back(in_shared_memory<world_seen>());
        for (int r = 0; r < ranks; ++r) {
            pid_t const made = ::fork();
            if (made == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                live(o, net, *worlds.back(), r, port + i);
            }
            worlds.back()->of[r].pid.store(made);
        }
    }
    auto const wait_for = [&](double seconds, auto const& holds) {
        for (std::int64_t const until = monotonic_ns() + ns(seconds); !holds() && monotonic_ns() < until;)
            sleep_for(ns(0.0005));
        return holds();
    };
    bool const begun = wait_for(40, [&] {
        return std::all_of(worlds.begin(), worlds.end(), [](world_seen const* w) {
            return std::all_of(w->of, w->of + ranks, [](rank_seen const& r) { return r.ready.load(); });
        });
    });
    if (!begun) std::puts("not all ranks began");
    auto const pause = [&] { sleep_for(20'000'000 + static_cast<std::int64_t>(random() % 130'000'000)); };
    int const victim = static_cast<int>(random() % ranks);
    int other = victim;
    while (other == victim) other = static_cast<int>(random() % ranks);
    pause();
    auto const strike_all = [&](int who, int two) {
        for (world_seen* const w : worlds) {
            w->victim = who;
            w->other = two;
            w->struck_ns = monotonic_ns();
        }
    };
    switch (o.fault) {
    case fault_kind::killed:
    case fault_kind::killed_idle:
    case fault_kind::stopped:
        for (world_seen* const w : worlds) {
            w->victim = static_cast<int>(random() % ranks);
            w->struck_ns = monotonic_ns();
            ::kill(w->of[w->victim].pid.load(), o.fault == fault_kind::stopped ? SIGSTOP : SIGKILL);
            pause();
        }
        break;
    case fault_kind::partition:
        strike_all(victim, -1);
        net.cut(victim);
        break;
    case fault_kind::silent_path: { // rank 0's host has connections for control: two others
        int const a = 1 + static_cast<int>(random() % 3), b = 1 + (a % 3);
        strike_all(a, b);
        net.cut(a, b);
        net.cut(b, a);
        break;
    }
    case fault_kind::reset:
        for (world_seen* const w : worlds) {
            w->victim = victim;
            w->other = other;
            w->struck_ns = monotonic_ns();
            net.reset(victim, w->of[victim].pid.load(), w->of[other].pid.load());
        }
    }
    auto const survives = [&](world_seen const& w, int r) {
        return r != w.victim || o.fault == fault_kind::silent_path || o.fault == fault_kind::reset;
    };
    wait_for(45, [&] {
        for (world_seen const* w : worlds)
            for (int r = 0; r < ranks; ++r)
                if (survives(*w, r) && w->of[r].at_ns.load() == 0) return false;
        return true;
    });
    for (world_seen const* w : worlds) {
        double last = 0;
        bool all_told = true, same = true, right = true;
        int blamed = -2;
        for (int r = 0; r < ranks; ++r) {
            rank_seen const& one = w->of[r];
            if (one.wrong.load()) ++all.wrong;
            if (!survives(*w, r)) continue;
            if (one.at_ns.load() == 0) {
                all_told = false;
                continue;
            }
            last = std::max(last, static_cast<double>(one.at_ns.load() - w->struck_ns) * 1e-6);
            if (blamed == -2) blamed = one.why.peer;
            same = same && one.why.peer == blamed;
            right = right && (one.why.peer == w->victim || one.why.peer == w->other);
            all.sample = one.why.message();
        }
        ++all.of;
        if (!all_told) {
            ++all.without;
            continue;
        }
        all.last_ms.push_back(last);
        all.same += same ? 1 : 0;
        all.right += right ? 1 : 0;
        if (!same || !right) {
            std::printf("  victim %d, other %d:\n", w->victim, w->other);
            for (int r = 0; r < ranks; ++r)
                if (survives(*w, r)) std::printf("    %s\n", w->of[r].why.message().c_str());
        }
    }
    for (world_seen* const w : worlds) {
        for (rank_seen& r : w->of) {
            ::kill(r.pid.load(), SIGKILL);
            ::waitpid(r.pid.load(), nullptr, 0);
        }
        ::munmap(w, sizeof *w);
    }
    for (int h = 0; h < net.count(); ++h) net.heal(h);
}

} // namespace

int main(int count, char** words) {
    options o;
    bool known = count % 2 == 1;
    for (int i = 1; i + 1 < count; i += 2) {
        std::string const name = words[i], value = words[i + 1];
        if (name == "--transport") {
            o.transport = value;
        } else if (name == "--fault") {
            auto const found = std::find(std::begin(faults), std::end(faults), value);
            known = known && found != std::end(faults);
            o.fault = static_cast<fault_kind>(found - std::begin(faults));
        } else if (name == "--draws") {
            o.draws = std::atoi(words[i + 1]);
        } else if (name == "--together") {
            o.together = std::atoi(words[i + 1]);
        } else if (name == "--kbit") {
            o.kbit = std::atoi(words[i + 1]);
        } else if (name == "--elements") {
            o.elements = static_cast<std::size_t>(std::atoi(words[i + 1]));
        } else if (name == "--seed") {
            o.seed = static_cast<unsigned>(std::atoi(words[i + 1]));
        } else {
            known = false;
        }
    }
    if (!known) {
        std::puts("detection [--transport tcp|shm|ofi] [--fault kill|idle|stop|partition|silent|reset] "
                  "[--draws 30] [--together 1] [--seed 1] [--kbit 10000] [--elements 20000]");
        return 2;
    }
    hosts const net(ranks);
    if (!net.made()) {
        std::printf("SKIPPED: fault: detection: %s\n", hosts::needs);
        return 0;
    }
    std::mt19937 random(o.seed);
    result all;
    for (int done = 0, number = 0; done < o.draws; done += o.together, ++number)
        batch(o, net, random, std::min(o.together, o.draws - done), 25'000 + number % 100 * 20, all);
    std::printf("%-4s %-31s draws %3d  p50 %6.0f ms  p99 %6.0f ms  most %6.0f ms  all blame the same rank "
                "%3d  and rightly %3d  "
                "not told %d  wrong results %d\n     %s\n",
                o.transport.c_str(), names[static_cast<int>(o.fault)], all.of, percentile(all.last_ms, 0.5),
                percentile(all.last_ms, 0.99), percentile(all.last_ms, 1), all.same, all.right, all.without,
                all.wrong, all.sample.c_str());
    return all.without + all.wrong == 0 ? 0 : 1;
}
