// herring: the route of a bucket on one node, in place: where the ranks' parts lie, and who combines what for whom.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_LOCAL_HPP
#define HERRING_ENGINE_ROUTES_LOCAL_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/operation.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// In place: every local rank combines its chunks of all memories, in the memories of those who take results; then all wait
/// for all.
/// Lent: where all copied the bucket from memory of the caller's, the operation may have each rank read what it needs from
/// the others' copies (`lending`). On a node of two that swap, each keeps the other's place for a later copy: one wait in
/// place of two, and no copy out. A place that its reader writes next is in that reader's cache already: the operation itself
/// writes there what comes next, where that is known.
///
/// Cost:   a sum, in place: each rank's bytes read once and written once. Swapped: the bucket is copied once, and read and
///         written once by the sum.
/// Memory: `memory_bytes(executions)` of every rank's region.
template <class Core> class local_route {
  public:
    /// `memory`: in this rank's region, where the others look too; nullptr where there are no others.
    local_route(Core& core, std::byte* memory) noexcept
        : shared_(core), declared_(reinterpret_cast<declaration*>(memory)),
          own_(core.who.own_chunks(), server_id{0}) {}

    static constexpr std::size_t memory_bytes(std::size_t executions) noexcept {
        return round_up(std::bit_ceil(executions + 1) * sizeof(declaration), 4096);
    }

    static constexpr std::uint32_t cursors() noexcept { return 1; }

    /// Says to the other local ranks what execution `number` is and where this rank's part lies, before it arrives at it. What
    /// takes mailboxes need not say so: `differs` does not look.
    void declare(execution const& e, std::uint64_t number) noexcept {
        if (shared_.who.local_size > 1)
            declared_[number & shared_.ledger.mask()] = {stamp_of(e, number), e.own - region(home_of(e)),
                                                         home_of(e), e.lent != nullptr};
    }

    /// Once all have arrived at execution `number`: a local rank that takes it for something else, or −1; then it is known where
    /// their parts lie. What is declared stays until this rank has released the execution, but for mailboxes, which have
    /// stamps of their own.
    int differs(execution& e, std::uint64_t number) noexcept {
        if (shared_.who.local_size == 1 || e.path == route::mailbox) return -1;
        bool all_lent = e.path == route::local;
        auto* const mine = reinterpret_cast<std::byte*>(&declared_[number & shared_.ledger.mask()]);
        for (int l = 0; l < shared_.who.local_size; ++l) {
            declaration theirs;
            std::memcpy(&theirs, shared_.node.peer(l, mine), sizeof theirs);
            if (theirs.what != stamp_of(e, number)) return l;
            e.local_offsets[l] = region(theirs.home) + theirs.place - e.own;
            all_lent = all_lent && theirs.lent;
        }
        e.how = all_lent ? shared_.traffic.with(
                               e.operation, [](auto const& of) { return std::decay_t<decltype(of)>::lends; })
                         : lending::none;
        bool const two = shared_.who.local_size == 2;
        if (e.how == lending::swap && !two) e.how = lending::none;
        if (e.how == lending::swap_or_read) e.how = two ? lending::swap : lending::read;
        return -1;
    }

    std::size_t step(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        for (; own_.at < shared_.ledger.all_arrived(); own_.next_execution()) {
            execution& e = shared_.ledger.at(own_.at);
            if (e.path != route::local) continue;
            if (e.device_sum != nullptr) {
                shared_.ledger.handled_all(own_.at);
            } else if (e.how != lending::none) {
                if (!std::exchange(combining_, true)) {
                    wanted.combine_all_lent(own_.at);
                    return progress;
                }
                combining_ = false; // it was wanted, and is done
                end_lent(e);
            } else {
                if (std::exchange(combining_, false)) {
                    shared_.ledger.handled(own_.at);
                    own_.next_chunk();
                }
                if (own_.settle(e)) {
                    combining_ = true;
                    wanted.combine_parts(own_.at, own_.here(e), {});
                    return progress;
                }
            }
            shared_.ledger.done(own_.at);
            ++progress;
        }
        return progress;
    }

  private:
    struct declaration {
        std::uint64_t what;   // a stamp
        std::ptrdiff_t place; // of the bucket in the region of local rank `home`
        std::int32_t home;
        bool lent; // all of it is a copy from memory of the caller's
    };

    int home_of(execution const& e) const noexcept { return e.home < 0 ? shared_.who.local : e.home; }
    std::byte* region(int of_local) const noexcept {
        return shared_.node.peer(of_local, shared_.node.memory());
    }

    void end_lent(execution& e) noexcept {
        shared_.ledger.handled_all(own_.at);
        if (e.how != lending::swap) return;
        int const other = 1 - shared_.who.local;
        declaration swapped;
        auto* const mine = reinterpret_cast<std::byte*>(&declared_[own_.at & shared_.ledger.mask()]);
        std::memcpy(&swapped, shared_.node.peer(other, mine), sizeof swapped);
        e.own += e.local_offsets[other];
        e.home = swapped.home;
    }

    Core& shared_;
    declaration* declared_;
    chunk_cursor own_;       // this rank's chunks, of the next execution
    bool combining_ = false; // what is under the cursor
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_LOCAL_HPP
