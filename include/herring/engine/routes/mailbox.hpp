// herring: the route of a tiny bucket on one node: a copy into a mailbox, and everyone combines all mailboxes for itself.
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

/// Every local rank copies what it gives into a mailbox and combines all mailboxes for itself; one wait instead of two.
///
/// A rank fills a mailbox of its own again when it has itself read the one `ahead` behind the next: that needed all others to have
/// filled theirs, before which they have read what is filled again. So nobody asks how far the others are.
///
/// Cost:   a rank copies what it gives, and reads what it needs of L mailboxes, which are small.
/// Memory: `memory_bytes(mailbox_bytes)` of every rank's region.
template <class Core> class mailbox_route {
  public:
    /// `memory`: in this rank's region, where the others look too; nullptr where there are no others.
    mailbox_route(Core& core, std::size_t mailbox_bytes, std::byte* memory)
        : shared_(core), bytes_(mailbox_bytes), mailboxes_(memory),
          boxes_(static_cast<std::size_t>(core.who.local_size)) {}

    static constexpr std::size_t memory_bytes(std::size_t mailbox_bytes) noexcept {
        return shift + count * (mailbox_bytes + spacing);
    }

    static constexpr std::uint32_t cursors() noexcept { return 1; }

    /// Copies this rank's part of execution `number` to a mailbox; false: none is free yet.
    bool fill(execution const& e, std::uint64_t number) noexcept {
        if (filled_ - read_ >= ahead) return false;
        std::byte* const box = mailbox(filled_);
        std::uint64_t const mine = stamp_of(e, number);
        std::memcpy(box - sizeof mine, &mine, sizeof mine);
        range const given = shared_.traffic.with(e.operation, [&](auto const& of) { return of.given(e); });
        if (given.elements > 0)
            std::memcpy(box + given.offset * shared_.element_bytes,
                        shared_.given_by(e, shared_.who.local, given.offset),
                        given.elements * shared_.element_bytes);
        ++filled_;
        return true;
    }

    std::size_t step(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        for (; at_ < shared_.ledger.all_arrived(); ++at_) {
            execution const& e = shared_.ledger.at(at_);
            if (e.path != route::mailbox) continue;
            if (!std::exchange(combining_, true)) return want(e, wanted), progress;
            combining_ = false; // it was wanted, and is done
            shared_.ledger.handled_all(at_);
            shared_.ledger.done(at_);
            ++progress;
        }
        return progress;
    }

  private:
    static constexpr std::uint64_t ahead = 4, count = 2 * ahead;
    // Away from the page offsets of tensors: a load behind a store to the same offset of another page waits for it.
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
            if (what != stamp_of(e, at_)) return shared_.mismatch_on_node(l, e);
            boxes_[static_cast<std::size_t>(l)] = theirs;
        }
        wanted.combine_all(at_, boxes_.data());
    }

    Core& shared_;
    std::size_t bytes_;
    std::byte* mailboxes_;
    fixed_array<std::byte*> boxes_; // room for those of one execution
    std::uint64_t at_ = 0;          // next execution
    bool combining_ = false;        // its mailboxes
    std::uint64_t filled_ = 0;      // mailboxes
    std::uint64_t read_ = 0;        // no others: the last one may still be summed
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_MAILBOX_HPP
