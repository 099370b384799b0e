// herring: must not compile: a smoothing by which no sample counts.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/sync/selective.hpp"

using herring::sync::selective_tuning;
#ifndef HERRING_TWIN
using mine = pack<float, line, herring::sync::selective<selective_tuning{.smoothing = 1}>>;
#else
using mine = pack<float, line, herring::sync::selective<selective_tuning{.smoothing = 0.5f}>>;
#endif

#include "use.hpp"
