// herring: must not compile: an all_to_all whose counts are int, as MPI_Alltoallv has them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_to_all.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <cstddef>
#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

#ifndef HERRING_TWIN
using counts = std::vector<int>;
#else
using counts = std::vector<std::size_t>;
#endif
void route(weights& reduce, std::vector<float> const& in, counts const& sent, std::vector<float>& out,
           counts const& got) {
    herring::all_to_all(reduce, in, sent, out, got);
}
