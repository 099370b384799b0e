// herring: must not compile: a type of the right size whose copies are counted, which copies of bytes would not be.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

struct half {
    unsigned short bits;
#ifndef HERRING_TWIN
    half() = default;
    half(half const& from) noexcept : bits(from.bits) { ++copies; }
    half& operator=(half const&) = default;
    static inline int copies = 0;
#endif
};
template <> struct herring::element<half> : herring::same_bits_as<herring::float16> {};

using mine = pack<half, line, herring::update::sum>;

#include "use.hpp"
