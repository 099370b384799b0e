// herring: numbers from a seed, and a buffer in random order.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHAOS_RANDOM_HPP
#define HERRING_TRANSPORT_CHAOS_RANDOM_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Draws the same numbers from the same seed, everywhere.
///
/// Source: Steele, Lea, Flood, OOPSLA'14 (SplitMix64).
class draws {
  public:
    explicit draws(std::uint64_t seed = 0) noexcept : state_(seed) {}
    std::uint64_t next() noexcept { return mixed(state_ += 0x9e3779b97f4a7c15u); }
    /// 0 … below − 1
    std::uint64_t operator()(std::uint64_t below) noexcept { return next() % below; }
    bool chance(std::uint32_t per_1000) noexcept { return per_1000 > 0 && next() % 1000 < per_1000; }

    static constexpr std::uint64_t mixed(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

/// An append buffer that can be put into a random order.
template <class Value> class shuffle_buffer : public append_buffer<Value> {
  public:
    using append_buffer<Value>::append_buffer;
    std::size_t size() const noexcept { return this->size_; }
    bool full() const noexcept { return this->size_ == this->room_.size(); }
    Value& operator[](std::size_t i) noexcept { return this->room_[i]; }
    /// Keeps those for which `keep` holds, in their order.
    template <class Keep> void keep_if(Keep&& keep) noexcept {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < this->size_; ++i)
            if (keep(this->room_[i])) this->room_[kept++] = this->room_[i];
        this->size_ = kept;
    }
    void shuffle(draws& random) noexcept {
        for (std::size_t i = this->size_; i > 1; --i) std::swap(this->room_[i - 1], this->room_[random(i)]);
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHAOS_RANDOM_HPP
