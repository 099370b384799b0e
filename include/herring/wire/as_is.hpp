// herring: the wire policy `as_is`, the default: numbers travel in the ensemble's own type.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_AS_IS_HPP
#define HERRING_WIRE_AS_IS_HPP

#include "herring/base/config.hpp"
#include "herring/wire/lanes_of.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

namespace detail {
template <class Element> struct itself { using type = Element; };
} // namespace detail

/// Sends a number as an element of the row's type.
///
/// Shape:   sizeof(T) bytes an element; the same bits come back, but for a NaN, which is made canonical.
struct as_is : lanes_of<detail::itself> {
    static constexpr char const* name = "as_is";
    static constexpr wire_facts facts{.exact = true};
};
static_assert(wire_policy<as_is> && wire_supports<as_is, double> && !wire_supports<as_is, int>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_AS_IS_HPP
