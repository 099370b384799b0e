// herring: the version of these headers, as macros and as a constant.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_VERSION_HPP
#define HERRING_VERSION_HPP

#include "herring/base/config.hpp"
#include "herring/base/version.hpp"

namespace HERRING_NAMESPACE {

/// 10000 * major + 100 * minor + patch. Before 1.0 a new minor version may change names.
inline constexpr int version =
    10000 * HERRING_VERSION_MAJOR + 100 * HERRING_VERSION_MINOR + HERRING_VERSION_PATCH;
inline constexpr char const* version_string = HERRING_VERSION_STRING;

} // namespace HERRING_NAMESPACE

#endif // HERRING_VERSION_HPP
