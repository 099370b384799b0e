// herring: must not compile: reduce_scatter by a rule that the call names, where the reducer has one.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <vector>

using one_rule = herring::reducer<double, herring::transport::inproc, herring::update::max>;

void call(one_rule& reduce, std::vector<double> const& x, std::vector<double>& mine) {
#ifndef HERRING_TWIN
    herring::reduce_scatter(reduce, x, mine, herring::update::max{});
#else
    herring::reduce_scatter(reduce, x, mine);
#endif
}
