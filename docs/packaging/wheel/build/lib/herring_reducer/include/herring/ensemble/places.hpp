// herring: a fixed number of places of equal size, and which of them are free.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_PLACES_HPP
#define HERRING_ENSEMBLE_PLACES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/machine/private_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Zeroed memory of `count` places of `bytes` each; each begins at a cache line.
///
/// Errors: `no_resources`.
class place_memory {
  public:
    HERRING_SETUP place_memory(std::size_t count, std::size_t bytes)
        : bytes_(bytes), stride_((bytes + line - 1) / line * line),
          memory_(total(count, stride_, bytes), -1) {}

    std::size_t bytes() const noexcept { return bytes_; }
    std::span<std::byte> operator[](place_index place) const noexcept {
        return {memory_.data() + place * stride_, bytes_};
    }

  private:
    static constexpr std::size_t line = 64;

    HERRING_SETUP static std::size_t total(std::size_t count, std::size_t stride, std::size_t bytes) {
        std::size_t all = 0;
        if (stride < bytes || __builtin_mul_overflow(count, stride, &all))
            throw error(errc::no_resources, -1, -1, "ensemble",
                        {count, " places of ", bytes,
                         " bytes are more than there are addresses; lower in_flight or request_bytes"});
        return all;
    }

    std::size_t bytes_, stride_;
    private_memory memory_;
};

/// The free ones of places `first`, `first` + 1, ... The place given back last is taken first: its bytes are
/// in the cache.
class free_places {
  public:
    free_places(place_index first, std::size_t count) : first_(first), list_(count), busy_(count) {
        while (free_ < count) { // in descending order, so that the first are taken first
            list_[free_] = first + static_cast<place_index>(count - 1 - free_);
            ++free_;
        }
    }

    std::size_t count() const noexcept { return free_; }

    /// Takes a place. False if none is free.
    bool take(place_index& place) noexcept {
        if (free_ == 0) return false;
        place = list_[--free_];
        busy_[place - first_] = true;
        return true;
    }

    bool is_taken(place_index place) const noexcept {
        return place - first_ < busy_.size() && busy_[place - first_];
    }

    /// Frees a place. False, without effect, if it is not taken.
    bool give(place_index place) noexcept {
        if (!is_taken(place)) return false;
        busy_[place - first_] = false;
        list_[free_++] = place;
        return true;
    }

  private:
    place_index first_;
    fixed_array<place_index> list_;
    fixed_array<bool> busy_;
    std::size_t free_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_PLACES_HPP
