// herring: must not compile: a gather whose counts are int, as MPI_Gatherv has them.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/gather.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"

#include <cstddef>
#include <vector>

using weights = herring::reducer<float, herring::transport::inproc>;

#ifndef HERRING_TWIN
using numbers = std::vector<int>;
#else
using numbers = std::vector<std::size_t>;
#endif
void collect(weights& reduce, std::vector<float> const& mine, std::vector<float>& all, numbers const& given) {
    herring::gather(reduce, mine, all, given, 0);
}
