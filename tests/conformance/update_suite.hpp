// herring: what every update policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_UPDATE_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_UPDATE_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/element.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/update/update.hpp"

#include <bit>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace herring::conformance {

/// A std::vector; of bool, what has memory of bools.
template <class T>
using list_of = std::conditional_t<std::is_same_v<T, bool>, std::basic_string<bool>, std::vector<T>>;

/// What the rule does to a contribution before it is combined.
template <class P, class Acc> Acc lifted(Acc contribution) {
    if constexpr (P::facts.lifts)
        return P::lift(contribution);
    else
        return contribution;
}

/// For each element type that the policy supports: the kernels, which call it with vectors, scalars and partial sums,
/// must give the bits of the plain left fold by scalars; and it is associative but for rounding, or says that it is not.
/// Empty: the policy is sound.
template <class P> findings update_suite() {
    static_assert(update_policy<P>);
    findings all;
    auto const find = [&](std::string const& test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };
    int supported = 0;

    auto const check = [&]<class T>(std::type_identity<T>, std::string const& name) {
        if constexpr (update_supports<P, T>) {
            ++supported;
            using accumulator = herring::accumulator<T>;
            dice random(sizeof(T));
            auto const draw = [&]() -> T {
                // Small, so that sums of integers do not overflow; with fractions, zeroes and signs.
                auto const whole = static_cast<float>(random(4001)) - 2000.0f;
                if constexpr (std::is_integral_v<T>)
                    return static_cast<T>(static_cast<long long>(whole)); // unsigned: wraps
                else
                    return static_cast<T>(random(9) == 0 ? std::copysign(0.0f, whole)
                                                         : whole * (random(2) == 0 ? 1.0f : 0.37f));
            };
            auto const same = [](T a, T b) { return std::memcmp(&a, &b, sizeof a) == 0; };
            for (int const ranks : {1, 2, 3, 4, 7, 8, 17})
                for (std::size_t const count : {1u, 3u, 16u, 17u, 100u, 1000u}) {
                    std::vector<list_of<T>> parts(static_cast<std::size_t>(ranks), list_of<T>(count, T{}));
                    for (auto& p : parts)
                        for (T& x : p) x = draw();
                    std::vector<kernel::source> sources;
                    for (auto const& p : parts) sources.push_back({p.data()});
                    auto const at = [&](std::size_t r, std::size_t i) {
                        return lifted<P>(
                            static_cast<accumulator>(parts[r][i])); // once, wherever it is combined
                    };
                    auto const fold_of = [&](std::size_t from, std::size_t to, std::size_t i) {
                        accumulator total = at(from, i);
                        for (std::size_t r = from + 1; r < to; ++r) total = P::combine(total, at(r, i));
                        return total;
                    };
                    std::size_t const n = parts.size();
                    std::string const about = name + ", " + std::to_string(ranks) + " ranks, " +
                                              std::to_string(count) + " elements";

                    list_of<T> out(count, T{}), copy(count, T{});
                    T* targets[2] = {out.data(), copy.data()};
                    kernel::fold<P, T>(std::span<kernel::source const>(sources), std::span<T* const>(targets),
                                       count, ranks);
                    for (std::size_t i = 0; i < count; ++i) {
                        T const due = kernel::round_one<T>(P::finish(fold_of(0, n, i), ranks));
                        if (!same(out[i], due))
                            return find("lanes", about + ": vectors and scalars give different bits");
                        if (!same(out[i], copy[i]))
                            return find("lanes", about + ": two targets get different bits");
                    }
                    // Two nodes: the first half's ranks are one partial, unrounded.
                    if (n < 2) continue;
                    std::vector<accumulator> partial(count);
                    kernel::fold_partial<P, T>(std::span<kernel::source const>(sources).first(n / 2),
                                               partial.data(), count);
                    kernel::source const before{partial.data(), part_kind::accumulator};
                    kernel::fold<P, T>(std::span(&before, 1),
                                       std::span<kernel::source const>(sources).subspan(n / 2), {},
                                       std::span<T* const>(targets, 1), count, ranks);
                    for (std::size_t i = 0; i < count; ++i) {
                        accumulator const total = P::combine(fold_of(0, n / 2, i), fold_of(n / 2, n, i));
                        if (!same(out[i], kernel::round_one<T>(P::finish(total, ranks))))
                            return find("nodes", about + ": a partial sum of a node gives other bits");
                    }
                }
            // Ranks that share a node are combined before nodes are.
            constexpr bool by_rank = !P::facts.associative;
            for (int i = 0; i < 200 && !by_rank; ++i) {
                auto const number = [&] { return static_cast<accumulator>(random(9) + 1); };
                accumulator const a = number(), b = number(), c = number();
                auto const left = static_cast<double>(P::combine(P::combine(a, b), c));
                auto const right = static_cast<double>(P::combine(a, P::combine(b, c)));
                if (std::abs(left - right) > 1e-3 * std::max({std::abs(left), std::abs(right), 1.0})) {
                    find("associative",
                         name + ": (a, b), c and a, (b, c) give different results; ranks that share a node "
                                "are combined first: write '.associative = false' into its facts");
                    break;
                }
            }
            // One rank's value is its result, for all that are numbers of its own.
            T const alone = draw();
            if (P::finish(static_cast<accumulator>(alone), 1) !=
                P::finish(static_cast<accumulator>(alone), 1))
                find("pure", name + ": another answer the second time");
        }
    };
    check(std::type_identity<float>(), "float");
    check(std::type_identity<double>(), "double");
    check(std::type_identity<std::int32_t>(), "int32");
    check(std::type_identity<std::int64_t>(), "int64");
    check(std::type_identity<unsigned>(), "unsigned");
    check(std::type_identity<unsigned long>(), "unsigned long");
    check(std::type_identity<long long>(), "long long");
    check(std::type_identity<std::int8_t>(), "int8");
    check(std::type_identity<std::uint16_t>(), "uint16");
    check(std::type_identity<bool>(), "bool");
    check(std::type_identity<bfloat16>(), "bfloat16");
    check(std::type_identity<float16>(), "float16");
    if (P::name == nullptr || P::name[0] == 0) find("facts", "name is empty");
    if (supported == 0) find("facts", "no element type is supported");
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_UPDATE_SUITE_HPP
