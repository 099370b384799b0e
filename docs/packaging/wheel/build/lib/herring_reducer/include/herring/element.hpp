// herring: element types: the numbers of a tensor, and `element`, which describes a type of yours.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ELEMENT_HPP
#define HERRING_ELEMENT_HPP

#include "herring/model/element.hpp"

#endif // HERRING_ELEMENT_HPP
