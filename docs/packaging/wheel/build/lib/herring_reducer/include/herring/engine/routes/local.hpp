// herring: the route of a bucket on one node: local ranks combine each other's memory in place.
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

/// In place: every local rank combines its chunks of all ranks' memories into the memories of the ranks that
/// take results; then all ranks wait for each other.
///
/// Lent: where all ranks copied the bucket from the caller's memory, the operation may have each rank read
/// the needed parts of the other ranks' copies (`lending`). On a node of two ranks that swap, each keeps the
/// other's place for a later copy: one wait in place of two, and no copy out. Such a place is in the reader's
/// cache already, so the operation writes the next piece there at once, if it is known.
///
/// Cost:   in place, a sum reads each rank's bytes once and writes them once. Swapped, the bucket is copied
///         once, and the sum reads and writes it once.
/// Memory: `memory_bytes(executions)` of every rank's region.
template <class Core> class local_route {
  public:
    /// `memory`: in this rank's region, which the other local ranks read; nullptr without other local ranks.
    local_route(Core& core, std::byte* memory) noexcept
        : shared_(core), declared_(reinterpret_cast<declaration*>(memory)),
          own_(core.who.own_chunks(), server_id{0}) {}

    static constexpr std::size_t memory_bytes(std::size_t executions) noexcept {
        return round_up(std::bit_ceil(executions + 1) * sizeof(declaration), 4096);
    }

    static constexpr std::uint32_t cursors() noexcept { return 1; }

    /// Declares to the other local ranks what execution `number` is and where this rank's part lies, before
    /// this rank arrives at it. Not needed for executions by mailbox, which `differs` skips.
    void declare(execution const& e, std::uint64_t number) noexcept {
        if (shared_.who.local_size > 1)
            declared_[number & shared_.ledger.mask()] = {stamp_of(e, number), e.own - region(home_of(e)),
                                                         home_of(e), e.lent != nullptr};
    }

    /// Compares the declarations of execution `number`, after all local ranks have arrived at it. Returns a
    /// local rank whose declaration differs, or −1; then the places of all parts are known. A declaration
    /// stays until this rank has released the execution. Executions by mailbox are not compared: mailboxes
    /// have stamps.
    int differs(execution& e, std::uint64_t number) noexcept {
        if (shared_.who.local_size == 1 || e.path == route::mailbox) return -1;
        bool all_lent = e.path == route::local;
        for (int l = 0; l < shared_.who.local_size; ++l) {
            declaration const theirs = declaration_of(l, number);
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

    /// Returns what a local rank has declared of an execution that differs.
    std::uint64_t stamp_of_rank(int l, std::uint64_t number) const noexcept {
        return declaration_of(l, number).what;
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
                combining_ = false; // the wanted work is done
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
        bool lent; // the whole part is a copy of the caller's memory
    };

    declaration declaration_of(int l, std::uint64_t number) const noexcept {
        auto* const mine = reinterpret_cast<std::byte*>(&declared_[number & shared_.ledger.mask()]);
        declaration theirs;
        std::memcpy(&theirs, shared_.node.peer(l, mine), sizeof theirs);
        return theirs;
    }
    int home_of(execution const& e) const noexcept { return e.home < 0 ? shared_.who.local : e.home; }
    std::byte* region(int of_local) const noexcept {
        return shared_.node.peer(of_local, shared_.node.memory());
    }

    void end_lent(execution& e) noexcept {
        shared_.ledger.handled_all(own_.at);
        if (e.how != lending::swap) return;
        int const other = 1 - shared_.who.local;
        e.own += e.local_offsets[other];
        e.home = declaration_of(other, own_.at).home;
    }

    Core& shared_;
    declaration* declared_;
    chunk_cursor own_;       // over this rank's chunks
    bool combining_ = false; // the chunk, or lent bucket, under the cursor
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_LOCAL_HPP
