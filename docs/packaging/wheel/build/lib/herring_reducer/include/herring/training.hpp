// herring: what a reducer with an optimizer needs beside herring.hpp and the optimizer's header.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRAINING_HPP
#define HERRING_TRAINING_HPP

#include "herring/reducer.hpp"
#include "herring/session/training_calls.hpp"

#include "herring/base/compiled_apart.hpp"

#endif // HERRING_TRAINING_HPP
