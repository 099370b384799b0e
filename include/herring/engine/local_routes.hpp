// herring: the routes of a bucket on one node: through mailboxes when small, in place else.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_LOCAL_ROUTES_HPP
#define HERRING_ENGINE_LOCAL_ROUTES_HPP

#include "herring/engine/context.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace herring::detail {

/// Local: every local rank sums its chunks of all memories, in all memories; then all wait for all.
/// Mailbox: every local rank copies its part to a mailbox and sums all mailboxes for itself; one wait instead of two.
///
/// Cost: local: each rank's bytes read once and written once. Mailbox: L·(L + 2) times the bucket, which is small.
template <class Context> class local_routes {
  public:
    local_routes(Context& shared, std::size_t mailbox_bytes, std::byte* mailboxes) noexcept
        : shared_(shared), bytes_(mailbox_bytes), mailboxes_(mailboxes) {}

    /// Bytes that mailboxes of this size take in every rank's region.
    static constexpr std::size_t mailboxes_bytes(std::size_t each) noexcept { return shift + slots * (each + spacing); }

    /// Copies this rank's part of execution `number` to a mailbox; false: none is free yet.
    bool fill(execution const& e, std::uint64_t number) noexcept {
        if (filled_ - read_ >= slots) return false; // this rank itself has not read it
        std::uint64_t const before = holds_[filled_ % slots];
        if (before != 0 && shared_.node.unfinished(before - 1) >= 0) return false; // nor has another
        if (e.elements > 0) std::memcpy(mailbox(filled_), e.own, shared_.bytes(e, {0, e.elements}).size());
        holds_[filled_ % slots] = number + 1;
        ++filled_;
        return true;
    }

    std::size_t step() noexcept {
        std::size_t progress = 0;
        for (; at_ < shared_.gathered; ++at_) {
            execution& e = shared_.at(at_);
            if (e.path == route::mailbox) sum_mailboxes(e);
            else if (e.path == route::local) sum_in_place(e);
            else continue;
            --e.open;
            ++progress;
        }
        return progress;
    }

  private:
    static constexpr std::uint64_t slots = 4;
    // Away from the page offsets of tensors: a load behind a store to the same offset of another page waits for it.
    static constexpr std::size_t shift = 2112;
    static constexpr std::size_t spacing = 320;

    std::byte* mailbox(std::uint64_t number) const noexcept {
        return mailboxes_ + shift + (number % slots) * (bytes_ + spacing);
    }

    void sum_mailboxes(execution const& e) noexcept {
        std::byte* const box = mailbox(read_++);
        for (int l = 0; l < shared_.local_size; ++l)
            shared_.group[static_cast<std::size_t>(l)] = {shared_.node.peer(l, box), false};
        shared_.fold_group_into(shared_.element(e, 0), e.elements);
    }

    void sum_in_place(execution const& e) noexcept {
        chunk_cursor mine(shared_.own_chunks(), 0);
        for (; mine.settle(e); mine.next_chunk()) shared_.fold_local(e, mine.here(e));
    }

    Context& shared_;
    std::size_t bytes_;
    std::byte* mailboxes_;
    std::uint64_t at_ = 0;     // next execution
    std::uint64_t filled_ = 0; // mailboxes
    std::uint64_t read_ = 0;
    std::uint64_t holds_[slots] = {}; // execution + 1
};

} // namespace herring::detail

#endif // HERRING_ENGINE_LOCAL_ROUTES_HPP
