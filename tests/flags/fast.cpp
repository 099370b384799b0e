// flags: compiled with -mavx2 -mfma.
// SPDX-License-Identifier: Apache-2.0
#define PART(name) fast##name
#include "flags/step.hpp"
