// herring: worlds, layouts, reducers and common policies; transports, optimizers and others have own headers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_HERRING_HPP
#define HERRING_HERRING_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/error.hpp"
#include "herring/base/version.hpp"
#include "herring/control/world.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/model/element.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/placement/placement.hpp"
#include "herring/policy/policy.hpp"
#include "herring/progress/progress.hpp"
#include "herring/reducer.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/trace/trace.hpp"
#include "herring/update/rules.hpp"
#include "herring/version.hpp"
#include "herring/waiting/waiting.hpp"

#endif // HERRING_HERRING_HPP
