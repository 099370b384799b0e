// herring: which messages of a peer have come, by their counters: one that comes again is told from one that is late.
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
    beyond ///< more are missing than can be: messages were lost. Nothing is to be asked after it
};

/// The sender counts its messages from 0 on, without a gap, and they come in any order. A bitmap has the latest ones, four
/// times as many as receives can be posted; of those before it the ones are listed that have not come yet. So a message may
/// be as late as it likes, while fewer than a bitmap's worth are.
///
/// Cost: some ten instructions a message in order; no allocation after construction.
class received_counters {
  public:
    received_counters() = default;
    /// `least`: bits of the bitmap, at least 64; a receiver may take early messages in an order of its own.
    explicit received_counters(std::size_t receives, std::size_t least = 512)
        : window_(window_for(receives, least)), bits_(window_ / 64), missing_(window_) {}

    /// Bits of the bitmap.
    static constexpr std::size_t window_for(std::size_t receives, std::size_t least = 512) noexcept {
        return std::bit_ceil(std::max(4 * receives, least));
    }

    /// Notes that a counter has come.
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

    /// Whether a counter has come.
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

    /// The place of `next_` is that of a counter which leaves the bitmap: it is listed unless it has come. False: no room.
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
    fixed_array<std::uint64_t> missing_; // the first `listed_`: below next_ - window_, and not come
    std::size_t listed_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_RECEIVED_COUNTERS_HPP
