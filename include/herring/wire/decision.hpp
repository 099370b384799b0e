// herring: the wire policy `decision`: only the index that a member would choose travels, and its log-probability.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_DECISION_HPP
#define HERRING_WIRE_DECISION_HPP

#include <cstddef>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/model/element.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::wire {

/// Chooses the most probable element; of equal ones the lowest index.
struct argmax {
    static constexpr char const* name = "argmax";
};

/// Sends what a member would choose of its row of logits: {id, log-probability}.
///
/// Shape:   16 bytes a row. Combined by `combine::vote`, which counts, or by `combine::mean<space::probability>`, which adds the
///          probabilities that members give their own choice; an answer says whether what did not travel could change the
///          choice.
template <class Choice = argmax>
requires(std::is_same_v<Choice, argmax>) //
    struct decision {
    using axis = axes::wire;
    static constexpr char const* name = "decision<argmax>";
    static constexpr wire_facts facts{.entries = true};
    template <class Element> static constexpr bool supports = std::is_same_v<accumulator<Element>, float>;

    static constexpr std::size_t count(std::size_t elements) noexcept { return elements < 1 ? elements : 1; }
};
static_assert(wire_policy<decision<>>);

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_DECISION_HPP
