// herring: the mean of many contributions and their standard deviation, in two passes over registers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_MOMENTS_HPP
#define HERRING_KERNEL_MOMENTS_HPP

#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"
#include "herring/update/rules.hpp"

namespace HERRING_NAMESPACE::kernel {

/// The term of one node: a contribution; or, for several ranks, the sum of their contributions and the sum of
/// the squared distances of these from the mean of the node, both in accumulators. If all of these
/// contributions are x, but the sum divided by the ranks is not x, −|x| takes the place of the squares.
struct moments_term {
    source first;                  ///< the contribution, or the sum
    void const* squares = nullptr; ///< accumulators; nullptr: one contribution
    int ranks = 1;
};

namespace detail {

// A product that the compiler fuses with no addition or subtraction: the bits of a build without such
// instructions.
template <class Value> HERRING_ALWAYS_INLINE Value unfused(Value product) noexcept {
#if defined(__FMA__) || defined(__FMA4__)
    asm("" : "+x"(product));
#elif !defined(__SSE2__)
    asm("" : "+m"(product));
#endif
    return product;
}

// True if a lane has its sign bit set, or if the build has no instruction to tell.
template <class Vector> HERRING_ALWAYS_INLINE bool may_have_sign(Vector of) noexcept {
#if defined(__AVX__)
    if constexpr (std::is_same_v<update::lane<Vector>, float>) return _mm256_movemask_ps(__m256(of)) != 0;
    if constexpr (std::is_same_v<update::lane<Vector>, double>) return _mm256_movemask_pd(__m256d(of)) != 0;
#elif defined(__SSE2__)
    if constexpr (std::is_same_v<update::lane<Vector>, float>) return _mm_movemask_ps(__m128(of)) != 0;
    if constexpr (std::is_same_v<update::lane<Vector>, double>) return _mm_movemask_pd(__m128d(of)) != 0;
#endif
    return true;
}

template <class Value> HERRING_ALWAYS_INLINE Value root(Value of) noexcept {
    using number = update::lane<Value>;
#if defined(__SSE2__)
    if constexpr (std::is_same_v<Value, float>) {
        return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(of)));
    } else if constexpr (std::is_same_v<Value, double>) {
        return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(of)));
    } else {
#if defined(__AVX__)
        if constexpr (std::is_same_v<number, float>)
            return Value(_mm256_sqrt_ps(__m256(of)));
        else
            return Value(_mm256_sqrt_pd(__m256d(of)));
#else
        if constexpr (std::is_same_v<number, float>)
            return Value(_mm_sqrt_ps(__m128(of)));
        else
            return Value(_mm_sqrt_pd(__m128d(of)));
#endif
    }
#else
    if constexpr (std::is_same_v<Value, float>) {
        return __builtin_sqrtf(of);
    } else if constexpr (std::is_same_v<Value, double>) {
        return __builtin_sqrt(of);
    } else {
        for (std::size_t i = 0; i < sizeof of / sizeof(number); ++i) of[i] = root(number(of[i]));
        return of;
    }
#endif
}

// Divides by a whole number; multiplies where the bits are the same.
template <class Number> struct quotient {
    Number divisor, factor;
    bool exact; // the divisor is a power of two

    explicit quotient(int by) noexcept
        : divisor(static_cast<Number>(by)), factor(Number(1) / divisor), exact((by & (by - 1)) == 0) {}
    template <class Value> HERRING_ALWAYS_INLINE Value operator()(Value value) const noexcept {
        return exact ? unfused(value * factor) : value / divisor;
    }
};
template <class Number> struct root_of_quotient {
    quotient<Number> by;
    template <class Value> HERRING_ALWAYS_INLINE Value operator()(Value value) const noexcept {
        return root(by(value));
    }
};
template <class Number> struct times {
    Number factor;
    template <class Value> HERRING_ALWAYS_INLINE Value operator()(Value value) const noexcept {
        return unfused(value * factor);
    }
};
struct difference {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value other) noexcept {
        return value - other;
    }
};
// NaN where the excess over rounding is negative or NaN: such squares are computed again.
struct if_beyond {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value excess) noexcept {
        return excess >= Value{} ? value : Value{} + update::lane<Value>(__builtin_nanf(""));
    }
};
struct zero_or {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value squares, Value certain) noexcept {
        return squares == Value{} ? squares : certain;
    }
};
struct if_nan {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value other) noexcept {
        return value == value ? value : other;
    }
};
// The smaller, or the larger, of two numbers; a NaN in the first operand stays.
struct at_most {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value most) noexcept {
        return most < value ? most : value;
    }
};
struct at_least {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value least) noexcept {
        return value < least ? least : value;
    }
};
struct if_finite {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value other) noexcept {
        return other - other == other - other ? value : other;
    }
};
// −|x| where all contributions are x, else 0.
struct code_of_equal {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value least, Value most) noexcept {
        Value const code = least < Value{} ? least : -least;
        return least == most ? code : Value{};
    }
};
struct code_or_squares {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value squares, Value code) noexcept {
        return code < Value{} ? code : squares;
    }
};
// A code only where no node's ranks differ among themselves.
struct unless_spread {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value code, Value spread) noexcept {
        return spread == Value{} ? code : Value{};
    }
};
struct squares_of_code {
    template <class Value> HERRING_ALWAYS_INLINE Value operator()(Value code) const noexcept {
        return code < Value{} ? Value{} : code;
    }
};
// x, with the sign of the mean, if the code says that all ranks have x; else the mean.
struct mean_or_equal {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value mean, Value code) noexcept {
        Value const equal = mean < Value{} ? code : -code;
        return code < Value{} ? equal : mean;
    }
};
struct squared_distance {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value mean) noexcept {
        Value const distance = value - mean;
        return unfused(distance * distance);
    }
};

// One accumulator, with the interface of a block.
template <class Element> struct single {
    using number = accumulator<Element>;
    static constexpr std::size_t size = 1;
    number value;

    template <class Combine>
    HERRING_ALWAYS_INLINE single combined(single const& with, Combine) const noexcept {
        return {Combine::combine(value, with.value)};
    }
    template <class Finish> HERRING_ALWAYS_INLINE single finished(Finish const& finish) const noexcept {
        return {finish(value)};
    }
    HERRING_ALWAYS_INLINE bool any_nan() const noexcept { return value != value; }
};

// The `Numbers::size` elements from index i on.
template <class Element, class Numbers> struct moments_at {
    using number = accumulator<Element>;
    using numbers = Numbers;
    std::size_t i;

    HERRING_ALWAYS_INLINE Numbers load(source const& from) const noexcept {
        if constexpr (Numbers::size == 1)
            return {detail::load_element<update::sum, Element>(from, i)};
        else
            return detail::load<update::sum, Element>(from, i);
    }
    HERRING_ALWAYS_INLINE Numbers load_squares(moments_term const& of) const noexcept {
        return load(source{of.squares, part_kind::accumulator});
    }
    HERRING_ALWAYS_INLINE Numbers sum_of(std::span<source const> sources) const noexcept {
        Numbers total = load(sources[0]);
        for (std::size_t s = 1; s < sources.size(); ++s)
            total = total.combined(load(sources[s]), update::sum{});
        return total;
    }
    HERRING_ALWAYS_INLINE Numbers squares_about(Numbers const& mean,
                                                std::span<source const> sources) const noexcept {
        Numbers total = load(sources[0]).combined(mean, squared_distance{});
        for (std::size_t s = 1; s < sources.size(); ++s)
            total = total.combined(load(sources[s]).combined(mean, squared_distance{}), update::sum{});
        return total;
    }
    // The squares of a node's ranks about the mean of all: those about the mean of the node, plus `ranks`
    // times the squared distance between the two means.
    HERRING_ALWAYS_INLINE static Numbers moved(Numbers const& squares, Numbers const& sum, int ranks,
                                               Numbers const& mean) noexcept {
        Numbers const off = sum.finished(quotient<number>(ranks)).combined(mean, squared_distance{});
        return squares.finished(squares_of_code{})
            .combined(off.finished(times<number>{static_cast<number>(ranks)}), update::sum{});
    }
    HERRING_ALWAYS_INLINE Numbers squares_of(moments_term const& one, Numbers const& mean) const noexcept {
        if (one.squares == nullptr) return load(one.first).combined(mean, squared_distance{});
        return moved(load_squares(one), load(one.first), one.ranks, mean);
    }
    // The squares of a node, by its sum. If they may be rounding alone, checks whether all ranks have the
    // same number.
    HERRING_ALWAYS_INLINE Numbers squares_given(Numbers const& sum, std::span<source const> group,
                                                quotient<number> const& by) const noexcept {
        Numbers const mean = sum.finished(by);
        Numbers const squares = squares_about(mean, group);
        if (may_be_rounding(squares, mean, rounding(static_cast<int>(group.size())))) [[unlikely]]
            return squares_or_equal(squares, group);
        return squares;
    }
    [[gnu::noinline]] Numbers squares_or_equal(Numbers squares,
                                               std::span<source const> group) const noexcept {
        Numbers least = load(group[0]), most = least;
        for (source const& one : group.subspan(1)) {
            least = least.combined(load(one), at_most{});
            most = most.combined(load(one), at_least{});
        }
        return squares.combined(least.combined(most, code_of_equal{}), code_or_squares{});
    }

    // The factor by which a mean is multiplied to bound the root of the squares that rounding of means alone
    // can cause; below, the excess of squares over that bound.
    static times<number> rounding(int ranks) noexcept {
        auto const all = static_cast<number>(ranks);
        return {2 * (all + 4) * root(all) * std::numeric_limits<number>::epsilon()};
    }
    HERRING_ALWAYS_INLINE static Numbers excess(Numbers const& squares, Numbers const& mean,
                                                times<number> const& by) noexcept {
        return squares.combined(mean.finished(by).combined(Numbers{}, squared_distance{}), difference{});
    }
    HERRING_ALWAYS_INLINE static bool may_be_rounding(Numbers const& squares, Numbers const& mean,
                                                      times<number> const& by) noexcept {
        Numbers const more = excess(squares, mean, by);
        if constexpr (Numbers::size == 1)
            return !(more.value >= number(0));
        else
            return may_have_sign(more.a) || may_have_sign(more.b) || may_have_sign(more.c) ||
                   may_have_sign(more.d);
    }
    HERRING_ALWAYS_INLINE void store(std::span<Element* const> targets, Numbers what) const noexcept {
        if constexpr (Numbers::size == 1) {
            Element const rounded = round_one<Element>(what.value);
            for (Element* const to : targets) store_one<Element>(to + i, rounded);
        } else {
            if (what.any_nan()) [[unlikely]]
                what = what.canonical();
            auto const rounded = what.round();
            for (Element* const to : targets) rounded.store(to + i);
        }
    }
    HERRING_ALWAYS_INLINE void store_wide(number* to, Numbers const& what) const noexcept {
        if constexpr (Numbers::size == 1)
            store_one(to + i, what.value);
        else
            what.store_wide(to + i);
    }
};

// Calls do_at(moments_at) for all elements, a block at a time where the type has vectors.
template <class Element, class DoAt>
HERRING_ALWAYS_INLINE void for_each_numbers(std::size_t count, DoAt const& do_at) noexcept {
    std::size_t i = 0;
    if constexpr (takes_vectors && element_in_vectors<Element>)
        for (; count - i >= block<Element>::size; i += block<Element>::size)
            do_at(moments_at<Element, block<Element>>{i});
    for (; i < count; ++i) do_at(moments_at<Element, single<Element>>{i});
}

// One call of `moments`, or with Partial of `moments_partial`, which writes to `to_sums` and
// `to_squares`.
template <class Element, bool Partial = false> struct moments_call {
    using number = accumulator<Element>;
    std::span<moments_term const> before;
    std::span<source const> group;
    std::span<moments_term const> after;
    std::span<Element*const> means, deviations;
    quotient<number> by_ranks, by_group;
    root_of_quotient<number> rooted;
    times<number> rounding;
    bool alone;
    number *to_sums = nullptr, *to_squares = nullptr;

    moments_call(std::span<moments_term const> of_before, std::span<source const> of_group,
                 std::span<moments_term const> of_after, int ranks, int divisor) noexcept
        : before(of_before), group(of_group), after(of_after), by_ranks(ranks),
          by_group(static_cast<int>(group.empty() ? 1 : group.size())), rooted{quotient<number>(divisor)},
          rounding(moments_at<Element, single<Element>>::rounding(ranks)),
          alone(!Partial && before.empty() && after.empty()) {}

    // Computes the element, or the block, at `at`.
    template <class At> HERRING_ALWAYS_INLINE void run(At const& at) const noexcept {
        if (alone) {
            auto const mean = at.sum_of(group).finished(by_ranks);
            return store(at, mean, at.squares_about(mean, group));
        }
        typename At::numbers sum{}, total{}, own{};
        bool any = false;
        for (moments_term const& one : before) add(sum, any, at.load(one.first));
        if (!group.empty()) add(sum, any, own = at.sum_of(group));
        for (moments_term const& one : after) add(sum, any, at.load(one.first));
        auto const mean = sum.finished(by_ranks);
        any = false;
        for (moments_term const& one : before) add(total, any, at.squares_of(one, mean));
        if (group.size() == 1)
            add(total, any, own.combined(mean, squared_distance{}));
        else if (group.size() > 1)
            add(total, any,
                at.moved(at.squares_given(own, group, by_group), own, static_cast<int>(group.size()), mean));
        for (moments_term const& one : after) add(total, any, at.squares_of(one, mean));
        if constexpr (Partial) {
            at.store_wide(to_sums, sum);
            at.store_wide(to_squares,
                          at.may_be_rounding(total, mean, rounding) ? squares_or_equal(at, total) : total);
        } else {
            store(at, mean, total);
        }
    }

  private:
    template <class Numbers>
    HERRING_ALWAYS_INLINE static void add(Numbers& total, bool& any, Numbers const& one) noexcept {
        total = any ? total.combined(one, update::sum{}) : one;
        any = true;
    }
    template <class At, class Numbers>
    HERRING_ALWAYS_INLINE void store(At const& at, Numbers const& mean,
                                     Numbers const& squares) const noexcept {
        if (at.may_be_rounding(squares, mean, rounding)) [[unlikely]]
            return look_again(at, mean, squares);
        at.store(means, mean);
        at.store(deviations, squares.finished(rooted));
    }

    // Squares that may be rounding alone are computed again about a moved mean: if rounding has put the mean
    // beyond all numbers that it averages, it is moved to the nearest of them. So the deviation of equal
    // numbers is 0.
    template <class At, class Numbers>
    [[gnu::noinline]] void look_again(At at, Numbers mean, Numbers squares) const noexcept {
        auto const certain = squares.combined(at.excess(squares, mean, rounding), if_beyond{});
        if (!squares.combined(certain, zero_or{}).any_nan()) {
            at.store(means, mean);
            return at.store(deviations, squares.finished(rooted));
        }
        Numbers least{}, most{}, total{};
        bool any = false;
        each_mean(at, [&](Numbers const& one, Numbers const&, int) {
            least = any ? least.combined(one, at_most{}) : one;
            most = any ? most.combined(one, at_least{}) : one;
            any = true;
        });
        auto const within =
            mean.combined(least, at_least{}).combined(most, at_most{}).combined(mean, if_finite{});
        any = false;
        each_mean(at, [&](Numbers const& one, Numbers const& given, int ranks) {
            Numbers const off = one.combined(within, squared_distance{});
            times<number> const by{static_cast<number>(ranks)};
            add(total, any, ranks == 1 ? off : given.combined(off.finished(by), update::sum{}));
        });
        at.store(means, mean); // only now: targets may be the memory of contributions
        at.store(deviations, certain.combined(total, if_nan{}).finished(rooted));
    }
    // The squares, or the code where all contributions are equal.
    template <class At, class Numbers>
    [[gnu::noinline]] Numbers squares_or_equal(At at, Numbers of) const noexcept {
        Numbers least{}, most{}, spread{};
        bool any = false;
        each_mean(at, [&](Numbers const& one, Numbers const& given, int ranks) {
            least = any ? least.combined(one, at_most{}) : one;
            most = any ? most.combined(one, at_least{}) : one;
            if (ranks > 1) spread = spread.combined(given, update::sum{});
            any = true;
        });
        return of.combined(least.combined(most, code_of_equal{}).combined(spread, unless_spread{}),
                           code_or_squares{});
    }
    // Calls call(mean, squares about it, ranks) for each contribution, and for each node of several ranks.
    template <class At, class Call> void each_mean(At const& at, Call const& call) const noexcept {
        auto const node = [&](auto const& sum, auto const& squares, int ranks) {
            call(sum.finished(quotient<number>(ranks)).combined(squares, mean_or_equal{}),
                 squares.finished(squares_of_code{}), ranks);
        };
        auto const terms = [&](std::span<moments_term const> of) {
            for (moments_term const& one : of)
                if (auto const first = at.load(one.first); one.squares == nullptr)
                    call(first, first, 1);
                else
                    node(first, at.load_squares(one), one.ranks);
        };
        terms(before);
        if (alone || group.size() == 1) {
            for (source const& one : group) call(at.load(one), at.load(one), 1);
        } else if (!group.empty()) {
            auto const sum = at.sum_of(group);
            node(sum, at.squares_given(sum, group, by_group), static_cast<int>(group.size()));
        }
        terms(after);
    }
};

} // namespace detail

/// Writes the mean of all contributions and their standard deviation, for each element, to every target.
///
/// Shape:    mean[i] = total / ranks, where total is what `fold` with update::sum has: the bits of
///           update::average.
///           deviation[i] = root((q₀ + q₁ + ...) / divisor), i < count, divisor ≥ 1; one term q a node,
///           in the order of the lists:
///             one contribution x:  q = (x − m)²
///             a node of L ranks:   q = Q + L·(S/L − m)², where S is the sum of its ranks, in their order,
///                                  and Q the sum of their squared distances from S/L
///           m is the mean before it is rounded to Element. Where the total may be rounding of means alone,
///           and m is beyond all contributions (for a node of several ranks: beyond S/L, or beyond x where
///           all of its ranks have x), m is moved to the nearest. So equal contributions deviate by 0.
///           The group is this node; there may be other nodes. Computed in accumulator<Element>; both results
///           are rounded to Element once. Every NaN is the canonical one.
/// Error:    only squares of distances are added, never squares of values. With u the unit roundoff of the
///           accumulator, M the greatest magnitude of a contribution, R ranks and d = (R + 2)·u·M, a
///           deviation s is off by at most
///             (R + 6)·u·s + min(d, d²/s)  where each node has one rank,
///             (R + 6)·u·s + 2·d           where ranks share nodes,
///           plus its rounding to Element. Distances beyond the root of the greatest number overflow; so may
///           d, where ranks share one of several nodes and have different numbers.
/// Cost:     reads each source twice, once from memory; writes each target once. Where deviations may be
///           rounding alone, some four times that.
/// Lifetime: a target may be a source of the same type, in place; it must not overlap a source otherwise, nor
///           be the memory of a wider source.
/// Source:   Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983 (two passes, and (2.1)
///           for groups).
template <element_type Element>
void moments(std::span<moments_term const> before, std::span<source const> group,
             std::span<moments_term const> after, std::span<Element* const> means,
             std::span<Element* const> deviations, std::size_t count, int ranks, int divisor) noexcept {
    detail::moments_call<Element> call(before, group, after, ranks, divisor);
    call.means = means;
    call.deviations = deviations;
    detail::for_each_numbers<Element>(count, [&](auto const at) { call.run(at); });
}

/// Computes the term of a node of several ranks: the sum of their contributions, and the sum of the squared
/// distances of these from the mean of the node, or the code that moments_term has in its place.
///
/// Cost: as `moments`.
template <element_type Element>
void moments_partial(std::span<source const> group, accumulator<Element>* sums, accumulator<Element>* squares,
                     std::size_t count) noexcept {
    detail::quotient<accumulator<Element>> const by(static_cast<int>(group.size()));
    detail::for_each_numbers<Element>(count, [&](auto const at) {
        auto const sum = at.sum_of(group);
        at.store_wide(sums, sum);
        at.store_wide(squares, at.squares_given(sum, group, by));
    });
}

/// The same for a rack of several nodes, one of which may be the group: terms of nodes become one term, with
/// all of their `ranks`.
template <element_type Element>
void moments_partial(std::span<moments_term const> before, std::span<source const> group,
                     std::span<moments_term const> after, int ranks, accumulator<Element>* sums,
                     accumulator<Element>* squares, std::size_t count) noexcept {
    detail::moments_call<Element, true> call(before, group, after, ranks, 1);
    call.to_sums = sums;
    call.to_squares = squares;
    detail::for_each_numbers<Element>(count, [&](auto const at) { call.run(at); });
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_MOMENTS_HPP
