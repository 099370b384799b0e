// herring: tests of the operations of engine/operations: reduce-scatter, all-gather and broadcast, by every route.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/engine/operations/reduce_scatter.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using tensors = std::vector<std::size_t>;
using world = mesh::world_of<std::int32_t>;
using scatter = herring::operations::reduce_scatter<std::int32_t, herring::update::sum>;
using gather = herring::operations::all_gather;
using herring::operations::broadcast;

// On each side of every threshold of small_tuning(), for 4-byte elements, and nothing at all.
tensors const all_sizes{0, 1, 15, 16, 17, 32, 33, 48, 49, 64, 65, 100, 128, 129, 333, 1000, 2047};

std::vector<std::vector<int>> const shapes{{1},    {2},    {3},       {4},    {1, 1},       {1, 1, 1},
                                           {2, 2}, {1, 2}, {3, 1, 2}, {2, 3}, {1, 1, 1, 1}, {4, 4}};

std::int32_t value(int rank, std::size_t which, std::size_t i) {
    return static_cast<std::int32_t>((static_cast<std::size_t>(rank) * 7919 + which * 104'729 + i * 31) %
                                     100'003);
}

// Each rank's contribution to a bucket, in its memory.
void fill(world& all, world::rank& r, std::size_t which) {
    auto const mine = all.memory(r, which);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r.number, which, i);
}

enum class kind { sum, summed_range, all_ranges, from_root, ranges_to_root, ranges_from_root };

void submit(world& all, world::rank& r, std::size_t which, kind what, int root) {
    fill(all, r, which);
    switch (what) {
    case kind::sum:
        return all.submit_as<herring::operations::reduce<std::int32_t, herring::update::sum>>(r, which);
    case kind::summed_range:
        return all.submit_as<scatter>(r, which);
    case kind::all_ranges:
        return all.submit_as<gather>(r, which);
    case kind::from_root:
        return all.submit_as<broadcast>(r, which, root);
    case kind::ranges_to_root:
        return all.submit_as<gather>(r, which, root);
    case kind::ranges_from_root:
        return all.submit_as<broadcast>(r, which, root, true);
    }
}

bool is_due(world& all, world::rank& r, std::size_t which, kind what, int root) {
    auto const got = all.memory(r, which);
    int const ranks = all.map.size();
    herring::range const own = all.owned(which, r.number);
    bool const takes_own = what == kind::summed_range || what == kind::ranges_from_root;
    if (what == kind::ranges_to_root && r.number != root) return true; // unspecified
    for (std::size_t i = 0; i < got.size(); ++i) {
        std::int32_t due = 0;
        if (takes_own && (i < own.offset || i >= own.end())) continue; // unspecified
        if (what == kind::from_root || what == kind::ranges_from_root) {
            due = value(root, which, i);
        } else if (what == kind::all_ranges || what == kind::ranges_to_root) {
            int owner = 0;
            while (i >= all.owned(which, owner).end()) ++owner;
            due = value(owner, which, i);
        } else {
            for (int n = 0; n < ranks; ++n) due += value(n, which, i);
        }
        if (got[i] != due) {
            MESSAGE("rank " << r.number << ", bucket " << which << " of " << got.size() << ", element " << i);
            return false;
        }
    }
    return true;
}

} // namespace

TEST_CASE("operations: every one on every shape, by every route, mixed, over a network without manners") {
    for (auto const& shape : shapes)
        for (std::uint32_t seed = 0; seed < 3; ++seed) {
            CAPTURE(shape.size());
            CAPTURE(shape[0]);
            CAPTURE(seed);
            world all(shape, all_sizes, mesh::small_tuning(), seed, seed == 1 ? 20 : 0);
            int const ranks = all.map.size();
            for (int turn = 0; turn < 12; ++turn) {
                // Some operations at once, of different buckets, the same on every rank.
                struct call {
                    std::size_t which;
                    kind what;
                    int root;
                };
                std::vector<call> calls;
                for (std::size_t b = all.net.pick(3); b < all_sizes.size() && calls.size() < 7;
                     b += 1 + all.net.pick(5))
                    calls.push_back({b, static_cast<kind>(all.net.pick(6)),
                                     static_cast<int>(all.net.pick(static_cast<std::size_t>(ranks)))});
                for (auto& r : all.ranks)
                    for (call const& c : calls) submit(all, *r, c.which, c.what, c.root);
                REQUIRE(all.settle());
                for (auto& r : all.ranks)
                    for (call const& c : calls) {
                        CAPTURE(static_cast<int>(c.what));
                        CAPTURE(c.root);
                        REQUIRE(is_due(all, *r, c.which, c.what, c.root));
                    }
            }
            if (seed != 1) CHECK(all.net.early() == 0);
            CHECK(all.net.quiet());
        }
}

TEST_CASE(
    "operations: what they send is half of an all-reduce, and a broadcast's root sends the bucket once") {
    world all({1, 1, 1, 1}, {4096}, mesh::small_tuning(), 1, 0);
    auto const bytes_of = [&](kind what) {
        std::vector<std::uint64_t> before, sent;
        for (auto& r : all.ranks) before.push_back(r->runs->counters().bytes_sent);
        for (auto& r : all.ranks) submit(all, *r, 0, what, 2);
        REQUIRE(all.settle());
        for (std::size_t r = 0; r < 4; ++r)
            sent.push_back(all.ranks[r]->runs->counters().bytes_sent - before[r]);
        return sent;
    };
    constexpr std::uint64_t bucket = 4096 * 4, share = bucket / 4;
    CHECK(bytes_of(kind::sum) == std::vector<std::uint64_t>(4, 2 * 3 * share));
    CHECK(bytes_of(kind::summed_range) == std::vector<std::uint64_t>(4, 3 * share));
    CHECK(bytes_of(kind::all_ranges) == std::vector<std::uint64_t>(4, 3 * share));
    // The root pushes to three servers, and returns what it serves to three; each server to the two others.
    CHECK(bytes_of(kind::from_root) ==
          std::vector<std::uint64_t>{2 * share, 2 * share, 3 * share + 3 * share, 2 * share});
}

TEST_CASE("operations: results land elsewhere than the contribution where no other rank sees the memory") {
    world all({1, 1, 1}, {3000, 30}, mesh::small_tuning(), 4, 0);
    for (std::size_t which : {std::size_t{0}, std::size_t{1}}) {
        std::vector<std::vector<std::int32_t>> in(3), out(3);
        std::vector<herring::range> ranges;
        std::size_t const n = all.made.buckets[which].elements;
        for (int r = 0; r < 3; ++r) ranges.push_back(all.owned(which, r));
        for (bool const gathers : {false, true}) {
            std::vector<herring::shard> shards;
            herring::bucket b;
            herring::detail::divide_owned(b, n, ranges, !gathers, all.made, all.map, shards);
            for (std::size_t r = 0; r < 3; ++r) {
                herring::range const own = ranges[r];
                in[r].resize(gathers ? own.elements : n);
                out[r].assign(gathers ? n : own.elements, -1);
                for (std::size_t i = 0; i < in[r].size(); ++i)
                    in[r][i] = value(static_cast<int>(r), which, i + (gathers ? own.offset : 0));
                auto& one = *all.ranks[r];
                one.runs->submit({.shards = shards.data(),
                                  .shard_count = b.shards,
                                  .path = b.path,
                                  .operation = static_cast<std::uint8_t>(gathers ? 2 : 1),
                                  .own = reinterpret_cast<std::byte*>(in[r].data()),
                                  .elements = n,
                                  .out = reinterpret_cast<std::byte*>(out[r].data()),
                                  .own_begin = gathers ? own.offset : 0,
                                  .out_begin = gathers ? 0 : own.offset,
                                  .part = {.owned = ranges.data()}});
                ++one.submitted;
            }
            REQUIRE(all.settle());
            for (std::size_t r = 0; r < 3; ++r)
                for (std::size_t i = 0; i < out[r].size(); ++i) {
                    std::int32_t due = 0;
                    if (gathers)
                        for (std::size_t k = 0; k < 3; ++k) {
                            if (i >= ranges[k].offset && i < ranges[k].end())
                                due = value(static_cast<int>(k), which, i);
                        }
                    else
                        for (int k = 0; k < 3; ++k) due += value(k, which, i + ranges[r].offset);
                    REQUIRE(out[r][i] == due);
                }
        }
    }
}

TEST_CASE(
    "operations: ranges that are gathered past the caches come whole, and leave what was given as it was") {
    herring::exchange_tuning tuning = mesh::small_tuning();
    tuning.chunk_bytes = tuning.window_bytes = 64 << 10;
    world all({1, 1, 1}, {(std::size_t{1} << 20) + 5}, tuning, 4, 0); // over 4 MiB; ranges end within a line
    std::size_t const n = all.made.buckets[0].elements;
    std::vector<herring::range> ranges;
    for (int r = 0; r < 3; ++r) ranges.push_back(all.owned(0, r));
    std::vector<herring::shard> shards;
    herring::bucket b;
    herring::detail::divide_owned(b, n, ranges, false, all.made, all.map, shards);
    REQUIRE(b.path == herring::route::two_hop);
    std::vector<std::int32_t> due(n);
    for (std::size_t r = 0; r < 3; ++r)
        for (std::size_t i = ranges[r].offset; i < ranges[r].end(); ++i)
            due[i] = value(static_cast<int>(r), 0, i);
    std::vector<std::vector<std::int32_t>> in(3), out(3);
    auto const gather = [&](std::size_t r, std::int32_t* from) {
        auto& one = *all.ranks[r];
        one.runs->submit({.shards = shards.data(),
                          .shard_count = b.shards,
                          .path = b.path,
                          .operation = 2,
                          .own = reinterpret_cast<std::byte*>(from),
                          .elements = n,
                          .out = reinterpret_cast<std::byte*>(out[r].data()),
                          .own_begin = ranges[r].offset,
                          .part = {.owned = ranges.data()}});
        ++one.submitted;
    };
    auto const first = [&](std::size_t r) {
        return due.begin() + static_cast<std::ptrdiff_t>(ranges[r].offset);
    };
    for (bool const in_place : {false, true}) {
        for (std::size_t r = 0; r < 3; ++r) {
            auto const end = first(r) + static_cast<std::ptrdiff_t>(ranges[r].elements);
            in[r].assign(first(r), end);
            out[r].assign(n, -1);
            if (in_place) std::copy(first(r), end, out[r].begin() + (first(r) - due.begin()));
            gather(r, in_place ? out[r].data() + ranges[r].offset : in[r].data());
        }
        REQUIRE(all.settle());
        for (std::size_t r = 0; r < 3; ++r) {
            CHECK((out[r] == due));
            CHECK((std::equal(in[r].begin(), in[r].end(), first(r))));
        }
    }
}

TEST_CASE("operations: ranks in different operations, or with different roots, are told who differs") {
    for (auto const& shape : std::vector<std::vector<int>>{{3}, {2}, {1, 1}, {2, 2}, {1, 1, 1}})
        for (std::size_t which : {std::size_t{0}, std::size_t{1}})
            for (bool const roots : {false, true}) {
                world all(shape, {20, 1000}, mesh::small_tuning(), 7, 0);
                for (auto& r : all.ranks) {
                    bool const odd = r->number == 1;
                    submit(all, *r, which, roots || odd ? kind::from_root : kind::all_ranges, odd ? 1 : 0);
                }
                for (int i = 0; i < 3000; ++i)
                    for (auto& r : all.ranks) r->runs->poll();
                int told = 0;
                for (auto& r : all.ranks)
                    if (herring::failure const* const why = r->runs->failed(); why != nullptr) {
                        CHECK(why->what == herring::errc::mismatch);
                        ++told;
                    }
                CHECK(told > 0);
                CHECK(all.worlds[0].failed() != nullptr);
            }
}

TEST_CASE("operations: an execution names the bytes of its elements, whatever those of the engine's plan") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CAPTURE(shape[0]);
        world all(shape, {2047}, mesh::small_tuning(), 7, 10);
        int const ranks = all.map.size();
        herring::plan of_bytes = all.made; // the same limits, for elements of one byte
        of_bytes.element_bytes = of_bytes.parts.element_bytes = 1;
        of_bytes.line_elements = 64;
        for (std::size_t const n : {1u, 63u, 129u, 1001u, 8187u})
            for (bool const gathers : {false, true}) {
                CAPTURE(n);
                CAPTURE(gathers);
                int const root = static_cast<int>(n) % ranks;
                std::vector<herring::range> owned;
                for (int r = 0; r < ranks; ++r) owned.push_back(herring::owned_range(n, r, ranks));
                std::vector<herring::shard> shards;
                herring::bucket b;
                if (gathers)
                    herring::detail::divide_owned(b, n, owned, false, of_bytes, all.map, shards);
                else
                    herring::detail::divide<herring::sharding::balanced>(b, {n, 64, {}}, of_bytes, shards,
                                                                         {});
                auto const value_at = [&](int rank, std::size_t i) {
                    return static_cast<std::byte>(value(rank, n, i) % 251);
                };
                for (auto& r : all.ranks) {
                    for (std::size_t i = 0; i < n; ++i) r->node.memory()[i] = value_at(r->number, i);
                    r->runs->submit({.shards = shards.data(),
                                     .shard_count = b.shards,
                                     .path = b.path,
                                     .operation = static_cast<std::uint8_t>(gathers ? 2 : 3),
                                     .element_bytes = 1,
                                     .root = gathers ? -1 : root,
                                     .own = r->node.memory(),
                                     .elements = n,
                                     .label = herring::no_bucket,
                                     .part = {.owned = gathers ? owned.data() : nullptr}});
                    ++r->submitted;
                }
                REQUIRE(all.settle());
                for (auto& r : all.ranks) {
                    std::size_t wrong = 0;
                    for (std::size_t i = 0, owner = 0; i < n; ++i) {
                        while (gathers && i >= owned[owner].end()) ++owner;
                        wrong += r->node.memory()[i] != value_at(gathers ? static_cast<int>(owner) : root, i);
                    }
                    CHECK(wrong == 0);
                }
            }
    }
}
