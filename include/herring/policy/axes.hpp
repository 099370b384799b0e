// herring: the axes of a reducer, in one list, and those of an ensemble.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_AXES_HPP
#define HERRING_POLICY_AXES_HPP

#include "herring/base/config.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

/// The list of axes: AXIS(name, must_agree). From it follow the tags in `axes`, their order, the members of a pack,
/// and the sentence about an axis that is named twice.
///
/// `must_agree`: ranks with different policies on this axis cannot reduce together, so ranks compare the policies' names.
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

/// The axes that only an ensemble has; it takes `waiting` too. A reducer refuses policies of these.
#define HERRING_ENSEMBLE_AXES(AXIS)                                                                          \
    AXIS(combine, true)                                                                                      \
    AXIS(wire, true)                                                                                         \
    AXIS(outputs, true)                                                                                      \
    AXIS(quorum, false)

/// What a reducer, or an ensemble, is composed of. A policy says which axis it is for with `using axis = axes::<axis>;`.
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

/// The policy that an axis takes when the pack leaves it out: `using type = ...;`.
///
/// Only declared here, so that this header includes no model; `herring/session/defaults.hpp` has the specialisations.
/// The transport has no default.
template <class Axis> struct default_policy;

namespace detail {

/// Axes in the order of the list.
template <class... Axes> struct axis_list {
    static constexpr int size = static_cast<int>(sizeof...(Axes));

    /// Index of an axis in the list; -1 if it is not in it.
    template <class Axis> static constexpr int index_of() noexcept {
        int index = 0;
        bool const found = ((std::is_same_v<Axis, Axes> || (++index, false)) || ...);
        return found ? index : -1;
    }
};

// The list above as types. The macro leaves one comma too many, at the front: `none` stands before it, and is dropped.
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
