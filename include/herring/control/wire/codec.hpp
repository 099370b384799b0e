// herring: base/codec.hpp, under an earlier name, for include/herring/ensemble alone.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_CODEC_HPP
#define HERRING_CONTROL_WIRE_CODEC_HPP
#include "herring/base/codec.hpp"
#endif
