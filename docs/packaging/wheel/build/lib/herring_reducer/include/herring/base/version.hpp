// herring: the numbers of the version, written here only; CMake reads them from this file.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_VERSION_HPP
#define HERRING_BASE_VERSION_HPP

#define HERRING_VERSION_MAJOR 0
#define HERRING_VERSION_MINOR 1
#define HERRING_VERSION_PATCH 0
#define HERRING_VERSION_STRING "0.1.0"

#endif // HERRING_BASE_VERSION_HPP
