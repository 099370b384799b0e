// herring: net/frame.hpp, under an earlier name, for include/herring/ensemble alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_FRAME_HPP
#define HERRING_CONTROL_WIRE_FRAME_HPP
#include "herring/net/frame.hpp"
#endif
