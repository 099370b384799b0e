// herring: must not compile: an output that is listed twice.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/outputs.hpp"

#ifndef HERRING_TWIN
using own = herring::outputs::of<herring::outputs::variance, herring::outputs::variance>;
#else
using own = herring::outputs::of<herring::outputs::variance>;
#endif

inline constexpr bool mine = herring::check<herring::axes::outputs, own>::value;
