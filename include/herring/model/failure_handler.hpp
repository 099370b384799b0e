// herring: the function of a program that is called when its world has failed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_FAILURE_HANDLER_HPP
#define HERRING_MODEL_FAILURE_HANDLER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/shared_handler.hpp"

namespace HERRING_NAMESPACE::detail {

/// Nothing, or a function object that takes a `failure const&`.
using failure_handler = shared_handler<failure>;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MODEL_FAILURE_HANDLER_HPP
