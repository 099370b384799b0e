// herring: the list of a reducer's axes, and the list of an ensemble's.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_AXES_HPP
#define HERRING_POLICY_AXES_HPP

#include "herring/base/config.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

/// The axes of a reducer: AXIS(name, must_agree). The list defines the tags in `axes`, their order, the
/// members of a pack, and the sentence about an axis that is named twice.
///
/// `must_agree`: ranks with different policies on this axis cannot reduce together, so ranks compare the
/// policies' names.
#define HERRING_AXES(AXIS)                                                                                   \
    AXIS(transport, true)                                                                                    \
    AXIS(intra_node, true)                                                                                   \
    AXIS(sharding, true)                                                                                     \
    AXIS(placement, true)                                                                                    \
    AXIS(fusion, true)                                                                                       \
    AXIS(update, true)                                                                                       \
    AXIS(optimizer, true)                                                                                    \
    AXIS(sync, true)                                                                                         \
    AXIS(progress, false)                                                                                    \
    AXIS(waiting, false)                                                                                     \
    AXIS(trace, false)

/// The axes that only an ensemble has, beside `waiting`. A reducer refuses policies of these axes.
#define HERRING_ENSEMBLE_AXES(AXIS)                                                                          \
    AXIS(combine, true)                                                                                      \
    AXIS(wire, true)                                                                                         \
    AXIS(outputs, true)                                                                                      \
    AXIS(quorum, false)

/// Tags of the axes. A policy names its axis with `using axis = axes::<axis>;`.
namespace axes {
#define HERRING_AXIS(axis, agree)                                                                            \
    struct axis {                                                                                            \
        static constexpr char const* name = #axis;                                                           \
        static constexpr bool must_agree = agree;                                                            \
    };
HERRING_AXES(HERRING_AXIS)
HERRING_ENSEMBLE_AXES(HERRING_AXIS)
#undef HERRING_AXIS
} // namespace axes

/// The policy of an axis that a pack leaves out: `using type = ...;`.
///
/// Only declared here, so that this header includes no model; `herring/session/defaults.hpp` has the
/// specialisations. The transport has no default.
template <class Axis> struct default_policy;

namespace detail {

/// Axes in the order of the list.
template <class... Axes> struct axis_list {
    static constexpr int size = static_cast<int>(sizeof...(Axes));

    /// Index of an axis in the list; -1 if the list does not have the axis.
    template <class Axis> static constexpr int index_of() noexcept {
        int index = 0;
        bool const found = ((std::is_same_v<Axis, Axes> || (++index, false)) || ...);
        return found ? index : -1;
    }
};

// The lists as types. The macro leaves a comma at the front; `void` stands before it, and is dropped.
template <class... Axes> struct drop_first;
template <class First, class... Axes> struct drop_first<First, Axes...> { using type = axis_list<Axes...>; };
#define HERRING_AXIS(axis, agree) , axes::axis
using all_axes = typename drop_first<void HERRING_AXES(HERRING_AXIS)>::type;
using ensemble_axes = typename drop_first<void HERRING_ENSEMBLE_AXES(HERRING_AXIS)>::type;
#undef HERRING_AXIS

template <class Axis> inline constexpr int axis_index = all_axes::index_of<Axis>();

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_AXES_HPP
