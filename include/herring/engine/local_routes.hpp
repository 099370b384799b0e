// herring: the routes of a bucket on one node: through mailboxes when small, in place else.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_LOCAL_ROUTES_HPP
#define HERRING_ENGINE_LOCAL_ROUTES_HPP

#include "herring/base/config.hpp"
#include "herring/engine/context.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Local: every local rank sums its chunks of all memories, in all memories; then all wait for all.
/// Mailbox: every local rank copies its part to a mailbox and sums all mailboxes for itself; one wait instead of two.
/// Exchange: the local route of two ranks that both copied the bucket from memory of the caller's: each sums the other's
/// copy and its own memory into its own memory, and keeps the other's place for a later copy. One wait instead of two, and
/// no copy out. A place that its reader writes next is in that reader's cache already: the sum itself writes there what comes
/// next, where that is known.
///
/// Cost: local: each rank's bytes read once and written once. Mailbox: L·(L + 2) times the bucket, which is small.
///       Exchange, a rank: the bucket is copied once, and read and written once by the sum.
template <class Context> class local_routes {
  public:
    /// `memory`: `memory_bytes(executions, mailbox_bytes)` of this rank's region, where the others look too; nullptr where
    /// there are no others.
    local_routes(Context& context, std::size_t mailbox_bytes, std::byte* memory) noexcept
        : shared_(context), bytes_(mailbox_bytes), declared_(reinterpret_cast<declaration*>(memory)),
          mailboxes_(memory == nullptr ? nullptr : memory + declared_bytes(context.ring_mask + 1)) {}

    static constexpr std::size_t memory_bytes(std::size_t executions, std::size_t mailbox) noexcept {
        return declared_bytes(std::bit_ceil(executions + 1)) + shift + mailbox_count * (mailbox + spacing);
    }

    /// Says to the other local ranks what execution `number` is and where this rank's part lies, before it arrives at it.
    void declare(execution const& e, std::uint64_t number) noexcept {
        if (shared_.local_size > 1)
            declared_[number & shared_.ring_mask] = {stamp_of(e, number), e.own - region(home_of(e)),
                                                     home_of(e), e.lent != nullptr};
    }

    /// Once all have arrived at execution `number`: a local rank that takes it for something else, or −1; then it is known where
    /// their parts lie. What is declared stays until this rank has released the execution, but for mailboxes, which have
    /// stamps of their own.
    int differs(execution& e, std::uint64_t number) noexcept {
        if (shared_.local_size == 1 || e.path == route::mailbox) return -1;
        e.exchanged = e.path == route::local && shared_.local_size == 2;
        auto* const mine = reinterpret_cast<std::byte*>(&declared_[number & shared_.ring_mask]);
        for (int l = 0; l < shared_.local_size; ++l) {
            declaration theirs;
            std::memcpy(&theirs, shared_.node.peer(l, mine), sizeof theirs);
            if (theirs.what != stamp_of(e, number)) return l;
            shared_.apart(e)[l] = region(theirs.home) + theirs.place - e.own;
            e.exchanged = e.exchanged && theirs.lent;
        }
        return -1;
    }

    /// Copies this rank's part of execution `number` to a mailbox; false: none is free yet.
    bool fill(execution const& e, std::uint64_t number) noexcept {
        if (filled_ - read_ >= mailbox_count) return false; // this rank itself has not read it
        std::uint64_t const before = holds_[filled_ % mailbox_count];
        if (before != 0 && shared_.node.unfinished(before - 1) >= 0) return false; // nor has another
        std::byte* const box = mailbox(filled_);
        stamp const mine = stamp_of(e, number);
        std::memcpy(box - sizeof mine, &mine, sizeof mine);
        if (e.elements > 0) std::memcpy(box, e.own, shared_.bytes(e, {0, e.elements}).size());
        holds_[filled_ % mailbox_count] = number + 1;
        ++filled_;
        return true;
    }

    std::size_t step() noexcept {
        std::size_t progress = 0;
        for (; at_ < shared_.gathered; ++at_) {
            execution& e = shared_.at(at_);
            if (e.path == route::mailbox)
                sum_mailboxes(e, at_);
            else if (e.path == route::local)
                e.exchanged ? exchange(e, at_) : sum_in_place(e);
            else
                continue;
            --e.open;
            ++progress;
        }
        return progress;
    }

  private:
    static constexpr std::uint64_t mailbox_count = 4;
    // Away from the page offsets of tensors: a load behind a store to the same offset of another page waits for it.
    static constexpr std::size_t shift = 2112;
    static constexpr std::size_t spacing = 320;

    // What a rank takes an execution for: its number and the operation's fingerprint.
    using stamp = std::uint64_t;
    static stamp stamp_of(execution const& e, std::uint64_t number) noexcept {
        return number << 20 | e.fingerprint;
    }
    struct declaration {
        stamp what;
        std::ptrdiff_t place; // of the bucket in the region of local rank `home`
        std::int32_t home;
        bool lent; // all of it is a copy from memory of the caller's
    };
    static constexpr std::size_t declared_bytes(std::size_t ring) noexcept {
        return (ring * sizeof(declaration) + 4095) / 4096 * 4096;
    }
    int find_other(std::byte* own, stamp mine) noexcept { // of mailboxes
        for (int l = 0; l < shared_.local_size; ++l) {
            stamp theirs;
            std::memcpy(&theirs, shared_.node.peer(l, own), sizeof theirs);
            if (theirs != mine) return l;
        }
        return -1;
    }

    int home_of(execution const& e) const noexcept { return e.home < 0 ? shared_.local : e.home; }
    std::byte* region(int of_local) const noexcept {
        return shared_.node.peer(of_local, shared_.node.memory());
    }

    void exchange(execution& e, std::uint64_t number) noexcept {
        if constexpr (!Context::on_device) {
            int const other = 1 - shared_.local;
            std::ptrdiff_t const apart = shared_.apart(e)[other];
            std::span<std::byte const> next = e.next;
            for (lent_part const& part : std::span(e.lent, e.lent_parts)) {
                shared_.fold_exchanging(e, part, apart, next);
                next = {};
            }
            declaration swapped;
            auto* const mine = reinterpret_cast<std::byte*>(&declared_[number & shared_.ring_mask]);
            std::memcpy(&swapped, shared_.node.peer(other, mine), sizeof swapped);
            e.own += apart;
            e.home = swapped.home;
        }
    }

    std::byte* mailbox(std::uint64_t number) const noexcept {
        return mailboxes_ + shift + (number % mailbox_count) * (bytes_ + spacing);
    }

    void sum_mailboxes(execution const& e, std::uint64_t number) noexcept {
        std::byte* const box = mailbox(read_++);
        if (int const other = find_other(box - sizeof(stamp), stamp_of(e, number)); other >= 0)
            return shared_.mismatch_on_node(other, e);
        for (int l = 0; l < shared_.local_size; ++l)
            shared_.group[static_cast<std::size_t>(l)] = {shared_.node.peer(l, box), false};
        shared_.fold_group_into(shared_.element(e, 0), e.elements);
    }

    void sum_in_place(execution const& e) noexcept {
        if (Context::sums_on_device) return;
        chunk_cursor mine(shared_.own_chunks(), 0);
        for (; mine.settle(e); mine.next_chunk()) shared_.fold_local(e, mine.here(e));
    }

    Context& shared_;
    std::size_t bytes_;
    declaration* declared_;
    std::byte* mailboxes_;
    std::uint64_t at_ = 0;     // next execution
    std::uint64_t filled_ = 0; // mailboxes
    std::uint64_t read_ = 0;
    std::uint64_t holds_[mailbox_count] = {}; // execution + 1
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_LOCAL_ROUTES_HPP
