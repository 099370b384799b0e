// herring: the types that a reducer takes as elements.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_ELEMENT_TYPES_HPP
#define HERRING_MODEL_ELEMENT_TYPES_HPP

#include "herring/base/config.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE {

template <class Element> struct element;

/// Whether tensors of this type can be reduced. Specialise it for your own type, above the reducer:
/// `template <> inline constexpr bool herring::is_element<my_struct> = true;`. Elements are then copied as bytes and
/// combined one by one, on the host, by an update rule that takes the type.
template <class Element> inline constexpr bool is_element = false;
template <> inline constexpr bool is_element<float> = true;
template <> inline constexpr bool is_element<double> = true;
template <> inline constexpr bool is_element<int> = true;
template <> inline constexpr bool is_element<long> = true;
template <> inline constexpr bool is_element<long long> = true;
template <> inline constexpr bool is_element<unsigned> = true;
template <> inline constexpr bool is_element<unsigned long> = true;
template <> inline constexpr bool is_element<unsigned long long> = true;

namespace detail {

// Elements are copied as bytes, in chunks of at least 4 KiB: a chunk begins at a multiple of lcm(64, size) bytes.
template <class Element>
concept fit_element =
    std::is_trivially_copyable_v<Element> && std::is_default_constructible_v<Element> &&
    !std::is_polymorphic_v<Element> &&
    !std::is_pointer_v<Element> && !std::is_member_pointer_v<Element> && !std::is_null_pointer_v<Element> &&
    !std::is_same_v<Element, bool> && !std::is_array_v<Element> && alignof(Element) <= 64 &&
    (sizeof(Element) <= 64 || (sizeof(Element) <= 256 && sizeof(Element) % 4 == 0));

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_ELEMENT_TYPES_HPP
