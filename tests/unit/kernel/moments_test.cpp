// herring: tests of kernel/moments.hpp: means and deviations against long double, and the same bits in every shape.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/moments.hpp"

#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace moments_test {

using herring::accumulator;
using herring::bfloat16;
using herring::float16;
namespace kernel = herring::kernel;

struct dice {
    std::uint64_t state;
    double next() { // in [0, 1)
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 11) * 0x1p-53;
    }
};

/// Contributions of ranks on nodes; `nodes[n]` ranks on node n.
template <class T> struct committee {
    std::vector<int> nodes;
    std::vector<std::vector<T>> given; // rank by rank, node after node
    std::size_t count;

    committee(std::vector<int> on, std::size_t n, double offset, double spread, std::uint64_t seed)
        : nodes(std::move(on)), count(n) {
        dice random{seed};
        for (int const ranks : nodes)
            for (int r = 0; r < ranks; ++r) {
                std::vector<T>& made = given.emplace_back(n);
                for (T& x : made)
                    x = static_cast<T>(static_cast<float>(offset + spread * (random.next() - 0.5)));
            }
    }
    int ranks() const { return static_cast<int>(given.size()); }

    struct results {
        std::vector<T> mean, deviation;
    };
    /// As node `here` makes them: what the others give are contributions or sums; to `targets` places.
    results made_by(std::size_t here, int divisor, std::size_t targets = 1) const {
        std::vector<std::vector<accumulator<T>>> sums(nodes.size());
        std::vector<kernel::moments_term> before, after;
        std::vector<kernel::source> group;
        std::size_t first = 0;
        for (std::size_t n = 0; n < nodes.size(); ++n) {
            auto const ranks = static_cast<std::size_t>(nodes[n]);
            std::vector<kernel::source> own;
            for (std::size_t r = first; r < first + ranks; ++r) own.push_back({given[r].data()});
            first += ranks;
            if (n == here) {
                group = own;
            } else if (ranks == 1) {
                (n < here ? before : after).push_back({own[0]});
            } else {
                sums[n].resize(2 * count);
                kernel::moments_partial<T>(own, sums[n].data(), sums[n].data() + count, count);
                (n < here ? before : after)
                    .push_back({{sums[n].data(), herring::part_kind::accumulator},
                                sums[n].data() + count,
                                nodes[n]});
            }
        }
        results all{std::vector<T>(count * targets), std::vector<T>(count * targets)};
        std::vector<T*> means, deviations;
        for (std::size_t t = 0; t < targets; ++t) {
            means.push_back(all.mean.data() + t * count);
            deviations.push_back(all.deviation.data() + t * count);
        }
        kernel::moments<T>(before, group, after, means, deviations, count, ranks(), divisor);
        return all;
    }
};

template <class T> bool same(std::vector<T> const& a, std::vector<T> const& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Within what the header promises.
template <class T> void close(committee<T> const& of, int divisor) {
    using number = accumulator<T>;
    long double const u = std::numeric_limits<number>::epsilon() / 2;
    long double const rounding = std::is_same_v<T, number>     ? 0
                                 : std::is_same_v<T, bfloat16> ? 0x1p-8L
                                                               : 0x1p-11L;
    long double const least = std::is_same_v<T, float16> ? 0x1p-25L : 1e-44L; // half of the smallest step
    bool const alone = of.nodes.size() == 1 || *std::max_element(of.nodes.begin(), of.nodes.end()) == 1;
    auto const got = of.made_by(0, divisor);
    auto const ranks = static_cast<long double>(of.ranks());
    for (std::size_t i = 0; i < of.count; ++i) {
        long double sum = 0, squares = 0, most = 0;
        for (auto const& one : of.given) {
            auto const x = static_cast<long double>(static_cast<number>(one[i]));
            sum += x;
            most = std::max(most, std::fabs(x));
        }
        for (auto const& one : of.given) {
            long double const off = static_cast<number>(one[i]) - sum / ranks;
            squares += off * off;
        }
        long double const deviation = std::sqrt(squares / divisor);
        long double const d = (ranks + 2) * u * most * std::sqrt(ranks / divisor);
        long double const bound =
            (ranks + 6) * u * deviation + (alone ? deviation > d ? d * d / deviation : d : 2 * d);
        long double const mean_off = std::fabs(static_cast<number>(got.mean[i]) - sum / ranks),
                          off = std::fabs(static_cast<number>(got.deviation[i]) - deviation);
        bool const mean_good =
                       mean_off <= (ranks + 1) * u * most + rounding * std::fabs(sum / ranks) * 1.01L + least,
                   good = off <= bound + rounding * deviation * 1.01L + least;
        if (mean_good && good) continue;
        CAPTURE(i);
        CAPTURE(static_cast<double>(deviation));
        CAPTURE(static_cast<double>(off));
        CAPTURE(static_cast<double>(bound));
        CAPTURE(static_cast<double>(mean_off));
        REQUIRE(mean_good);
        REQUIRE(good);
    }
}

std::vector<std::vector<int>> const shapes{{1},    {2},       {3},          {1, 1}, {1, 1, 1, 1, 1},
                                           {2, 2}, {3, 1, 2}, {1, 4, 1, 2}, {7, 9}, {1, 19, 1}};

/// By racks: the first `split` nodes, of which node 1 is the group, and the others. The deviations.
template <class T> std::vector<T> by_racks(committee<T> const& of, std::size_t split) {
    using number = accumulator<T>;
    std::size_t const n = of.count;
    std::vector<std::vector<number>> terms(of.nodes.size() + 2, std::vector<number>(2 * n));
    std::vector<kernel::moments_term> nodes, racks;
    std::vector<kernel::source> group;
    std::size_t first = 0;
    for (std::size_t node = 0; node < of.nodes.size(); ++node) {
        std::vector<kernel::source> own;
        for (int r = 0; r < of.nodes[node]; ++r) own.push_back({of.given[first++].data()});
        if (node == 1) group = own;
        if (own.size() > 1) kernel::moments_partial<T>(own, terms[node].data(), terms[node].data() + n, n);
        nodes.push_back(own.size() == 1
                            ? kernel::moments_term{.first = own[0]}
                            : kernel::moments_term{{terms[node].data(), herring::part_kind::accumulator},
                                                   terms[node].data() + n,
                                                   of.nodes[node]});
    }
    std::span<kernel::moments_term const> const all(nodes);
    for (std::size_t rack = 0; rack < 2; ++rack) {
        auto const of_rack = rack == 0 ? all.first(split) : all.subspan(split);
        int ranks = 0;
        for (auto const& one : of_rack) ranks += one.ranks;
        number *const sums = terms[of.nodes.size() + rack].data(), *const squares = sums + n;
        if (rack == 0)
            kernel::moments_partial<T>(of_rack.first(1), group, of_rack.subspan(2), ranks, sums, squares, n);
        else
            kernel::moments_partial<T>(of_rack, {}, {}, ranks, sums, squares, n);
        racks.push_back({{sums, herring::part_kind::accumulator}, squares, ranks});
    }
    std::vector<T> mean(n), deviation(n);
    T *to_mean = mean.data(), *to_deviation = deviation.data();
    kernel::moments<T>(racks, {}, {}, std::span(&to_mean, 1), std::span(&to_deviation, 1), n, of.ranks(),
                       of.ranks());
    return deviation;
}

TEST_CASE_TEMPLATE("kernel::moments_partial: nodes of a rack become one term, and no deviation is lost", T,
                   float, double, bfloat16) {
    for (double const spread : {0.0, 1e-6, 1.0})
        for (double const offset : {0.1, -1234.7, 0.0}) {
            CAPTURE(spread);
            CAPTURE(offset);
            committee<T> const of({1, 3, 2, 2, 1, 3}, 301, offset, spread, 5);
            auto const nested = by_racks(of, 3), flat = of.made_by(1, of.ranks()).deviation;
            double const least = std::is_same_v<T, double> ? 1e-12 : 3e-5;
            for (std::size_t i = 0; i < of.count; ++i) {
                auto const a = static_cast<double>(static_cast<accumulator<T>>(nested[i])),
                           b = static_cast<double>(static_cast<accumulator<T>>(flat[i]));
                if (spread == 0) REQUIRE(a == 0);
                bool const near = std::fabs(a - b) <= 0.01 * b + least * std::fabs(offset);
                if (!near) REQUIRE(a == b);
            }
        }
    // Nodes whose means are equal, and whose ranks are not.
    committee<T> apart({2, 2, 2, 2}, 3, 0, 0, 5);
    for (std::size_t r = 0; r < 8; ++r) apart.given[r].assign(3, static_cast<T>(r % 2 == 0 ? 1.0f : 3.0f));
    for (T const got : by_racks(apart, 2)) CHECK(static_cast<float>(got) == 1.0f);
    // As little as rounding may do.
    auto const step = std::is_same_v<T, double> ? 0x1p-51 : std::is_same_v<T, float> ? 0x1p-22 : 0x1p-6;
    for (std::size_t r = 0; r < 8; ++r)
        apart.given[r].assign(3, static_cast<T>(static_cast<accumulator<T>>(r % 2 == 0 ? 1 : 1 + step)));
    for (T const got : by_racks(apart, 2)) CHECK(static_cast<accumulator<T>>(got) > 0);
}

} // namespace moments_test

using namespace moments_test;

TEST_CASE("kernel::moments: within the bound that is promised, whatever the mean is beside the deviation") {
    std::uint64_t seed = 1;
    for (auto const& shape : shapes)
        for (double const offset : {0.0, 1.0, -1000.0, 3e5})
            for (double const spread : {1e-3, 1.0, 300.0}) {
                CAPTURE(shape.size());
                CAPTURE(shape[0]);
                CAPTURE(offset);
                CAPTURE(spread);
                ++seed;
                committee<float> const floats(shape, 133, offset, spread, seed);
                close(floats, floats.ranks());
                committee<double> const doubles(shape, 67, offset, spread, seed);
                close(doubles, doubles.ranks());
                if (doubles.ranks() > 1) close(doubles, doubles.ranks() - 1);
                committee<bfloat16> const halves(shape, 133, offset, spread, seed);
                close(halves, halves.ranks());
                if (std::fabs(offset) < 6e4) {
                    committee<float16> const others(shape, 133, offset, spread, seed);
                    close(others, others.ranks());
                }
            }
}

TEST_CASE("kernel::moments: deviations that are small beside the mean are not lost, as they are by sums of "
          "squares") {
    // 1000 ± 0.001: the squares differ in their 13th digit, floats have 7.
    std::vector<float> const low{999.999f}, high{1000.001f};
    kernel::source const two[] = {{low.data()}, {high.data()}};
    float mean = 0, deviation = 0;
    float* const means[] = {&mean};
    float* const deviations[] = {&deviation};
    kernel::moments<float>({}, two, {}, means, deviations, 1, 2, 2);
    double const due = (static_cast<double>(high[0]) - static_cast<double>(low[0])) / 2;
    CHECK(mean == 1000.0f);
    CHECK(std::fabs(static_cast<double>(deviation) - due) < 1e-6 * due);
    kernel::moments<float>({}, two, {}, means, deviations, 1, 2, 1);
    CHECK(std::fabs(static_cast<double>(deviation) - due * std::sqrt(2.0)) < 1e-6 * due);
}

TEST_CASE(
    "kernel::moments: whichever node makes them, and wherever a register begins, the bits are the same") {
    for (auto const& shape : shapes) {
        committee<float> const of(shape, 101, 2.5, 1.0, 77);
        committee<bfloat16> const halves(shape, 101, 2.5, 1.0, 78);
        auto const first = of.made_by(0, of.ranks());
        for (std::size_t n = 0; n < shape.size(); ++n) {
            auto const other = of.made_by(n, of.ranks());
            CHECK(same(other.mean, first.mean));
            CHECK(same(other.deviation, first.deviation));
            CHECK(same(halves.made_by(n, of.ranks()).deviation, halves.made_by(0, of.ranks()).deviation));
        }
        // Into two places.
        auto const twice = of.made_by(0, of.ranks(), 2);
        for (std::size_t i = 0; i < 2 * of.count; ++i) {
            CHECK(twice.mean[i] == first.mean[i % of.count]);
            CHECK(twice.deviation[i] == first.deviation[i % of.count]);
        }
        // One by one, as the rest behind the last register is.
        for (std::size_t i = 0; i < of.count; ++i) {
            committee<float> one(shape, 1, 0, 0, 1);
            for (std::size_t r = 0; r < one.given.size(); ++r) one.given[r][0] = of.given[r][i];
            auto const alone = one.made_by(0, of.ranks());
            REQUIRE(std::memcmp(&alone.mean[0], &first.mean[i], sizeof(float)) == 0);
            REQUIRE(std::memcmp(&alone.deviation[0], &first.deviation[i], sizeof(float)) == 0);
        }
    }
}

TEST_CASE("kernel::moments: the mean has the bits of update::average") {
    for (auto const& shape : {std::vector<int>{1, 1, 1}, std::vector<int>{4}, std::vector<int>{3, 2}}) {
        committee<float> const of(shape, 100, 0.1, 1.0, 5);
        std::vector<kernel::source> group, after;
        for (std::size_t r = 0; r < of.given.size(); ++r)
            (static_cast<int>(r) < shape[0] ? group : after).push_back({of.given[r].data()});
        std::vector<float> due(of.count), inner(of.count);
        if (shape.size() == 2) { // the second node's sum is one operand
            kernel::fold_partial<herring::update::average, float>(after, inner.data(), of.count);
            after = {{inner.data(), herring::part_kind::accumulator}};
        }
        float* const to[] = {due.data()};
        kernel::fold<herring::update::average, float>({}, group, after, to, of.count, of.ranks());
        CHECK(same(of.made_by(0, of.ranks()).mean, due));
    }
}

TEST_CASE("kernel::moments: results may lie on contributions") {
    committee<float> of({3}, 77, 1.0, 1.0, 9);
    auto const due = of.made_by(0, 3);
    kernel::source const group[] = {{of.given[0].data()}, {of.given[1].data()}, {of.given[2].data()}};
    float* const means[] = {of.given[1].data()};
    float* const deviations[] = {of.given[2].data()};
    kernel::moments<float>({}, group, {}, means, deviations, 77, 3, 3);
    CHECK(same(of.given[1], due.mean));
    CHECK(same(of.given[2], due.deviation));
    for (std::vector<float>& given : of.given)
        std::ranges::fill(given, 1.1e30f); // whose deviations are looked at twice
    kernel::moments<float>({}, group, {}, means, deviations, 77, 3, 3);
    CHECK(of.given[1] == std::vector<float>(77, (1.1e30f + 1.1e30f + 1.1e30f) / 3));
    CHECK(of.given[2] == std::vector<float>(77, 0.0f));
}

TEST_CASE_TEMPLATE(
    "kernel::moments: ranks that agree to the bit deviate by nothing, however large the number", T, float,
    double, bfloat16, float16) {
    using number = accumulator<T>;
    constexpr std::size_t count = 45; // in registers, and behind the last one
    for (auto const& shape : shapes) {
        committee<T> of(shape, count, 0, 0, 1);
        for (std::size_t i = 0; i < count; ++i) {
            double const most = std::is_same_v<T, float16> ? 6e4 : std::is_same_v<T, double> ? 1e306 : 1e36;
            T const x = static_cast<T>(
                static_cast<number>((i % 2 == 0 ? 1 : -1.37) * most / (1 + 0.7 * static_cast<double>(i))));
            for (auto& given : of.given) given[i] = x;
        }
        for (std::size_t here = 0; here < shape.size(); ++here) {
            auto const got = of.made_by(here, std::max(1, of.ranks() - 1));
            for (std::size_t i = 0; i < count; ++i) {
                CAPTURE(shape.size());
                CAPTURE(shape[0]);
                CAPTURE(i);
                REQUIRE(static_cast<number>(got.deviation[i]) == 0);
            }
        }
    }
}

TEST_CASE("kernel::moments: no deviation is larger than the range of what deviates") {
    dice random{19};
    for (auto const& shape : shapes) {
        if (shape.size() > 1 && *std::max_element(shape.begin(), shape.end()) > 1) continue;
        committee<float> of(shape, 1000, 0, 0, 1);
        for (std::size_t i = 0; i < of.count; ++i) {
            float const x = 2e25f * static_cast<float>(1 + random.next());
            for (auto& given : of.given) given[i] = x;
            of.given[i % of.given.size()][i] = std::nextafter(x, 1e38f);
        }
        auto const got = of.made_by(0, of.ranks());
        for (std::size_t i = 0; i < of.count; ++i) {
            auto const& other = of.given[i % of.given.size()][i];
            float const range = of.ranks() == 1 ? 0 : other - std::nextafter(other, 0.0f);
            CAPTURE(shape.size());
            CAPTURE(i);
            REQUIRE(got.deviation[i] <= range);
        }
    }
    // Nodes whose ranks agree, and that differ from each other.
    committee<float> of({3, 5}, 1, 0, 0, 1);
    float const x = 2.3e25f, y = std::nextafter(x, 1e38f);
    for (std::size_t r = 0; r < 8; ++r) of.given[r][0] = r < 3 ? x : y;
    CHECK(of.made_by(0, 8).deviation[0] <= y - x);
    CHECK(of.made_by(0, 8).deviation[0] > 0);
    CHECK(same(of.made_by(0, 8).deviation, of.made_by(1, 8).deviation));
}

TEST_CASE(
    "kernel::moments: equal contributions deviate by nothing; what is no number, and what overflows, shows") {
    float const infinite = std::numeric_limits<float>::infinity(), none = std::nanf("");
    struct row {
        float a, b, c, mean, deviation;
    };
    for (auto const& shape : {std::vector<int>{3}, std::vector<int>{1, 1, 1}, std::vector<int>{2, 1}})
        for (row const& r : {row{0.1f, 0.1f, 0.1f, 0.1f, 0.0f}, row{-0.0f, -0.0f, -0.0f, -0.0f, 0.0f},
                             row{1, none, 1, none, none}, row{1, infinite, 1, infinite, none},
                             row{-infinite, 1, 1, -infinite, none}, row{infinite, -infinite, 1, none, none},
                             row{3e30f, -3e30f, 0, 0, infinite}}) {
            committee<float> of(shape, 40, 0, 1, 3); // in a register, and behind the last one
            for (std::size_t const i : {std::size_t{3}, std::size_t{39}}) {
                of.given[0][i] = r.a;
                of.given[1][i] = r.b;
                of.given[2][i] = r.c;
            }
            auto const got = of.made_by(0, 3);
            CAPTURE(shape.size());
            CAPTURE(r.a);
            CAPTURE(r.b);
            for (std::size_t const i : {std::size_t{3}, std::size_t{39}}) {
                if (r.mean == r.mean)
                    CHECK((got.mean[i] == r.mean || std::fabs(got.mean[i] - r.mean) < 1e-7f));
                else
                    CHECK(std::memcmp(&got.mean[i], &none, sizeof none) == 0);
                if (r.deviation == r.deviation)
                    CHECK((got.deviation[i] == r.deviation ||
                           std::fabs(got.deviation[i] - r.deviation) < 1e-8f));
                else
                    CHECK(std::memcmp(&got.deviation[i], &none, sizeof none) == 0);
            }
            CHECK(got.deviation[4] == got.deviation[4]); // the others are untouched
        }
}
