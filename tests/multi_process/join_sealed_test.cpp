// herring: real processes whose control connections are sealed by libcrypto: they reduce, a killed one is named, a changed byte ends it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/sealed.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "herring/herring.hpp"
#include "herring/join/join_as.hpp"
#include "herring/launch.hpp"
#include "herring/transport/sealed.hpp"
#include "herring/transport/tcp.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

namespace join_sealed_processes {

using herring::errc;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace transport = herring::transport;

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};

// In a forked rank a failed CHECK would be nobody's; an exception is the launch's status.
void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

std::string address_of(int port) { return "127.0.0.1:" + std::to_string(port); }

herring::join_options as(int rank, int size, std::string const& address) {
    herring::join_options made;
    made.rank = rank;
    made.size = size;
    made.address = address;
    made.node = rank % 2 == 0 ? "even" : "odd";
    made.secret = std::string(64, 'd');
    made.control = herring::sealed_control();
    made.timeout = plenty;
    return made;
}

template <class Transport> void sums(world& w) {
    std::vector<float> mine(3'000, static_cast<float>(w.rank() + 1));
    herring::reducer<float, Transport, herring::update::sum> reduce(w);
    reduce.all_reduce(std::span(mine));
    float const expected = static_cast<float>(w.size() * (w.size() + 1)) / 2;
    require(std::ranges::all_of(mine, [&](float each) { return each == expected; }), "the sum");
}

/// Between a rank and rank 0: passes bytes on, and may change one.
class relay {
  public:
    /// `to`: rank 0's port. `changed`: place of the byte towards rank 0 that is changed, once `armed`.
    explicit relay(int to) : to_(address(to)) {
        std::string why;
        auto const found = detail::resolve("127.0.0.1", 0, herring::clock::now() + plenty, why);
        require(!found.empty(), "an address");
        listener_ = detail::listen_on(found[0]);
        port = detail::local_end(listener_).port();
        runs_ = std::thread([this] { run(); });
    }
    relay(relay const&) = delete;
    ~relay() {
        stop();
        ::close(listener_);
    }
    void stop() {
        ends_ = true;
        if (runs_.joinable()) runs_.join();
    }
    int port = 0;
    std::atomic<bool> changes{false};
    /// Once it has stopped.
    bool has(std::string_view text) const { return seen_.find(text) != std::string::npos; }

  private:
    static detail::endpoint address(int port) {
        std::string why;
        auto const found = detail::resolve("127.0.0.1", static_cast<std::uint16_t>(port),
                                           herring::clock::now() + plenty, why);
        require(!found.empty(), "an address");
        return found[0];
    }
    bool wait(std::span<pollfd> on) const {
        while (!ends_)
            if (::poll(on.data(), on.size(), 20) > 0) return true;
        return false;
    }
    void run() {
        while (!ends_) {
            pollfd asks{listener_, POLLIN, 0};
            if (!wait({&asks, 1})) return;
            int const here = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            int const there = ::socket(to_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (::connect(there, to_.get(), to_.size) == 0) pump(here, there);
            ::close(here);
            ::close(there);
        }
    }
    void pump(int here, int there) {
        std::array<pollfd, 2> ends{pollfd{here, POLLIN, 0}, pollfd{there, POLLIN, 0}};
        char bytes[4096];
        while (wait(ends))
            for (int i : {0, 1}) {
                if (ends[static_cast<std::size_t>(i)].revents == 0) continue;
                ssize_t const n = ::recv(i == 0 ? here : there, bytes, sizeof bytes, 0);
                if (n <= 0) return;
                if (i == 0 && changes.exchange(false)) bytes[n / 2] = static_cast<char>(bytes[n / 2] ^ 1);
                seen_.append(bytes, static_cast<std::size_t>(n));
                if (::send(i == 0 ? there : here, bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL) != n)
                    return;
            }
    }

    detail::endpoint to_;
    int listener_ = -1;
    std::atomic<bool> ends_{false};
    std::string seen_;
    std::thread runs_;
};

TEST_CASE("join_sealed: four processes join, reduce over tcp and sealed tcp, and leave") {
    std::string const address = address_of(free_port());
    CHECK(herring::launch(4, [&](world& l) {
              world w = herring::join(as(l.rank(), 4, address));
              require(w.nodes() == 2 && w.has_secret(), "the world");
              sums<transport::tcp>(w);
              sums<transport::sealed<transport::tcp>>(w);
              w.barrier();
          }) == 0);
}

TEST_CASE("join_sealed: HERRING_CONTROL=sealed is enough in a program that includes the header") {
    std::string const address = address_of(free_port());
    CHECK(herring::launch(2, [&](world& l) {
              herring::join_options options = as(l.rank(), 2, address);
              options.control = {};
              ::setenv("HERRING_CONTROL", "sealed", 1);
              if (l.rank() == 1) options = as(1, 2, address); // by the option
              world w = herring::join(options);
              w.barrier();
          }) == 0);
}

TEST_CASE("join_sealed: a rank that is killed is named to all others") {
    for (int const victim : {0, 2}) {
        std::string const address = address_of(free_port());
        // The launch would tell them as well: only what rank 0 says counts, so nobody asks `l`.
        int const status = herring::launch(4, [&](world& l) {
            world w = herring::join(as(l.rank(), 4, address));
            sums<transport::tcp>(w);
            w.barrier();
            if (w.rank() == victim) ::kill(::getpid(), SIGKILL);
            try {
                w.barrier(plenty);
            } catch (herring::error const& why) {
                require(why.code() == errc::peer_lost && why.peer() == victim, why.what());
                return;
            }
            require(false, "the barrier ends in an error");
        });
        CHECK(status == 128 + SIGKILL);
    }
}

TEST_CASE("join_sealed: who is between reads nothing, and ends the world by changing a byte") {
    int const port = free_port();
    int const status = herring::launch(2, [&](world& l) {
        if (l.rank() == 0) {
            world w = herring::join(as(0, 2, address_of(port)));
            (void)w.all_gather({});
            try {
                w.barrier(plenty);
            } catch (herring::error const& why) {
                require(why.code() == errc::protocol && why.peer() == 1 &&
                            std::string_view(why.what()).find("does not open") != std::string_view::npos,
                        why.what());
                return;
            }
            require(false, "the barrier ends in an error");
        }
        relay between(port);
        {
            world w = herring::join(as(1, 2, address_of(between.port)));
            std::string_view const words = "what only rank 0 may read";
            (void)w.all_gather(detail::bytes_of(words));
            between.changes = true;
            try {
                w.barrier(plenty);
                require(false, "the barrier ends in an error");
            } catch (herring::error const& why) {
                require(why.code() == errc::protocol || why.code() == errc::peer_lost, why.what());
            }
            between.stop();
            require(between.has("HERR") && between.has("odd"), "the handshake can be read");
            require(!between.has(words), "what follows cannot");
        }
    });
    CHECK(status == 0);
}

} // namespace join_sealed_processes
