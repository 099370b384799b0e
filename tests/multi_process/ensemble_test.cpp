// herring: an ensemble whose members are processes: killed, stopped, started again, and with a frontend that is.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#include "../free_port.hpp"
#include "doctest/doctest.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace ensemble_processes_test {

using namespace herring;
using namespace std::chrono_literals;

constexpr std::size_t elements = 1000;
using voters = ensemble<float, combine::mean<space::value>, quorum::at_least<1>>;

std::string const secret(64, 'b');
char const* const names[] = {"a", "b", "c", "d", "e"};

/// A process of this program that runs the test case below, which is a member.
class process {
  public:
    process(int port, std::size_t member, lane way) {
        // All that allocates is done before the fork: other threads may hold locks at that moment.
        std::string set[] = {"ENSEMBLE_TEST_FRONTEND=127.0.0.1:" + std::to_string(port),
                             "ENSEMBLE_TEST_MEMBER=" + std::to_string(member),
                             std::string("ENSEMBLE_TEST_LANE=") + to_string(way)};
        std::vector<char*> all;
        for (char** each = environ; *each != nullptr; ++each) all.push_back(*each);
        for (std::string& each : set) all.push_back(each.data());
        all.push_back(nullptr);
        pid_ = ::fork();
        if (pid_ != 0) return;
        ::execle("/proc/self/exe", "member", "--test-case=ensemble processes: a member", "--no-skip",
                 "--minimal", static_cast<char*>(nullptr), all.data());
        ::_exit(127);
    }
    ~process() { kill(); }
    process(process const&) = delete;
    process& operator=(process const&) = delete;

    void kill() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    void stop() const {
        ::kill(pid_, SIGSTOP);
        int status = 0;
        ::waitpid(pid_, &status, WUNTRACED);
    }
    void go_on() const { ::kill(pid_, SIGCONT); }

  private:
    pid_t pid_ = -1;
};

TEST_CASE("ensemble processes: a member" * doctest::skip()) {
    char const* const at = std::getenv("ENSEMBLE_TEST_FRONTEND");
    if (at == nullptr) return;
    std::size_t const number = static_cast<std::size_t>(std::atoi(std::getenv("ENSEMBLE_TEST_MEMBER")));
    std::string const way = std::getenv("ENSEMBLE_TEST_LANE");
    voters::member me({.frontends = {at},
                       .name = names[number],
                       .elements = elements,
                       .request_bytes = 8,
                       .secret = secret,
                       .lanes = way == "tcp" ? lane::tcp : lane::shared});
    pid_t const parent = ::getppid();
    while (::getppid() == parent) {
        auto job = me.next(1s);
        if (!job) continue;
        for (float& x : job.row()) x = float(number) + float(job.input()[0]);
        job.send();
    }
}

struct ensemble_of {
    ensemble_of(std::size_t members, lane lanes) : way(lanes), port(free_port()), processes(5) {
        REQUIRE(port > 0);
        start(members);
        for (std::size_t m = 0; m < members; ++m) spawn(m);
    }
    void start(std::size_t members) {
        front.reset();
        frontend_options o{.listen = "127.0.0.1:" + std::to_string(port),
                           .elements = elements,
                           .request_bytes = 8,
                           .secret = secret,
                           .lanes = way};
        o.members.assign(names, names + members);
        front = std::make_unique<voters::frontend>(std::move(o));
    }
    void spawn(std::size_t m) { processes[m] = std::make_unique<process>(port, m, way); }

    // Asks until all that there are answer; at most a minute.
    void await_all(std::size_t members) {
        auto const until = std::chrono::steady_clock::now() + 60s;
        for (;;) {
            REQUIRE(std::chrono::steady_clock::now() < until);
            auto const a = ask(1, {.k = members});
            if (a.outcome() == outcome::full) break;
            std::this_thread::yield();
        }
    }
    voters::answer ask(int first, ask_options const& how = {}) {
        std::byte input[8] = {static_cast<std::byte>(first)};
        return front->ask(input, 60s, how);
    }
    /// Whether the values are those of the contributors.
    static bool is_right(voters::answer const& a, int first) {
        float sum = 0;
        a.contributors().for_each([&](std::size_t m) { sum += float(m) + float(first); });
        float const mean = sum / float(a.contributors().count());
        return a && a.values().size() == elements && a.values()[0] > mean - 1e-3f &&
               a.values()[0] < mean + 1e-3f && a.values()[elements - 1] == a.values()[0];
    }

    lane way;
    int port;
    std::unique_ptr<voters::frontend> front;
    std::vector<std::unique_ptr<process>> processes;
};

/// Threads that ask all the time, until they are told to stop.
struct load {
    load(ensemble_of& of, int threads, std::size_t k) {
        for (int t = 0; t < threads; ++t)
            all.emplace_back([&, t, k] {
                for (int i = t; !stop.load(); ++i) {
                    auto const a = of.ask(i % 100, {.k = k});
                    wrong += !ensemble_of::is_right(a, i % 100);
                    ++answered;
                }
            });
    }
    ~load() { end(); }
    void end() {
        stop.store(true);
        for (auto& t : all)
            if (t.joinable()) t.join();
    }
    void await(int more) const {
        for (int const before = answered.load(); answered.load() < before + more;) std::this_thread::yield();
    }
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, answered{0};
    std::vector<std::thread> all;
};

void killed_and_started_again(lane way) {
    ensemble_of e(4, way);
    e.await_all(4);
    for (auto const& m : e.front->members()) CHECK(m.shared == (way == lane::shared));
    {
        load under(e, 3, 3);
        under.await(30);
        e.processes[1]->kill();
        under.await(60);
        e.spawn(1);
        under.await(30);
        under.end();
        CHECK(under.wrong == 0); // none is lost, none is another's
    }
    e.await_all(4);
    CHECK(e.front->counters(1).lost >= 1);
}
TEST_CASE("ensemble processes: a member is killed under load and comes back, over TCP") {
    killed_and_started_again(lane::tcp);
}
TEST_CASE("ensemble processes: a member is killed under load and comes back, through shared memory") {
    killed_and_started_again(lane::shared);
}

void stopped(lane way) {
    ensemble_of e(4, way);
    e.await_all(4);
    {
        load under(e, 2, 3);
        under.await(10);
        e.processes[2]->stop();
        for (int i = 0; i < 20; ++i) {
            auto const a = e.ask(i, {.k = 3});
            CHECK(ensemble_of::is_right(a, i));
            CHECK(!a.contributors().contains(2));
            CHECK(a.why(2) != miss::none);
        }
        e.processes[2]->go_on();
        under.await(10);
        under.end();
        CHECK(under.wrong == 0);
    }
    e.await_all(4);
    CHECK(e.front->counters(2).missed >= 1);
}
TEST_CASE("ensemble processes: a member is stopped under load and goes on, over TCP") { stopped(lane::tcp); }
TEST_CASE("ensemble processes: a member is stopped under load and goes on, through shared memory") {
    stopped(lane::shared);
}

TEST_CASE("ensemble processes: the frontend is started again, and its members find it") {
    ensemble_of e(3, lane::tcp);
    e.await_all(3);
    e.start(3);
    e.await_all(3);
    CHECK(ensemble_of::is_right(e.ask(7, {.k = 3}), 7));
}

TEST_CASE("ensemble processes: the roster grows, and a subset is asked") {
    ensemble_of e(2, lane::shared);
    e.await_all(2);
    e.front->add_member(names[2]);
    e.spawn(2);
    e.await_all(3);
    auto const a = e.ask(5, {.k = 2, .among = member_set{0, 2}});
    CHECK(a.contributors() == member_set{0, 2});
    CHECK(ensemble_of::is_right(a, 5));
}

} // namespace ensemble_processes_test
