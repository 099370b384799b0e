// herring: a range of a tensor's weights, or of their optimizer's state, where it lies.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_STATE_RANGE_HPP
#define HERRING_CHECKPOINT_STATE_RANGE_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE {

/// What a rank owns of a tensor, one number of each element: of elements [offset, offset + span.size()).
///
/// Lifetime: of the reducer, also over `load`; contents are unspecified from `ready` to the end of `wait()`.
template <class Element> struct state_range {
    std::size_t tensor = 0;
    std::size_t array = 0; ///< 0: the weights; n: the n-th number that the optimizer keeps of each
    std::size_t offset = 0;
    std::span<Element const> span;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_CHECKPOINT_STATE_RANGE_HPP
