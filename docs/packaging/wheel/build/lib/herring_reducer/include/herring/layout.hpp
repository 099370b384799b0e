// herring: `layout`: names and numbers of elements of the tensors to reduce.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_LAYOUT_HPP
#define HERRING_LAYOUT_HPP

#include "herring/model/layout.hpp"

#endif // HERRING_LAYOUT_HPP
