// herring: must not compile: a checkpoint in gaps with a sync policy that skips steps.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/gap_checkpoint.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#ifdef HERRING_TWIN
using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw>;
#else
using trainer = herring::reducer<float, herring::transport::tcp, herring::sync::every<4>>;
#endif
void train(trainer& of) {
    herring::gap_checkpoint checkpoint(of);
    checkpoint.begin("/var/lib/model");
    checkpoint.finish();
}
