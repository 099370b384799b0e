// herring: what transport::sealed may stand around.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_SEALED_NEEDS_HPP
#define HERRING_TRANSPORT_SEALED_NEEDS_HPP

#include "herring/base/config.hpp"
#include "herring/transport/sealed/envelope.hpp"

namespace HERRING_NAMESPACE::detail {

struct sealed_word {
    static constexpr char const* word = "sealed";
};

/// As a need of the transport, so that a pack says it once.
template <class Inner> struct sealed_needs {
    template <class Pack> struct check {
        static constexpr bool first = !Inner::facts.verifies;
        static constexpr bool carried = Inner::facts.envelope_bytes >= sealed_envelope::bytes;
        static constexpr bool value = first && carried;
        static_assert(first,
                      "[HRG-T25] transport: sealed stands around a transport that verifies messages already "
                      "(its facts.verifies is true); a common slip is sealed<checked<tcp>>; a seal sees all "
                      "that a checksum sees: write sealed<tcp>");
        static_assert(!first || carried,
                      "[HRG-T26] transport: sealed needs a transport that carries an envelope of 24 bytes "
                      "(facts.envelope_bytes); a common slip is sealed around a transport of one's own; "
                      "give that a post_send with an envelope, or name sealed<tcp>");
    };
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_SEALED_NEEDS_HPP
