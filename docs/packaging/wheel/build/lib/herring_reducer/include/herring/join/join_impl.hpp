// herring: set-up code of join.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_JOIN_IMPL_HPP
#define HERRING_JOIN_JOIN_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/control/variables.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/join.hpp"
#include "herring/join/join_as.hpp"

#include <utility>

#include <unistd.h>

namespace HERRING_NAMESPACE {

HERRING_SEPARABLE world join(join_options const& options) {
    auto const from = detail::variables::of_process();
    detail::warn_of_unknown_variables(from);
    detail::join_target who = detail::read_environment(options, from, static_cast<long long>(::getppid()));
    return detail::join_as(std::move(who), options.timeout);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_JOIN_IMPL_HPP
