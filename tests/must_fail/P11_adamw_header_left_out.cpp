// herring: must not compile: the header of an optimizer is forgotten.
// SPDX-License-Identifier: Apache-2.0
#include "herring/reducer.hpp"
#include "herring/transport/inproc.hpp"
#ifdef HERRING_TWIN
#include "herring/checkpoint.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#endif

using trainer = herring::reducer<float, herring::transport::inproc, herring::optimizer::adamw>;

std::size_t use(trainer& train) {
    train.save("folder");
    train.save("folder", {});
    return train.load("folder").size() + train.groups();
}
