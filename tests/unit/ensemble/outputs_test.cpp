// herring: tests of ensemble/outputs.hpp: against plain arithmetic; what is not asked for is not there.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/outputs.hpp"

#include "doctest/doctest.h"
#include "ensemble_rows.hpp"
#include "herring/ensemble/dense_row.hpp"
#include "herring/wire/codecs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace outputs_test {

struct own {
    using axis = herring::axes::outputs;
    static constexpr char const* name = "own";
};
static_assert(!herring::outputs_policy<own> && !herring::output_kind<own>);
static_assert(herring::output_kind<herring::outputs::variance> &&
              herring::output_kind<herring::outputs::disagreement>);

} // namespace outputs_test

namespace of_test {

using namespace ensemble_rows;

TEST_CASE("outputs: against plain arithmetic, and the values have the same bits with them and without") {
    for (std::size_t const elements : {1u, 19u, 1030u}) {
        bench<float, combine::mean<space::probability, weighting::renormalised>, wire::bf16, every_output>
            all{elements};
        bench<float, combine::mean<space::probability, weighting::renormalised>, wire::bf16> plain{elements};
        std::vector<float> const weights{1, 2, 0, 5};
        std::vector<std::vector<float>> rows;
        for (std::uint32_t m = 0; m < 4; ++m) {
            rows.push_back(drawn(elements, m + 40, 3));
            if (elements > 10 && m == 1) rows[m][4] = -infinite;
            CHECK(all.add(rows[m]) == row_check::good);
            CHECK(plain.add(rows[m]) == row_check::good);
        }
        CHECK(all.fold(weights));
        CHECK(plain.fold(weights));
        double most = 0, mean_entropy = 0;
        for (std::size_t i = 0; i < elements; ++i) {
            CHECK(all.results.values[i] == plain.results.values[i]);
            double mean = 0, square = 0;
            for (std::size_t m = 0; m < 4; ++m)
                mean += all.decoded(m)[i] * static_cast<double>(weights[m]) / 8;
            for (std::size_t m = 0; m < 4; ++m)
                square += std::pow(all.decoded(m)[i] - mean, 2) * static_cast<double>(weights[m]) / 8;
            most = std::max(most, square);
            CHECK(close(static_cast<double>(all.results.get<outputs::variance>()[i]), square, 1e-4, 1e-14));
            if (elements > 1000 && i > 200) break; // decoding is slow
        }
        double whole = 0;
        std::size_t others = 0;
        for (std::size_t i = 0; i < elements; ++i)
            if (all.value(i) > 0) whole -= all.value(i) * std::log(all.value(i));
        auto const top = std::max_element(all.results.values.begin(), all.results.values.end()) -
                         all.results.values.begin();
        for (std::size_t m = 0; m < 4; ++m) {
            double own = 0;
            for (double const p : probabilities(rows[m]))
                if (p > 0) own -= p * std::log(p);
            mean_entropy += own * static_cast<double>(weights[m]) / 8;
            if (weights[m] != 0)
                others += std::max_element(rows[m].begin(), rows[m].end()) - rows[m].begin() != top;
        }
        auto const number = [](float x) { return static_cast<double>(x); };
        if (elements < 1000)
            CHECK(close(number(all.results.get<outputs::maximal_deviation>()), std::sqrt(most), 1e-4, 1e-7));
        CHECK(close(number(all.results.get<outputs::entropy_of_mean>()), whole, 1e-5, 1e-6));
        CHECK(close(number(all.results.get<outputs::mean_entropy>()), mean_entropy, 1e-5, 1e-6));
        CHECK(close(number(all.results.get<outputs::mutual_information>()),
                    std::max(0.0, whole - mean_entropy), 1e-3, 1e-5));
        CHECK(all.results.get<outputs::disagreement>() == static_cast<float>(others) / 3);
    }
}

TEST_CASE("outputs: what is masked somewhere has no variance, and what lies behind a row does not count") {
    bench<float, combine::mean<space::log_probability>, wire::as_is,
          outputs::of<outputs::variance, outputs::maximal_deviation>>
        all{5};
    CHECK(all.add({0, 1, -infinite, 3, 0}) == row_check::good);
    CHECK(all.add({9, 10, 11, 12, 9}) == row_check::good); // another origin
    CHECK(all.fold());
    CHECK(all.results.get<outputs::variance>()[2] == 0);
    CHECK(all.value(2) == -std::numeric_limits<double>::infinity());
    double most = 0;
    for (std::size_t i : {0u, 1u, 3u, 4u}) {
        double const away = (all.decoded(0)[i] - all.decoded(1)[i]) / 2;
        CHECK(close(static_cast<double>(all.results.get<outputs::variance>()[i]), away * away, 1e-4, 1e-9));
        most = std::max(most, std::abs(away));
    }
    CHECK(close(static_cast<double>(all.results.get<outputs::maximal_deviation>()), most, 1e-4, 1e-9));

    bench<float, combine::mean<space::logit>, wire::bf16, outputs::of<outputs::maximal_deviation>> far{2};
    CHECK(far.add({10, 0}) == row_check::good);
    CHECK(far.add({-infinite, 0}) == row_check::good); // their largest logits differ, and nothing else
    CHECK(far.fold());
    CHECK(far.results.get<outputs::maximal_deviation>() == 0);
}

TEST_CASE("outputs: variance of doubles, by members that hardly differ") {
    bench<double, combine::mean<space::value>, wire::as_is, outputs::of<outputs::variance>> all{3};
    CHECK(all.add({1e7f, 5, -3}) == row_check::good);
    CHECK(all.add({1e7f + 1, 5, -3}) == row_check::good);
    CHECK(all.fold());
    CHECK(all.results.get<outputs::variance>()[0] == 0.25); // Σx² would have lost it
    CHECK(all.results.get<outputs::variance>()[1] == 0);
}

// What is not asked for is not stored.
template <class Outputs>
using stored = typename row_format<float, combine::mean<space::probability>, wire::bf16, Outputs>::results;
static_assert(sizeof(stored<outputs::of<>>) == 2 * sizeof(std::span<float>));
static_assert(sizeof(stored<outputs::of<outputs::variance>>) == 3 * sizeof(std::span<float>));
static_assert(sizeof(stored<outputs::of<outputs::disagreement>>) == 2 * sizeof(std::span<float>) + 8);

TEST_CASE("outputs: what is not asked for takes no memory, and its facts do not travel") {
    using plain = row_format<float, combine::mean<space::value>, wire::as_is, outputs::of<>>;
    using top =
        row_format<float, combine::mean<space::value>, wire::as_is, outputs::of<outputs::disagreement>>;
    using spread =
        row_format<float, combine::mean<space::value>, wire::as_is, outputs::of<outputs::variance>>;
    CHECK(plain::row_bytes(100) == 400);
    CHECK(top::row_bytes(100) == 416);
    CHECK(spread::row_bytes(100) == 400);
    CHECK(spread::result_bytes(1000, 4) - plain::result_bytes(1000, 4) >= 4000);
    using p = row_format<float, combine::mean<space::probability>, wire::as_is, outputs::of<>>;
    using h =
        row_format<float, combine::mean<space::probability>, wire::as_is, outputs::of<outputs::mean_entropy>>;
    std::vector<float> const row = drawn(100, 1);
    std::vector<std::byte> out(p::row_bytes(100));
    auto const entropy = [&] { return herring::detail::ensembles::row_head::read(out).entropy; };
    CHECK(p::encode(row, out) == row_check::good);
    CHECK(entropy() == 0);
    CHECK(h::encode(row, out) == row_check::good);
    CHECK(entropy() > 0);
}

} // namespace of_test
