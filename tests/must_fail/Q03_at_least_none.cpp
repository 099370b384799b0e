// herring: must not compile: a quorum of nobody.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

#ifndef HERRING_TWIN
using own = herring::quorum::at_least<0>;
#else
using own = herring::quorum::at_least<1>;
#endif

inline constexpr bool mine = herring::check<herring::axes::quorum, own>::value;
