// herring: must not compile: bits of a type that is no element itself.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

struct half {
    unsigned short bits;
};
#ifndef HERRING_TWIN
template <> struct herring::element<half> : herring::same_bits_as<char16_t> {};
#else
template <> struct herring::element<half> : herring::same_bits_as<herring::float16> {};
#endif

using mine = pack<half, line, herring::update::sum>;

#include "use.hpp"
