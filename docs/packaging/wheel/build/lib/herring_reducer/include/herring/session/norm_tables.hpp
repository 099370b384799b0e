// herring: norms where servers are nodes of their own: a rank's tables, and their executions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_NORM_TABLES_HPP
#define HERRING_SESSION_NORM_TABLES_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/messages.hpp"
#include "herring/model/roles.hpp"
#include "herring/model/topology.hpp"
#include "herring/plan/plan.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// A table with a row of numbers for each rank that combines chunks, in the order of ranks, and the sums of
/// its columns. A step exchanges one number of each rank, then as many as `open` was given. Servers of their
/// own are connected with workers alone, so workers get all rows, by one execution, and add them up; by a
/// second one servers get the sums.
///
/// Bits:     the same on all ranks: rows are added in the order of ranks. Without rows of ranks that combine
///           nothing, which would be 0.
/// Memory:   (ranks that combine + 1) · numbers · 8 bytes, in the region; O(those ranks · chunks of a row)
///           for the executions.
/// Lifetime: of the session; the memory is the region's.
class norm_tables {
  public:
    /// Bytes of the table and the sums; 0: no server is a node of its own, and no rank needs them.
    HERRING_SETUP static std::size_t bytes(roles const& nodes, topology const& map, std::size_t numbers) {
        return has_servers(nodes) ? (rows_of(nodes, map) + 1) * numbers * sizeof(double) : 0;
    }

    HERRING_SETUP void open(std::span<std::byte> memory, plan const& of, topology const& map, int rank,
                            std::size_t numbers) {
        if (memory.empty()) return;
        rows_ = rows_of(of.roles, map);
        table_ = reinterpret_cast<double*>(memory.data());
        sums_ = table_ + rows_ * numbers;
        own_ = combines(of.roles, map, rank) ? row_of(of.roles, map, rank) : rows_;
        elements_ = sizeof(double) / of.element_bytes;
        rounds_[0] = round_of(of, map, 1);
        if (numbers > 1) rounds_[1] = round_of(of, map, numbers);
    }

    /// True if there are servers that are nodes of their own.
    bool any() const noexcept { return table_ != nullptr; }

    // The sums of `count` numbers of each rank: 1, or as many as `open` was given.

    /// Where this rank writes its row, before `rows`; empty: it combines nothing.
    std::span<double> own(std::size_t count) noexcept {
        if (own_ == rows_) return {};
        return {table_ + own_ * count, count};
    }
    std::span<double const> sums(std::size_t count) const noexcept { return {sums_, count}; }
    /// A worker has all rows.
    void add_up(std::size_t count) noexcept {
        for (std::size_t i = 0; i < count; ++i) {
            sums_[i] = table_[i];
            for (std::size_t r = 1; r < rows_; ++r) sums_[i] += table_[r * count + i];
        }
    }

    /// Brings all rows to all workers.
    execution gather(std::uint8_t operation, std::size_t count) noexcept {
        return of_round(operation, rounds_[count > 1].rows, table_, rows_ * count, count, 0);
    }
    /// Brings the sums of each worker to all servers that are nodes of their own.
    execution tell(std::uint8_t operation, std::size_t count) noexcept {
        return of_round(operation, rounds_[count > 1].sums, sums_, count, count, 1);
    }

  private:
    struct round {
        std::vector<shard> rows; // one a row, of its rank
        std::vector<shard> sums; // one a server, of all sums
    };

    static bool is_dedicated(roles const& nodes, int node) noexcept {
        return nodes.server(node).value >= 0 && nodes.contributor(node).value < 0;
    }
    HERRING_SETUP static bool has_servers(roles const& nodes) {
        for (int const node : nodes.servers)
            if (is_dedicated(nodes, node)) return true;
        return false;
    }
    static bool combines(roles const& nodes, topology const& map, int rank) noexcept {
        return nodes.server(map.node(rank)).value >= 0;
    }
    HERRING_SETUP static std::size_t row_of(roles const& nodes, topology const& map, int rank) {
        std::size_t before = 0;
        for (int r = 0; r < rank; ++r) before += combines(nodes, map, r);
        return before;
    }
    HERRING_SETUP static std::size_t rows_of(roles const& nodes, topology const& map) {
        return row_of(nodes, map, map.size());
    }

    HERRING_SETUP round round_of(plan const& of, topology const& map, std::size_t count) const {
        round made;
        std::uint32_t chunks = 0;
        auto const add = [&](std::vector<shard>& to, std::size_t row, server_id server, int owner,
                             int dealt_to) {
            shard one = cut(row * count * elements_, count * elements_, server, of.slot_elements(),
                            of.line_elements, dealt_to);
            one.owner = owner;
            one.first_chunk = chunks;
            chunks += one.chunks;
            to.push_back(one);
        };
        for (int r = 0; r < map.size(); ++r)
            if (combines(of.roles, map, r))
                add(made.rows, made.rows.size(), of.roles.server(map.node(r)), map.local_rank(r), 1);
        chunks = 0;
        for (std::size_t s = 0; s < of.roles.servers.size(); ++s)
            if (is_dedicated(of.roles, of.roles.servers[s]))
                add(made.sums, 0, server_id::at(s), -1, of.largest_node);
        return made;
    }

    execution of_round(std::uint8_t operation, std::vector<shard> const& shards, double* at,
                       std::size_t numbers, std::size_t count, std::uint64_t half) const noexcept {
        std::size_t const elements = numbers * elements_;
        return {.shards = shards.data(),
                .shard_count = static_cast<std::uint32_t>(shards.size()),
                .path = route::two_hop,
                .operation = operation,
                .own = reinterpret_cast<std::byte*>(at),
                .elements = elements,
                .fingerprint = fingerprint_of(elements, 0x6e6f'726d'73 + 2 * (count > 1) + half),
                .label = no_bucket,
                .name = "wait"};
    }

    double* table_ = nullptr;
    double* sums_ = nullptr;
    std::size_t rows_ = 0;
    std::size_t own_ = 0;      // this rank's row; rows_: none
    std::size_t elements_ = 1; // of the reducer, in a number
    round rounds_[2];          // of one number of each rank, and of as many as `open` was given
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_NORM_TABLES_HPP
