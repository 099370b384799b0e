// herring: must not compile: all_reduce without a rule by a reducer that has a list of rules.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <vector>

using extremes = herring::reducer<double, herring::transport::inproc,
                                  herring::update::any<herring::update::min, herring::update::max>>;

void call(extremes& reduce, std::vector<double>& x) {
#ifndef HERRING_TWIN
    reduce.all_reduce(x);
#else
    reduce.all_reduce(x, herring::update::max{});
#endif
}
