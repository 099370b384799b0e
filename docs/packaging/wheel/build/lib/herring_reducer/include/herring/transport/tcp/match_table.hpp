// herring: finds a posted receive by its tag, in an open-addressed table of fixed size.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_MATCH_TABLE_HPP
#define HERRING_TRANSPORT_TCP_MATCH_TABLE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A receive that waits for its message.
struct posted_receive {
    std::uint64_t tag = 0;
    std::uint64_t token = 0;
    std::span<std::byte> into{};
};

/// Posted receives of one peer, by tag. Tags may repeat; receives with equal tags are taken in any order.
///
/// Cost: O(1) expected; 40 bytes a slot, twice as many slots as receives; no allocation after construction.
class match_table {
  public:
    match_table() = default;
    explicit match_table(std::size_t receives)
        : mask_(std::bit_ceil(receives * 2 + 2) - 1), limit_(receives), slots_(mask_ + 1) {}

    std::size_t size() const noexcept { return used_; }

    /// Adds a receive. False: as many receives as announced are posted already.
    bool insert(posted_receive const& receive) noexcept {
        if (used_ >= limit_) return false;
        std::size_t at = home(receive.tag);
        while (slots_[at].taken) at = (at + 1) & mask_;
        slots_[at] = {receive, true};
        ++used_;
        return true;
    }

    /// Moves a receive with this tag to `found`. False: there is none.
    bool take(std::uint64_t tag, posted_receive& found) noexcept {
        if (used_ == 0) return false;
        std::size_t at = home(tag);
        while (slots_[at].taken && slots_[at].receive.tag != tag) at = (at + 1) & mask_;
        if (!slots_[at].taken) return false;
        found = slots_[at].receive;
        remove(at);
        return true;
    }

  private:
    struct slot {
        posted_receive receive;
        bool taken = false;
    };

    std::size_t home(std::uint64_t tag) const noexcept { return ((tag * 0x9e3779b97f4a7c15u) >> 20) & mask_; }

    // Closes the gap, so that a search may stop at the first free slot.
    void remove(std::size_t hole) noexcept {
        --used_;
        for (std::size_t at = (hole + 1) & mask_; slots_[at].taken; at = (at + 1) & mask_) {
            std::size_t const from = home(slots_[at].receive.tag);
            if (((at - from) & mask_) < ((at - hole) & mask_)) continue;
            slots_[hole] = slots_[at];
            hole = at;
        }
        slots_[hole].taken = false;
    }

    std::size_t mask_ = 0;
    std::size_t limit_ = 0;
    std::size_t used_ = 0;
    fixed_array<slot> slots_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_MATCH_TABLE_HPP
