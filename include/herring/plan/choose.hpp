// herring: the choice of a bucket's way by closed forms of its time over declared links. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLAN_CHOOSE_HPP
#define HERRING_PLAN_CHOOSE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/links.hpp"
#include "herring/plan/bucket.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// The topology as far as the time of a bucket depends on it.
struct network_shape {
    int nodes = 2, local_ranks = 1, racks = 1; ///< of the world, of the largest node, of the world
    bool forwards = true, few = true;          ///< dissemination, and fewer servers than nodes, are possible
    bool nests = true;                         ///< two levels are possible, where there are racks
    std::uint32_t cores = 0;                   ///< shared by all ranks; 0: each rank has its own
    std::size_t element_bytes = 1, part_bytes = 1; ///< of an element, as stored and in a node's part
    std::size_t most_chunk_bytes = 256_KiB;
};

/// A way of a bucket: `servers` by two hops; `levels` 2: within racks, then across them.
struct way {
    route path = route::two_hop;
    int servers = 1, levels = 1;
    std::uint64_t time_ns = ~std::uint64_t{0};
};

/// The fastest way, the next best, and the sizes of all chunks, windows and buckets.
struct choice : way {
    way next{};
    std::size_t chunk_bytes = 0, window_bytes = 0, bucket_bytes = 0;
};

/// Chooses by closed forms. A rank handles its messages while the wire works: the longer of both counts.
///
/// Shape:  N nodes, all of which contribute and serve; M bytes, parts of P bytes; o = send + receive, a =
///         latency, B = rate; k of 1, 2, 4, …, N servers; racks of q nodes. Beyond 64 GiB M is 64 GiB.
///         one hop         max((N−1)·o, a + o + (N−1)·P/B)
///         two hops        max((N+k−2)·o, 2(a + o) + (N−1)/k·(M + P)/B)
///         dissemination   ⌈log₂ N⌉·(a + o) + (N−1)·P/B
///         two levels      two hops of M among q nodes, then of M/q among the racks
///         and what is summed and copied ÷ local rate. Racks share uplinks; ranks that share cores share the
///         time of all messages.
/// Cost:   O(log N); a constant expression. `by` has a rate.
/// Source: LogGP; Parameter Hub, SoCC'18 (racks).
constexpr choice choose(network_shape const& of, std::size_t bytes, links const& by) noexcept {
    using number = std::uint64_t;
    number const whole = std::min<number>(bytes, number{64} << 30),
                 part = whole / of.element_bytes * of.part_bytes, nodes = static_cast<number>(of.nodes),
                 others = nodes - 1, locals = static_cast<number>(of.local_ranks),
                 racks = static_cast<number>(of.racks), q = (nodes + racks - 1) / racks,
                 message = number{by.send_ns} + by.receive_ns,
                 hop = (of.cores > 0 ? 0 : by.latency_ns) + message, // else others work meanwhile
        near = of.cores == 0 && by.rack_latency_ns > 0 ? by.rack_latency_ns + message : hop;
    auto const time = [](number size, number mbit) {
        size = std::min(size, number{1} << 48); // three of them are added
        return mbit == 0 ? 0 : size / mbit * 8000 + size % mbit * 8000 / mbit;
    };
    auto const bytes_in = [&](number ns) {
        ns = std::min(ns, number{1} << 47);
        return ns / 8000 * by.rate_mbit + ns % 8000 * by.rate_mbit / 8000;
    };
    auto const wire = [&](number sent) { // by a node to all others
        return std::max(time(sent, by.rate_mbit),
                        of.racks == 1 ? 0 : time(sent / others * q * (nodes - q), by.uplink_rate_mbit));
    };
    choice best;
    // A chunk costs a tenth of its time on the wire, unless two of all peers overflow a switch's queue.
    number chunk = bytes_in(10 * message), held = bytes_in(2 * hop);
    if (by.queue_bytes > 0) chunk = std::min(chunk, (held + by.queue_bytes) / (2 * others * locals));
    chunk = std::min<number>(std::clamp<number>(chunk, 16_KiB, 256_KiB) / 4_KiB * 4_KiB, of.most_chunk_bytes);
    best.chunk_bytes = chunk;
    best.window_bytes = chunk * std::clamp<number>(held / (others * locals) / chunk + 1, 2, 16);
    // The 2(N−1) messages of a rank cost a quarter of the bucket's time on the wire.
    best.bucket_bytes = std::max<number>(bytes_in(4 * nodes * message), 4_MiB);

    auto const consider = [&](route path, number servers, int levels, number messages, number of_all,
                              number moved) {
        number const pieces = std::max<number>(1, (part / servers / locals + chunk - 1) / chunk),
                     shared = of.cores > 0 ? of_all * locals / of.cores : 0,
                     local = (nodes * part + whole) / servers + (locals > 1 ? (locals + 1) * whole : 0);
        way const other{path, static_cast<int>(servers), levels,
                        std::max(std::max(messages, shared) * pieces * message, moved) +
                            time(local, by.local_rate_mbit)};
        bool const faster = other.time_ns < best.time_ns;
        if (faster || other.time_ns < best.next.time_ns) best.next = faster ? way(best) : other;
        if (faster) static_cast<way&>(best) = other;
    };
    consider(route::one_hop, 1, 1, others, nodes * others, hop + wire(others * part));
    for (number k = of.few ? 1 : nodes; k != 0; k = k == nodes ? 0 : std::min(2 * k, nodes))
        consider(route::two_hop, k, 1, nodes + k - 2, 2 * k * others,
                 2 * hop + wire(others * part / k) + wire(others * whole / k));
    auto const rounds = static_cast<unsigned>(std::bit_width(others));
    if (of.forwards)
        consider(route::dissemination, 1, 1, rounds, nodes * rounds, rounds * hop + wire(others * part));
    auto const levels = [&](number all) { // bytes of all shards
        number const across = (racks - 1) * all / racks;
        return time((q - 1) * all / q, by.rate_mbit) +
               std::max(time(across / q, by.rate_mbit), time(across, by.uplink_rate_mbit));
    };
    if (of.racks > 1 && of.nests)
        consider(route::two_hop, nodes, 2, 2 * (q + racks - 2), 2 * nodes * (q + racks - 2),
                 2 * (near + hop) + levels(part) + levels(whole));
    return best;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_PLAN_CHOOSE_HPP
