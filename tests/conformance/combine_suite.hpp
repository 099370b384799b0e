// herring: what every combine policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_COMBINE_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_COMBINE_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/ensemble/outputs.hpp"
#include "herring/ensemble/row_format.hpp"
#include "herring/wire/codecs.hpp"

#include <cmath>
#include <limits>

namespace herring::conformance {

/// A rule over 1 to 17 rows of many lengths: the kernels, which call it with vectors, must give the bits of `combine` with
/// numbers; a result is a number, and the same a second time; an element does not depend on its neighbours; one that every row
/// masks is masked in the result; and the rule does not change the members' rows. Not for rules that vote.
template <class P> findings combine_suite() {
    static_assert(combine_policy<P> && !P::facts.votes);
    using format = herring::detail::ensembles::row_format<float, P, wire::as_is, outputs::of<>>;
    constexpr bool of_logits = P::space::of_logits;
    findings all;
    auto const find = [&](std::string const& test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };
    if (P::name == nullptr || P::name[0] == 0) find("facts", "name is empty");

    struct folded {
        std::vector<float> values;
        std::vector<std::vector<float>> decoded; // what the rule saw
    };
    auto const fold = [&](std::vector<std::vector<float>> const& rows, std::vector<float> const& weights) {
        std::size_t const elements = rows[0].size();
        folded out;
        std::vector<std::vector<std::byte>> encoded(rows.size());
        std::vector<std::span<std::byte const>> spans;
        for (std::size_t r = 0; r < rows.size(); ++r) {
            encoded[r].resize(format::row_bytes(elements));
            if (format::encode(rows[r], encoded[r]) != herring::detail::ensembles::row_check::good)
                find("row", "a row of finite numbers is refused");
            spans.push_back(encoded[r]);
            format::decode(encoded[r], elements, out.decoded.emplace_back(elements));
        }
        auto const before = encoded;
        std::vector<std::byte> memory(format::result_bytes(elements, rows.size()) + 64);
        std::size_t const begin = (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
        auto results = format::results_in(std::span(memory).subspan(begin), elements, rows.size());
        if (!format::fold(spans, weights, elements, results))
            find("fold", "there is no result of rows with weights");
        if (encoded != before) find("pure", "a fold changes the rows of members");
        out.values.assign(results.values.begin(), results.values.end());
        return out;
    };

    dice random(7);
    auto const draw = [&](std::size_t elements) {
        std::vector<float> row(elements);
        for (float& x : row) x = (static_cast<float>(random(4001)) - 2000.0f) * 0.0037f;
        return row;
    };
    for (std::size_t const members : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 17u})
        for (std::size_t const elements : {1u, 7u, 16u, 33u, 1100u}) {
            std::string const about =
                std::to_string(members) + " rows of " + std::to_string(elements) + " elements";
            std::vector<std::vector<float>> rows;
            for (std::size_t r = 0; r < members; ++r) rows.push_back(draw(elements));
            std::vector<float> weights;
            if (P::weighting::weighted)
                for (std::size_t r = 0; r < members; ++r)
                    weights.push_back(static_cast<float>(random(9) + 1) * 0.25f);
            float total = 0;
            for (float const w : weights) total += w;
            folded const got = fold(rows, weights);

            std::vector<float> given(members, 1 / static_cast<float>(members));
            for (std::size_t r = 0; r < weights.size(); ++r)
                given[r] = P::weighting::normalised ? weights[r] / total : weights[r];
            for (std::size_t i = 0; i < elements; ++i) {
                std::vector<float> column;
                for (auto const& row : got.decoded) column.push_back(row[i]);
                auto kept = given;
                float const due = P::combine(std::span<float>(column), std::span<float const>(kept));
                if (got.values[i] != got.values[i]) {
                    find("number", about + ": the result of numbers is none");
                    break;
                }
                // A linear rule is computed by its weights and scales in another order of rounding.
                bool const same = P::facts.linear
                                      ? std::abs(due - got.values[i]) <= 1e-5f * (1 + std::abs(due))
                                      : std::memcmp(&due, &got.values[i], sizeof due) == 0;
                if (!same) {
                    find("lanes", about + ": vectors and numbers give different results");
                    break;
                }
            }
            if (fold(rows, weights).values != got.values)
                find("pure", about + ": another answer the second time");
            // Only the first element is another: the rest has to stay, but where it is divided by a sum of the row.
            if (!of_logits && elements > 1) {
                auto changed = rows;
                for (auto& row : changed) row[0] += 1;
                folded const again = fold(changed, weights);
                if (!std::equal(got.values.begin() + 1, got.values.end(), again.values.begin() + 1))
                    find("neighbours", about + ": an element of the result depends on other elements");
            }
            // An element that every row masks.
            if (of_logits && elements > 1) {
                auto masked = rows;
                for (auto& row : masked) row[elements - 1] = -std::numeric_limits<float>::infinity();
                float const last = fold(masked, weights).values[elements - 1];
                bool const probability = std::is_same_v<typename P::space, space::probability>;
                if (probability ? last != 0 : last != -std::numeric_limits<float>::infinity())
                    find("masked", about + ": an element that all rows mask is not masked in the result");
            }
        }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_COMBINE_SUITE_HPP
