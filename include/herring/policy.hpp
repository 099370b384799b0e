// herring: the language of policies: axes, packs, needs and sentences.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_HPP
#define HERRING_POLICY_HPP

#include "herring/policy/policy.hpp"

#endif // HERRING_POLICY_HPP
