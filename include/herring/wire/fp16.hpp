// herring: the wire policy `fp16`: numbers travel in 16 bits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_FP16_HPP
#define HERRING_WIRE_FP16_HPP

#include "herring/base/config.hpp"
#include "herring/wire/lanes_of.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

namespace detail {
template <class> struct always_float16 { using type = float16; };
} // namespace detail

/// Sends a number as an IEEE binary16, rounded to nearest, ties to even.
///
/// Shape:   2 bytes an element. Relative error at most 2⁻¹¹ from 6.1e-5 to 65504; absolute error at most 2⁻²⁵ below. Rows of
///          probabilities are multiplied by 2¹⁵, so that what is below 1e-9 of the largest is less precise, not what is
///          below 3e-5.
struct fp16 : lanes_of<detail::always_float16> {
    static constexpr char const* name = "fp16";
    static constexpr wire_facts facts{.one = 0x1p15f, .largest = 65504};
};
static_assert(wire_policy<fp16> && wire_supports<fp16, float> && !wire_supports<fp16, double>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_FP16_HPP
