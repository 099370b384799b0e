// herring: rows of all elements over every space and codec, against plain arithmetic.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dense_rows.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "doctest/doctest.h"

#include "ensemble_rows.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/wire/codecs.hpp"

namespace dense_rows_test {

using namespace ensemble_rows;

TEST_CASE("rows: the mean of probabilities") {
    for (std::size_t const elements : {1u, 3u, 16u, 17u, 1000u, 1024u, 2500u})
        for (std::size_t const members : {1u, 2u, 3u, 4u, 7u, 9u}) {
            bench<float, combine::mean<space::probability>> all{elements};
            std::vector<double> due(elements);
            for (std::size_t m = 0; m < members; ++m) {
                auto const logits = drawn(elements, static_cast<std::uint32_t>(m + elements));
                CHECK(all.add(logits) == row_check::good);
                auto const p = probabilities(logits);
                for (std::size_t i = 0; i < elements; ++i) due[i] += p[i] / static_cast<double>(members);
            }
            CHECK(all.fold());
            double sum = 0;
            for (std::size_t i = 0; i < elements; ++i) {
                CHECK(std::abs(all.value(i) - due[i]) <= 6e-6 * due[i] + 1e-30);
                sum += all.value(i);
            }
            CHECK(std::abs(sum - 1) < 1e-5);
        }
}

// What a row is in a space.
template <class Space> std::vector<double> in_space(std::vector<float> const& logits) {
    std::vector<double> out(logits.begin(), logits.end());
    if constexpr (std::is_same_v<Space, space::probability> ||
                  std::is_same_v<Space, space::log_probability>) {
        out = probabilities(logits);
        if constexpr (std::is_same_v<Space, space::log_probability>)
            for (double& x : out) x = std::log(x);
    }
    return out;
}

template <class Space, class T, class Wire>
void check_space(double relative, double absolute, float masked = -infinite) {
    constexpr std::size_t elements = 1043;
    for (std::size_t const members : {1u, 3u, 4u}) {
        bench<T, combine::mean<Space, weighting::renormalised>, Wire> all{elements};
        std::vector<float> const weights = members == 3 ? std::vector<float>{1, 0, 3} : std::vector<float>();
        float const total = members == 3 ? 4.0f : static_cast<float>(members);
        std::vector<double> due(elements);
        for (std::size_t m = 0; m < members; ++m) {
            auto row = drawn(elements, static_cast<std::uint32_t>(m + 11), 4);
            for (float& x : row) x = static_cast<float>(static_cast<T>(x));
            if constexpr (Space::of_logits) row[m * 7 + 2] = masked;
            CHECK(all.add(row) == row_check::good);
            auto const x = in_space<Space>(row);
            auto const own = all.decoded(m);
            float const weight = weights.empty() ? 1.0f : weights[m];
            for (std::size_t i = 0; i < elements; ++i) {
                CHECK(close(own[i], x[i], relative, absolute));
                if (weight != 0) due[i] += x[i] * static_cast<double>(weight / total);
            }
        }
        CHECK(all.fold(weights));
        for (std::size_t i = 0; i < elements; ++i) CHECK(close(all.value(i), due[i], relative, absolute));
    }
}

TEST_CASE("rows: every space over every codec") {
    using herring::bfloat16;
    using herring::float16;
    check_space<space::value, float, wire::as_is>(1e-6, 1e-6);
    check_space<space::value, float, wire::bf16>(0, 0.1); // 24 · 2^-8
    check_space<space::value, float, wire::fp16>(0, 0.012);
    check_space<space::value, bfloat16, wire::as_is>(0, 0.1);
    check_space<space::value, float16, wire::as_is>(0, 0.012);
    check_space<space::logit, float, wire::as_is>(1e-6, 1e-5);
    check_space<space::logit, float, wire::bf16>(0, 0.12);
    check_space<space::logit, float, wire::fp16>(0, 0.02);
    check_space<space::logit, float16, wire::bf16>(0, 0.12);
    check_space<space::log_probability, float, wire::as_is>(1e-6, 1e-4);
    check_space<space::log_probability, float, wire::bf16>(0, 0.12);
    check_space<space::log_probability, float, wire::fp16>(0, 0.03);
    check_space<space::probability, float, wire::as_is>(1e-5, 1e-30);
    check_space<space::probability, float, wire::bf16>(0.01, 1e-30);
    check_space<space::probability, float, wire::fp16>(1e-3, 2e-11);
    check_space<space::probability, bfloat16, wire::as_is>(0.015, 1e-30);
    check_space<space::probability, float16, wire::as_is>(2e-3, 1e-7);
    check_space<space::probability, bfloat16, wire::fp16>(0.01, 2e-11);
}

TEST_CASE("rows: doubles keep their precision") {
    bench<double, combine::mean<space::value>> all{37};
    for (std::uint32_t m = 0; m < 3; ++m) CHECK(all.add(drawn(37, m)) == row_check::good);
    CHECK(all.fold());
    for (std::size_t i = 0; i < 37; ++i)
        CHECK(all.results.values[i] == (all.decoded(0)[i] + all.decoded(1)[i] + all.decoded(2)[i]) / 3);
}

TEST_CASE("rows: two equal rows have themselves as their mean") {
    for (std::size_t const members : {2u}) { // three times a number is rounded
        bench<float, combine::mean<space::value>> all{100};
        auto const row = drawn(100, 5);
        for (std::size_t m = 0; m < members; ++m) CHECK(all.add(row) == row_check::good);
        CHECK(all.fold());
        for (std::size_t i = 0; i < 100; ++i) CHECK(all.results.values[i] == row[i]);
    }
}

TEST_CASE("rows: what is decoded of probabilities sums to 1, whatever the codec leaves of them") {
    auto const sum_of = [](auto all) {
        std::vector<float> flat(70'000); // most of it far below the largest
        for (std::size_t i = 0; i < flat.size(); ++i) flat[i] = i == 7 ? 0.0f : -9.0f - 1e-4f * float(i % 64);
        CHECK(all.add(flat) == row_check::good);
        double sum = 0;
        for (double const p : all.decoded(0)) sum += p;
        return sum;
    };
    CHECK(std::abs(sum_of(bench<float, combine::mean<space::probability>>{70'000}) - 1) < 1e-5);
    CHECK(std::abs(sum_of(bench<float, combine::mean<space::probability>, wire::bf16>{70'000}) - 1) < 1e-5);
    CHECK(std::abs(sum_of(bench<float, combine::mean<space::probability>, wire::fp16>{70'000}) - 1) < 1e-5);
}

TEST_CASE("rows: what a member may not send") {
    float const nan = std::numeric_limits<float>::quiet_NaN();
    for (std::size_t const at : {0u, 5u, 99u}) {
        auto const with = [&](float x) {
            auto row = drawn(100, 3);
            row[at] = x;
            return row;
        };
        bench<float, combine::mean<space::probability>> p{100};
        CHECK(p.add(with(nan)) == row_check::not_a_number);
        CHECK(p.add(with(infinite)) == row_check::infinite);
        CHECK(p.add(with(-infinite)) == row_check::good);
        CHECK(p.add(std::vector<float>(100, -infinite)) == row_check::no_mass);
        bench<float, combine::mean<space::logit>, wire::bf16> l{100};
        CHECK(l.add(with(nan)) == row_check::not_a_number);
        CHECK(l.add(with(infinite)) == row_check::infinite);
        CHECK(l.add(with(-infinite)) == row_check::good);
        bench<float, combine::mean<space::value>, wire::fp16> v{100};
        CHECK(v.add(with(nan)) == row_check::not_a_number);
        CHECK(v.add(with(-infinite)) == row_check::infinite);
        CHECK(v.add(with(70'000)) == row_check::infinite); // more than binary16 has
        CHECK(v.add(with(65'504)) == row_check::good);
        bench<float, combine::vote<>> one{100};
        CHECK(one.add(with(nan)) == row_check::not_a_number);
        CHECK(one.add(std::vector<float>(100, -infinite)) == row_check::no_mass);
    }
}

// A row as it was encoded is good, and refused as soon as one of its facts is another's.
template <class Space, class T, class Wire, class... Output> void check_facts() {
    using herring::detail::ensembles::row_head;
    using all_of = bench<T, combine::mean<Space>, Wire, outputs::of<Output...>>;
    using format = typename all_of::format;
    bool constexpr summed = std::is_same_v<Space, space::probability>;
    for (std::size_t const elements : {1u, 2u, 17u, 1000u, 2500u, 70'000u})
        for (float const rest : {0.0f, -3.0f, -std::log(static_cast<float>(elements))}) {
            CAPTURE(elements);
            CAPTURE(rest);
            all_of all{elements};
            std::vector<float> row(elements, rest - 5); // one on top, and the others alike
            row[elements / 2] = -5;
            REQUIRE(all.add(row) == row_check::good);
            auto const with = [&](auto change) {
                auto bytes = all.rows[0];
                auto const changed = std::span(bytes).subspan(1, format::row_bytes(elements));
                row_head head = row_head::read(changed);
                change(head);
                head.write(changed);
                return format::check(changed, elements);
            };
            CHECK(with([](row_head&) {}) == row_check::good);
            if constexpr (summed) {
                CHECK(with([](row_head& h) { h.sum *= 1.01f; }) == row_check::malformed);
                CHECK(with([](row_head& h) { h.sum *= 0.99f; }) == row_check::malformed);
            }
            if constexpr ((std::is_same_v<Output, outputs::disagreement> || ...))
                if (rest < 0) // else all are equal, and any may be named
                    for (std::size_t const other : {std::size_t{0}, elements - 1})
                        if (other != elements / 2)
                            CHECK(with([&](row_head& h) { h.top = static_cast<std::uint32_t>(other); }) ==
                                  row_check::malformed);
            if constexpr ((std::is_same_v<Output, outputs::mean_entropy> || ...)) {
                float const most = std::log(static_cast<float>(elements)) + 0.5f;
                CHECK(with([&](row_head& h) { h.entropy = most; }) == row_check::malformed);
                CHECK(with([](row_head& h) { h.entropy = -0.01f; }) == row_check::malformed);
                if (summed && rest == 0 && elements > 2) // all are equal
                    CHECK(with([](row_head& h) { h.entropy = 0; }) == row_check::malformed);
            }
        }
}

TEST_CASE("rows: a head that is not that of its lanes is refused, in every codec") {
    using herring::bfloat16;
    using herring::float16;
    using outputs::disagreement;
    using outputs::mean_entropy;
    check_facts<space::probability, float, wire::as_is, disagreement, mean_entropy>();
    check_facts<space::probability, float, wire::bf16, disagreement, mean_entropy>();
    check_facts<space::probability, float, wire::fp16, disagreement, mean_entropy>();
    check_facts<space::probability, bfloat16, wire::as_is, disagreement, mean_entropy>();
    check_facts<space::probability, float16, wire::as_is, disagreement, mean_entropy>();
    check_facts<space::log_probability, float, wire::as_is, disagreement, mean_entropy>();
    check_facts<space::log_probability, float, wire::bf16, disagreement, mean_entropy>();
    check_facts<space::log_probability, float, wire::fp16, disagreement, mean_entropy>();
    check_facts<space::logit, float, wire::as_is, disagreement, mean_entropy>();
    check_facts<space::logit, float, wire::bf16, disagreement, mean_entropy>();
    check_facts<space::logit, float16, wire::fp16, disagreement, mean_entropy>();
    check_facts<space::value, float, wire::as_is, disagreement>();
    check_facts<space::value, float, wire::fp16, disagreement>();
    check_facts<space::value, double, wire::as_is, disagreement>();
}

TEST_CASE("rows: a member that says a smaller sum has no more than its share") {
    using herring::detail::ensembles::row_head;
    bench<float, combine::mean<space::probability>> all{100};
    CHECK(all.add(std::vector<float>(100, 2.0f)) == row_check::good); // 100 lanes of 1
    auto const row = std::span(all.rows[0]).subspan(1);
    row_head head = row_head::read(row);
    CHECK(head.sum == 100);
    head.sum = 1; // each would be a probability of 1
    head.write(row);
    CHECK(decltype(all)::format::check(all.row(0), 100) == row_check::malformed);
}

// Every bit of a row is turned, one at a time: either the check refuses it, or what is folded is finite.
template <class Bench> void turn_bits(Bench all, std::uint32_t step) {
    using format = typename Bench::format;
    CHECK(all.add(drawn(all.elements, 1)) == row_check::good);
    CHECK(all.add(drawn(all.elements, 2)) == row_check::good);
    std::size_t refused = 0, turned = 0;
    for (std::size_t bit = 0; bit < format::row_bytes(all.elements) * 8; bit += step) {
        auto const kept = all.rows[0];
        all.rows[0][1 + bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
        ++turned;
        if (format::check(all.row(0), all.elements) != row_check::good) {
            ++refused;
        } else {
            CHECK(all.fold());
            for (std::size_t i = 0; i < all.elements; ++i) {
                double const x = all.value(i);
                bool const masked = x == -std::numeric_limits<double>::infinity();
                if (!std::isfinite(x) && !masked) CHECK(x == 0); // says which
            }
        }
        all.rows[0] = kept;
    }
    CHECK(refused > 0);
    CHECK(refused < turned);
    CHECK(format::check(all.row(0).first(all.row(0).size() - 1), all.elements) == row_check::wrong_size);
    CHECK(format::check({}, all.elements) == row_check::wrong_size);
}

TEST_CASE("rows: a checked row gives finite numbers, whatever its bits") {
    turn_bits(bench<float, combine::mean<space::probability>>{67}, 1);
    turn_bits(bench<float, combine::mean<space::probability>, wire::bf16>{67}, 1);
    turn_bits(bench<float, combine::mean<space::probability>, wire::fp16>{67}, 1);
    turn_bits(bench<float, combine::mean<space::value>>{67}, 1);
    turn_bits(bench<double, combine::mean<space::value>>{67}, 1);
    turn_bits(bench<float, combine::mean<space::logit>>{67}, 1);
    turn_bits(bench<float, combine::mean<space::logit>, wire::bf16>{67}, 1);
    turn_bits(bench<float, combine::mean<space::log_probability>, wire::fp16>{67}, 1);
}

} // namespace dense_rows_test
