// herring: memory runs out where a transport may not throw: the peer is lost, for want of resources, by name.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {
std::atomic<std::size_t> refused_from{~std::size_t{0}}; // bytes
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    if (bytes < refused_from.load())
        if (void* const got = std::malloc(bytes > 0 ? bytes : 1)) return got;
    throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

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
        if (!messages.post_send(0, 7, data, 1)) return 1;
        while (seen.what != completion::lost && clock::now() < until) (void)messages.poll(note);
        return 0;
    }
    refused_from = refused;
    while (seen.what != completion::lost && clock::now() < until) (void)messages.poll(note);
    refused_from = ~std::size_t{0};
    if (seen.what != completion::lost || seen.why != errc::no_resources) return 2;
    return std::string(messages.describe(1)).find("no memory for a message of 100000 bytes") !=
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
