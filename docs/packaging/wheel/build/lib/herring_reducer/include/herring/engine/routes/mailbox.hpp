// herring: the route of a tiny bucket on one node: each rank fills a mailbox and combines all mailboxes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_MAILBOX_HPP
#define HERRING_ENGINE_ROUTES_MAILBOX_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Every local rank copies its contribution into a mailbox and combines all mailboxes for itself; one wait
/// instead of two.
///
/// A rank fills the mailbox of execution n, which was that of execution n − 2·ahead, when it has read all
/// mailboxes of execution n − ahead. Every other rank had filled its mailbox of that execution, and so had
/// read execution n − 2·ahead before. So no rank asks how far the others are.
///
/// Cost:   a rank copies its contribution, and reads the parts that it needs of L mailboxes, which are small.
/// Memory: `memory_bytes(mailbox_bytes)` of every rank's region.
template <class Core> class mailbox_route {
  public:
    /// `memory`: in this rank's region, which the other local ranks read; nullptr without other local ranks.
    mailbox_route(Core& core, std::size_t mailbox_bytes, std::byte* memory)
        : shared_(core), bytes_(mailbox_bytes), mailboxes_(memory),
          boxes_(static_cast<std::size_t>(core.who.local_size)) {}

    static constexpr std::size_t memory_bytes(std::size_t mailbox_bytes) noexcept {
        return shift + count * (mailbox_bytes + spacing);
    }

    static constexpr std::uint32_t cursors() noexcept { return 1; }

    /// Copies this rank's part of execution `number` to a mailbox. Returns false if no mailbox is free yet.
    bool fill(execution const& e, std::uint64_t number) noexcept {
        if (filled_ - read_ >= ahead) return false;
        std::byte* const box = mailbox(filled_);
        std::uint64_t const mine = stamp_of(e, number);
        std::memcpy(box - sizeof mine, &mine, sizeof mine);
        range const given = shared_.traffic.with(e.operation, [&](auto const& of) { return of.given(e); });
        if (given.elements > 0)
            std::memcpy(box + e.bytes(given.offset), shared_.given_by(e, shared_.who.local, given.offset),
                        e.bytes(given.elements));
        ++filled_;
        return true;
    }

    std::size_t step(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        for (; at_ < shared_.ledger.all_arrived(); ++at_) {
            execution const& e = shared_.ledger.at(at_);
            if (e.path != route::mailbox) continue;
            if (!std::exchange(combining_, true)) return want(e, wanted), progress;
            combining_ = false; // the wanted work is done
            shared_.ledger.handled_all(at_);
            shared_.ledger.done(at_);
            ++progress;
        }
        return progress;
    }

  private:
    static constexpr std::uint64_t ahead = 4, count = 2 * ahead;
    // Avoids the page offsets of tensors: a load behind a store to the same offset of another page waits for
    // that store.
    static constexpr std::size_t shift = 2112;
    static constexpr std::size_t spacing = 320;

    std::byte* mailbox(std::uint64_t number) const noexcept {
        return mailboxes_ + shift + (number % count) * (bytes_ + spacing);
    }

    void want(execution const& e, wanted_work& wanted) noexcept {
        std::byte* const box = mailbox(read_++);
        for (int l = 0; l < shared_.who.local_size; ++l) {
            std::byte* const theirs = shared_.node.peer(l, box);
            std::uint64_t what;
            std::memcpy(&what, theirs - sizeof what, sizeof what);
            if (what != stamp_of(e, at_)) return shared_.mismatch_on_node(l, e, what);
            boxes_[static_cast<std::size_t>(l)] = theirs;
        }
        wanted.combine_all(at_, boxes_.data());
    }

    Core& shared_;
    std::size_t bytes_;
    std::byte* mailboxes_;
    fixed_array<std::byte*> boxes_; // the mailboxes of one execution
    std::uint64_t at_ = 0;          // next execution
    bool combining_ = false;        // the mailboxes of that execution
    std::uint64_t filled_ = 0;      // mailboxes that this rank has filled
    std::uint64_t read_ = 0;        // mailboxes given to `wanted`; the last may still be summed
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_MAILBOX_HPP
