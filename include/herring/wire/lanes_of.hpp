// herring: codecs that have one lane an element, of an element type.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_LANES_OF_HPP
#define HERRING_WIRE_LANES_OF_HPP

#include <cstddef>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"

namespace HERRING_NAMESPACE::wire {

/// The members of a codec whose lanes are `Lane<Element>`: rounded to nearest, ties to even. For codecs to derive from.
template <template <class> class Lane> struct lanes_of {
    using axis = axes::wire;
    template <class Element> using lane = typename Lane<Element>::type;

    /// Floating-point types that are combined in the type that the lanes are combined in.
    template <class Element>
    static constexpr bool supports = std::is_floating_point_v<accumulator<Element>>&&
        std::is_same_v<accumulator<Element>, accumulator<lane<Element>>>;

    template <class Element> static constexpr std::size_t bytes(std::size_t elements) noexcept {
        return elements * sizeof(lane<Element>);
    }
    template <class Element>
    static void encode(std::span<accumulator<Element> const> numbers, std::span<std::byte> out) noexcept {
        using block = kernel::block<lane<Element>>;
        std::size_t i = 0;
        for (; numbers.size() - i >= block::size; i += block::size) {
            auto numbers_here = block::load_wide(numbers.data() + i);
            if (numbers_here.any_nan()) [[unlikely]]
                numbers_here = numbers_here.canonical();
            numbers_here.round().store(out.data() + i * sizeof(lane<Element>));
        }
        for (; i < numbers.size(); ++i)
            kernel::store_one(out.data() + i * sizeof(lane<Element>),
                              kernel::round_one<lane<Element>>(numbers[i]));
    }
    template <class Element>
    static void decode(std::span<std::byte const> bytes, std::span<accumulator<Element>> numbers) noexcept {
        using block = kernel::block<lane<Element>>;
        std::size_t i = 0;
        for (; numbers.size() - i >= block::size; i += block::size)
            block::load(bytes.data() + i * sizeof(lane<Element>)).store_wide(numbers.data() + i);
        for (; i < numbers.size(); ++i)
            numbers[i] = kernel::load_one<lane<Element>>(bytes.data() + i * sizeof(lane<Element>));
    }
};

} // namespace HERRING_NAMESPACE::wire

#endif // HERRING_WIRE_LANES_OF_HPP
