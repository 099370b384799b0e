// herring: must not compile: an all_gather of strings, whose characters lie elsewhere.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_gather.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <string>
#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

#ifndef HERRING_TWIN
using names = std::vector<std::string>;
#else
using names = std::string;
#endif
void gather(weights& reduce, names const& mine, names& all) { herring::all_gather(reduce, mine, all); }
