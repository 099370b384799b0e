// training: the one matrix product that the model needs, in plain loops that compilers vectorise.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_EXAMPLES_TRAINING_MATRIX_HPP
#define HERRING_EXAMPLES_TRAINING_MATRIX_HPP

#include <algorithm>
#include <cstddef>

namespace training {

/// A matrix to read: element (i, j) is `data[i * row + j * column]`, so a transpose only swaps the strides.
struct matrix {
    float const* data;
    std::size_t row;
    std::size_t column;

    float operator()(std::size_t i, std::size_t j) const noexcept { return data[i * row + j * column]; }
};

namespace detail {

/// Adds lines i and, with `Lines` = 2, i + 1 of the product to c, four lines of b a pass.
template <std::size_t Lines>
inline void multiply_lines(matrix a, float const* b, float* c, std::size_t i, std::size_t k,
                           std::size_t n) noexcept {
    std::size_t const second = i + Lines - 1;
    float* __restrict const c0 = c + i * n;
    float* __restrict const c1 = c + (i + 1) * n; // touched with two lines only
    std::size_t p = 0;
    for (; p + 4 <= k; p += 4) {
        float const x0 = a(i, p), x1 = a(i, p + 1), x2 = a(i, p + 2), x3 = a(i, p + 3);
        float const y0 = a(second, p), y1 = a(second, p + 1), y2 = a(second, p + 2), y3 = a(second, p + 3);
        float const* const b0 = b + p * n;
        float const* const b1 = b0 + n;
        float const* const b2 = b1 + n;
        float const* const b3 = b2 + n;
        for (std::size_t j = 0; j < n; ++j) {
            c0[j] += x0 * b0[j] + x1 * b1[j] + x2 * b2[j] + x3 * b3[j];
            if constexpr (Lines == 2) c1[j] += y0 * b0[j] + y1 * b1[j] + y2 * b2[j] + y3 * b3[j];
        }
    }
    for (; p < k; ++p) {
        float const x = a(i, p), y = a(second, p);
        float const* const line = b + p * n;
        for (std::size_t j = 0; j < n; ++j) {
            c0[j] += x * line[j];
            if constexpr (Lines == 2) c1[j] += y * line[j];
        }
    }
}

} // namespace detail

/// c = a · b.
///
/// Shape:  a is m × k with any strides; b is k × n and c is m × n, both row by row without gaps.
/// Cost:   2·m·k·n floating-point operations.
inline void multiply(matrix a, float const* b, float* c, std::size_t m, std::size_t k,
                     std::size_t n) noexcept {
    std::fill(c, c + m * n, 0.0f);
    std::size_t i = 0;
    for (; i + 2 <= m; i += 2) detail::multiply_lines<2>(a, b, c, i, k, n);
    for (; i < m; ++i) detail::multiply_lines<1>(a, b, c, i, k, n);
}

} // namespace training

#endif // HERRING_EXAMPLES_TRAINING_MATRIX_HPP
