// herring: must not compile: a quorum of nobody.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/quorum.hpp"

#ifndef HERRING_TWIN
using own = herring::quorum::by_deadline<0>;
#else
using own = herring::quorum::by_deadline<1>;
#endif

inline constexpr bool mine = herring::check<herring::axes::quorum, own>::value;
