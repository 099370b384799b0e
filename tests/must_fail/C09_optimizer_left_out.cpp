// herring: must not compile: a checkpoint in gaps of a reducer that keeps no state.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/gap_checkpoint.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/progress/progress.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#ifdef HERRING_TWIN
using trainer =
    herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw, herring::progress::thread>;
#else
using trainer = herring::reducer<float, herring::transport::tcp, herring::progress::thread>;
#endif
void train(trainer& of) {
    herring::gap_checkpoint checkpoint(of);
    checkpoint.begin("/var/lib/model");
    auto work = of.in_gaps(checkpoint);
    work.wait();
    checkpoint.finish();
}
