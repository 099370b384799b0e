// herring: tests of plan/handled_chunks.hpp: every chunk that a rank combines has room of its own, and together they are few.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/handled_chunks.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace handled_chunks_test {

using herring::detail::handled_chunks;

constexpr std::size_t sizes[] = {1, 40, 1000, 0, 4096, 5000, 77'777};

template <class Sharding> herring::plan plan_for(herring::topology const& where) {
    herring::exchange_tuning const tuning{.chunk_bytes = 4096, .window_bytes = 16'384, .mailbox_bytes = 512};
    return herring::make_plan<herring::fusion::per_tensor, Sharding, herring::placement::colocated>(
        sizes, where, 4, 4, tuning);
}

/// Marks the room of each chunk that local rank `own.first` of this node combines; returns the number of elements.
std::size_t mark(herring::plan const& of, handled_chunks const& chunks, herring::chunk_stream own,
                 herring::server_id server, std::vector<int>& room) {
    std::size_t combined = 0;
    auto const take = [&](std::size_t bucket, std::size_t offset, std::size_t elements) {
        std::size_t const place = chunks.place(of, bucket, offset);
        REQUIRE(place + elements <= room.size());
        for (std::size_t i = place; i < place + elements; ++i) ++room[i];
        combined += elements;
    };
    for (std::size_t b = 0; b < of.buckets.size(); ++b) {
        herring::bucket const& one = of.buckets[b];
        if (one.path == herring::route::mailbox) {
            take(b, 0, one.elements);
            continue;
        }
        for (std::uint32_t s = one.first_shard; s < one.first_shard + one.shards; ++s) {
            herring::shard const& part = of.shards[s];
            if (one.path == herring::route::two_hop && part.server != server) continue;
            for (std::uint32_t k = own.first; k < part.chunks; k += own.stride) {
                std::size_t const begin = std::size_t{k} * part.chunk_elements;
                take(b, part.offset + begin,
                     std::min<std::size_t>(part.chunk_elements, part.elements - begin));
            }
        }
    }
    std::size_t listed = 0;
    chunks.for_each(of, [&](std::size_t bucket, std::size_t offset, std::size_t elements, std::size_t place) {
        CHECK(place == chunks.place(of, bucket, offset));
        listed += elements;
    });
    CHECK(listed == combined);
    return combined;
}

/// What for_each says are the chunks that `mark` goes through, at the same places; adds up who is the lowest of each element.
void count_lowest(herring::plan const& of, handled_chunks const& chunks, std::size_t combined,
                  std::vector<int>& lowest) {
    std::size_t seen = 0;
    chunks.for_each(of, [&](std::size_t bucket, std::size_t offset, std::size_t elements, std::size_t place) {
        CHECK(place == chunks.place(of, bucket, offset));
        seen += elements;
        if (!chunks.is_lowest(of.buckets[bucket].path)) return;
        std::size_t const begin = of.buckets[bucket].offset + offset;
        for (std::size_t i = begin; i < begin + elements; ++i) ++lowest[i];
    });
    CHECK(seen == combined);
}

template <class Sharding> void holds(std::vector<int> const& nodes) {
    herring::topology const where(nodes);
    herring::plan of = plan_for<Sharding>(where);
    herring::detail::set_optimizer_bytes(of, where, 12);
    std::size_t least = ~std::size_t{0}, most = 0; // places of a rank
    std::size_t model = 0, all = 0;
    for (herring::bucket const& b : of.buckets) model += b.elements;
    bool two_hops_alone = true;
    for (herring::bucket const& b : of.buckets)
        two_hops_alone =
            two_hops_alone && (b.path == herring::route::two_hop || b.path == herring::route::local);
    std::vector<int> lowest(of.elements, 0);
    for (int rank = 0; rank < where.size(); ++rank) {
        int const node = where.node(rank);
        herring::chunk_stream const own{static_cast<std::uint32_t>(where.local_rank(rank)),
                                        static_cast<std::uint32_t>(where.local_size(node))};
        herring::server_id const server{node};
        handled_chunks const chunks(of, own, server);
        std::vector<int> room(chunks.elements(), 0);
        std::size_t const combined = mark(of, chunks, own, server, room);
        CHECK(std::ranges::none_of(room, [](int times) { return times > 1; })); // no place is of two chunks
        CHECK(combined <= chunks.elements());
        all += combined;
        least = std::min(least, chunks.elements());
        most = std::max(most, chunks.elements());
        count_lowest(of, chunks, combined, lowest);
    }
    for (herring::bucket const& b : of.buckets)
        CHECK(std::ranges::all_of(std::span(lowest).subspan(b.offset, b.elements),
                                  [](int ranks) { return ranks == 1; }));
    CHECK(all >= model); // nobody's chunk is without a place
    if (two_hops_alone) CHECK(all == model);
    CHECK(of.least_optimizer_bytes == 12 * least);
    CHECK(of.most_optimizer_bytes == 12 * most);
}

TEST_CASE("handled_chunks: by two levels each element has one rank, in each rack a share of every chunk") {
    for (int const local : {1, 3}) {
        std::vector<int> ids, racks;
        for (int r = 0; r < 6 * local; ++r) {
            ids.push_back(r / local);
            racks.push_back(r / local / 2);
        }
        herring::topology const where(ids, {}, {}, racks);
        herring::exchange_tuning const tuning{
            .chunk_bytes = 4096, .window_bytes = 16'384, .two_level_bytes = 1};
        herring::plan of = herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced>(
            sizes, where, 4, 4, tuning);
        herring::detail::set_optimizer_bytes(of, where, 12);
        std::vector<int> handled(of.elements, 0);
        std::size_t model = 0, most = 0;
        for (herring::bucket const& b : of.buckets) {
            CHECK((b.elements == 0 || b.path == herring::route::two_levels));
            model += b.elements;
        }
        for (int r = 0; r < where.size(); ++r) {
            handled_chunks const chunks(
                of, {static_cast<std::uint32_t>(where.local_rank(r)), static_cast<std::uint32_t>(local)},
                herring::server_id{where.node(r)});
            std::vector<int> room(chunks.elements());
            most = std::max(most, chunks.elements());
            chunks.for_each(of,
                            [&](std::size_t b, std::size_t offset, std::size_t elements, std::size_t place) {
                                CHECK(place == chunks.place(of, b, offset));
                                CHECK(chunks.is_lowest(of.buckets[b].path));
                                REQUIRE(place + elements <= room.size());
                                for (std::size_t i = 0; i < elements; ++i) {
                                    ++room[place + i];
                                    ++handled[of.buckets[b].offset + offset + i];
                                }
                            });
            for (int const here : room) CHECK(here <= 1);
        }
        CHECK(static_cast<std::size_t>(std::count(handled.begin(), handled.end(), 1)) == model);
        CHECK(of.most_optimizer_bytes == most * 12);
    }
}

} // namespace handled_chunks_test

using namespace handled_chunks_test;

TEST_CASE("handled_chunks: no two chunks have one place, on any shape of nodes") {
    for (std::vector<int> const& nodes : std::vector<std::vector<int>>{
             {0}, {0, 0}, {0, 0, 0}, {0, 1}, {0, 0, 1, 1}, {0, 1, 1, 2}, {0, 1, 2, 3, 4}}) {
        holds<herring::sharding::balanced>(nodes);
        holds<herring::sharding::whole_tensor>(nodes);
    }
}

TEST_CASE("handled_chunks: what an optimizer keeps is counted on the ranks that combine: on servers of their "
          "own, or by share") {
    std::size_t const large[] = {64 * 1024};
    std::vector<herring::role> of_ranks(4, herring::role::worker);
    for (int servers = 0; servers < 2; ++servers) of_ranks.push_back(herring::role::server);
    herring::topology const where({0, 1, 2, 3, 4, 5}, of_ranks);
    auto of = herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced,
                                 herring::placement::dedicated>(large, where, 4, 4, {.chunk_bytes = 4096});
    herring::detail::set_optimizer_bytes(of, where, 8);
    CHECK(of.least_optimizer_bytes == 8 * 32 * 1024); // of the servers: workers keep nothing
    CHECK(of.most_optimizer_bytes == 8 * 32 * 1024);
    of = herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced,
                            herring::placement::optimal>(large, where, 4, 4, {.chunk_bytes = 4096});
    herring::detail::set_optimizer_bytes(of, where, 8);
    CHECK(of.least_optimizer_bytes >= 8 * 64 * 1024 / 10 - 8 * 16);
    CHECK(of.least_optimizer_bytes <= 8 * 64 * 1024 / 10 + 8 * 2048);
    CHECK(of.most_optimizer_bytes >= 8 * 3 * 64 * 1024 / 10 - 8 * 16);
    CHECK(of.most_optimizer_bytes <= 8 * 3 * 64 * 1024 / 10 + 8 * 2048);
}
