// herring: must not compile: a checkpoint without its header, which herring.hpp leaves out.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/optimizer/adamw.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"

#ifdef HERRING_TWIN
#include "herring/checkpoint.hpp"
#endif

using trainer = herring::reducer<float, herring::transport::tcp, herring::optimizer::adamw>;
void save(trainer& train) { train.save("/var/lib/model"); }
