// herring: the probe of the network at join: what pairs of nodes measure, and the links that follow.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_PROBE_HPP
#define HERRING_JOIN_PROBE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/links.hpp"
#include "herring/net/sockets.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

namespace HERRING_NAMESPACE::detail {

/// Returns the median in two digits; 0 without samples, and where something disturbed them: the upper
/// quartile is above twice the lower one.
HERRING_SETUP inline std::uint32_t steady_median(std::span<int> samples) {
    std::size_t const n = samples.size();
    if (n == 0) return 0;
    std::qsort(samples.data(), n, sizeof(int), [](void const* a, void const* b) noexcept {
        return *static_cast<int const*>(a) - *static_cast<int const*>(b); // none is below 0
    });
    if (samples[n * 3 / 4] - samples[n / 4] > samples[n / 4]) return 0;
    int const median = samples[n / 2];
    int scale = 1;
    while (median / scale >= 100) scale *= 10;
    return static_cast<std::uint32_t>((median + scale / 2) / scale * scale);
}

/// Measures over one connection latency, send, receive and rate: round trips of 64 bytes, then a stream.
/// The end that was dialled answers.
///
/// Blocks: until `end`, and 100 ms more where the other end does not answer.
HERRING_SETUP inline std::array<std::uint32_t, 4> probe_pair(int socket, bool dials, time_point end) {
    std::vector<std::byte> block(64_KiB);
    std::vector<int> trips, sends, receives, rates;
    auto const add = [](std::vector<int>& to, std::uint64_t sample) {
        to.push_back(static_cast<int>(std::min<std::uint64_t>(sample, most_link)));
    };
    auto const send = [&](std::size_t size) {
        return ::send(socket, block.data(), size, MSG_NOSIGNAL) == static_cast<::ssize_t>(size);
    };
    auto const receive = [&] { return ::recv(socket, block.data(), 64, MSG_WAITALL) == 64; };
    auto const ns = [](auto time) {
        return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
    };
    auto const spent = [] { // by this thread
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
               static_cast<std::uint64_t>(time.tv_nsec);
    };
    if (!dials) {
        while (receive() && block[0] == std::byte{0} && send(64)) {
        }
        while (::recv(socket, block.data(), block.size(), 0) > 0) {
        }
        return {};
    }
    time_point at = clock::now();
    for (time_point const half = at + (end - at) / 2; at < half; at = clock::now()) {
        std::uint64_t const before = spent();
        if (!send(64)) return {};
        std::uint64_t const between = spent();
        if (!receive()) return {};
        std::uint64_t const after = spent(), trip = ns(clock::now() - at) / 2;
        add(sends, between - before);
        add(receives, after - between);
        add(trips, std::max(trip, after - before + 1) - (after - before));
    }
    block[0] = std::byte{1};
    std::uint64_t sent = 0; // in a slice of 10 ms
    for (bool going = send(64); going && clock::now() < end; sent += block.size()) {
        if (std::uint64_t const time = ns(clock::now() - at); time >= 10'000'000) {
            add(rates, sent * 8000 / time);
            sent = 0, at = clock::now();
        }
        going = send(block.size());
    }
    return {steady_median(trips), steady_median(sends), steady_median(receives), steady_median(rates)};
}

/// Collective: up to 16 pairs of nodes, one of each half of the world, measure at the same time, over TCP.
/// Returns the medians of what is not declared; 0, and a line on stderr, for what was disturbed.
///
/// Blocks: 0.5 s at most, beside two collectives.
HERRING_SETUP inline links probe_links(world& ranks, links const& declared) {
    time_point const end = clock::now() + std::chrono::milliseconds(300);
    int const half = ranks.nodes() / 2, node = ranks.node();
    bool const dials = node >= half,
               measures = ranks.local_rank() == 0 && node < 2 * half && node % half < 16;
    int const peer = measures ? ranks.topology().rank_of(dials ? node - half : node + half, 0) : 0;
    auto const wait = [&](int on, short what) {
        pollfd one{on, what, 0};
        return ::poll(&one, 1, 100) == 1;
    };
    descriptor listener, socket;
    endpoint at;
    std::byte token[16]{}, theirs[16];
    if (measures) ranks.derive_key(token, "herring probe", peer);
    if (std::string why; measures && !dials) {
        auto const own = resolve(ranks.local_address(), 0, end, why);
        if (!own.empty()) listener = descriptor(listen_on(own[0]));
        at = local_end(listener.get());
    }
    gather_result const all = ranks.all_gather(at.bytes());
    if (measures && dials && at.read(all[static_cast<std::size_t>(peer)]) && dial(socket, at, never) &&
        wait(socket.get(), POLLOUT) && connect_error(socket.get()) == 0)
        (void)::send(socket.get(), token, sizeof token, MSG_NOSIGNAL);
    while (measures && !dials && socket.get() < 0 && wait(listener.get(), POLLIN) && clock::now() < end) {
        socket = accept_next(listener.get(), at);
        if (!wait(socket.get(), POLLIN) || ::recv(socket.get(), theirs, sizeof theirs, 0) != sizeof theirs ||
            std::memcmp(token, theirs, sizeof theirs) != 0)
            socket = descriptor();
    }
    std::array<std::uint32_t, 4> mine{};
    if (socket.get() >= 0) {
        timeval const patience{0, 100'000};
        tune(socket.get(), never);
        (void)::fcntl(socket.get(), F_SETFL, 0); // blocking
        (void)::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void)::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        mine = probe_pair(socket.get(), dials, end);
        socket = descriptor();
    }
    links found = declared;
    std::string missing;
    constexpr char const* names[] = {"latency", "send", "receive", "rate"};
    gather_result const told = ranks.all_gather(std::as_bytes(std::span(mine)));
    std::uint32_t* const figures[] = {&found.latency_ns, &found.send_ns, &found.receive_ns, &found.rate_mbit};
    for (std::size_t i = 0; i < mine.size(); ++i) {
        std::vector<int> values;
        for (std::size_t r = 0; r < told.size(); ++r)
            if (wire::read_value(told[r], mine) && mine[i] > 0 && mine[i] <= most_link)
                values.push_back(static_cast<int>(mine[i]));
        if (*figures[i] == 0) *figures[i] = steady_median(values);
        if (*figures[i] == 0) append(missing, {missing.empty() ? "" : ", ", names[i]});
    }
    if (half > 0 && !missing.empty() && ranks.rank() == 0)
        std::fprintf(stderr,
                     "herring: the probe of the network was disturbed, and did not find %s; the links are "
                     "%s, and what they "
                     "lack is as the transport has it\n",
                     missing.c_str(), to_string(found).c_str());
    return found;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_PROBE_HPP
