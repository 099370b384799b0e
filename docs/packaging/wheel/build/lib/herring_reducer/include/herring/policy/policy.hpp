// herring: policies: axes, packs, needs, and one sentence for each error in a pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_POLICY_HPP
#define HERRING_POLICY_POLICY_HPP

#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"
#include "herring/policy/check.hpp"
#include "herring/policy/needs.hpp"
#include "herring/policy/pack.hpp"
#include "herring/policy/resolve.hpp"

#endif // HERRING_POLICY_POLICY_HPP
