// herring: must not compile: reduce_scatter without a rule by a reducer that has a list of rules.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <vector>

using extremes = herring::reducer<double, herring::transport::inproc,
                                  herring::update::any<herring::update::min, herring::update::max>>;

void call(extremes& reduce, std::vector<double> const& x, std::vector<double>& mine) {
#ifndef HERRING_TWIN
    herring::reduce_scatter(reduce, x, mine);
#else
    herring::reduce_scatter(reduce, x, mine, herring::update::max{});
#endif
}
