// flags: compiled for every machine.
// SPDX-License-Identifier: Apache-2.0
#define PART(name) plain##name
#include "flags/step.hpp"
