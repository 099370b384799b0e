// herring: the mean of many contributions and their standard deviation, in two passes over registers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_MOMENTS_HPP
#define HERRING_KERNEL_MOMENTS_HPP

#include <cstddef>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/element.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/update/sum.hpp"

namespace HERRING_NAMESPACE::kernel {

/// What one node gives: a contribution; or, of several ranks, the sum of theirs and the sum of their squared distances from
/// their own mean, both in accumulators.
struct moments_term {
    source first;                  ///< the contribution, or the sum
    void const* squares = nullptr; ///< accumulators; nullptr: it is one contribution
    int ranks = 1;
};

namespace detail {

// A product that no addition or subtraction after it is fused with: the bits are those of a build without such instructions.
template <class Value> HERRING_ALWAYS_INLINE Value unfused(Value product) noexcept {
#if defined(__FMA__) || defined(__FMA4__)
    asm("" : "+x"(product));
#elif !defined(__SSE2__)
    asm("" : "+m"(product));
#endif
    return product;
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
struct squared_distance {
    template <class Value> HERRING_ALWAYS_INLINE static Value combine(Value value, Value mean) noexcept {
        Value const distance = value - mean;
        return unfused(distance * distance);
    }
};

// One accumulator, with what a block has.
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
};

// Elements from one index on: as many as `Numbers` has.
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
        return load(source{of.squares, true});
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
    // What a node's ranks add to the squares about the mean of all: their own, and the distance of their mean, so many times.
    HERRING_ALWAYS_INLINE static Numbers moved(Numbers const& squares, Numbers const& sum, int ranks,
                                               Numbers const& mean) noexcept {
        Numbers const off = sum.finished(quotient<number>(ranks)).combined(mean, squared_distance{});
        return squares.combined(off.finished(times<number>{static_cast<number>(ranks)}), update::sum{});
    }
    HERRING_ALWAYS_INLINE Numbers squares_of(moments_term const& one, Numbers const& mean) const noexcept {
        if (one.squares == nullptr) return load(one.first).combined(mean, squared_distance{});
        return moved(load_squares(one), load(one.first), one.ranks, mean);
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

// Calls do_at(moments_at) for all elements, a register at a time where the type can.
template <class Element, class DoAt>
HERRING_ALWAYS_INLINE void for_each_numbers(std::size_t count, DoAt const& do_at) noexcept {
    std::size_t i = 0;
    if constexpr (takes_vectors && element_in_vectors<Element>)
        for (; count - i >= block<Element>::size; i += block<Element>::size)
            do_at(moments_at<Element, block<Element>>{i});
    for (; i < count; ++i) do_at(moments_at<Element, single<Element>>{i});
}

} // namespace detail

/// The mean of all contributions and their standard deviation, of each element, into every target.
///
/// Shape:    mean[i] = total / ranks, where total is what `fold` with update::sum has: the bits of update::average.
///           deviation[i] = root((q₀ + q₁ + ...) / divisor), i < count, a term a node, in the order of the lists. Of one
///           contribution x q is (x − m)²; of a node of L ranks Q + L·(S/L − m)², where S is the sum of its ranks, in their
///           order, and Q the sum of their squared distances from S/L; m is the mean before it is rounded to Element.
///           The group is this node; it need not be alone. Divisor ≥ 1.
///           All in accumulator<Element>; both results are rounded to Element once. Every NaN is the canonical one.
/// Error:    squares of distances are added alone, never of values. With u the unit roundoff of the accumulator, M the greatest
///           magnitude of a contribution, R ranks and d = (R + 2)·u·M a deviation s is off by at most (R + 6)·u·s and
///           min(d, d²/s) where each node has one rank, and by (R + 6)·u·s and 2·d where ranks share nodes; and by its
///           rounding to Element. Distances beyond the root of the greatest number overflow.
/// Cost:     reads each source twice, from memory once; writes each target once.
/// Lifetime: a target may be a source of the same type, in place; not shifted against one, nor the memory of a wider one.
/// Source:   Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983 (two passes, and (2.1) for groups).
template <element_type Element>
void moments(std::span<moments_term const> before, std::span<source const> group,
             std::span<moments_term const> after, std::span<Element* const> means,
             std::span<Element* const> deviations, std::size_t count, int ranks, int divisor) noexcept {
    using number = accumulator<Element>;
    detail::quotient<number> const by_ranks(ranks);
    detail::root_of_quotient<number> const rooted{detail::quotient<number>(divisor)};
    detail::quotient<number> const by_group(static_cast<int>(group.empty() ? 1 : group.size()));
    bool const alone = before.empty() && after.empty();
    detail::for_each_numbers<Element>(count, [&](auto const at) {
        auto const add = [](auto& total, bool& any, auto const& one) {
            total = any ? total.combined(one, update::sum{}) : one;
            any = true;
        };
        if (alone) {
            auto const mean = at.sum_of(group).finished(by_ranks);
            auto const squares = at.squares_about(mean, group);
            at.store(means, mean);
            at.store(deviations, squares.finished(rooted));
            return;
        }
        typename decltype(at)::numbers sum{}, total{}, own{};
        bool any = false;
        for (moments_term const& one : before) add(sum, any, at.load(one.first));
        if (!group.empty()) add(sum, any, own = at.sum_of(group));
        for (moments_term const& one : after) add(sum, any, at.load(one.first));
        auto const mean = sum.finished(by_ranks);
        any = false;
        for (moments_term const& one : before) add(total, any, at.squares_of(one, mean));
        if (group.size() == 1)
            add(total, any, own.combined(mean, detail::squared_distance{}));
        else if (group.size() > 1)
            add(total, any,
                at.moved(at.squares_about(own.finished(by_group), group), own, static_cast<int>(group.size()),
                         mean));
        for (moments_term const& one : after) add(total, any, at.squares_of(one, mean));
        at.store(means, mean);
        at.store(deviations, total.finished(rooted));
    });
}

/// What a node of several ranks gives: the sum of theirs, and the sum of their squared distances from their own mean.
///
/// Cost: as `moments`.
template <element_type Element>
void moments_partial(std::span<source const> group, accumulator<Element>* sums, accumulator<Element>* squares,
                     std::size_t count) noexcept {
    detail::quotient<accumulator<Element>> const by(static_cast<int>(group.size()));
    detail::for_each_numbers<Element>(count, [&](auto const at) {
        auto const sum = at.sum_of(group);
        at.store_wide(sums, sum);
        at.store_wide(squares, at.squares_about(sum.finished(by), group));
    });
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_MOMENTS_HPP
