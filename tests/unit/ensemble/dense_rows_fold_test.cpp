// herring: tests of ensemble/dense_rows.hpp: sizes about blocks and tiles, rows without weight, and nothing written beside the results.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dense_rows.hpp"

#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/dense_row.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/wire/codecs.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace ensemble_dense_fold_test {

using namespace herring::detail::ensembles;
namespace outputs = herring::outputs;

constexpr float infinite = std::numeric_limits<float>::infinity();

/// Rows of plain values, each behind one byte, so that none is aligned.
template <class Weighting, class Outputs = outputs::of<>> struct bench {
    using traits = dense_traits<float, herring::combine::mean<herring::space::value, Weighting>,
                                herring::wire::as_is, Outputs>;
    using fold = dense_fold<traits>;

    explicit bench(std::size_t n) : elements(n) {}
    void add(std::vector<float> const& row) {
        std::vector<std::byte>& bytes = rows.emplace_back(1 + row.size() * sizeof(float));
        std::memcpy(bytes.data() + 1, row.data(), row.size() * sizeof(float));
    }
    bool run(std::vector<float> const& weights = {}) {
        std::vector<std::span<std::byte const>> all;
        for (auto const& each : rows) all.push_back(std::span<std::byte const>(each).subspan(1));
        values.assign(elements + 16, guard);
        variances.assign(elements + 16, guard);
        scratch.assign(fold::scratch_bytes(rows.size()) + 128, std::byte{0xa5});
        std::size_t const begin = (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
        into.values = std::span(values).first(elements);
        into.scratch = std::span(scratch).subspan(begin, fold::scratch_bytes(rows.size()));
        if constexpr (Outputs::template has<outputs::variance>)
            into.template get<outputs::variance>() = std::span(variances).first(elements);
        fold f(all, weights, into);
        if (f.is_empty()) return false;
        f.run(elements);
        f.finish(elements);
        for (std::size_t i = elements; i < values.size(); ++i) {
            CHECK(values[i] == guard);
            CHECK(variances[i] == guard);
        }
        for (std::size_t i = begin + into.scratch.size(); i < scratch.size(); ++i)
            CHECK(scratch[i] == std::byte{0xa5});
        return true;
    }

    static constexpr float guard = -77;
    std::size_t elements;
    std::vector<std::vector<std::byte>> rows{};
    std::vector<float> values{}, variances{};
    std::vector<std::byte> scratch{};
    typename fold::results into{};
};

float number(std::size_t row, std::size_t i) { return static_cast<float>((row * 31 + i * 17) % 97) - 48; }
std::vector<float> row_of(std::size_t row, std::size_t elements) {
    std::vector<float> all(elements);
    for (std::size_t i = 0; i < elements; ++i) all[i] = number(row, i);
    return all;
}

TEST_CASE("dense fold: mean, variance and largest deviation, for sizes about blocks and tiles") {
    using both = bench<herring::weighting::none, outputs::of<outputs::variance, outputs::maximal_deviation>>;
    for (std::size_t const members : {1u, 2u, 3u, 5u, 8u})
        for (std::size_t const n : {1u, 15u, 16u, 17u, 63u, 65u, 1023u, 1024u, 1025u, 2049u}) {
            CAPTURE(members);
            CAPTURE(n);
            both b(n);
            for (std::size_t m = 0; m < members; ++m) b.add(row_of(m, n));
            REQUIRE(b.run());
            double most = 0;
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < n; ++i) {
                double mean = 0, variance = 0;
                for (std::size_t m = 0; m < members; ++m) mean += number(m, i) / static_cast<double>(members);
                for (std::size_t m = 0; m < members; ++m)
                    variance += (number(m, i) - mean) * (number(m, i) - mean) / static_cast<double>(members);
                most = std::max(most, variance);
                wrong += std::abs(b.values[i] - mean) > 1e-4;
                wrong += std::abs(b.variances[i] - variance) > 1e-2 + 1e-4 * variance;
            }
            CHECK(wrong == 0);
            CHECK(b.into.get<outputs::maximal_deviation>() == doctest::Approx(std::sqrt(most)).epsilon(1e-4));
        }
}

TEST_CASE("dense fold: a row without weight does not count, whatever is in it") {
    bench<herring::weighting::renormalised> b(40);
    b.add(row_of(1, 40));
    b.add(std::vector<float>(40, -infinite)); // 0 times it would be no number
    b.add(row_of(2, 40));
    REQUIRE(b.run({1, 0, 3}));
    for (std::size_t i = 0; i < 40; ++i)
        CHECK(b.values[i] == doctest::Approx(number(1, i) * 0.25f + number(2, i) * 0.75f).epsilon(1e-5));
}

TEST_CASE("dense fold: no weight at all is nothing to fold") {
    bench<herring::weighting::renormalised> b(4);
    b.add(row_of(1, 4));
    b.add(row_of(2, 4));
    CHECK(!b.run({0, 0}));
    CHECK(!b.run({1, -1})); // there is nothing to divide by
    bench<herring::weighting::as_given> given(4);
    given.add(row_of(1, 4));
    given.add(row_of(2, 4));
    CHECK(!given.run({0, 0}));
    REQUIRE(given.run({1, -1})); // a sum of zero is one, where weights are taken as they are
    CHECK(given.values[2] == number(1, 2) - number(2, 2));
}

TEST_CASE("dense fold: rows in one order give one sum, to the bit") {
    bench<herring::weighting::none> b(3);
    for (float const x : {1e8f, 1.0f, -1e8f}) b.add({x, x, x});
    REQUIRE(b.run());
    float const due = ((1e8f + 1.0f) + -1e8f) / 3;
    for (std::size_t i = 0; i < 3; ++i) CHECK(b.values[i] == due);
}

} // namespace ensemble_dense_fold_test
