// herring: tests of session/norm_tables.hpp: whose rows there are, who gets them, and the order in which they are added up.
// SPDX-License-Identifier: Apache-2.0
#include "herring/session/norm_tables.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/plan/plan.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

using namespace herring;
using detail::norm_tables;

namespace {

/// Ranks 0 and 2 share node "a", 3 is a node, 1 and 4 are servers.
topology const map =
    topology::of_names(std::vector<std::string>{"a", "s", "a", "b", "s"},
                       std::vector{role::worker, role::server, role::worker, role::worker, role::server});

/// The same with a third node of workers and one server: by `optimal` all of them serve.
topology const all_serve =
    topology::of_names(std::vector<std::string>{"a", "s", "a", "b", "c"},
                       std::vector{role::worker, role::server, role::worker, role::worker, role::worker});

template <class Placement> plan plan_of(topology const& on) {
    return make_plan<fusion::per_tensor, sharding::balanced, Placement>(
        std::vector<std::size_t>{1000}, on, 4, 4, {.chunk_bytes = 4096, .window_bytes = 8192});
}

/// Of one rank, with memory of its own.
template <class Placement> struct tables_of {
    topology const& on;
    plan of = plan_of<Placement>(on);
    std::vector<std::byte> memory;
    norm_tables tables;

    tables_of(topology const& ranks, int rank, std::size_t numbers)
        : on(ranks), memory(norm_tables::bytes(of.roles, on, numbers)) {
        tables.open(memory, of, on, rank, numbers);
    }
};

} // namespace

TEST_CASE("norm_tables: where servers are nodes of their own alone, there are rows of these") {
    tables_of<placement::dedicated> worker(map, 2, 6), server(map, 4, 6);
    CHECK(worker.memory.size() == 3 * 6 * sizeof(double));
    REQUIRE(worker.tables.any());
    CHECK(worker.tables.own(6).empty());
    CHECK(server.tables.own(6).data() == reinterpret_cast<double*>(server.memory.data()) + 6);
    CHECK(server.tables.own(1).data() == reinterpret_cast<double*>(server.memory.data()) + 1);

    execution const rows = server.tables.gather(3, 6);
    CHECK(rows.operation == 3);
    CHECK(rows.path == route::two_hop);
    CHECK(rows.own == server.memory.data());
    CHECK(rows.elements == 2 * 6 * 2); // a number is two elements
    REQUIRE(rows.shard_count == 2);
    for (std::uint32_t s = 0; s < 2; ++s) {
        CHECK(rows.shards[s].server.value == static_cast<int>(s));
        CHECK(rows.shards[s].owner == 0);
        CHECK(rows.shards[s].offset == s * 12);
        CHECK(rows.shards[s].elements == 12);
    }
    execution const sums = server.tables.tell(3, 6);
    CHECK(sums.own == server.memory.data() + 12 * sizeof(double));
    REQUIRE(sums.shard_count == 2);
    for (std::uint32_t s = 0; s < 2; ++s) {
        CHECK(sums.shards[s].server.value == static_cast<int>(s));
        CHECK(sums.shards[s].owner == -1);
        CHECK(sums.shards[s].offset == 0); // each gets all
        CHECK(sums.shards[s].elements == 12);
    }
    CHECK(rows.fingerprint != sums.fingerprint);
    CHECK(server.tables.gather(3, 1).fingerprint != rows.fingerprint);
}

TEST_CASE(
    "norm_tables: where workers serve too, each rank has a row, and the server alone is told the sums") {
    tables_of<placement::optimal> worker(all_serve, 2, 1);
    execution const rows = worker.tables.gather(3, 1);
    REQUIRE(rows.shard_count == 5);
    int const owners[] = {0, 0, 1, 0, 0}, servers[] = {0, 1, 0, 2, 3};
    for (std::uint32_t r = 0; r < 5; ++r) {
        CHECK(rows.shards[r].owner == owners[r]);
        CHECK(rows.shards[r].server.value == servers[r]);
    }
    execution const sums = worker.tables.tell(3, 1);
    REQUIRE(sums.shard_count == 1);
    CHECK(sums.shards[0].server.value == 1);
    CHECK(worker.tables.own(1).data() == reinterpret_cast<double*>(worker.memory.data()) + 2);
}

TEST_CASE("norm_tables: rows are added up in the order of ranks") {
    tables_of<placement::optimal> here(all_serve, 0, 2);
    auto* const table = reinterpret_cast<double*>(here.memory.data());
    // In another order the small ones were lost, or were not.
    double const rows[] = {0x1p53, 1, 1, 2, -0x1p53, 4, 1, 8, 0, 16};
    std::copy(std::begin(rows), std::end(rows), table);
    here.tables.add_up(2);
    CHECK(here.tables.sums(2)[0] == 1);
    CHECK(here.tables.sums(2)[1] == 31);
}

TEST_CASE("norm_tables: long rows are cut, so that a push of sums fits a slot") {
    tables_of<placement::dedicated> here(map, 1, 2000); // 16,000 bytes, and chunks of 4096
    for (execution const& e : {here.tables.gather(3, 2000), here.tables.tell(3, 2000)})
        for (std::uint32_t s = 0; s < e.shard_count; ++s) {
            CHECK(e.shards[s].chunk_elements <= here.of.slot_elements());
            CHECK(e.shards[s].chunk_elements % here.of.line_elements == 0);
            CHECK(e.shards[s].chunks >= 4);
            CHECK((e.shards[s].chunks - 1) * e.shards[s].chunk_elements < 4000);
            CHECK(e.shards[s].chunks * e.shards[s].chunk_elements >= 4000);
        }
}

TEST_CASE("norm_tables: without servers of their own there are none") {
    topology const workers = topology::uniform(3, 1);
    plan const of = plan_of<placement::optimal>(workers);
    CHECK(norm_tables::bytes(of.roles, workers, 6) == 0);
    norm_tables none;
    none.open({}, of, workers, 0, 6);
    CHECK_FALSE(none.any());
}
