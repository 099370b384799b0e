// herring: an element of a row with its index: what rows of few elements are made of.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_ENTRY_HPP
#define HERRING_WIRE_ENTRY_HPP

#include <cstdint>

#include "herring/base/config.hpp"

namespace HERRING_NAMESPACE {

/// An element of a row. On the wire the value is a log-probability; in answers it is a probability, or a share of votes.
struct entry {
    std::uint32_t id = 0; ///< index in the row
    float value = 0;

    friend constexpr bool operator==(entry const&, entry const&) = default;
};
static_assert(sizeof(entry) == 8);

} // namespace HERRING_NAMESPACE

#endif // HERRING_WIRE_ENTRY_HPP
