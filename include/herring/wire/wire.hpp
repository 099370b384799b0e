// herring: what a wire policy is: the type in which elements travel between nodes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_WIRE_HPP
#define HERRING_WIRE_WIRE_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE {

namespace detail {
template <class Policy, class Element>
concept wire_carries = requires {
    typename Policy::template type<Element>;
};

template <class Policy, class Element> constexpr bool wire_plain_for() noexcept {
    if constexpr (wire_carries<Policy, Element>)
        return std::is_trivially_copyable_v<typename Policy::template type<Element>>;
    else
        return true;
}
} // namespace detail

/// `type<Element>` is the type on the wire. It is there only for elements that the format can carry.
template <class Policy>
concept wire_names_type = detail::wire_carries<Policy, float> || detail::wire_carries<Policy, double> ||
    detail::wire_carries<Policy, std::int32_t> || detail::wire_carries<Policy, std::int64_t>;

template <class Policy>
concept wire_plain_bytes =
    detail::wire_plain_for<Policy, float>() && detail::wire_plain_for<Policy, double>() &&
    detail::wire_plain_for<Policy, std::int32_t>() && detail::wire_plain_for<Policy, std::int64_t>();

/// In which type elements travel. Storage (the element), wire and accumulator are three types: the
/// accumulator is the element's own, e.g. float for 16-bit floats.
template <class Policy>
concept wire_policy =
    std::same_as<typename Policy::axis, axes::wire> && wire_names_type<Policy> && wire_plain_bytes<Policy>;

template <class Policy> struct check<axes::wire, Policy> {
    static constexpr int broken = first_broken({wire_names_type<Policy>, wire_plain_bytes<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-W01] wire: needs 'template <class Element> using type = ...'; a common slip is a "
                  "plain 'using type'; make it a template over the element type");
    static_assert(broken != 1,
                  "[HRG-W02] wire: 'type<Element>' must be trivially copyable, for its bytes travel as "
                  "they are; a common slip is a type that owns memory; use plain numbers");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_WIRE_WIRE_HPP
