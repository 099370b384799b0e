// herring: must not compile: a rule behind the deadline.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/any.hpp"

#include <chrono>
#include <vector>

using extremes = herring::reducer<double, herring::transport::inproc,
                                  herring::update::any<herring::update::min, herring::update::max>>;

void call(extremes& reduce, std::vector<double>& x) {
#ifndef HERRING_TWIN
    (void)reduce.all_reduce(x, std::chrono::seconds(1), herring::update::max{});
#else
    (void)reduce.all_reduce(x, herring::update::max{}, std::chrono::seconds(1));
#endif
}
