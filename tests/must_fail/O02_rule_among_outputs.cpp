// herring: must not compile: a combine rule in the list of outputs.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outputs.hpp"

#ifndef HERRING_TWIN
using own = herring::outputs::of<herring::combine::median<herring::space::value>>;
#else
using own = herring::outputs::of<herring::outputs::variance>;
#endif

inline constexpr bool mine = herring::check<herring::axes::outputs, own>::value;
