// herring: must not compile: all_reduce by a rule that the list does not have.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <vector>

using extremes = herring::reducer<double, herring::transport::inproc,
                                  herring::update::any<herring::update::min, herring::update::max>>;

void call(extremes& reduce, std::vector<double>& x) {
#ifndef HERRING_TWIN
    reduce.all_reduce(x, herring::update::sum{});
#else
    reduce.all_reduce(x, herring::update::min{});
#endif
}
