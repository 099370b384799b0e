// herring: the policy that each axis takes when a pack leaves it out.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_DEFAULTS_HPP
#define HERRING_SESSION_DEFAULTS_HPP

#include "herring/base/config.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/placement/placement.hpp"
#include "herring/policy/policy.hpp"
#include "herring/progress/progress.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/sync/sync.hpp"
#include "herring/trace/trace.hpp"
#include "herring/update/rules.hpp"
#include "herring/waiting/waiting.hpp"

namespace HERRING_NAMESPACE {

template <> struct default_policy<axes::intra_node> { using type = intra_node::none; };
template <> struct default_policy<axes::sharding> { using type = sharding::balanced; };
template <> struct default_policy<axes::placement> { using type = placement::colocated; };
template <> struct default_policy<axes::fusion> { using type = fusion::balanced_buffer<>; };
template <> struct default_policy<axes::update> { using type = update::unnamed_average; };
template <> struct default_policy<axes::optimizer> { using type = optimizer::none; };
template <> struct default_policy<axes::sync> { using type = sync::every_step; };
template <> struct default_policy<axes::progress> { using type = progress::caller; };
template <> struct default_policy<axes::trace> { using type = trace::off; };

} // namespace HERRING_NAMESPACE

#endif // HERRING_SESSION_DEFAULTS_HPP
