// herring: the wire policy `top_k`: the largest elements of a row travel, with their indices.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_TOP_K_HPP
#define HERRING_WIRE_TOP_K_HPP

#include <array>
#include <cstddef>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

namespace detail {
template <std::size_t Count>
inline constexpr auto top_k_name = [] {
    std::array<char, 12> text{'t', 'o', 'p', '_', 'k', '<'};
    std::size_t at = 6, unit = 1;
    while (Count / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) text[at++] = static_cast<char>('0' + Count / unit % 10);
    text[at] = '>';
    return text;
}();
} // namespace detail

/// Sends the `Count` most probable elements of a row of logits: {id, log-probability}, ids ascending. Of equal ones at the last
/// place the lowest ids travel. Masked elements do not.
///
/// Shape:   8 + 8 · min(Count, elements) bytes a row. Combined by `combine::mean<space::probability>` to entries, never to a row
///          of all elements: an id that a member did not send counts 0, and the mass that did not travel is reported.
template <std::size_t Count>
requires(Count >= 1 && Count <= 1024) //
    struct top_k {
    using axis = axes::wire;
    static constexpr char const* name = detail::top_k_name<Count>.data();
    static constexpr wire_facts facts{.entries = true};
    template <class Element> static constexpr bool supports = std::is_same_v<accumulator<Element>, float>;

    static constexpr std::size_t count(std::size_t elements) noexcept {
        return elements < Count ? elements : Count;
    }
};
static_assert(wire_policy<top_k<64>>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_TOP_K_HPP
