// herring: what reductions by dissemination have to do, over every transport: the bits of a serial fold, in few messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_DISSEMINATION_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_DISSEMINATION_SUITE_HPP

#include "conformance/suite.hpp"

#include "same_bytes.hpp"

#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/layout.hpp"
#include "herring/reducer.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace herring::conformance {

/// Small buckets take the dissemination route. A message of it may be larger than a chunk, and than what one hop sends.
inline constexpr exchange_tuning disseminating{.chunk_bytes = 4096,
                                               .window_bytes = 12'288,
                                               .one_hop_bytes = 1024,
                                               .message_ns = 1000,
                                               .latency_ns = 1,
                                               .dissemination_bytes = 4096,
                                               .two_level_bytes = 1};

constexpr transport_facts with_tuning(transport_facts facts, exchange_tuning const& tuning) {
    facts.tuning = facts.same_host_tuning = tuning;
    return facts;
}
/// A transport whose messages cost so much that tiny buckets are forwarded.
template <class Transport> struct with_dear_messages : Transport {
    using Transport::Transport;
    static constexpr char const* name = "with_dear_messages";
    static constexpr transport_facts facts = with_tuning(Transport::facts, disseminating);
};

namespace detail {

using herring::detail::divide_up;

/// What a rank contributes in a turn: one table, begun at another place by each, so that it is computed once.
inline std::span<float const> rounding_values(int rank, std::size_t turn, std::size_t n) {
    static std::vector<float> const table = [] {
        std::vector<float> made(100'000);
        float* to = made.data();
        for (std::uint64_t i = 1; i <= made.size(); ++i) {
            std::uint64_t x = i * 0x9e3779b97f4a7c15u;
            x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
            *to++ = static_cast<float>(x >> 40) / 65536.0f - 100.0f;
        }
        return made;
    }();
    std::size_t const from = static_cast<std::size_t>(rank) * 97 + turn * 7;
    if (from + n > table.size()) throw std::runtime_error("the suite's table is too short");
    return std::span(table).subspan(from, n);
}

/// Sums as one process makes them: ranks of a node first, then nodes, in their order.
inline std::vector<float> serial_fold(topology const& map, std::size_t turn, std::size_t n) {
    auto const of = [&](int rank) {
        auto const values = rounding_values(rank, turn, n);
        return std::vector<float>(values.begin(), values.end());
    };
    auto const add = [n](float* to, float const* more) {
        for (float const* const end = to + n; to != end; ++to) *to = *to + *more++;
    };
    std::vector<float> total;
    for (int node = 0; node < map.nodes(); ++node) {
        std::vector<float> part = of(map.rank_of(node, 0));
        for (int l = 1; l < map.local_size(node); ++l)
            add(part.data(), rounding_values(map.rank_of(node, l), turn, n).data());
        if (node == 0)
            total = std::move(part);
        else
            add(total.data(), part.data());
    }
    return total;
}

inline void fill(std::span<float> values, int rank, std::size_t turn) {
    auto const from = rounding_values(rank, turn, values.size());
    std::copy(from.begin(), from.end(), values.begin());
}
inline void expect_fold(stage& on, std::span<float const> got, std::size_t turn, std::string const& what) {
    std::vector<float> const due = serial_fold(on.ranks.topology(), turn, got.size());
    if (same_bytes(got, due)) return;
    for (std::size_t i = 0; i < got.size(); ++i)
        if (std::memcmp(&got[i], &due[i], sizeof due[i]) != 0)
            return on.find(what + ": element " + std::to_string(i) + " of " + std::to_string(got.size()) +
                           " is not the serial fold's");
}

/// `all_gather` of n elements, in place and not: what is passed on has the size that each node's ranks own.
template <class Reducer> void gathers(stage& on, Reducer& reduce, std::size_t n, std::size_t turn) {
    topology const& map = on.ranks.topology();
    std::string const what = "all_gather of " + std::to_string(n) + ", turn " + std::to_string(turn);
    range const mine = reduce.owned(n, on.rank());
    std::vector<float> whole(n, -1.0f);
    auto const contributed = rounding_values(on.rank(), turn, n).subspan(mine.offset, mine.elements);
    std::vector<float> const own(contributed.begin(), contributed.end());
    std::uint64_t const before = reduce.counters().messages_sent;
    if (turn % 2 == 0) {
        herring::all_gather(reduce, std::span<float const>(own), std::span<float>(whole));
    } else {
        std::copy(own.begin(), own.end(), whole.begin() + static_cast<std::ptrdiff_t>(mine.offset));
        herring::all_gather(reduce, std::span<float const>(whole).subspan(mine.offset, mine.elements),
                            std::span<float>(whole));
    }
    for (int r = 0; r < map.size(); ++r) {
        range const theirs = reduce.owned(n, r);
        auto const due = rounding_values(r, turn, n).subspan(theirs.offset, theirs.elements);
        if (same_bytes(std::span(whole).subspan(theirs.offset, theirs.elements), due)) continue;
        for (std::size_t i = theirs.offset; i < theirs.end(); ++i)
            if (whole[i] != due[i - theirs.offset])
                return on.find(what + ": element " + std::to_string(i) + " is not that of rank " +
                               std::to_string(r));
    }
    std::size_t const part = map.local_size(0) > 1 ? n : divide_up(n, static_cast<std::size_t>(map.size()));
    if (part > 1024 || map.local_size(0) > 1) return;
    std::uint64_t const rounds = std::bit_width(static_cast<unsigned>(map.nodes() - 1)),
                        sent = reduce.counters().messages_sent - before;
    on.expect(sent == rounds,
              what + ": " + std::to_string(sent) + " messages, not " + std::to_string(rounds));
}

/// `broadcast` of n elements: what is passed on has the root's part alone, and is empty before it has come by.
template <class Reducer> void broadcasts(stage& on, Reducer& reduce, std::size_t n, std::size_t turn) {
    topology const& map = on.ranks.topology();
    int const root = static_cast<int>((turn + n) % static_cast<std::size_t>(map.size()));
    std::string const what = "broadcast of " + std::to_string(n) + " from rank " + std::to_string(root);
    std::vector<float> values(n);
    fill(values, on.rank(), turn + n);
    herring::counters const before = reduce.counters();
    broadcast(reduce, std::span<float>(values), root);
    auto const due = rounding_values(root, turn + n, n);
    for (std::size_t i = 0; !same_bytes(values, due) && i < n; ++i)
        if (values[i] != due[i])
            return on.find(what + ": element " + std::to_string(i) + " is not the root's");
    if (n > 1024 || map.local_size(0) > 1) return;
    herring::counters const after = reduce.counters();
    std::uint64_t const rounds = std::bit_width(static_cast<unsigned>(map.nodes() - 1)),
                        sent = after.messages_sent - before.messages_sent,
                        bytes = after.bytes_sent - before.bytes_sent;
    on.expect(sent == rounds,
              what + ": " + std::to_string(sent) + " messages, not " + std::to_string(rounds));
    on.expect(bytes <= rounds * n * sizeof(float) &&
                  (on.rank() != root || bytes == rounds * n * sizeof(float)),
              what + ": " + std::to_string(bytes) + " bytes sent");
}

} // namespace detail

/// Buckets of a layout and buffers beside it, about the limits of the routes.
template <class Reducer> void disseminates(stage& on) {
    std::vector<std::size_t> const sizes{1, 300, 1024, 17, 1025, 3000};
    Reducer reduce(on.ranks, layout::of(sizes));
    topology const& map = on.ranks.topology();
    for (std::size_t i = 0; i < sizes.size(); ++i)
        on.expect((reduce.plan().buckets[i].path == route::dissemination) == (sizes[i] <= 1024),
                  "bucket " + std::to_string(i) + " takes " + to_string(reduce.plan().buckets[i].path));
    for (std::size_t turn = 0; turn < (HERRING_TEST_SLOW ? 3 : 6); ++turn) {
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            std::size_t const i = turn % 2 == 0 ? n : sizes.size() - 1 - n;
            detail::fill(reduce.tensor(i), on.rank(), turn + i);
            reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i)
            detail::expect_fold(on, reduce.tensor(i), turn + i, "tensor " + std::to_string(i));
        for (std::size_t const n : {1u, 2u, 16u, 33u, 511u, 1024u, 1025u, 9000u}) {
            std::vector<float> values(n), apart(n);
            detail::fill(values, on.rank(), turn + n);
            bool const in_place = turn % 2 == 0;
            std::uint64_t const before = reduce.counters().messages_sent;
            reduce.all_reduce(std::span<float const>(values), std::span<float>(in_place ? values : apart));
            detail::expect_fold(on, in_place ? values : apart, turn + n, "all_reduce");
            if (n > 1024 || map.local_size(0) > 1) continue;
            std::uint64_t const rounds = std::bit_width(static_cast<unsigned>(map.nodes() - 1)),
                                sent = reduce.counters().messages_sent - before;
            on.expect(sent == rounds, std::to_string(sent) + " messages for " + std::to_string(n) +
                                          " elements, not " + std::to_string(rounds));
        }
        for (std::size_t const n : {1u, 3u, 16u, 257u, 1024u, 4096u, 4097u, 20'000u})
            detail::gathers(on, reduce, n, turn);
        for (std::size_t const n : {1u, 33u, 1024u, 1025u}) detail::broadcasts(on, reduce, n, turn);
    }
}

/// `nodes` nodes of `local` ranks each.
inline std::vector<std::string> even_nodes(int nodes, int local) {
    std::vector<std::string> made;
    for (int n = 0; n < nodes; ++n)
        for (int l = 0; l < local; ++l) made.push_back("node" + std::to_string(n));
    return made;
}

/// `of_nodes`: numbers of nodes, each with one rank and with two.
template <class Reducer>
findings dissemination_suite(settings const& how = {}, std::vector<int> const& of_nodes = {4, 5, 8}) {
    findings found;
    for (int const nodes : of_nodes)
        for (int const local : {1, 2})
            append(found, run_case(std::to_string(nodes) + " nodes of " + std::to_string(local),
                                   nodes * local, even_nodes(nodes, local), how, disseminates<Reducer>));
    return found;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_DISSEMINATION_SUITE_HPP
