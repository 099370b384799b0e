// herring: wire format equal to the element type.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_SAME_HPP
#define HERRING_WIRE_SAME_HPP

#include "herring/base/config.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

/// Sends elements as they are stored: no conversion, no copy between plan memory and transport.
///
/// Shape:   n elements of sizeof(Element) bytes → as many bytes on the wire.
struct same {
    using axis = axes::wire;
    static constexpr char const* name = "same";

    template <class Element> using type = Element;
};
static_assert(wire_policy<same>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_SAME_HPP
