// herring: element types and rules of one's own, and what all calls of a reducer have to make of them on every route.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_RULES_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_RULES_SUITE_HPP

#include "herring/collectives/reduce_scatter.hpp"
#include "herring/complex.hpp"
#include "herring/herring.hpp"
#include "herring/indexed.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/statistics.hpp"
#include "herring/update/any.hpp"

#include "same_bytes.hpp"
#include "sanitizers.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace rules {

using namespace herring;
using names = std::vector<std::string>;
using shared = intra_node::shared_memory;

// ---- element types of one's own ----

struct triple { // 24 bytes do not divide a cache line
    double low, middle;
    std::int32_t count; // and four bytes of padding
    friend bool operator==(triple const&, triple const&) = default;
};
struct other_triple { // of the same size
    double a, b, c;
};
struct alignas(16) wide_struct {
    float at[60]; // 240 bytes: 15 cache lines are four
    friend bool operator==(wide_struct const&, wide_struct const&) = default;
};
struct flags { // of three bytes
    std::uint8_t red, green, blue;
    friend bool operator==(flags const&, flags const&) = default;
};

} // namespace rules

template <> inline constexpr bool herring::is_element<rules::triple> = true;
template <> inline constexpr bool herring::is_element<rules::other_triple> = true;
template <> inline constexpr bool herring::is_element<rules::wide_struct> = true;
template <> inline constexpr bool herring::is_element<rules::flags> = true;
template <> inline constexpr bool herring::is_element<char> = true; // a number that is none of Herring's
template <> inline constexpr bool herring::is_element<long double> = true;

namespace rules {

// ---- rules ------------------------------------------------------------------------------------------------------------

struct mean_of_squares : update::average {
    static constexpr char const* name = "mean_of_squares";
    static constexpr update_facts facts{.takes_vectors = true, .lifts = true, .with_finish = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x * x; }
};
struct most_distant : update::max { // by scalars
    static constexpr char const* name = "most_distant";
    static constexpr update_facts facts{.lifts = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x > 9 ? x - 9 : 9 - x; }
};
// Adds 1000 for every time that it is called: who lifts a part of several ranks again, or not at all, is found.
struct counted : update::sum {
    static constexpr char const* name = "counted";
    static constexpr update_facts facts{.takes_vectors = true, .lifts = true, .with_finish = true};
    template <class Acc> static constexpr Acc lift(Acc x) noexcept { return x + update::lane<Acc>(1000); }
};

// Takes the types above as they come, by code that takes no vectors. Associative, and not commutative.
struct spread_out {
    using axis = axes::update;
    static constexpr char const* name = "spread_out";
    static constexpr update_facts facts{};
    template <class T>
    static constexpr bool supports = std::is_same_v<T, triple> || std::is_same_v<T, other_triple> ||
                                     std::is_same_v<T, wide_struct> || std::is_same_v<T, flags>;
    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        if constexpr (std::is_same_v<Acc, triple>) {
            return {a.low < b.low ? a.low : b.low, b.middle, a.count + b.count};
        } else if constexpr (std::is_same_v<Acc, wide_struct>) {
            for (std::size_t i = 0; i < 60; ++i) a.at[i] = i % 2 == 0 ? a.at[i] + b.at[i] : b.at[i];
            return a;
        } else if constexpr (std::is_same_v<Acc, flags>) {
            return {static_cast<std::uint8_t>(a.red | b.red), b.green, a.blue};
        } else {
            return a;
        }
    }
    template <class Acc> static Acc finish(Acc total, int ranks) noexcept {
        if constexpr (std::is_same_v<Acc, triple>) total.count += 100 * ranks;
        return total;
    }
};
struct counted_triples : spread_out {
    static constexpr char const* name = "counted_triples";
    static constexpr update_facts facts{.lifts = true};
    template <class Acc> static Acc lift(Acc x) noexcept {
        if constexpr (std::is_same_v<Acc, triple>) x.count += 1000;
        return x;
    }
};

// ---- values, and the result that is due -------------------------------------------------------------------------------

template <class T> T value(int rank, std::size_t i, int step) {
    auto const x = static_cast<std::uint8_t>((i * 7 + static_cast<std::size_t>(rank * 3 + step)) % 13);
    auto const f = static_cast<float>(x);
    if constexpr (std::is_same_v<T, triple>) {
        return {f, static_cast<double>(rank), x};
    } else if constexpr (std::is_same_v<T, wide_struct>) {
        wide_struct made{};
        for (std::size_t k = 0; k < 60; ++k) made.at[k] = f + static_cast<float>(k);
        return made;
    } else if constexpr (std::is_same_v<T, flags>) {
        return {x, static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(i)};
    } else if constexpr (std::is_same_v<T, indexed<double>>) {
        return {f, 20 - rank}; // of equal values the index of the highest rank is the lowest
    } else if constexpr (std::is_same_v<T, statistics<double>>) {
        return T::of(f / 7.0); // sums of which depend on their order
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
        return {f / 7.0, static_cast<double>(rank) + f / 3.0};
    } else if constexpr (std::is_same_v<T, bool>) {
        return x > 8;
    } else if constexpr (std::is_integral_v<T> && sizeof(T) == 1) {
        return static_cast<T>(x * 19); // sums wrap
    } else {
        return static_cast<T>(f);
    }
}

template <class T> bool same(T const& a, T const& b) {
    if constexpr (std::is_same_v<T, bfloat16> || std::is_same_v<T, double>)
        return std::memcmp(&a, &b, sizeof a) == 0;
    else
        return a == b; // padding is no value
}

template <class T, class Update> accumulator<T> lifted(T const& x) {
    if constexpr (Update::facts.lifts)
        return Update::lift(static_cast<accumulator<T>>(x));
    else
        return static_cast<accumulator<T>>(x);
}

/// By scalars, in one place: the ranks of a node in their order, then the nodes of a rack, then the racks. `given(rank)`: a
/// contribution.
template <class T, class Update, class Given> T due_of(topology const& map, Given const& given) {
    auto const of_node = [&](int node) {
        auto total = lifted<T, Update>(given(map.rank_of(node, 0)));
        for (int l = 1; l < map.local_size(node); ++l)
            total = Update::combine(total, lifted<T, Update>(given(map.rank_of(node, l))));
        return total;
    };
    int node = 0;
    auto const of_rack = [&] {
        int const rack = map.rack(node);
        auto sum = of_node(node);
        while (++node < map.nodes() && map.rack(node) == rack) sum = Update::combine(sum, of_node(node));
        return sum;
    };
    auto total = of_rack();
    while (node < map.nodes()) total = Update::combine(total, of_rack());
    return static_cast<T>(Update::finish(total, map.size()));
}
template <class T, class Update> T due(topology const& map, std::size_t i, int step) {
    return due_of<T, Update>(map, [&](int rank) { return value<T>(rank, i, step); });
}

// ---- all calls over all routes ----------------------------------------------------------------------------------------

/// A std::vector; of bool, what has memory of bools.
template <class T>
using list_of = std::conditional_t<std::is_same_v<T, bool>, std::basic_string<bool>, std::vector<T>>;

/// The most elements of a call, and of a tensor. Under a sanitizer 80 KB, which are more chunks than a window has, on each node.
template <class T>
inline constexpr std::size_t most = HERRING_TEST_SLOW ? std::min<std::size_t>(20'001, 80'000 / sizeof(T) + 1)
                                                      : 20'001;

/// The tensors of two steps and some sizes of all_reduce, each checked to the bit.
template <class T, class Update, class Transport, class... Policies> void work(world& ranks) {
    using reducing = reducer<T, Update, Transport, Policies...>;
    bool const joins = (std::is_same_v<Policies, shared> || ...);
    topology const map = joins ? ranks.topology() : ranks.topology().flat();
    // What is given and due in a step is computed once: in every call it begins with the same element.
    list_of<T> given[6], wanted[6];
    auto const prepare = [&](int step, std::size_t count) {
        given[step].reserve(count), wanted[step].reserve(count);
        for (std::size_t i = 0; i < count; ++i) {
            given[step].push_back(value<T>(ranks.rank(), i, step));
            wanted[step].push_back(due<T, Update>(map, i, step));
        }
    };
    auto const check = [&](std::span<T const> got, int step, char const* what) {
        if (same_bytes(got, std::span(wanted[step]).first(got.size()))) return;
        for (std::size_t i = 0; i < got.size(); ++i)
            if (!same(got[i], wanted[step][i]))
                throw std::runtime_error(std::string(what) + ": element " + std::to_string(i) + " of " +
                                         std::to_string(got.size()) + " is not what is due");
    };
    auto const fill = [&](std::span<T> at, int step) {
        std::copy_n(given[step].begin(), at.size(), at.begin());
    };

    std::vector<std::size_t> const sizes{
        1000, 0, 3, std::min<std::size_t>(6001, most<T>), 17, 200, std::min<std::size_t>(2049, most<T>), 1};
    for (int const step : {0, 1}) prepare(step, *std::max_element(sizes.begin(), sizes.end()));
    prepare(3, most<T>);
    prepare(5, 1);
    reducing reduce(ranks, layout::of(sizes));
    std::vector<list_of<T>> lent(sizes.size());
    for (int step = 0; step < 2; ++step) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            bool const lend = (i + static_cast<std::size_t>(step)) % 3 == 0;
            lent[i].resize(lend ? sizes[i] : 0);
            std::span<T> const at = lend ? std::span<T>(lent[i]) : reduce.tensor(i);
            if (!lend && reinterpret_cast<std::uintptr_t>(at.data()) % 64 != 0)
                throw std::runtime_error("a tensor does not begin at a cache line");
            fill(at, step);
            lend ? reduce.ready(i, at) : reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            bool const lend = (i + static_cast<std::size_t>(step)) % 3 == 0;
            check(lend ? std::span<T const>(lent[i]) : std::span<T const>(reduce.tensor(i)), step, "a step");
        }
    }
    for (std::size_t const n : {1u, 2u, 7u, 85u, 86u, 171u, 600u, 3000u, 20'001u}) {
        std::size_t const count = std::min(n, most<T>);
        list_of<T> x(given[3].begin(), given[3].begin() + static_cast<std::ptrdiff_t>(count)), y = x;
        std::memset(static_cast<void*>(y.data()), 0x5a, count * sizeof(T));
        reduce.all_reduce(x, y);
        check(y, 3, "from one buffer into another");
        reduce.all_reduce(x);
        check(x, 3, "in place");
    }
    T const one = reduce.all_reduce(value<T>(ranks.rank(), 0, 5));
    check(std::span(&one, 1), 5, "one value");
    list_of<T> none;
    reduce.all_reduce(none);
}

/// Calls by the rules of a list in turn, over one reducer, each checked to the bit; a step takes the first rule.
template <class T, class First, class... Rest> struct listed {
    using rules = update::any<First, Rest...>;
    // Sums of which round, and of which depend on their order.
    static T given(int rank, std::size_t i) {
        auto const x = static_cast<double>((i * 31 + static_cast<std::size_t>(rank) * 17) % 101) - 40;
        if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<long long>(x) * 1'000'003);
        return static_cast<T>(static_cast<float>(i % 11 == 0 ? std::copysign(0.0, x) : x / 7));
    }

    template <class Transport, class... Policies> static void work(world& ranks) {
        constexpr bool joins = (std::is_same_v<Policies, shared> || ...);
        topology const map = joins ? ranks.topology() : ranks.topology().flat();
        reducer<T, rules, Transport, Policies...> reduce(ranks, layout::of(std::vector<std::size_t>{3, 700}));
        auto const by_rule = [&]<class Rule>(Rule by) {
            typename rules::rule const chosen = by; // at run time
            std::vector<T> in, wanted;
            for (std::size_t i = 0; i < most<T>; ++i) {
                in.push_back(given(ranks.rank(), i));
                wanted.push_back(due_of<T, Rule>(map, [&](int rank) { return given(rank, i); }));
            }
            auto const check = [&](std::span<T const> got, std::size_t from, std::string what) {
                if (!same_bytes(got, std::span(wanted).subspan(from, got.size())))
                    throw std::runtime_error(what + " by " + Rule::name + " of " +
                                             std::to_string(got.size()));
            };
            for (std::size_t const n : {1u, 7u, 600u, 3000u, 20'001u}) {
                std::size_t const count = std::min(n, most<T>);
                std::vector<T> x(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(count)), y(count);
                reduce.all_reduce(x, y, by);
                check(y, 0, "from one buffer into another");
                range const own = reduce.owned(count);
                std::vector<T> mine(own.elements);
                reduce_scatter(reduce, x, mine, by);
                check(mine, own.offset, "reduce_scatter");
                if (!reduce.all_reduce(x, chosen, std::chrono::seconds(60)).ok())
                    throw std::runtime_error("fails");
                check(x, 0, "in place");
            }
            T const one = reduce.all_reduce(given(ranks.rank(), 0), by);
            check(std::span(&one, 1), 0, "one value");
            std::vector<T> none;
            reduce.all_reduce(none, by);
        };
        by_rule(First());
        (by_rule(Rest()), ...);
        for (std::size_t const t : {0u, 1u}) {
            for (std::size_t i = 0; T & to : reduce.tensor(t)) to = given(ranks.rank(), i++);
            reduce.ready(t);
        }
        reduce.wait();
        for (std::size_t const t : {0u, 1u})
            for (std::size_t i = 0; T const& got : reduce.tensor(t)) {
                T const wanted = due_of<T, First>(map, [&](int rank) { return given(rank, i); });
                if (!same(got, wanted)) throw std::runtime_error("a step takes another rule than the first");
                ++i;
            }
    }
};

} // namespace rules

#endif // HERRING_TESTS_CONFORMANCE_RULES_SUITE_HPP
