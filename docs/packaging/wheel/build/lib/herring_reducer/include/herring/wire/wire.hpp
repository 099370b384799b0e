// herring: the concept of wire policies: numbers to bytes, and bytes to numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_WIRE_HPP
#define HERRING_WIRE_WIRE_HPP

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// An element of a row with its index. On the wire the value is a log-probability; in answers a probability,
/// or a share of votes.
struct entry {
    std::uint32_t id = 0; ///< index in the row
    float value = 0;

    friend constexpr bool operator==(entry const&, entry const&) = default;
};
static_assert(sizeof(entry) == 8);

/// The properties of a codec, as `static constexpr wire_facts facts{...};`.
struct wire_facts {
    bool exact = false;   ///< decoded numbers are the encoded ones
    bool entries = false; ///< ids and log-probabilities of some elements travel, not a number an element
    /// Elements that are encoded together: a codec is called with whole groups, but for the end of a row. The
    /// encoder's stack and the frontend's memory of each member and request hold a multiple of it.
    std::size_t group = 1;
    /// The code of a probability of 1, where the codec's range begins far from 0: rows of probabilities are
    /// multiplied by it. A power of two.
    float one = 1;
    /// The largest magnitude that can be encoded: rows of `space::value` with a larger one are refused.
    float largest = std::numeric_limits<float>::max();
};

template <class Policy>
concept wire_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
template <class Policy>
concept wire_states_facts = states_facts<Policy, wire_facts>;
/// Clause: `supports<Element>` says at compile time which element types it encodes.
template <class Policy>
concept wire_says_what_it_supports = requires {
    { Policy::template supports<float> } -> std::convertible_to<bool>;
};
/// Clause: `bytes<Element>(elements)` is the size of encoded elements, which depends on their number alone.
template <class Policy>
concept wire_bounds_bytes = requires(std::size_t elements) {
    // clang-format off
    { Policy::template bytes<float>(elements) } noexcept -> std::same_as<std::size_t>;
    // clang-format on
};
/// Clause: `encode<Element>(numbers, bytes) noexcept` and `decode<Element>(bytes, numbers) noexcept`.
template <class Policy>
concept wire_encodes = requires(std::span<float const> numbers, std::span<std::byte> out,
                                std::span<std::byte const> bytes, std::span<float> decoded) {
    // clang-format off
    { Policy::template encode<float>(numbers, out) } noexcept;
    { Policy::template decode<float>(bytes, decoded) } noexcept;
    // clang-format on
};
/// Clause: a codec of entries says how many a row has, `count(elements) noexcept`, at most `elements`; the
/// library does the rest.
template <class Policy>
concept wire_counts_entries = requires(std::size_t elements) {
    // clang-format off
    { Policy::count(elements) } noexcept -> std::same_as<std::size_t>;
    // clang-format on
};

/// A codec. It has no state: the decoded numbers depend on the bytes alone, wherever a group lies.
///
/// Shape:   encode<Element>: n numbers of accumulator<Element> → bytes<Element>(n) bytes, at any alignment;
///          decode the other way. bytes(a + b) = bytes(a) + bytes(b) where a is a multiple of `facts.group`.
/// Numbers: what the space of the combine rule makes of a row. `value`: as they are; `probability`:
///          `one` · e^(x − largest), from 0 to `one`; `log_probability`, and `logit` with a codec that is not
///          exact: x − largest, from −∞ (a masked class) to 0.
/// Errors:  none. Any bytes decode to some numbers; the receiver checks them.
///
/// A codec with one lane an element, `template <class Element> using lane = ...`, an element type of
/// Herring's, lets kernels read lanes where they lie, without a pass to decode them; derive it from
/// `wire::lanes_of`.
template <class Policy>
concept wire_policy = std::same_as<typename Policy::axis, axes::wire> && wire_named<Policy> &&
    wire_states_facts<Policy> && wire_says_what_it_supports<Policy> &&
    ((Policy::facts.entries && wire_counts_entries<Policy>) ||
     (!Policy::facts.entries && wire_bounds_bytes<Policy> && wire_encodes<Policy>));

template <class Policy> struct check<axes::wire, Policy> {
    static constexpr int broken = [] {
        if constexpr (!wire_states_facts<Policy>)
            return first_broken({wire_named<Policy>, false});
        else if constexpr (Policy::facts.entries)
            return first_broken({wire_named<Policy>, true, wire_says_what_it_supports<Policy>, true, true,
                                 wire_counts_entries<Policy>});
        else
            return first_broken({wire_named<Policy>, true, wire_says_what_it_supports<Policy>,
                                 wire_bounds_bytes<Policy>, wire_encodes<Policy>});
    }();
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-W01] wire: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(
        broken != 1,
        "[HRG-W02] wire: needs 'static constexpr herring::wire_facts facts{...}'; a common slip is a "
        "fact of its own, such as 'static constexpr bool exact', which nothing reads; write it into "
        "facts, as in '{.exact = true}'");
    static_assert(
        broken != 2,
        "[HRG-W03] wire: needs 'template <class T> static constexpr bool supports'; a common slip is "
        "to leave it out; say true for the types that it encodes");
    static_assert(
        broken != 3,
        "[HRG-W04] wire: needs 'template <class T> static constexpr std::size_t bytes(std::size_t "
        "elements) noexcept'; a common slip is to forget static or noexcept; return what the encoded "
        "elements take, whatever their values");
    static_assert(
        broken != 4,
        "[HRG-W05] wire: needs 'template <class T> static void encode(std::span<herring::accumulator<T> "
        "const>, std::span<std::byte>) noexcept' and the same way back, 'decode(std::span<std::byte "
        "const>, std::span<herring::accumulator<T>>) noexcept'; a common slip is to take spans of T; "
        "a bfloat16 is handed over as a float");
    static_assert(broken != 5,
                  "[HRG-W06] wire: a codec of entries needs 'static constexpr std::size_t count(std::size_t "
                  "elements) noexcept'; a common slip is a constant, which rows of fewer elements exceed; "
                  "return the lesser of the two");
};

/// True if the codec takes rows of an element type.
template <class Policy, class Element>
concept wire_supports = wire_policy<Policy> && element_type<Element> &&
    bool(Policy::template supports<Element>);

/// True if kernels can read the codec's lanes where they lie.
template <class Policy, class Element>
concept wire_with_lanes = wire_policy<Policy> && requires {
    typename Policy::template lane<Element>;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_WIRE_WIRE_HPP
