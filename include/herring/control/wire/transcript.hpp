// herring: net/handshake.hpp, under an earlier name, for include/herring/ensemble alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_TRANSCRIPT_HPP
#define HERRING_CONTROL_WIRE_TRANSCRIPT_HPP
#include "herring/net/handshake.hpp"
#endif
