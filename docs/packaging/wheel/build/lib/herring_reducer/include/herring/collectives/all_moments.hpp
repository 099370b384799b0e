// herring: `all_moments(reduce, in, mean, deviation)`: mean and deviation of all ranks' buffers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_ALL_MOMENTS_HPP
#define HERRING_COLLECTIVES_ALL_MOMENTS_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/call.hpp"
#include "herring/engine/operations/moments.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/machine/time.hpp"
#include "herring/update/moments.hpp"
#include "herring/update/rules.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

/// The largest of the deviations that `all_moments` gave: the same bits on every rank.
///
/// Shape:   a NaN counts as larger than every number; of several equal ones, the first counts. Without
///          elements: 0, at 0.
/// Example: `if (all_moments(reduce, forces, mean, deviation).exceeds(limit)) halt();` decides alike on all
///          ranks.
template <class Number> struct moments_result {
    Number largest_deviation = 0;
    std::size_t index = 0; ///< of the element

    /// True if some deviation is larger than the threshold, or is no number.
    constexpr bool exceeds(Number threshold) const noexcept { return !(largest_deviation <= threshold); }

    friend constexpr bool operator==(moments_result const&, moments_result const&) = default;
};

namespace detail {

/// The largest value and its place; a NaN is larger than every number.
///
/// Cost: one pass, a register at a time, and one over as many values as a block of the first has.
template <class Element>
moments_result<accumulator<Element>> largest_of(std::span<Element const> values) noexcept {
    using number = accumulator<Element>;
    constexpr std::size_t step = 1024; // values; a block of them is looked at once more
    moments_result<number> found;
    if (values.empty()) return found;
    std::size_t best = 0;
    bool any = false;
    for (std::size_t from = 0; from < values.size(); from += step) {
        std::size_t const count = std::min(step, values.size() - from);
        Element const* const at = values.data() + from;
        std::size_t i = 0;
        number most = kernel::load_one<Element>(at);
        if constexpr (kernel::takes_vectors && element_in_vectors<Element>) {
            using block = kernel::block<Element>;
            if (count >= block::size) {
                block all = block::load(at);
                for (i = block::size; count - i >= block::size; i += block::size)
                    all = all.combined(block::load(at + i), update::max{});
                number lanes[block::size];
                all.store_wide(lanes);
                for (number const one : lanes) most = update::max::combine(most, one);
            }
        }
        for (; i < count; ++i) most = update::max::combine(most, kernel::load_one<Element>(at + i));
        if (any && !(most > found.largest_deviation) && most == most) continue;
        found.largest_deviation = most;
        best = from;
        any = true;
        if (most != most) break;
    }
    number const largest = found.largest_deviation;
    for (found.index = best; found.index + 1 < values.size(); ++found.index)
        if (number const one = kernel::load_one<Element>(values.data() + found.index);
            one == largest || (one != one && largest != largest))
            break;
    return found;
}

template <bool IsForm> struct form_of_moments {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] all_moments: takes a const span of the element type, one for the means and one for the "
        "deviations, or these, a moments_result and a deadline: milliseconds, or a time of steady_clock; "
        "common "
        "slips are one buffer for both, a pointer with a count, a container of another type, and a plain "
        "number "
        "as a timeout; write std::span(pointer, count), std::chrono::seconds(1)");
};
template <bool Gives> struct moments_rule {
    static constexpr bool value = true;
    static_assert(
        Gives, "[HRG-C04] all_moments: the reducer's rule says nothing of deviations; a common slip is to "
               "leave the rule out, or update::average; name update::moments, or update::sample_moments to "
               "divide by one less than the ranks");
};
template <class Element> struct takes_moments {
    using result = moments_result<accumulator<stored_element<Element>>>;
    static void take(std::span<Element const>, std::span<Element>, std::span<Element>);
    static void take(std::span<Element const>, std::span<Element>, std::span<Element>, result&,
                     std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, std::span<Element>, result&, time_point);
    template <bool IsForm> using sentence = form_of_moments<IsForm>;
};

/// Returned after a sentence of the compiler: all that a caller may do with a result compiles.
struct inert_moments : moments_result<double> {
    template <class Anything> operator Anything() const noexcept;
    bool ok() const noexcept { return false; }
    void value() const noexcept {}
};

/// The result of `all_moments`; deviations of 16-bit floats are `float`.
template <class Pack> using largest_deviation = typename takes_moments<element_of<Pack>>::result;

} // namespace detail

/// The mean of all ranks' buffers and their standard deviation, element by element, in one exchange.
/// Collective: the same n on every rank, between steps. The reducer's rule is update::moments or
/// update::sample_moments ([HRG-C04]).
///
/// Shape:    `in`, `mean`, `deviation`: n elements. Returns the largest deviation and where it is.
/// Result:   the same bits on every rank. The mean is what all_reduce by update::average has, rounded to the
///           element type once; distances are taken from it before that, and never Σx². Where all ranks have
///           one number the deviation is 0, whatever the number, and however the mean is rounded. A NaN or an
///           infinity that a rank contributes makes the deviation of its element NaN; distances whose squares
///           overflow, beyond 10¹⁹ of float and 10¹⁵⁴ of double, and a sum that overflows make it infinite,
///           or NaN. `exceeds` holds for both. Where several nodes have several ranks which differ, numbers
///           beyond 10²⁵ and 10¹⁶⁸ may: rounding of their mean has such distances.
/// Cost:     over N nodes by one hop (N−1) times the buffer, as all_reduce's; by two hops 3(N−1)/N of it,
///           where two all_reduce have 4(N−1)/N and twice the time of a message. Where ranks share a node, a
///           node's part is a sum and its squares: one (N−1)/N more by two hops, twice as much by one. On one
///           node each rank copies its buffer in; two ranks read the other's, and more divide the work and
///           copy both results out. One pass over the deviations for the largest.
/// Blocks:   until this rank has both, and so all ranks have called: at most `world::default_timeout()`.
/// Lifetime: until it has returned. `in` may be `mean` or `deviation`; otherwise they must not overlap. After
///           an error the content of both results is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of sizes that differ, of buffers that overlap, of
///           update::sample_moments with one rank; `bad_state`, in the middle of a step; `mismatch`, of sizes
///           that differ between ranks.
/// Example:  `auto const told = herring::all_moments(reduce, forces, mean, deviation);`
template <detail::accepted Pack>
detail::largest_deviation<Pack>
all_moments(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
            std::span<detail::element_of<Pack>> mean, std::span<detail::element_of<Pack>> deviation) {
    detail::largest_deviation<Pack> largest;
    all_moments(reduce, in, mean, deviation, largest, detail::collective_call::timeout_of(reduce)).value();
    return largest;
}
/// The same with a timeout from now on: a failure is returned, and `largest` is as it was; a misuse is
/// thrown. A passed deadline ends the world.
template <detail::accepted Pack>
status all_moments(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                   std::span<detail::element_of<Pack>> mean, std::span<detail::element_of<Pack>> deviation,
                   detail::largest_deviation<Pack>& largest, std::chrono::milliseconds timeout) {
    return all_moments(reduce, in, mean, deviation, largest, detail::deadline_in(timeout));
}
/// The same with a time at which the deadline passes.
template <detail::accepted Pack>
status all_moments(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                   std::span<detail::element_of<Pack>> mean, std::span<detail::element_of<Pack>> deviation,
                   detail::largest_deviation<Pack>& largest, time_point deadline) {
    using access = detail::collective_call;
    (void)holds<detail::collective_on_host<access::on_device<Pack>>>;
    (void)holds<detail::moments_rule<access::gives_deviations<Pack>>>;
    if constexpr (access::gives_deviations<Pack>) {
        status ended = access::run_moments(reduce, in, mean, deviation, deadline);
        if (ended.ok()) {
            using stored = detail::stored_element<detail::element_of<Pack>>;
            largest = detail::largest_of<stored>(detail::same_memory<stored const>(deviation));
        }
        return ended;
    } else {
        return {};
    }
}

/// Any other call is one sentence of the compiler, [HRG-C01]. The reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires detail::no_form<detail::takes_moments, Pack, Arguments...> detail::inert_moments
all_moments(basic_reducer<Pack>&, Arguments&&...) {
    (void)detail::collective_call::refuse<detail::takes_moments, Pack>();
    return {};
}
template <class Element, class... Arguments>
detail::inert_moments all_moments(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return {};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_ALL_MOMENTS_HPP
