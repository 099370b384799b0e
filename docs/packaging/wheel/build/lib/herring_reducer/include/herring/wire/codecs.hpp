// herring: the wire policies: as_is, bf16, fp16 (a number an element); top_k, decision (entries of a row).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_WIRE_CODECS_HPP
#define HERRING_WIRE_CODECS_HPP

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"
#include "herring/policy/axes.hpp"
#include "herring/wire/wire.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::wire {

namespace detail {
template <class Element> struct itself { using type = Element; };
template <class> struct always_bfloat16 { using type = bfloat16; };
template <class> struct always_float16 { using type = float16; };
template <std::size_t Count>
inline constexpr auto top_k_name = [] {
    std::array<char, 12> text{'t', 'o', 'p', '_', 'k', '<'};
    std::size_t at = 6, unit = 1;
    while (Count / unit >= 10) unit *= 10;
    for (; unit > 0; unit /= 10) text[at++] = static_cast<char>('0' + Count / unit % 10);
    text[at] = '>';
    return text;
}();
} // namespace detail

/// The members of a codec whose lanes are `Lane<Element>`, rounded to nearest, ties to even; a base class of
/// codecs.
template <template <class> class Lane> struct lanes_of {
    using axis = axes::wire;
    template <class Element> using lane = typename Lane<Element>::type;

    /// Floating-point types that are combined in the type in which the lanes are combined.
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

/// Sends a number as an element of the row's type.
///
/// Shape:   sizeof(T) bytes an element; the same bits come back, but for a NaN, which becomes canonical.
struct as_is : lanes_of<detail::itself> {
    static constexpr char const* name = "as_is";
    static constexpr wire_facts facts{.exact = true};
};
static_assert(wire_policy<as_is> && wire_supports<as_is, double> && !wire_supports<as_is, int>);

/// Sends a number as a bfloat16, rounded to nearest, ties to even.
///
/// Shape:   2 bytes an element. Relative error at most 2⁻⁸, with the range of a float.
struct bf16 : lanes_of<detail::always_bfloat16> {
    static constexpr char const* name = "bf16";
    static constexpr wire_facts facts{.largest = 0x1.fep127f};
};
static_assert(wire_policy<bf16> && wire_supports<bf16, float> && !wire_supports<bf16, double>);

/// Sends a number as an IEEE binary16, rounded to nearest, ties to even.
///
/// Shape:   2 bytes an element. Relative error at most 2⁻¹¹ from 6.1e-5 to 65504; absolute error at most 2⁻²⁵
///          below. Rows of probabilities are multiplied by 2¹⁵: less precise are numbers below 1e-9 of the
///          largest, not those below 3e-5.
struct fp16 : lanes_of<detail::always_float16> {
    static constexpr char const* name = "fp16";
    static constexpr wire_facts facts{.one = 0x1p15f, .largest = 65504};
};
static_assert(wire_policy<fp16> && wire_supports<fp16, float> && !wire_supports<fp16, double>);

/// Sends the `Count` most probable elements of a row of logits: {id, log-probability}, ids ascending. If
/// several are equal at the last place, the lowest ids travel. Masked elements do not travel.
///
/// Shape:   8 + 8 · min(Count, elements) bytes a row. Combined by `combine::mean<space::probability>` to
///          entries, never to a row of all elements: an id that a member did not send counts 0, and the mass
///          that did not travel is reported.
template <std::size_t Count>
requires(Count >= 1 && Count <= 1024) //
    struct top_k {
    using axis = axes::wire;
    static constexpr char const* name = detail::top_k_name<Count>.data();
    static constexpr wire_facts facts{.entries = true};
    template <class Element> static constexpr bool supports = std::is_same_v<accumulator<Element>, float>;

    static constexpr std::size_t count(std::size_t elements) noexcept {
        return elements < Count ? elements : Count;
    }
};
static_assert(wire_policy<top_k<64>>);

/// Chooses the most probable element; of equals the lowest index.
struct argmax {
    static constexpr char const* name = "argmax";
};

/// Sends a member's choice from its row of logits: {id, log-probability}.
///
/// Shape:   16 bytes a row. Combined by `combine::vote`, which counts, or by
///          `combine::mean<space::probability>`, which adds the probabilities that members give their own
///          choice; an answer tells if the mass that did not travel could change the choice.
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

#endif // HERRING_WIRE_CODECS_HPP
