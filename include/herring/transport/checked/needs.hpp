// herring: what transport::checked may stand around.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHECKED_NEEDS_HPP
#define HERRING_TRANSPORT_CHECKED_NEEDS_HPP

#include "herring/base/config.hpp"
#include "herring/transport/checked/envelope.hpp"

namespace HERRING_NAMESPACE::detail {

struct checked_word {
    static constexpr char const* word = "checked";
};

/// As a need of the transport, so that a pack says it once.
template <class Inner> struct checked_needs {
    template <class Pack> struct check {
        static constexpr bool first = !Inner::facts.verifies;
        static constexpr bool carried = Inner::facts.envelope_bytes >= checked_envelope::bytes;
        static constexpr bool value = first && carried;
        static_assert(first,
                      "[HRG-T21] transport: checked stands around a transport that verifies messages already "
                      "(its facts.verifies is true); a common slip is checked<checked<...>>; name it once");
        static_assert(!first || carried,
                      "[HRG-T22] transport: checked needs a transport that carries an envelope of 12 bytes "
                      "(facts.envelope_bytes); a common slip is checked around a transport of one's own; "
                      "give that a post_send with an envelope, or name checked<tcp>");
    };
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHECKED_NEEDS_HPP
