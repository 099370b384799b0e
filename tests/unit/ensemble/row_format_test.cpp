// herring: weights, rules and codecs of rows; the same bits in every build.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/row_format.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "doctest/doctest.h"

#include "ensemble_rows.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/wire/codecs.hpp"

namespace row_format_test {

using namespace ensemble_rows;

TEST_CASE("rows: weights as given, renormalised, and what is wrong with some") {
    using as_given = bench<float, combine::mean<space::logit, weighting::as_given>>;
    as_given all{40};
    auto one = drawn(40, 1), two = drawn(40, 2);
    two[3] = -infinite;
    CHECK(all.add(one) == row_check::good);
    CHECK(all.add(two) == row_check::good);
    CHECK(all.fold({2, -0.5f}));
    for (std::size_t i = 0; i < 40; ++i)
        CHECK(all.results.values[i] == (i == 3 ? -infinite : one[i] * 2 + two[i] * -0.5f));
    CHECK(all.fold({1, 0})); // who has no weight masks nothing
    for (std::size_t i = 0; i < 40; ++i) CHECK(all.results.values[i] == one[i]);
    CHECK(!all.fold({0, 0}));

    using text = std::string;
    std::vector<float> const good{1, 0, 2}, negative{1, -1, 0}, none{0, 0, 0}, nan{1, std::nanf("")};
    using renormalised =
        row_format<float, combine::mean<space::value, weighting::renormalised>, wire::as_is, outputs::of<>>;
    CHECK(renormalised::fault_of_weights({}) == nullptr);
    CHECK(renormalised::fault_of_weights(good) == nullptr);
    CHECK(text(renormalised::fault_of_weights(negative)).find("negative") != text::npos);
    CHECK(text(renormalised::fault_of_weights(none)) == "all weights are 0");
    CHECK(text(renormalised::fault_of_weights(nan)).find("finite") != text::npos);
    float const large[] = {3e38f, 3e38f};
    CHECK(text(renormalised::fault_of_weights(large)).find("too large") != text::npos);
    CHECK(as_given::format::fault_of_weights(large) == nullptr);
    CHECK(as_given::format::fault_of_weights(negative) == nullptr);
    using unweighted = row_format<float, combine::mean<space::value>, wire::as_is, outputs::of<>>;
    CHECK(text(unweighted::fault_of_weights(good)).find("takes no weights") != text::npos);
    using probable =
        row_format<float, combine::mean<space::probability, weighting::as_given>, wire::as_is, outputs::of<>>;
    CHECK(text(probable::fault_of_weights(negative)).find("probabilities") != text::npos);
}

TEST_CASE("rows: median and trimmed mean, of those who came") {
    for (std::size_t const members : {1u, 2u, 3u, 5u, 8u, 11u}) {
        bench<float, combine::median<space::value>> median{50};
        bench<float, combine::trimmed_mean<space::value>> trimmed{50};
        std::vector<std::vector<float>> columns(50);
        for (std::uint32_t m = 0; m < members; ++m) {
            auto const row = drawn(50, m * 3 + 1);
            CHECK(median.add(row) == row_check::good);
            CHECK(trimmed.add(row) == row_check::good);
            for (std::size_t i = 0; i < 50; ++i) columns[i].push_back(row[i]);
        }
        CHECK(median.fold());
        CHECK(trimmed.fold());
        std::size_t const out = members / 5;
        for (std::size_t i = 0; i < 50; ++i) {
            auto& c = columns[i];
            std::sort(c.begin(), c.end());
            float const due =
                members % 2 == 1 ? c[members / 2] : c[members / 2 - 1] * 0.5f + c[members / 2] * 0.5f;
            CHECK(median.results.values[i] == due);
            double sum = 0;
            for (std::size_t m = out; m < members - out; ++m) sum += static_cast<double>(c[m]);
            CHECK(close(trimmed.value(i), sum / static_cast<double>(members - 2 * out), 1e-6, 1e-6));
        }
    }
}

// A rule of a user's own, element by element: the range.
struct range_of_rows {
    using axis = herring::axes::combine;
    using space = herring::space::value;
    using weighting = herring::weighting::none;
    static constexpr char const* name = "range_of_rows";
    static constexpr herring::combine_facts facts{};
    template <class Lane> static Lane combine(std::span<Lane> rows, std::span<float const>) noexcept {
        auto const [least, most] = std::minmax_element(rows.begin(), rows.end());
        return *most - *least;
    }
};
// A codec of a user's own, without lanes: 8 bits for 32 elements that share their largest magnitude.
struct int8 {
    using axis = herring::axes::wire;
    static constexpr char const* name = "int8";
    static constexpr herring::wire_facts facts{.group = 32, .largest = 1e30f};
    template <class T> static constexpr bool supports = std::is_same_v<herring::accumulator<T>, float>;
    template <class T> static constexpr std::size_t bytes(std::size_t elements) noexcept {
        return elements + (elements + 31) / 32 * sizeof(float);
    }
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        std::byte* to = out.data();
        for (std::size_t i = 0; i < numbers.size(); i += 32) {
            auto const group = numbers.subspan(i, std::min<std::size_t>(32, numbers.size() - i));
            float most = 0;
            for (float const x : group) most = std::max(most, std::abs(x));
            std::memcpy(to, &most, sizeof most);
            to += sizeof most;
            for (float const x : group)
                *to++ = static_cast<std::byte>(
                    static_cast<std::int8_t>(std::lrint(x * (127 / std::max(most, 1e-30f)))));
        }
    }
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        std::byte const* from = bytes.data();
        for (std::size_t i = 0; i < numbers.size(); i += 32) {
            float most = 0;
            std::memcpy(&most, from, sizeof most);
            from += sizeof most;
            for (std::size_t j = i; j < std::min(i + 32, numbers.size()); ++j)
                numbers[j] = static_cast<float>(static_cast<std::int8_t>(*from++)) * (most / 127);
        }
    }
};
static_assert(herring::wire_policy<int8> && herring::combine_policy<range_of_rows>);

TEST_CASE("rows: a rule and a codec of one's own") {
    bench<float, range_of_rows, int8> all{2500};
    std::vector<std::vector<double>> own;
    for (std::uint32_t m = 0; m < 3; ++m) {
        auto const row = drawn(2500, m);
        CHECK(all.add(row) == row_check::good);
        own.push_back(all.decoded(m));
        std::size_t near = 0;
        for (std::size_t i = 0; i < 2500; ++i) near += close(own[m][i], static_cast<double>(row[i]), 0, 0.2);
        CHECK(near == 2500);
    }
    CHECK(all.fold());
    for (std::size_t i = 0; i < 2500; ++i)
        CHECK(all.value(i) == doctest::Approx(std::max({own[0][i], own[1][i], own[2][i]}) -
                                              std::min({own[0][i], own[1][i], own[2][i]})));
    bench<float, combine::mean<space::probability>, int8> mean{2500};
    for (std::uint32_t m = 0; m < 3; ++m) CHECK(mean.add(drawn(2500, m)) == row_check::good);
    CHECK(mean.fold());
    double sum = 0;
    std::size_t near = 0;
    auto const first = mean.decoded(0), second = mean.decoded(1), third = mean.decoded(2);
    for (std::size_t i = 0; i < 2500; ++i) {
        sum += mean.value(i);
        near += close(mean.value(i), (first[i] + second[i] + third[i]) / 3, 1e-6, 1e-9);
    }
    CHECK(near == 2500);
    CHECK(std::abs(sum - 1) < 1e-5);
    // A codec of groups has its head checked, too: by the sum of what is decoded.
    using herring::detail::ensembles::row_head;
    auto const encoded = std::span(mean.rows[0]).subspan(1);
    row_head head = row_head::read(encoded);
    head.sum *= 1.01f;
    head.write(encoded);
    CHECK(decltype(mean)::format::check(mean.row(0), 2500) == row_check::malformed);
}

TEST_CASE("rows: the bits are those of every other build") {
    std::uint64_t print = 14695981039346656037u;
    auto const mix = [&](auto all) {
        for (std::uint32_t m = 0; m < 5; ++m) {
            std::vector<float> row(1043);
            std::uint32_t seed = m;
            for (float& x : row) {
                seed = seed * 1664525u + 1013904223u;
                x = static_cast<float>(static_cast<std::int32_t>(seed) >> 12) / (1 << 14); // exact
            }
            CHECK(all.add(row) == row_check::good);
            for (std::byte const b : all.row(m))
                print = (print ^ static_cast<std::uint8_t>(b)) * 1099511628211u;
        }
        CHECK(all.fold());
        for (auto const x : all.results.values)
            print = (print ^ std::bit_cast<std::uint32_t>(x)) * 1099511628211u;
    };
    mix(bench<float, combine::mean<space::probability>, wire::as_is, every_output>{1043});
    mix(bench<float, combine::mean<space::probability>, wire::fp16>{1043});
    mix(bench<float, combine::mean<space::log_probability, weighting::renormalised>, wire::bf16,
              outputs::of<outputs::variance>>{1043});
    mix(bench<float, combine::mean<space::logit>, wire::bf16>{1043});
    mix(bench<float, combine::trimmed_mean<space::value>, wire::bf16>{1043});
    CHECK(print == 7838023819514110087u);
}

} // namespace row_format_test
