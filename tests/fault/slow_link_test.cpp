// herring: links of 1 Mbit/s, where a sum takes seconds: slow is not crossed, and what is crossed is told there as well.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/join.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace herring;
using namespace std::chrono_literals;

namespace {

using by_tcp = reducer<float, transport::tcp, update::sum>;
using by_thread = reducer<float, transport::tcp, update::sum, progress::thread>;

constexpr int not_here = 77; // the status where no such link can be made

struct told_and_over {
}; // thrown by a rank that has seen the error which it has to: it leaves, without a barrier

void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

bool shell(std::string const& commands) {
    return std::system(
               ("PATH=$PATH:/usr/sbin:/sbin; set -e; { " + commands + "; } >/dev/null 2>&1").c_str()) == 0;
}

// 1 Mbit/s is 125 kB/s; 64 kB, half a second, wait in the queue, and what finds it full is dropped.
std::string slow(std::string const& device) {
    return "tc qdisc add dev " + device + " root tbf rate 1mbit burst 4kb limit 64kb";
}

enum class slow_ways { out_and_in, out_of_rank_0 };

/// One way to say «go on» to another process.
class signal_pipe {
  public:
    signal_pipe() { require(::pipe(ends_) == 0, "a pipe"); }
    void give() const { require(::write(ends_[1], "", 1) == 1, "a word"); }
    bool take() const {
        char word = 0;
        return ::read(ends_[0], &word, 1) == 1;
    }

  private:
    int ends_[2];
};

/// Runs `rank(world&)` on `ranks` machines, which are network namespaces behind one switch. Returns the first status that
/// is not 0, or `not_here`.
template <class Function> int on_machines(int ranks, slow_ways ways, Function const& rank) {
    std::fflush(nullptr);
    pid_t const stage =
        ::fork(); // its network is the switch; what is in it goes with the last of its processes
    if (stage == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::unshare(CLONE_NEWNET) != 0 || !shell("ip link add br0 type bridge; ip link set br0 up"))
            ::_exit(not_here);
        std::vector<signal_pipe> alone(static_cast<std::size_t>(ranks)), joined(alone.size());
        std::vector<pid_t> children;
        for (int r = 0; r < ranks; ++r) {
            auto const at = static_cast<std::size_t>(r);
            pid_t const child = ::fork();
            if (child == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (::unshare(CLONE_NEWNET) != 0) ::_exit(not_here);
                alone[at].give();
                if (!joined[at].take()) ::_exit(1);
                if (!shell("ip link set lo up; ip addr add 10.77.0." + std::to_string(r + 1) +
                           "/24 dev eth0; ip link set eth0 up; " +
                           (ways == slow_ways::out_and_in || r == 0 ? slow("eth0") : "true")))
                    ::_exit(not_here);
                try {
                    world here = join({.rank = r, .size = ranks, .address = "10.77.0.1:24777"});
                    rank(here);
                    here.barrier();
                    ::_exit(0);
                } catch (told_and_over) { // the world has been left: what it had to say is on its way
                    ::_exit(0);
                } catch (std::exception const& why) {
                    std::fprintf(stderr, "rank %d: %s\n", r, why.what());
                    ::_exit(1);
                }
            }
            children.push_back(child);
        }
        bool linked = true;
        for (int r = 0; r < ranks && linked; ++r) {
            std::string const port = "port" + std::to_string(r);
            linked = alone[static_cast<std::size_t>(r)].take() &&
                     shell("ip link add " + port + " type veth peer name eth0 netns " +
                           std::to_string(children[static_cast<std::size_t>(r)]) + "; ip link set " + port +
                           " master br0 up; " + (ways == slow_ways::out_and_in ? slow(port) : "true"));
        }
        if (!linked) ::_exit(not_here); // the ranks end with it
        for (signal_pipe const& one : joined) one.give();
        int status = 0;
        for (pid_t const child : children) {
            int raw = 0;
            ::waitpid(child, &raw, 0);
            int const its = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128;
            if (status == 0) status = its;
        }
        ::_exit(status);
    }
    int raw = 0;
    ::waitpid(stage, &raw, 0);
    int const status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128;
    if (status == not_here)
        std::puts(
            "SKIPPED: fault: slow link: network namespaces, bridge, veth and tbf need root, and ip and tc");
    return status;
}

#define CHECK_ON_MACHINES(...)                                                                               \
    do {                                                                                                     \
        int const status = on_machines(__VA_ARGS__);                                                         \
        CHECK((status == 0 || status == not_here));                                                          \
    } while (false)

constexpr std::size_t large = 110'000; // floats: 440 kB each way, 3.5 s

template <class Reducer> void legal(world& ranks) {
    Reducer a(ranks), b(ranks);
    std::vector<float> x(large, 1), one(1, 1);
    auto const before = clock::now();
    a.all_reduce(x);
    auto const took = clock::now() - before;
    b.all_reduce(one); // rank 0 may be here while its last results for `a` are on their way
    ranks.barrier();
    auto const n = static_cast<float>(ranks.size());
    for (float const y : x) require(y == n, "the sums");
    require(one[0] == n, "the sum");
    require(ranks.rank() == 0 || took > 3s, "a sum takes longer than it takes to tell crossed calls");
}

template <class Reducer> void told(world& ranks, std::size_t count) {
    Reducer a(ranks), b(ranks);
    std::vector<float> x(count, 1), one(1, 1);
    a.all_reduce(one);
    auto const before = clock::now();
    try {
        ranks.rank() == 0 ? a.all_reduce(x) : b.all_reduce(x);
    } catch (error const& why) {
        std::string const text = why.what();
        require(why.code() == errc::mismatch && text.find("calls in crossed order") != std::string::npos,
                text);
        auto const took = std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - before);
        require(took < 5s, "long before the deadline, but after " + std::to_string(took.count()) + " ms");
        throw told_and_over();
    }
    throw std::runtime_error("no error");
}

} // namespace

TEST_CASE("slow link: a sum that takes seconds is not taken for crossed calls") {
    CHECK_ON_MACHINES(3, slow_ways::out_and_in, legal<by_tcp>);
    CHECK_ON_MACHINES(2, slow_ways::out_of_rank_0, legal<by_tcp>);
    CHECK_ON_MACHINES(2, slow_ways::out_of_rank_0, legal<by_thread>);
}

TEST_CASE("slow link: two threads, each with a reducer of its own") {
    CHECK_ON_MACHINES(2, slow_ways::out_and_in, [](world& ranks) {
        by_tcp a(ranks), b(ranks);
        std::vector<float> x(large / 2, 1), y(large / 2, 1);
        std::string why;
        {
            std::jthread const second([&] {
                try {
                    b.all_reduce(y);
                } catch (std::exception const& e) {
                    why = e.what();
                }
            });
            if (ranks.rank() == 0) std::this_thread::sleep_for(2s);
            a.all_reduce(x);
        }
        require(why.empty(), why);
        require(x.back() == 2 && y.front() == 2, "the sums");
    });
}

TEST_CASE("slow link: calls that are crossed are told") {
    CHECK_ON_MACHINES(2, slow_ways::out_and_in, [](world& ranks) { told<by_tcp>(ranks, 1); });
    CHECK_ON_MACHINES(3, slow_ways::out_and_in, [](world& ranks) { told<by_tcp>(ranks, large); });
    CHECK_ON_MACHINES(2, slow_ways::out_of_rank_0, [](world& ranks) { told<by_thread>(ranks, large); });
}
