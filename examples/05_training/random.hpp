// training: numbers that are random, and the same on every rank, machine and compiler.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_RANDOM_HPP
#define HERRING_EXAMPLES_TRAINING_RANDOM_HPP

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace training {

/// SplitMix64. The standard library's engines would do, but its distributions differ between implementations.
class random {
  public:
    explicit random(std::uint64_t seed) noexcept : state_(seed) {}

    std::uint64_t next() noexcept {
        std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

    /// A whole number in [0, count).
    std::size_t below(std::size_t count) noexcept { return static_cast<std::size_t>(next() % count); }

    /// A number in [-1, 1).
    float symmetric() noexcept { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }

  private:
    std::uint64_t state_;
};

/// 0 ... count-1, shuffled.
inline std::vector<std::size_t> permutation(std::size_t count, std::uint64_t seed) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    random draw(seed);
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw.below(i)]);
    return order;
}

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_RANDOM_HPP
