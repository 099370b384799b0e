// herring: errors: `failure` and `status` as values, `error` as an exception, and their codes, `errc`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ERROR_HPP
#define HERRING_ERROR_HPP

#include "herring/base/error.hpp"

#endif // HERRING_ERROR_HPP
