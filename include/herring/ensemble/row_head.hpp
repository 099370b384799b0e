// herring: what stands before the lanes of a row: facts that the frontend would else have to compute from all of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ROW_HEAD_HPP
#define HERRING_ENSEMBLE_ROW_HEAD_HPP

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "herring/base/config.hpp"
#include "herring/kernel/exponential.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

static_assert(std::endian::native == std::endian::little, "rows are little-endian");

/// Bytes before a row's lanes; rows of plain values have none, unless an output needs the index.
///
/// The sum is in fp32, in fixed order, of what the lanes are when decoded: so decoded probabilities sum to 1.
struct row_head {
    float origin = 0;      ///< what a lane of 0 means, as a logit: the row's largest
    float sum = 0;         ///< of the encoded exponentials; 0 where the space needs none
    float entropy = 0;     ///< in nats, of the row as the member has it; 0 where no output needs it
    std::uint32_t top = 0; ///< index of the row's largest element; 0 where nothing needs it

    static row_head read(std::span<std::byte const> row) noexcept {
        row_head head;
        std::memcpy(&head, row.data(), sizeof head);
        return head;
    }
    void write(std::span<std::byte> row) const noexcept { std::memcpy(row.data(), this, sizeof *this); }

    /// Whether a fold can compute with the facts, whatever the lanes are; `one`: what the largest exponential is encoded as.
    bool possible(std::size_t elements, bool summed, float one) const noexcept {
        // A little more than one · elements, which rounding can reach.
        float const most = one * (static_cast<float>(elements) + 1) * 1.001f;
        return std::isfinite(origin) && (!summed || (sum >= one && sum <= most)) && top < elements;
    }
    /// Whether `sum` is that of the lanes, as far as a sum of floats is known: the encoder's order gives the same bits, and any
    /// order of up to 16,777 additions rounds by less.
    bool has_sum(float of_lanes) const noexcept { return std::fabs(sum - of_lanes) <= 0.001f * of_lanes; }
    /// Whether `entropy` can be that of so many probabilities of which the largest is `most`; 0: that is not known.
    ///
    /// Shape:  −ln p ≤ H ≤ −p·ln p − (1 − p)·ln((1 − p) / (n − 1)): the others have no mass but in as few as can be, or are equal.
    bool has_entropy(std::size_t elements, float most) const noexcept {
        // The member's is of the row before encoding: logits as a bfloat16 has them move both bounds by up to 0.2.
        constexpr float apart = 0.25f;
        float const others = static_cast<float>(elements - 1);
        float least = 0, largest = kernel::logarithm(others + 1);
        if (most > 0) {
            least = -kernel::logarithm(most);
            largest = most * least;
            float const rest = 1 - most;
            if (rest > 0 && elements > 1)
                largest += rest * (kernel::logarithm(others) - kernel::logarithm(rest));
        }
        return entropy >= 0 && entropy >= least - apart && entropy <= largest + apart;
    }
};
static_assert(sizeof(row_head) == 16);

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ROW_HEAD_HPP
