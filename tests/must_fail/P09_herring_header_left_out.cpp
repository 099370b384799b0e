// herring: must not compile: a rule of Herring's, whose header neither reducer.hpp nor the transport's includes.
// SPDX-License-Identifier: Apache-2.0
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/update/max.hpp"
#endif

std::size_t use() {
    return sizeof(herring::reducer<float, herring::transport::inproc, herring::update::max>);
}
