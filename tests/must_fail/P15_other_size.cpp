// herring: must not compile: a type of two halves that is said to have the bits of one.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/update/rules.hpp"

#ifndef HERRING_TWIN
struct half {
    unsigned short bits, error; // of the rounding
};
#else
struct half {
    unsigned short bits;
};
#endif
template <> struct herring::element<half> : herring::same_bits_as<herring::float16> {};

using mine = pack<half, line, herring::update::sum>;

#include "use.hpp"
