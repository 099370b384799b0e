// herring: an ensemble's rows in one process: encoded, checked and folded. For tests.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_ENSEMBLE_ROWS_HPP
#define HERRING_TESTS_ENSEMBLE_ROWS_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "doctest/doctest.h"

#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

namespace ensemble_rows {

namespace combine = herring::combine;
namespace outputs = herring::outputs;
namespace space = herring::space;
namespace weighting = herring::weighting;
namespace wire = herring::wire;
using herring::detail::ensembles::row_check;
using herring::detail::ensembles::row_format;

inline constexpr float infinite = std::numeric_limits<float>::infinity();

// Small numbers whose order, and so whose bits, show; some equal, some far below the largest.
inline std::vector<float> drawn(std::size_t elements, std::uint32_t seed, float spread = 8) {
    std::vector<float> row(elements);
    for (float& x : row) {
        seed = seed * 1664525u + 1013904223u;
        x = (static_cast<float>(seed >> 8) / (1 << 23) - 1) * spread;
        if (seed % 13 == 0) x -= 5 * spread;
    }
    return row;
}

inline bool untouched(std::span<std::byte const> guard) {
    return std::all_of(guard.begin(), guard.end(), [](std::byte b) { return b == std::byte{0xa5}; });
}

// An ensemble of one process: encodes, checks and folds.
template <class T, class Combine, class Wire = wire::as_is, class Outputs = outputs::of<>> struct bench {
    using format = row_format<T, Combine, Wire, Outputs>;
    std::size_t elements;
    std::vector<std::vector<std::byte>> rows{};
    std::vector<std::byte> memory{};
    typename format::results results{};

    row_check add(std::vector<float> const& row) {
        std::vector<T> typed(row.size());
        for (std::size_t i = 0; i < row.size(); ++i) typed[i] = static_cast<T>(row[i]);
        // A guard behind it, and bytes that are not aligned.
        std::vector<std::byte> bytes(format::row_bytes(elements) + 64 + 1, std::byte{0xa5});
        auto const out = std::span(bytes).subspan(1, format::row_bytes(elements));
        row_check const done = format::encode(typed, out);
        CHECK(untouched(std::span(bytes).subspan(1 + out.size())));
        if (done != row_check::good) return done;
        CHECK(format::check(out, elements) == row_check::good);
        rows.emplace_back(std::move(bytes));
        return done;
    }
    std::span<std::byte const> row(std::size_t i) const {
        return std::span(rows[i]).subspan(1, format::row_bytes(elements));
    }
    bool fold(std::vector<float> const& weights = {}) {
        std::vector<std::span<std::byte const>> all;
        for (std::size_t i = 0; i < rows.size(); ++i) all.push_back(row(i));
        std::size_t const bytes = format::result_bytes(elements, rows.size());
        memory.assign(bytes + 128, std::byte{0xa5});
        std::size_t const begin = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        results = format::results_in(std::span(memory).subspan(begin, bytes), elements, rows.size());
        bool const done = format::fold(all, weights, elements, results);
        CHECK(untouched(std::span(memory).subspan(begin + bytes)));
        return done;
    }
    double value(std::size_t i) const {
        return static_cast<double>(static_cast<herring::accumulator<T>>(results.values[i]));
    }
    // Of dense rows only.
    std::vector<double> decoded(std::size_t which) const {
        std::vector<T> out(elements);
        format::decode(row(which), elements, out);
        std::vector<double> numbers;
        for (T const x : out) numbers.push_back(static_cast<double>(static_cast<herring::accumulator<T>>(x)));
        return numbers;
    }
};

inline std::vector<double> probabilities(std::vector<float> const& logits) {
    double const most = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    std::vector<double> p;
    for (float const l : logits) p.push_back(std::exp(static_cast<double>(l) - most));
    for (double const x : p) sum += x;
    for (double& x : p) x /= sum;
    return p;
}

inline bool close(double got, double due, double relative, double absolute) {
    if (std::isinf(due) || std::isinf(got)) return got == due;
    return std::abs(got - due) <= relative * std::abs(due) + absolute;
}

using every_output =
    outputs::of<outputs::variance, outputs::maximal_deviation, outputs::disagreement,
                outputs::entropy_of_mean, outputs::mean_entropy, outputs::mutual_information>;

} // namespace ensemble_rows

#endif // HERRING_TESTS_ENSEMBLE_ROWS_HPP
