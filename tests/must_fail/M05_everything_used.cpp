// herring: must not compile: a wire format that nothing would ask, in a program that uses all that a reducer has: one
// error still.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

struct shouting {
    using axis = herring::axes::wire;
    template <class Element> using type = Element;
};

using element = float;
#ifndef HERRING_TWIN
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum, shouting>;
#else
using gradients = herring::reducer<element, herring::transport::inproc, herring::update::sum>;
#endif

#include "train.hpp"
