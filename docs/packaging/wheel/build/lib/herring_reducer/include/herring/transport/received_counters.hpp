// herring: the counters of the messages that came from a peer: tells a repeated message from a late one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_RECEIVED_COUNTERS_HPP
#define HERRING_TRANSPORT_RECEIVED_COUNTERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

enum class counter_is : std::uint8_t {
    fresh,
    repeated,
    beyond ///< messages were lost: more are missing than can be in flight. Not to be used afterwards
};

/// The counters that came from a sender, which counts its messages from 0 on without a gap. Messages come in
/// any order.
///
/// A bitmap has the latest counters, four times as many as receives can be posted. Earlier counters that have
/// not come are in a list of the same size. So a message may be late without bound, as long as fewer are late
/// than the bitmap has bits.
///
/// Cost: some ten instructions a message in order; no allocation after construction.
class received_counters {
  public:
    received_counters() = default;
    /// `least`: bits of the bitmap, at least 64; a receiver may take early messages in another order.
    explicit received_counters(std::size_t receives, std::size_t least = 512)
        : window_(window_for(receives, least)), bits_(window_ / 64), missing_(window_) {}

    /// Bits of the bitmap.
    static constexpr std::size_t window_for(std::size_t receives, std::size_t least = 512) noexcept {
        return std::bit_ceil(std::max(4 * receives, least));
    }

    /// Notes that a counter has come. Returns whether it came for the first time.
    counter_is take(std::uint64_t counter) noexcept {
        if (counter < next_) return take_behind(counter);
        if (counter - next_ >= window_) return counter_is::beyond;
        for (; next_ < counter; ++next_) {
            if (!slide()) return counter_is::beyond;
            word(next_) &= ~bit(next_);
        }
        if (!slide()) return counter_is::beyond;
        word(next_) |= bit(next_);
        ++next_;
        return counter_is::fresh;
    }

    /// True if a counter has come.
    bool seen(std::uint64_t counter) const noexcept {
        if (counter >= next_) return false;
        if (next_ - counter <= window_)
            return (bits_[(counter / 64) & (bits_.size() - 1)] & bit(counter)) != 0;
        std::uint64_t const* const end = missing_.begin() + listed_;
        return std::find(missing_.begin(), end, counter) == end;
    }

  private:
    std::uint64_t& word(std::uint64_t counter) noexcept { return bits_[(counter / 64) & (bits_.size() - 1)]; }
    static std::uint64_t bit(std::uint64_t counter) noexcept { return std::uint64_t{1} << counter % 64; }

    /// Frees the bit of `next_`: the counter that leaves the bitmap is listed unless it has come. False: the
    /// list is full.
    bool slide() noexcept {
        if (next_ < window_ || (word(next_) & bit(next_)) != 0) [[likely]]
            return true;
        if (listed_ == missing_.size()) return false;
        missing_[listed_++] = next_ - window_;
        return true;
    }
    [[gnu::noinline]] counter_is take_behind(std::uint64_t counter) noexcept {
        if (next_ - counter <= window_) {
            bool const seen = (word(counter) & bit(counter)) != 0;
            word(counter) |= bit(counter);
            return seen ? counter_is::repeated : counter_is::fresh;
        }
        std::uint64_t* const end = missing_.begin() + listed_;
        std::uint64_t* const found = std::find(missing_.begin(), end, counter);
        if (found == end) return counter_is::repeated;
        *found = missing_[--listed_];
        return counter_is::fresh;
    }

    std::uint64_t next_ = 0;    // one more than the latest
    std::uint64_t window_ = 64; // a power of two
    fixed_array<std::uint64_t> bits_;
    // The first `listed_`: counters below next_ - window_ that have not come.
    fixed_array<std::uint64_t> missing_;
    std::size_t listed_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_RECEIVED_COUNTERS_HPP
