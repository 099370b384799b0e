// herring: the order in which a rank pushes to servers of unequal shares: as far along with each. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_PUSH_ORDER_HPP
#define HERRING_ENGINE_PUSH_ORDER_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/model/roles.hpp"
#include "herring/plan/plan.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// Whether some servers have larger shares than others: only then pushes have to keep an order, for chunks in turn keep it else.
constexpr bool has_unequal_shares(roles const& of) noexcept {
    for (int const share : of.shares)
        if (share != of.shares.front()) return true;
    return false;
}

/// Where the chunks of one server stand in the order of all pushes: chunk k of a server's c in a bucket of m elements, with b
/// elements in the buckets before, stands at b + k·⌊m/c⌋. So what is behind a place is the same part of each server's share.
///
/// Servers differ in shares, not in windows: a rank that pushes wherever it has credit pushes as much to a small share as to a
/// large one, has soon done with the small ones, and leaves the rest of the time to the large ones' networks alone.
///
/// Shape:  a place follows from the plan and the calls, so all contributors have the same, whatever their local ranks are.
/// Cost:   O(shards) an execution, then O(1). A value of 32 bytes.
class push_order {
  public:
    /// Where the chunk under a cursor stands. `before`: elements of all networked executions before that of the cursor.
    std::uint64_t place(chunk_cursor const& at, execution const& e, std::uint64_t before) noexcept {
        if (at.at != execution_) {
            execution_ = at.at;
            shard_ = chunks_ = 0;
            std::uint64_t all = 0;
            for (std::uint32_t s = 0; s < e.shard_count; ++s)
                if (e.shards[s].server == at.server) all += e.shards[s].chunks;
            step_ = all > 0 ? e.elements / all : 0;
        }
        for (; shard_ < at.shard; ++shard_)
            if (e.shards[shard_].server == at.server) chunks_ += e.shards[shard_].chunks;
        return before + step_ * (chunks_ + at.number(e.shards[at.shard]));
    }
    /// Elements of the order from one chunk of the execution to the next one that this rank pushes.
    std::uint64_t stride(chunk_stream const& of) const noexcept { return step_ * of.stride; }

  private:
    std::uint64_t execution_ = ~std::uint64_t{0};
    std::uint64_t step_ = 0;   // elements of the bucket for each chunk of the server
    std::uint32_t shard_ = 0;  // under the cursor, last time
    std::uint32_t chunks_ = 0; // of the server, in the shards before
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_PUSH_ORDER_HPP
