// herring: tests of plan/collective_division.hpp: shards of owners, against brute force.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/collective_division.hpp"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

using namespace herring;

TEST_CASE("owned: each rank's range is a shard of its own, whose chunks cover it, on its node") {
    for (auto const& nodes :
         std::vector<std::vector<int>>{{0}, {0, 0, 0}, {0, 1, 2}, {0, 1, 0, 1}, {0, 1, 1}})
        for (std::size_t elements :
             {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{100}, std::size_t{5000}}) {
            topology const map(nodes);
            exchange_tuning const tuning{.chunk_bytes = 1024,
                                         .window_bytes = 4096,
                                         .one_hop_bytes = 64,
                                         .local_chunk_bytes = 512,
                                         .mailbox_bytes = 64};
            plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
                std::vector<std::size_t>{}, map, 4, 4, tuning);
            std::vector<range> owned;
            for (int r = 0; r < map.size(); ++r) owned.push_back(owned_range(elements, r, map.size()));
            for (bool const slotted : {true, false}) {
                bucket b;
                std::vector<shard> shards(7); // what was there before goes
                detail::divide_owned(b, elements, owned, slotted, of, map, shards);
                CHECK(b.elements == elements);
                CHECK(b.shards == shards.size());
                CHECK(b.path == detail::route_of(elements, owned, slotted, of));
                std::size_t covered = 0, chunks = 0;
                for (shard const& s : shards) {
                    chunks += s.chunks;
                    if (b.path == route::one_hop) {
                        CHECK(s.owner == -1);
                        CHECK(s.server.value == -1);
                        covered += s.elements;
                        continue;
                    }
                    int const rank = map.rank_of(map.nodes() > 1 ? of.roles.node_of(s.server) : 0, s.owner);
                    CHECK(owned[static_cast<std::size_t>(rank)] == range{s.offset, s.elements});
                    // What lies in no slot, as what is gathered over the network, comes in twice as much at a time.
                    std::size_t const most = map.nodes() == 1 ? 512 : slotted ? 1024 : 2048;
                    CHECK(s.chunk_elements * 4 <= most);
                    CHECK(s.chunk_elements * s.chunks >= s.elements);
                    CHECK(s.chunks == detail::divide_up(s.elements * 4, most));
                    covered += s.elements;
                }
                CHECK(covered == elements);
                CHECK(chunks == b.chunks);
            }
        }
}

TEST_CASE("owned: ranges of a piece are padded only where owners write them at the same time") {
    topology const map = topology::uniform(64, 8);
    plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
        std::vector<std::size_t>{}, map, 4, 4, {.one_hop_bytes = 16 << 10});
    REQUIRE(of.line_elements == 16);
    for (std::size_t const each : {1u, 2u, 7u, 8u, 9u, 16u, 17u}) {
        std::vector<range> owned(512, range{~std::size_t{0}, each});
        owned.back().elements = each - 1; // as the ranges of the last ranks may be
        std::size_t const stride = detail::round_up(each, of.line_elements);
        std::size_t const elements = detail::place_owned(owned, stride, true, of);
        bool const one_hop = 512 * each - 1 <= 4096;
        CHECK(elements == (one_hop ? 512 * each - 1 : 512 * stride));
        for (std::size_t r = 0; r < owned.size(); ++r) {
            CHECK(owned[r].offset == r * (one_hop ? each : stride));
            CHECK(owned[r].elements == each - (r + 1 == owned.size()));
        }
        bucket b;
        std::vector<shard> shards;
        detail::divide_owned(b, elements, owned, true, of, map, shards);
        CHECK(b.path == (one_hop ? route::one_hop : route::two_hop));
        CHECK(shards.size() == (one_hop ? 1u : each > 1 ? 512u : 511u));
    }
    // On one node small pieces pass mailboxes, whole; larger ones are handled by their owners.
    plan const node = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
        std::vector<std::size_t>{}, topology::uniform(1, 4), 4, 4, {.mailbox_bytes = 64});
    for (std::size_t const each : {4u, 5u}) {
        std::vector<range> owned(4, range{0, each});
        CHECK(detail::place_owned(owned, 16, true, node) == (each == 4 ? 16 : 64));
        CHECK(owned[3] == range{each == 4 ? 12u : 48u, each});
    }
}

TEST_CASE("owned: one hop as long as a node's share fits a slot, where nodes have one rank") {
    auto const divided = [](topology const& map, std::size_t elements, bool alone_large = false) {
        plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
            std::vector<std::size_t>{}, map, 4, 4, {.chunk_bytes = 8 << 10, .one_hop_bytes = 4 << 10});
        std::vector<range> owned;
        for (int r = 0; r < map.size(); ++r) owned.push_back(owned_range(elements, r, map.size()));
        if (alone_large) { // one rank owns all but an element of each other
            std::size_t next = 0;
            for (range& one : owned) {
                one = {next, &one == &owned[1] ? elements - owned.size() + 1 : 1};
                next = one.end();
            }
        }
        bucket b;
        std::vector<shard> shards;
        detail::divide_owned(b, elements, owned, true, of, map, shards);
        return b;
    };
    topology const apart = topology::uniform(4, 1), shared = topology::uniform(2, 2);
    CHECK(divided(apart, 1024).path == route::one_hop);
    CHECK(divided(apart, 4096).path == route::one_hop); // 4 KiB a rank
    CHECK(divided(apart, 4096).chunks == 1);            // 3 messages of a rank
    CHECK(divided(apart, 4097).path == route::two_hop);
    CHECK(divided(apart, 4096, true).path == route::two_hop);
    CHECK(divided(shared, 1024).path == route::one_hop);
    CHECK(divided(shared, 4096).path == route::two_hop);
}

TEST_CASE("owned: no node sends more of a chunk by one hop than a slot holds, at any limit and size") {
    for (auto const& nodes : std::vector<std::vector<int>>{{0, 1}, {0, 1, 2}, {0, 0, 1, 1}, {0, 1, 0, 1}})
        for (std::size_t const hop : {2048u, 9000u, 40'000u})
            for (std::size_t const elements : {1u, 513u, 2047u, 2048u, 2049u, 3075u, 10'001u}) {
                topology const map(nodes);
                plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
                    std::vector<std::size_t>{}, map, 4, 4,
                    {.chunk_bytes = 4096, .window_bytes = 12'288, .one_hop_bytes = hop});
                std::vector<range> owned;
                for (int r = 0; r < map.size(); ++r) owned.push_back(owned_range(elements, r, map.size()));
                bucket b;
                std::vector<shard> shards;
                detail::divide_owned(b, elements, owned, true, of, map, shards);
                if (b.path != route::one_hop) continue;
                for (shard const& s : shards)
                    for (std::size_t k = 0; k < s.chunks; ++k) {
                        range const chunk =
                            intersection({s.offset + k * s.chunk_elements, s.chunk_elements}, {0, elements});
                        for (int n = 0; n < map.nodes(); ++n) { // the least range that has what its ranks own
                            std::size_t from = elements, to = 0;
                            for (int const rank : map.members(n)) {
                                range const one = intersection(owned[static_cast<std::size_t>(rank)], chunk);
                                if (one.elements == 0) continue;
                                from = std::min(from, one.offset);
                                to = std::max(to, one.end());
                            }
                            if (from < to) CHECK(to - from <= of.hop_slot_elements());
                        }
                    }
            }
}

TEST_CASE("owned: what is gathered takes dissemination by the size of a node's part") {
    auto const divided = [](int local, std::size_t elements, bool slotted) {
        topology const map = topology::uniform(8, local);
        plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
            std::vector<std::size_t>{}, map, 4, 4,
            {.chunk_bytes = 1024,
             .one_hop_bytes = 512,
             .message_ns = 1000,
             .latency_ns = 1,
             .dissemination_bytes = 4096});
        std::vector<range> owned;
        for (int r = 0; r < map.size(); ++r) owned.push_back(owned_range(elements, r, map.size()));
        bucket b;
        std::vector<shard> shards;
        detail::divide_owned(b, elements, owned, slotted, of, map, shards);
        if (b.path == route::dissemination) {
            CHECK(b.chunks <= static_cast<std::uint32_t>(local)); // one for each rank of a node
            REQUIRE(shards.size() == 1);
            CHECK(shards[0].owner == -1);
            CHECK(shards[0].elements == elements);
        }
        return b.path;
    };
    CHECK(divided(1, 1, false) == route::dissemination);
    CHECK(divided(1, 8 * 1024, false) == route::dissemination); // 4 KiB of each node
    CHECK(divided(1, 8 * 1024 + 1, false) == route::two_hop);
    CHECK(divided(2, 1024, false) == route::dissemination); // nodes' ranges may be interleaved
    CHECK(divided(2, 1025, false) == route::two_hop);
    CHECK(divided(1, 64, true) == route::one_hop); // parts differ from one receiver to the other
    CHECK(divided(1, 0, false) != route::dissemination);
}

TEST_CASE("owned: where workers do not serve, each range is cut for the servers in rotation, and belongs to "
          "its owner") {
    for (auto const& [ids, letters] :
         std::vector<std::pair<std::vector<int>, std::string>>{{{0, 1}, "ws"},
                                                               {{0, 1, 1, 2, 2}, "swwsw"},
                                                               {{0, 0, 0, 1, 2, 3}, "wwwsss"},
                                                               {{0, 1, 2, 3, 4, 5, 6}, "wwwwsss"}})
        for (std::size_t elements : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{100},
                                     std::size_t{5000}, std::size_t{100'003}}) {
            std::vector<role> roles;
            for (char const c : letters) roles.push_back(c == 's' ? role::server : role::worker);
            topology const map(ids, roles);
            plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::dedicated>(
                std::vector<std::size_t>{}, map, 4, 4,
                {.chunk_bytes = 1024, .window_bytes = 4096, .one_hop_bytes = 64});
            CHECK_FALSE(of.contributors_serve());
            std::vector<range> owned;
            for (int r = 0; r < map.size(); ++r)
                owned.push_back(map.is_server(r) ? range{elements, 0}
                                                 : owned_range(elements, map.worker(r), map.workers()));
            bucket b;
            std::vector<shard> shards;
            detail::divide_owned(b, elements, owned, false, of, map, shards);
            CHECK(b.path == route::two_hop);
            CHECK(shards.size() <= detail::most_owned_shards(of, map));
            std::vector<std::size_t> load(static_cast<std::size_t>(map.servers()));
            std::size_t at = 0;
            std::uint32_t chunks = 0;
            for (shard const& s : shards) {
                CHECK(s.offset == at);
                at += s.elements;
                CHECK(s.first_chunk == chunks);
                chunks += s.chunks;
                CHECK(s.chunk_elements * 4 <= 1024); // parts come, which lie in slots
                load[s.server.place()] += s.elements;
                int owner = 0;
                while (owned[static_cast<std::size_t>(owner)].elements == 0 ||
                       s.offset >= owned[static_cast<std::size_t>(owner)].end())
                    ++owner;
                CHECK(s.offset + s.elements <= owned[static_cast<std::size_t>(owner)].end());
                CHECK(s.owner == map.local_rank(owner));
            }
            CHECK(at == elements);
            CHECK(chunks == b.chunks);
            auto const [least, most] = std::minmax_element(load.begin(), load.end());
            CHECK(*most - *least <= 256 + 16 * shards.size()); // a chunk, and a line for each cut
        }
}

TEST_CASE(
    "owned: by placement::optimal owners combine what they own: no worker sends or gets more than it must") {
    for (int workers = 3; workers <= 6; ++workers)
        for (int servers = 1; servers < workers; ++servers) {
            CAPTURE(workers);
            CAPTURE(servers);
            std::vector<int> ids;
            std::vector<role> roles;
            for (int r = 0; r < workers + servers; ++r) {
                ids.push_back(r);
                roles.push_back(r < workers ? role::worker : role::server);
            }
            topology const map(ids, roles);
            plan const of = make_plan<fusion::per_tensor, sharding::balanced, placement::optimal>(
                std::vector<std::size_t>{}, map, 4, 4, {.chunk_bytes = 1024});
            REQUIRE(of.contributors_serve());
            std::size_t const elements = 60'000;
            std::vector<range> owned;
            for (int r = 0; r < map.size(); ++r)
                owned.push_back(map.is_server(r) ? range{elements, 0}
                                                 : owned_range(elements, map.worker(r), workers));
            detail::place_owned(owned, 60'000 / 3 + 16, true, of);
            bucket b;
            std::vector<shard> shards;
            detail::divide_owned(b, owned.back().end(), owned, true, of, map, shards);
            REQUIRE(b.path == route::two_hop);
            std::vector<std::size_t> combined(static_cast<std::size_t>(map.nodes()));
            for (shard const& s : shards)
                combined[static_cast<std::size_t>(of.roles.node_of(s.server))] += s.elements;
            for (int r = 0; r < workers; ++r) {
                std::size_t const own = owned[static_cast<std::size_t>(r)].elements;
                // What others own has to leave a worker that reduces and scatters, and to reach one that gathers, whoever combines.
                std::size_t const must = elements - own;
                std::size_t const sent = elements - combined[static_cast<std::size_t>(r)],
                                  got = static_cast<std::size_t>(workers - 1) *
                                        combined[static_cast<std::size_t>(r)];
                CHECK(sent == must);
                CHECK(got <= must + static_cast<std::size_t>(workers));
            }
            for (int r = workers; r < map.size(); ++r) CHECK(combined[static_cast<std::size_t>(r)] == 0);
        }
}
