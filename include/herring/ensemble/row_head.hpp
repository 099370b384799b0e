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

    /// Whether the facts can be those of a row of so many elements, whose largest exponential is encoded as `one`.
    bool possible(std::size_t elements, bool summed, float one) const noexcept {
        // A little more than one · elements, which rounding can reach.
        float const most = one * (static_cast<float>(elements) + 1) * 1.001f;
        return std::isfinite(origin) && (!summed || (sum >= one && sum <= most)) && entropy >= 0 &&
               entropy <= 100 && top < elements;
    }
};
static_assert(sizeof(row_head) == 16);

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ROW_HEAD_HPP
