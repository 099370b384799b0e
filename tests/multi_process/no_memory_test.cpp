// herring: memory runs out where nothing may be thrown: an error by name, and the program goes on.
// SPDX-License-Identifier: Apache-2.0
// Own program: it replaces every operator new.
#include "gpu_model/host_runtime.hpp"
#include "herring/herring.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/net/event_thread.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "every_new.hpp"
#include "sanitizers.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {
std::atomic<std::size_t> refused_from{~std::size_t{0}}; // bytes
}

bool every_new::allows(std::size_t bytes) noexcept { return bytes < refused_from.load(); }

using namespace herring;

namespace {
// The payload of a message without a receive, the list's entry for it, the bin for a frame that nobody wants.
int early(world& ranks, std::size_t refused) {
    constexpr std::size_t bytes = 100'000;
    std::vector<int> const peers{1 - ranks.rank()};
    transport::tcp messages(ranks, {.peers = peers,
                                    .receives_per_peer = 4,
                                    .sends_per_peer = 4,
                                    .largest_message = bytes,
                                    .timeout = std::chrono::seconds(20)});
    std::vector<std::byte> const data(bytes);
    auto const until = clock::now() + std::chrono::seconds(20);
    completion seen{};
    auto const note = [&](completion const& done) noexcept { seen = done; };
    if (ranks.rank() == 1) {
        if (!messages.post_send(peer_id{0}, 7, data, 1)) return 1;
        while (seen.what != completion::lost && clock::now() < until) (void)messages.poll(note);
        return 0;
    }
    refused_from = refused;
    while (seen.what != completion::lost && clock::now() < until) (void)messages.poll(note);
    refused_from = ~std::size_t{0};
    if (seen.what != completion::lost || seen.why != errc::no_resources) return 2;
    return std::string(messages.describe(peer_id{0})).find("no memory for a message of 100000 bytes") !=
                   std::string::npos
               ? 0
               : 3;
}
} // namespace

TEST_CASE("no memory: for a message over tcp that comes before its receive") {
    launch_options options;
    options.nodes = {"a", "b"};
    options.timeout = std::chrono::seconds(60);
    for (std::size_t const refused : {std::size_t{50'000}, std::size_t{1}}) {
        CAPTURE(refused);
        CHECK(launch(
                  2, [refused](world& ranks) { return early(ranks, refused); }, options) == 0);
    }
}

TEST_CASE("no memory: to say why rank 0 cannot be reached") {
    // Nobody listens there: every attempt ends with words for the error at the deadline, which are longer than 32 bytes.
    auto const attempt = [](world&) {
        std::atomic<bool> over{false};
        std::thread thief([&over] {
            std::this_thread::sleep_for(std::chrono::milliseconds(200));
            refused_from = 32;
            std::this_thread::sleep_for(std::chrono::milliseconds(400));
            refused_from = ~std::size_t{0};
            over = true;
        });
        errc why = errc::ok;
        try {
            join_options how;
            how.rank = 1;
            how.size = 2;
            how.address = "127.0.0.1:9";
            how.timeout = std::chrono::seconds(2);
            world const here = join(how);
        } catch (error const& failed) {
            why = failed.code();
        }
        thief.join();
        return why == errc::timeout && over ? 0 : 1;
    };
    CHECK(launch(1, attempt, {.timeout = std::chrono::seconds(60)}) == 0);
}

TEST_CASE("no memory: for what goes into a stream of a model of a device") {
    for (int const what : {0, 1, 2}) {
        CAPTURE(what);
        gpu::host_machine machine({.workers = 0});
        world alone;
        gpu::host_runtime device(alone);
        gpu::host_runtime::stream in(device);
        gpu::host_runtime::event mark(device, false);
        gpu::host_runtime::memory memory(device, 64);
        std::byte host[64] = {};
        refused_from = 1;
        for (int i = 0; i < 100 && device.failed() == nullptr; ++i) {
            if (what == 0) device.to_device(in.handle(), memory.data(), host, sizeof host);
            if (what == 1) device.record(mark, in.handle());
            if (what == 2) device.wait(in.handle(), mark);
        }
        refused_from = ~std::size_t{0};
        REQUIRE(device.failed() != nullptr);
        CHECK(device.failed()->what == errc::device);
        CHECK(std::string(device.failed()->text).find("no memory of the host") != std::string::npos);
    }
}

TEST_CASE("no memory: address space for a control thread" *
          doctest::skip(HERRING_TEST_ASAN || HERRING_TEST_TSAN)) {
    pid_t const child = ::fork();
    if (child == 0) {
        // Threads that ended before may have left a stack that is used again: one of so many has none.
        static detail::event_thread threads[64];
        for (detail::event_thread& each : threads) each.open("join", 0);
        rlimit none{};
        ::getrlimit(RLIMIT_AS, &none);
        none.rlim_cur = 0;
        ::setrlimit(RLIMIT_AS, &none);
        try {
            for (detail::event_thread& each : threads)
                each.start(
                    [](void*) -> void* {
                        while (true) ::pause();
                    },
                    nullptr, 0);
        } catch (error const& why) {
            std::string const text = why.what();
            ::_exit(text.find("no control thread") != std::string::npos &&
                            text.find("raise ulimit -v") != std::string::npos
                        ? 0
                        : 2);
        }
        ::_exit(1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}
