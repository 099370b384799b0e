// herring: the version of these headers, as macros and as a constant.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_VERSION_HPP
#define HERRING_VERSION_HPP

#include "herring/base/version.hpp"

#endif // HERRING_VERSION_HPP
