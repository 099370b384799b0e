// herring: what the training rows of the bench begin with, and their gradients.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BENCH_TRAINING_DATA_HPP
#define HERRING_BENCH_TRAINING_DATA_HPP

#include <cstddef>
#include <span>

namespace bench {

inline void initial_weights(std::size_t tensor, std::span<float> weights) {
    for (std::size_t k = 0; k < weights.size(); ++k)
        weights[k] = static_cast<float>((tensor * 31 + k * 7) % 101) / 64.0f - 0.75f;
}

inline void write_gradient(std::size_t tensor, std::span<float> to, int rank, int step) {
    for (std::size_t k = 0; k < to.size(); ++k)
        to[k] = static_cast<float>((tensor + k * 5 + static_cast<std::size_t>(rank * 17 + step * 3)) % 89) /
                    128.0f -
                0.3f;
}

} // namespace bench

#endif // HERRING_BENCH_TRAINING_DATA_HPP
