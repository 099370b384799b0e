// herring: worlds, layouts, reducers and common policies; transports, optimizers and others have own headers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_HERRING_HPP
#define HERRING_HERRING_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/error.hpp"
#include "herring/base/version.hpp"
#include "herring/control/world.hpp"
#include "herring/fusion/balanced_buffer.hpp"
#include "herring/fusion/per_tensor.hpp"
#include "herring/fusion/whole_model.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/model/element.hpp"
#include "herring/model/layout.hpp"
#include "herring/optimizer/none.hpp"
#include "herring/placement/colocated.hpp"
#include "herring/policy/policy.hpp"
#include "herring/progress/caller.hpp"
#include "herring/progress/thread.hpp"
#include "herring/reducer.hpp"
#include "herring/sharding/balanced.hpp"
#include "herring/sharding/whole_tensor.hpp"
#include "herring/trace/trace.hpp"
#include "herring/update/average.hpp"
#include "herring/update/logical_and.hpp"
#include "herring/update/logical_or.hpp"
#include "herring/update/max.hpp"
#include "herring/update/min.hpp"
#include "herring/update/product.hpp"
#include "herring/update/sum.hpp"
#include "herring/version.hpp"
#include "herring/waiting/adaptive.hpp"
#include "herring/waiting/block.hpp"
#include "herring/waiting/spin.hpp"

#endif // HERRING_HERRING_HPP
