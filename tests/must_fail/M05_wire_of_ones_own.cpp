// herring: must not compile: a reducer with a wire format that nothing would ask.
// SPDX-License-Identifier: Apache-2.0
#include "prelude.hpp"

#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"

struct shouting {
    using axis = herring::axes::wire;
    template <class Element> using type = Element;
};

#ifndef HERRING_TWIN
using mine = herring::reducer<float, herring::transport::inproc, shouting>;
#else
using mine = herring::reducer<float, herring::transport::inproc>;
#endif

std::size_t use() { return sizeof(mine); }
