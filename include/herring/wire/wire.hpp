// herring: the concept of wire policies: how numbers become bytes, and bytes numbers again.
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

/// An element of a row. On the wire the value is a log-probability; in answers it is a probability, or a share of votes.
struct entry {
    std::uint32_t id = 0; ///< index in the row
    float value = 0;

    friend constexpr bool operator==(entry const&, entry const&) = default;
};
static_assert(sizeof(entry) == 8);

/// What a codec promises, as `static constexpr wire_facts facts{...};`.
struct wire_facts {
    bool exact = false;   ///< what is decoded is what was encoded
    bool entries = false; ///< ids and log-probabilities of some elements travel, not a number an element
    /// Elements that are encoded together: a codec is called with whole groups, but for the end of a row.
    std::size_t group = 1;
    /// What a probability of 1 is encoded as, where the codec's range begins far from 0: rows of probabilities are
    /// multiplied by it. A power of two.
    float one = 1;
    float largest = std::numeric_limits<float>::max(); ///< numbers above it cannot be encoded
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
/// Clause: `bytes<Element>(elements)` is what they take when encoded, which depends on their number alone.
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
/// Clause: a codec of entries says how many a row has, `count(elements) noexcept`, at most `elements`; the rest is the
/// library's.
template <class Policy>
concept wire_counts_entries = requires(std::size_t elements) {
    // clang-format off
    { Policy::count(elements) } noexcept -> std::same_as<std::size_t>;
    // clang-format on
};

/// A codec. It has no state: what is decoded depends on the bytes alone, wherever a group lies.
///
/// Shape:   encode<Element>: n numbers of accumulator<Element> → bytes<Element>(n) bytes, at any alignment; decode the other
///          way. bytes(a + b) = bytes(a) + bytes(b) where a is a multiple of `facts.group`.
/// Errors:  none. Any bytes decode to something; who receives them looks at the numbers.
///
/// A codec with one lane an element, `template <class Element> using lane = ...`, an element type of herring's, lets kernels
/// read lanes as they lie, without a pass of its own: `wire::lanes_of` is all of it.
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

/// Whether the codec takes rows of an element type.
template <class Policy, class Element>
concept wire_supports = wire_policy<Policy> && element_type<Element> &&
    bool(Policy::template supports<Element>);

/// Whether kernels can read its lanes as they lie.
template <class Policy, class Element>
concept wire_with_lanes = wire_policy<Policy> && requires {
    typename Policy::template lane<Element>;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_WIRE_WIRE_HPP
