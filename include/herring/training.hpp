// herring: what a reducer with an optimizer needs beside herring.hpp: the headers of optimizers include it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRAINING_HPP
#define HERRING_TRAINING_HPP

// An optimizer of your own: include this beside herring/herring.hpp.
#include "herring/reducer.hpp"
#include "herring/session/training_calls.hpp"

#endif // HERRING_TRAINING_HPP
