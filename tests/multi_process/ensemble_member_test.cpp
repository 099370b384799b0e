// herring: members of an ensemble as processes: they come back, serve several frontends, are stopped, killed and replaced.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble.hpp"

#include "doctest/doctest.h"

#include "free_port.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ensemble_member_processes_test {

using namespace herring;
using namespace std::chrono_literals;

using voters = ensemble<float, combine::mean<space::logit>, quorum::at_least<1>>;

constexpr std::size_t elements = 300, request_bytes = 32;
constexpr auto long_time = 60s; // no test waits for it

frontend_options frontend_at(int port, lane lanes, std::vector<std::string> members = {"a"}) {
    frontend_options o;
    o.listen = "127.0.0.1:" + std::to_string(port);
    o.members = std::move(members);
    o.elements = elements;
    o.request_bytes = request_bytes;
    o.lanes = lanes;
    return o;
}
member_options member_of(std::vector<int> const& ports, lane lanes, std::string name = "a") {
    member_options o;
    for (int const port : ports) o.frontends.push_back("127.0.0.1:" + std::to_string(port));
    o.name = std::move(name);
    o.elements = elements;
    o.request_bytes = request_bytes;
    o.lanes = lanes;
    return o;
}

/// A process that runs `body`, once it is let go, and ends with its status; ended with the test. It begins before any frontend
/// does, for it would have the frontend's descriptors.
class process {
  public:
    template <class Body> explicit process(Body&& body) {
        int ends[2];
        if (::pipe(ends) != 0) throw std::runtime_error("no pipe");
        gate_ = ends[1];
        number_ = ::fork();
        if (number_ != 0) {
            ::close(ends[0]);
            return;
        }
        ::close(ends[1]);
        ::alarm(90); // whatever becomes of the test
        int status = 3;
        char go = 0;
        try {
            if (::read(ends[0], &go, 1) == 1) status = body();
        } catch (std::exception const& e) {
            std::fprintf(stderr, "in a member's process: %s\n", e.what());
        }
        ::_exit(status);
    }
    process(process const&) = delete;
    process& operator=(process const&) = delete;
    ~process() {
        ::close(gate_);
        if (number_ <= 0) return;
        ::kill(number_, SIGKILL);
        (void)status();
    }
    void begin() const { REQUIRE(::write(gate_, "", 1) == 1); }
    void signal(int which) const { ::kill(number_, which); }
    /// Waits for its end. −1: by a signal.
    int status() {
        int how = 0;
        if (::waitpid(std::exchange(number_, -1), &how, 0) < 0) return -2;
        return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    }

  private:
    pid_t number_ = -1;
    int gate_ = -1;
};

/// The row of request n: n + the place of the frontend that asked, everywhere.
template <class Member> void serve(Member& me) {
    while (auto job = me.next(long_time)) {
        std::uint64_t number = 0;
        std::memcpy(&number, job.input().data(), sizeof number);
        for (float& each : job.row()) each = static_cast<float>(number + job.frontend());
        job.send();
    }
}

template <class Frontend> void until_ready(Frontend& front) {
    auto const deadline = herring::clock::now() + long_time;
    while (!front.ready()) {
        REQUIRE(herring::clock::now() < deadline);
        ::poll(nullptr, 0, 1);
    }
}
template <class Frontend> bool answers(Frontend& front, std::uint64_t number, float row) {
    std::array<std::byte, request_bytes> request{};
    std::memcpy(request.data(), &number, sizeof number);
    auto const a = front.ask(request, long_time);
    return a.outcome() == outcome::full && a.values().size() == elements && a.values()[0] == row &&
           a.values()[elements - 1] == row;
}

TEST_CASE("ensemble member process: it serves two frontends, and comes back to one that was away") {
    for (lane const lanes : {lane::tcp, lane::shared}) {
        CAPTURE(to_string(lanes));
        int const first = free_port(), second = free_port();
        process member([&] {
            voters::member me(member_of({first, second}, lanes));
            serve(me);
            return 0;
        });
        member.begin();
        voters::frontend stays(frontend_at(first, lanes));
        for (int life = 0; life < 3; ++life) { // nobody listens there in between
            voters::frontend goes(frontend_at(second, lanes));
            until_ready(goes);
            until_ready(stays);
            for (std::uint64_t n = 0; n < 50; ++n) {
                CHECK(answers(goes, n, static_cast<float>(n + 1)));
                CHECK(answers(stays, n, static_cast<float>(n)));
            }
        }
        CHECK(answers(stays, 7, 7));
    }
}

voters::member* to_stop = nullptr;

TEST_CASE("ensemble member process: a signal stops it, and it leaves") {
    for (lane const lanes : {lane::tcp, lane::shared}) {
        CAPTURE(to_string(lanes));
        int const port = free_port();
        process member([&] {
            voters::member me(member_of({port}, lanes));
            to_stop = &me;
            (void)std::signal(SIGTERM, [](int) { to_stop->stop(); });
            serve(me);
            return me.leave(long_time) && me.counters().sent == 1 ? 0 : 1;
        });
        member.begin();
        voters::frontend front(frontend_at(port, lanes));
        until_ready(front);
        CHECK(answers(front, 5, 5));
        member.signal(SIGTERM);
        CHECK(member.status() == 0);
        std::array<std::byte, request_bytes> const request{};
        CHECK(front.ask(request, long_time).outcome() == outcome::failed); // at once: nobody is here
    }
}

TEST_CASE("ensemble member process: one that is killed over a request ends it, long before the deadline") {
    for (lane const lanes : {lane::tcp, lane::shared}) {
        CAPTURE(to_string(lanes));
        int const port = free_port();
        auto const dies = [&] {
            voters::member me(member_of({port}, lanes));
            auto const job = me.next(long_time);
            (void)::raise(SIGKILL);
            return 1;
        };
        process first(dies), second(dies);
        voters::frontend front(frontend_at(port, lanes));
        for (process* const member : {&first, &second}) {
            member->begin();
            until_ready(front);
            std::array<std::byte, request_bytes> const request{};
            auto const a = front.ask(request, long_time);
            CHECK(a.outcome() == outcome::failed);
            CHECK(a.why(0) == miss::lost);
            CHECK(member->status() == -1);
        }
    }
}

TEST_CASE("ensemble member process: a second one of the same name takes over, and the first is told") {
    int const port = free_port();
    process first([&] {
        voters::member me(member_of({port}, lane::any));
        serve(me); // until it is refused
        auto const status = me.status();
        return status[0].now == frontend_status::state::refused ? 0 : 1;
    });
    process second([&] {
        voters::member me(member_of({port}, lane::any));
        serve(me);
        return 0;
    });
    voters::frontend front(frontend_at(port, lane::any));
    first.begin();
    until_ready(front);
    CHECK(answers(front, 1, 1));
    second.begin();
    CHECK(first.status() == 0);
    // It was told before the frontend's rules were: a request of that moment would be sent to it, and lost with it.
    auto const deadline = herring::clock::now() + long_time;
    while (front.counters(0).lost == 0) {
        REQUIRE(herring::clock::now() < deadline);
        ::poll(nullptr, 0, 1);
    }
    until_ready(front);
    CHECK(answers(front, 2, 2));
}

TEST_CASE("ensemble member process: rows under an id that the frontend expects") {
    for (lane const lanes : {lane::tcp, lane::shared}) {
        CAPTURE(to_string(lanes));
        int const port = free_port();
        process member([&] {
            voters::member me(member_of({port}, lanes));
            std::uint64_t id = 1;
            while (auto job = me.next(long_time)) { // a request says that the next row is expected
                job.send();
                std::vector<float> const row(elements, static_cast<float>(id));
                if (me.contribute(id++, row) != 1) return 1;
            }
            return 0;
        });
        voters::frontend front(frontend_at(port, lanes));
        member.begin();
        until_ready(front);
        std::array<std::byte, request_bytes> const request{};
        for (std::uint64_t id = 1; id <= 20; ++id) {
            REQUIRE(front.submit_expected(id, long_time, 77).accepted());
            REQUIRE(front.submit(request, long_time, 78).accepted());
            for (int done = 0; done < 2;) {
                voters::answer a;
                std::uint64_t cookie = 0;
                if (!front.next_done(a, cookie)) {
                    pollfd ready{front.descriptor(), POLLIN, 0};
                    REQUIRE(::poll(&ready, 1, 60000) == 1);
                    front.poll();
                    continue;
                }
                ++done;
                REQUIRE(a.outcome() == outcome::full);
                if (cookie == 77) CHECK(a.values()[0] == static_cast<float>(id));
            }
        }
    }
}

} // namespace ensemble_member_processes_test
