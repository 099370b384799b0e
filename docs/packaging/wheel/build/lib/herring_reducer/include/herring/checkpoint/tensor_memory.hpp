// herring: ranges of a tensor's weights and of their optimizer's state in memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_TENSOR_MEMORY_HPP
#define HERRING_CHECKPOINT_TENSOR_MEMORY_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail::checkpoints {

/// The weights and the state of elements [offset, offset + elements) of a tensor.
struct tensor_memory {
    std::size_t tensor = 0, offset = 0, elements = 0;
    std::byte* weights = nullptr;
    std::byte* state = nullptr; ///< the first number of each element, the others at strides; null: no state

    /// True if `next` begins where this range ends, in the tensor and in memory.
    bool is_followed_by(tensor_memory const& next, std::size_t weight_bytes,
                        std::size_t number_bytes) const noexcept {
        return next.tensor == tensor && next.offset == offset + elements &&
               next.weights == weights + elements * weight_bytes &&
               (state == nullptr || next.state == state + elements * number_bytes);
    }
};

/// The numbers that a rank keeps for each weight.
struct state_shape {
    std::size_t weight_bytes = 0;
    std::size_t number_bytes = 0; ///< of a number of state
    std::size_t states = 0;       ///< numbers of state for each weight
    std::size_t stride_bytes = 0; ///< from number n of an element's state to number n + 1

    /// Array 0: the weights; array n: the n-th numbers of the state.
    constexpr std::size_t arrays() const noexcept { return 1 + states; }
    constexpr std::size_t bytes_of(std::size_t array) const noexcept {
        return array == 0 ? weight_bytes : number_bytes;
    }
    /// Bytes of one element in all arrays.
    constexpr std::size_t element_bytes() const noexcept { return weight_bytes + states * number_bytes; }
    std::byte* place(tensor_memory const& range, std::size_t array) const noexcept {
        return array == 0 ? range.weights : range.state + (array - 1) * stride_bytes;
    }
};

} // namespace HERRING_NAMESPACE::detail::checkpoints

namespace HERRING_NAMESPACE {

/// The weights, or one number of state, of elements [offset, offset + span.size()) of a tensor, which this
/// rank owns.
///
/// Lifetime: of the reducer, also over `load`; contents are unspecified from `ready` to the end of `wait()`.
template <class Element> struct state_range {
    std::size_t tensor = 0;
    std::size_t array = 0; ///< 0: the weights; n: the n-th number of the optimizer's state
    std::size_t offset = 0;
    std::span<Element const> span;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_CHECKPOINT_TENSOR_MEMORY_HPP
