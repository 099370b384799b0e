// herring: the language of policies, for policies of yours: axes, packs, needs, and the compiler's sentences.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_HPP
#define HERRING_POLICY_HPP

#include "herring/policy/policy.hpp"

#endif // HERRING_POLICY_HPP
