// herring: net/life_signs.hpp, under an earlier name, for include/herring/ensemble alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_FAILURE_STALL_DETECTOR_HPP
#define HERRING_CONTROL_FAILURE_STALL_DETECTOR_HPP
#include "herring/net/life_signs.hpp"
#endif
