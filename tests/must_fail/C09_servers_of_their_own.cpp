// herring: must not compile: a checkpoint in gaps where servers keep the state.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/gap_checkpoint.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/serve.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#ifdef HERRING_TWIN
using placement = herring::placement::colocated;
#else
using placement = herring::placement::dedicated;
#endif
using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw, placement>;
void train(trainer& of) {
    herring::gap_checkpoint checkpoint(of);
    checkpoint.begin("/var/lib/model");
    checkpoint.finish();
}
