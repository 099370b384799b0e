// herring: the wire policy `bf16`: numbers travel in 16 bits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_BF16_HPP
#define HERRING_WIRE_BF16_HPP

#include "herring/base/config.hpp"
#include "herring/wire/lanes_of.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

namespace detail {
template <class> struct always_bfloat16 { using type = bfloat16; };
} // namespace detail

/// Sends a number as a bfloat16, rounded to nearest, ties to even.
///
/// Shape:   2 bytes an element. Relative error at most 2⁻⁸, with the range of a float.
struct bf16 : lanes_of<detail::always_bfloat16> {
    static constexpr char const* name = "bf16";
    static constexpr wire_facts facts{.largest = 0x1.fep127f};
};
static_assert(wire_policy<bf16> && wire_supports<bf16, float> && !wire_supports<bf16, double>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_BF16_HPP
