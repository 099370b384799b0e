// herring: must not compile: all_reduce by a rule that the call names, where the reducer has one.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <vector>

using one_rule = herring::reducer<double, herring::transport::inproc, herring::update::max>;

void call(one_rule& reduce, std::vector<double>& x) {
#ifndef HERRING_TWIN
    reduce.all_reduce(x, herring::update::max{});
#else
    reduce.all_reduce(x);
#endif
}
