// herring: tests of ensemble/dense_row.hpp: a row's head, and what may not travel, wherever it stands in a row.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dense_row.hpp"

#include "doctest/doctest.h"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/wire/codecs.hpp"

#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace row_head_test {

using herring::detail::ensembles::row_head;

TEST_CASE("row head: facts that cannot be") {
    float const nan = std::numeric_limits<float>::quiet_NaN(),
                infinite = std::numeric_limits<float>::infinity();
    row_head const good{.origin = 3, .sum = 2, .entropy = 0.5f, .top = 9};
    CHECK(good.possible(10, true, 1));
    auto const with = [&](auto change) {
        row_head head = good;
        change(head);
        return head.possible(10, true, 1);
    };
    for (float const x : {nan, infinite, -infinite}) CHECK(!with([x](row_head& h) { h.origin = x; }));
    for (float const x : {nan, infinite, -infinite, 0.9f, 12.0f})
        CHECK(!with([x](row_head& h) { h.sum = x; }));
    CHECK(!with([](row_head& h) { h.top = 10; }));
    std::vector<std::byte> bytes(20);
    good.write(std::span(bytes).subspan(1));
    CHECK(row_head::read(std::span(bytes).subspan(1)).top == 9);
}

TEST_CASE("row head: a sum that is not that of the lanes") {
    auto const has = [](float sum, float of_lanes) { return row_head{.sum = sum}.has_sum(of_lanes); };
    CHECK(has(100, 100));
    CHECK(has(100.09f, 100));
    CHECK(has(99.91f, 100));
    CHECK(!has(1, 100));
    CHECK(!has(101, 100));
    CHECK(!has(std::numeric_limits<float>::infinity(), 100));
    CHECK(!has(std::numeric_limits<float>::quiet_NaN(), 100));
}

TEST_CASE("row head: an entropy that no row of this largest probability has") {
    auto const has = [](double entropy, std::size_t n, float most) {
        return row_head{.entropy = static_cast<float>(entropy)}.has_entropy(n, most);
    };
    for (std::size_t const n : {1u, 2u, 10u, 70'000u}) {
        CAPTURE(n);
        double const uniform = std::log(static_cast<double>(n));
        CHECK(has(uniform, n, 1 / static_cast<float>(n)));
        CHECK(has(uniform, n, 0));
        CHECK(has(0, n, 1));
        CHECK(has(0, n, 0));
        for (float const most : {0.0f, 1.0f, 1 / static_cast<float>(n)}) {
            CHECK(!has(uniform + 0.5, n, most));
            CHECK(!has(-0.1, n, most));
            CHECK(!has(std::numeric_limits<double>::quiet_NaN(), n, most));
        }
        if (n == 1) continue;
        // Half of the mass in one element: the rest is in one other, or in all of them.
        CHECK(has(std::log(2), n, 0.5f));
        CHECK(has(std::log(2) + 0.5 * std::log(static_cast<double>(n - 1)), n, 0.5f));
        CHECK(!has(std::log(2) - 0.5, n, 0.5f));
        CHECK(!has(std::log(2) + 0.5 * std::log(static_cast<double>(n - 1)) + 0.5, n, 0.5f));
    }
}

} // namespace row_head_test

namespace ensemble_dense_encoder_test {

using namespace herring::detail::ensembles;
namespace outputs = herring::outputs;

constexpr float infinite = std::numeric_limits<float>::infinity();

template <class Space, class Wire, class Outputs = outputs::of<>>
using traits = dense_traits<float, herring::combine::mean<Space>, Wire, Outputs>;

template <class Traits> struct encoded {
    explicit encoded(std::vector<float> const& row)
        : bytes(Traits::row_bytes(row.size()) + 64, std::byte{0xa5}) {
        is = dense_encoder<Traits>::encode(row, std::span(bytes).first(bytes.size() - 64));
        for (std::size_t i = bytes.size() - 64; i < bytes.size(); ++i) CHECK(bytes[i] == std::byte{0xa5});
    }
    row_head head() const { return row_head::read(bytes); }
    std::vector<std::byte> bytes;
    row_check is;
};

// About blocks and tiles: the last of one, the first of the next, and what is left over.
constexpr std::size_t sizes[] = {1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2049};

template <class Traits> void refused_anywhere(float what, row_check due) {
    for (std::size_t const n : sizes)
        for (std::size_t const at : {std::size_t{0}, n / 2, n - 1}) {
            std::vector<float> row(n, -1.5f);
            row[at] = what;
            CAPTURE(n);
            CAPTURE(at);
            CHECK(encoded<Traits>(row).is == due);
        }
}

TEST_CASE("dense encoder: no number is refused wherever it stands, in every space") {
    constexpr float nan = std::numeric_limits<float>::quiet_NaN();
    for (float const bad : {nan, -nan, std::numeric_limits<float>::signaling_NaN()}) {
        refused_anywhere<traits<herring::space::probability, herring::wire::as_is>>(bad,
                                                                                    row_check::not_a_number);
        refused_anywhere<traits<herring::space::value, herring::wire::bf16>>(bad, row_check::not_a_number);
    }
}

TEST_CASE("dense encoder: infinite is refused; −inf masks among logits, and is no value") {
    using logits = traits<herring::space::logit, herring::wire::as_is>;
    using values = traits<herring::space::value, herring::wire::as_is>;
    refused_anywhere<logits>(infinite, row_check::infinite);
    refused_anywhere<values>(infinite, row_check::infinite);
    refused_anywhere<values>(-infinite, row_check::infinite);
    for (std::size_t const n : sizes) {
        std::vector<float> row(n, -infinite);
        CHECK(encoded<logits>(row).is == row_check::no_mass);
        row[n - 1] = std::numeric_limits<float>::lowest();
        CHECK(encoded<logits>(row).is == row_check::good);
    }
    std::vector<float> row(20, 0.0f);
    row[3] = std::numeric_limits<float>::max();
    CHECK(encoded<values>(row).is == row_check::good);
    // What bf16 would round to infinity is infinite already here.
    CHECK(encoded<traits<herring::space::value, herring::wire::bf16>>(row).is == row_check::infinite);
}

TEST_CASE("dense encoder: a row knows its largest, the sum of what is decoded, its entropy and its choice") {
    using all = traits<herring::space::probability, herring::wire::as_is,
                       outputs::of<outputs::mean_entropy, outputs::disagreement>>;
    for (std::size_t const n : sizes) {
        CAPTURE(n);
        std::vector<float> row(n);
        for (std::size_t i = 0; i < n; ++i) row[i] = static_cast<float>(i % 7) / 4 + 100;
        std::size_t const top = n / 3;
        row[top] = 105;
        if (n > top + 1) row[n - 1] = 105; // the lowest index of equals
        double sum = 0, moment = 0;
        for (float const x : row) {
            sum += std::exp(static_cast<double>(x) - 105);
            moment += (static_cast<double>(x) - 105) * std::exp(static_cast<double>(x) - 105);
        }
        encoded<all> const e(row);
        REQUIRE(e.is == row_check::good);
        CHECK(e.head().origin == 105);
        CHECK(e.head().top == top);
        CHECK(e.head().sum == doctest::Approx(sum).epsilon(1e-5));
        CHECK(e.head().entropy == doctest::Approx(std::log(sum) - moment / sum).epsilon(1e-4));
        CHECK(e.head().possible(n, true, 1));
    }
}

TEST_CASE("dense encoder: one class that has all the mass, and far masked ones, have no entropy below zero") {
    using all = traits<herring::space::probability, herring::wire::bf16, outputs::of<outputs::mean_entropy>>;
    std::vector<float> row(1000, -infinite);
    row[999] = 3e38f;
    row[0] = -3e38f; // apart by more than a float has
    encoded<all> const e(row);
    REQUIRE(e.is == row_check::good);
    CHECK(e.head().entropy == 0);
    CHECK(e.head().sum == 1);
}

} // namespace ensemble_dense_encoder_test
