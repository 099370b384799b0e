// herring: votes, decisions and the largest elements of rows.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/entry_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "doctest/doctest.h"

#include "ensemble_rows.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/wire/codecs.hpp"

namespace entry_rows_test {

using namespace ensemble_rows;

TEST_CASE("votes: shares, and ties to the lowest index") {
    bench<float, combine::vote<>, wire::as_is, outputs::of<outputs::disagreement>> all{10};
    auto const votes_for = [](std::size_t id, std::size_t also = 99) {
        std::vector<float> row(10, -1.0f);
        row[id] = 2;
        if (also < 10) row[also] = 2;
        return row;
    };
    for (auto const& row : {votes_for(7), votes_for(3, 9), votes_for(7), votes_for(3), votes_for(0)})
        CHECK(all.add(row) == row_check::good);
    CHECK(decltype(all)::format::row_bytes(10) == 16);
    CHECK(all.fold());
    REQUIRE(all.results.entries.size() == 3);
    CHECK(all.results.entries[0] == herring::entry{0, 0.2f});
    CHECK(all.results.entries[1] == herring::entry{3, 0.4f});
    CHECK(all.results.entries[2] == herring::entry{7, 0.4f});
    CHECK(all.results.chosen == 3);
    CHECK(all.results.certain);
    CHECK(all.results.get<outputs::disagreement>() == 0.6f);

    bench<float, combine::vote<weighting::as_given>> weighted{10};
    for (auto const& row : {votes_for(7), votes_for(3), votes_for(7)})
        CHECK(weighted.add(row) == row_check::good);
    CHECK(weighted.fold({0.5f, 2, 1}));
    CHECK(weighted.results.entries[1] == herring::entry{7, 1.5f});
    CHECK(weighted.results.chosen == 3);
}

TEST_CASE("top_k: the largest, ids ascending, ties to the lowest id") {
    std::vector<float> row(1000);
    for (std::size_t i = 0; i < row.size(); ++i)
        row[i] = static_cast<float>(i * 7919 % 50) * 0.1f; // many ties
    row[5] = -infinite;
    std::vector<std::size_t> order(1000);
    for (std::size_t i = 0; i < 1000; ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
    order.resize(64);
    std::sort(order.begin(), order.end());
    bench<float, combine::mean<space::probability>, wire::top_k<64>> all{1000};
    CHECK(all.add(row) == row_check::good);
    CHECK(decltype(all)::format::row_bytes(1000) == 8 + 64 * 8);
    CHECK(all.fold());
    auto const p = probabilities(row);
    REQUIRE(all.results.entries.size() == 64);
    double mass = 0;
    for (std::size_t i = 0; i < 64; ++i) {
        CHECK(all.results.entries[i].id == order[i]);
        CHECK(close(static_cast<double>(all.results.entries[i].value), p[order[i]], 1e-5, 0));
        mass += p[order[i]];
    }
    CHECK(close(static_cast<double>(all.results.missing), 1 - mass, 1e-4, 1e-6));

    bench<float, combine::mean<space::probability>, wire::top_k<64>> few{3}; // fewer elements than places
    CHECK(few.add({1, -infinite, 2}) == row_check::good);
    CHECK(few.fold());
    REQUIRE(few.results.entries.size() == 2);
    CHECK(few.results.entries[1].id == 2);
    CHECK(few.results.missing < 1e-6f);
    CHECK(few.results.certain);
}

TEST_CASE("top_k: the union of members, with weights, and what is missing") {
    bench<float, combine::mean<space::probability, weighting::renormalised>, wire::top_k<3>> all{200};
    std::vector<double> due(200), weights{0.25, 0.75};
    double missing = 0;
    std::vector<bool> sent(200);
    for (std::uint32_t m = 0; m < 2; ++m) {
        auto const row = drawn(200, m + 3, 1);
        CHECK(all.add(row) == row_check::good);
        auto const p = probabilities(row);
        std::vector<std::size_t> order(200);
        for (std::size_t i = 0; i < 200; ++i) order[i] = i;
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
        double mass = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            due[order[i]] += weights[m] * p[order[i]];
            sent[order[i]] = true;
            mass += p[order[i]];
        }
        missing += weights[m] * (1 - mass);
    }
    CHECK(all.fold({1, 3}));
    std::size_t at = 0;
    for (std::size_t i = 0; i < 200; ++i)
        if (sent[i]) {
            REQUIRE(at < all.results.entries.size());
            CHECK(all.results.entries[at].id == i);
            CHECK(close(static_cast<double>(all.results.entries[at++].value), due[i], 1e-5, 0));
        }
    CHECK(at == all.results.entries.size());
    CHECK(close(static_cast<double>(all.results.missing), missing, 1e-5, 0));
    CHECK(!all.results.certain); // rows are nearly flat
}

TEST_CASE("entries: certain means that no row that fits what came has another choice") {
    // All pairs of distributions of sixths over three elements, of which the most probable one or two travel.
    auto const try_all = [](auto tag, std::size_t k) {
        using wire_policy = typename decltype(tag)::type;
        std::vector<std::vector<float>> rows;
        for (int a = 0; a <= 6; ++a)
            for (int b = 0; a + b <= 6; ++b) {
                std::vector<float> row;
                for (int const sixths : {a, b, 6 - a - b})
                    row.push_back(sixths == 0 ? -infinite : std::log(static_cast<float>(sixths) / 6));
                rows.push_back(row);
            }
        // What travels of each, and whether another row would have sent the same.
        std::vector<decltype(bench<float, combine::mean<space::probability>, wire_policy>::rows)> sent;
        for (auto const& row : rows) {
            bench<float, combine::mean<space::probability>, wire_policy> one{3};
            (void)one.add(row);
            sent.push_back(one.rows);
        }
        std::vector<std::vector<std::size_t>> alike(rows.size());
        for (std::size_t a = 0; a < rows.size(); ++a)
            for (std::size_t b = 0; b < rows.size(); ++b)
                if ((rows[a][0] == rows[b][0]) + (rows[a][1] == rows[b][1]) + (rows[a][2] == rows[b][2]) >=
                        static_cast<int>(k) &&
                    sent[a] == sent[b])
                    alike[a].push_back(b);
        std::size_t certain = 0, wrong = 0;
        for (std::size_t first = 0; first < rows.size(); ++first)
            for (std::size_t second = 0; second < rows.size(); ++second) {
                bench<float, combine::mean<space::probability>, wire_policy> all{3};
                CHECK(all.add(rows[first]) == row_check::good);
                CHECK(all.add(rows[second]) == row_check::good);
                CHECK(all.fold());
                if (!all.results.certain) continue;
                ++certain;
                // Other rows that would have sent the same entries.
                for (std::size_t const x : alike[first])
                    for (std::size_t const y : alike[second]) {
                        auto const p = probabilities(rows[x]), q = probabilities(rows[y]);
                        for (std::size_t i = 0; i < 3; ++i)
                            wrong += p[i] + q[i] > p[all.results.chosen] + q[all.results.chosen] + 1e-5;
                    }
            }
        CHECK(certain > 0);
        CHECK(certain < rows.size() * rows.size());
        CHECK(wrong == 0);
    };
    try_all(std::type_identity<wire::top_k<2>>(), 2);
    try_all(std::type_identity<wire::decision<>>(), 1);
}

TEST_CASE("entries: rows from outside") {
    using format = row_format<float, combine::mean<space::probability>, wire::top_k<4>, outputs::of<>>;
    std::vector<std::byte> good(format::row_bytes(50));
    CHECK(format::encode(drawn(50, 4), good) == row_check::good);
    CHECK(format::check(good, 50) == row_check::good);
    auto const with = [&](std::size_t at, auto value) {
        auto row = good;
        std::memcpy(row.data() + at, &value, sizeof value);
        return format::check(row, 50);
    };
    std::uint32_t first = 0;
    std::memcpy(&first, good.data() + 8, 4);
    CHECK(with(0, std::uint32_t{0}) == row_check::malformed);
    CHECK(with(0, std::uint32_t{5}) == row_check::malformed);
    CHECK(with(0, 0xffff'ffffu) == row_check::malformed);
    CHECK(with(0, std::uint32_t{3}) == row_check::good);
    CHECK(with(16, first) == row_check::malformed); // twice
    CHECK(with(32, std::uint32_t{50}) == row_check::malformed);
    CHECK(with(32, 0xffff'ffffu) == row_check::malformed);
    CHECK(with(12, std::nanf("")) == row_check::not_a_number);
    CHECK(with(12, 0.5f) == row_check::malformed);
    CHECK(with(12, -infinite) == row_check::malformed);
    CHECK(format::check(std::span(good).first(good.size() - 1), 50) == row_check::wrong_size);
    auto all_certain = good; // four probabilities of 1
    for (std::size_t i = 0; i < 4; ++i) std::memset(all_certain.data() + 12 + i * 8, 0, 4);
    CHECK(format::check(all_certain, 50) == row_check::malformed);
    std::vector<herring::entry> out(4);
    CHECK(format::decode(good, 50, out) == 4);
    CHECK(out[0].id == first);
    CHECK(out[0].value > 0);
}

TEST_CASE("entries: rows that change after they were checked stay within their memory, and give no id that "
          "is none") {
    using format = row_format<float, combine::mean<space::probability>, wire::top_k<4>, outputs::of<>>;
    std::vector<std::byte> row(format::row_bytes(50));
    REQUIRE(format::encode(drawn(50, 4), row) == row_check::good);
    auto const whole = row;
    for (std::size_t at = 0; at < row.size(); at += 4)
        for (std::uint32_t const value : {0u, 3u, 49u, 50u, 0x7fff'ffffu, 0xffff'ffffu}) {
            row = whole;
            std::memcpy(row.data() + at, &value, sizeof value);
            std::vector<std::byte> memory(format::result_bytes(50, 2));
            auto results = format::results_in(memory, 50, 2);
            std::span<std::byte const> const rows[] = {row, whole};
            REQUIRE(format::fold(rows, {}, 50, results));
            CHECK(results.entries.size() <= 8);
            bool known = results.chosen < 50;
            for (auto const& entry : results.entries) known = known && entry.id < 50;
            CHECK(known);
            std::vector<herring::entry> out(4);
            CHECK(format::decode(row, 50, out) <= 4);
        }
}

} // namespace entry_rows_test
