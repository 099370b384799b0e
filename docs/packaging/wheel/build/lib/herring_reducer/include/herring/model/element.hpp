// herring: element types of tensors: floats, integers of 8 to 64 bits, bool, 16-bit floats, structs of yours.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_ELEMENT_HPP
#define HERRING_MODEL_ELEMENT_HPP

#include "herring/base/config.hpp"
#include "herring/base/type_name.hpp"

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// Formulas over `Unsigned` (one 32-bit lane, or a vector of them) and its signed and float counterparts.
///
/// Widening is exact. Narrowing rounds to nearest, ties to even, and needs the default rounding mode. A
/// 16-bit result lies in the low half of its lane, sign-extended, so that a signed saturating pack does not
/// change it. Subnormals come from an addition that shifts their bits to the end of the fraction.
template <class Unsigned, class Signed, class Float> struct float_bits {
    static constexpr std::uint32_t infinity = 0x7f80'0000u;

    HERRING_HOST_DEVICE static constexpr Unsigned widen_bfloat16(Unsigned half) noexcept {
        return half << 16;
    }

    /// Not for a NaN whose payload lies in the low half, which could round to an infinity.
    HERRING_HOST_DEVICE static constexpr Signed narrow_bfloat16(Unsigned bits) noexcept {
        Unsigned const even = (bits >> 16) & 1u;
        return as<Signed>(bits + 0x7fffu + even) >> 16;
    }

    HERRING_HOST_DEVICE static constexpr Unsigned widen_float16(Unsigned half) noexcept {
        Unsigned const magnitude = half & 0x7fffu;
        Unsigned const moved = magnitude << 13;
        Unsigned const normal = moved + 0x3800'0000u;
        Unsigned const special = moved + 0x7000'0000u;    // infinity and NaN
        Unsigned const magic = Unsigned{} + 0x3880'0000u; // 2^-14
        Unsigned const subnormal = as<Unsigned>(as<Float>(moved + magic) - as<Float>(magic));
        Signed const order = as<Signed>(magnitude);
        Unsigned const finite = order < 0x400 ? subnormal : normal;
        return (order > 0x7bff ? special : finite) | ((half & 0x8000u) << 16);
    }

    /// Every NaN becomes the quiet one, 0x7e00 with the sign kept.
    HERRING_HOST_DEVICE static constexpr Signed narrow_float16(Unsigned bits) noexcept {
        Unsigned const magnitude = bits & 0x7fff'ffffu;
        Signed const order = as<Signed>(magnitude);
        Unsigned const even = (magnitude >> 13) & 1u;
        Unsigned const normal = (magnitude + 0xc800'0fffu + even) >> 13;
        Unsigned const half = Unsigned{} + 0x3f00'0000u; // 0.5: its last place is the smallest subnormal
        Unsigned const subnormal = as<Unsigned>(as<Float>(magnitude) + as<Float>(half)) - half;
        Unsigned const finite = order < 0x3880'0000 ? subnormal : normal;
        Unsigned const special = order > 0x7f80'0000 ? Unsigned{} + 0x7e00u : Unsigned{} + 0x7c00u;
        Unsigned const result = order > 0x477f'ffff ? special : finite;
        return as<Signed>(result) | (as<Signed>(bits & 0x8000'0000u) >> 16);
    }

    template <class To, class From> HERRING_HOST_DEVICE static constexpr To as(From from) noexcept {
        return __builtin_bit_cast(To, from);
    }
};

using scalar_float_bits = float_bits<std::uint32_t, std::int32_t, float>;

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE {

template <class Element> struct element;

/// True if tensors of this type can be reduced. Specialise it for your own type, above the reducer: `template
/// <> inline constexpr bool herring::is_element<my_struct> = true;`. Such elements are copied as bytes and
/// combined one by one, on the host, by an update rule that takes the type.
template <class Element> inline constexpr bool is_element = false;
template <> inline constexpr bool is_element<float> = true;
template <> inline constexpr bool is_element<double> = true;
template <> inline constexpr bool is_element<bool> = true;
template <> inline constexpr bool is_element<signed char> = true;
template <> inline constexpr bool is_element<short> = true;
template <> inline constexpr bool is_element<int> = true;
template <> inline constexpr bool is_element<long> = true;
template <> inline constexpr bool is_element<long long> = true;
template <> inline constexpr bool is_element<unsigned char> = true;
template <> inline constexpr bool is_element<unsigned short> = true;
template <> inline constexpr bool is_element<unsigned> = true;
template <> inline constexpr bool is_element<unsigned long> = true;
template <> inline constexpr bool is_element<unsigned long long> = true;

namespace detail {

// Elements are copied as bytes, in chunks of at least 4 KiB; a chunk begins at a multiple of lcm(64, size)
// bytes.
template <class Element>
concept fit_element =
    std::is_trivially_copyable_v<Element> && std::is_default_constructible_v<Element> &&
    !std::is_polymorphic_v<Element> &&
    !std::is_pointer_v<Element> && !std::is_member_pointer_v<Element> && !std::is_null_pointer_v<Element> &&
    !std::is_array_v<Element> && alignof(Element) <= 64 &&
    (sizeof(Element) <= 64 || (sizeof(Element) <= 256 && sizeof(Element) % 4 == 0));

} // namespace detail

/// The upper half of a `float`: 8 bits of exponent, 7 of fraction. Storage only: it computes as `float`.
///
/// Rounds to nearest, ties to even; subnormals and infinities are kept; a NaN stays a NaN with its sign and
/// the upper part of its payload, made quiet. Trivial: spans of it lie in shared memory and on the wire.
struct bfloat16 {
    std::uint16_t bits;

    bfloat16() = default;
    HERRING_HOST_DEVICE explicit constexpr bfloat16(float value) noexcept : bits(narrow(value)) {}
    HERRING_HOST_DEVICE explicit constexpr operator float() const noexcept {
        return __builtin_bit_cast(float, detail::scalar_float_bits::widen_bfloat16(bits));
    }
    HERRING_HOST_DEVICE static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
        bfloat16 result{0.0f};
        result.bits = bits;
        return result;
    }
    /// Compares as numbers: -0 equals +0, a NaN equals nothing. For bit equality compare `bits`.
    HERRING_HOST_DEVICE friend constexpr bool operator==(bfloat16 a, bfloat16 b) noexcept {
        return static_cast<float>(a) == static_cast<float>(b);
    }

  private:
    HERRING_HOST_DEVICE static constexpr std::uint16_t narrow(float value) noexcept {
        std::uint32_t const all = __builtin_bit_cast(std::uint32_t, value);
        if ((all & 0x7fff'ffffu) > detail::scalar_float_bits::infinity)
            return static_cast<std::uint16_t>(all >> 16 | 0x40u);
        return static_cast<std::uint16_t>(detail::scalar_float_bits::narrow_bfloat16(all));
    }
};

/// IEEE 754 binary16: 5 bits of exponent, 10 of fraction. Storage only: it computes as `float`.
///
/// Rounds to nearest, ties to even; 65520 and more become infinite, subnormals are kept, NaNs as for
/// `bfloat16`.
struct float16 {
    std::uint16_t bits;

    float16() = default;
    HERRING_HOST_DEVICE explicit constexpr float16(float value) noexcept : bits(narrow(value)) {}
    HERRING_HOST_DEVICE explicit constexpr operator float() const noexcept {
        return __builtin_bit_cast(float, detail::scalar_float_bits::widen_float16(bits));
    }
    HERRING_HOST_DEVICE static constexpr float16 from_bits(std::uint16_t bits) noexcept {
        float16 result{0.0f};
        result.bits = bits;
        return result;
    }
    /// Compares as numbers: -0 equals +0, a NaN equals nothing. For bit equality compare `bits`.
    HERRING_HOST_DEVICE friend constexpr bool operator==(float16 a, float16 b) noexcept {
        return static_cast<float>(a) == static_cast<float>(b);
    }

  private:
    HERRING_HOST_DEVICE static constexpr std::uint16_t narrow(float value) noexcept {
        std::uint32_t const all = __builtin_bit_cast(std::uint32_t, value);
        if ((all & 0x7fff'ffffu) > detail::scalar_float_bits::infinity)
            return static_cast<std::uint16_t>((all >> 16 & 0x8000u) | 0x7e00u | (all >> 13 & 0x1ffu));
        return static_cast<std::uint16_t>(detail::scalar_float_bits::narrow_float16(all));
    }
};

/// A type's number in digests and on the wire: never reused, never renumbered.
enum class type_id : std::uint8_t {
    float32 = 1,
    float64 = 2,
    int32 = 3,
    int64 = 4,
    bfloat16 = 5,
    float16 = 6,
    uint32 = 7,
    uint64 = 8,
    own = 9, // user-defined: ranks compare its name and size
    int8 = 10,
    uint8 = 11,
    int16 = 12,
    uint16 = 13,
    boolean = 14
};

/// Returns the type's name in error messages.
constexpr char const* to_string(type_id id) noexcept {
    // clang-format off
    constexpr char const* names[] = { // from 1
        "float", "double", "std::int32_t", "std::int64_t", "herring::bfloat16", "herring::float16",
        "std::uint32_t", "std::uint64_t", "a type of one's own", "std::int8_t", "std::uint8_t",
        "std::int16_t", "std::uint16_t", "bool"};
    // clang-format on
    unsigned const number = static_cast<unsigned>(id) - 1;
    return number < sizeof names / sizeof names[0] ? names[number] : "unknown type";
}

/// Traits of an element type: `accumulator` (the type in which contributions are combined), `id`, `name`,
/// `in_vectors` (kernels combine it a register at a time), and `on_devices` (kernels of GPUs take it).
///
/// The 16-bit floats are combined in `float` and rounded once, at the end; bool in `unsigned char`, where any
/// total but 0 is stored as true; all other types in themselves. Sums of integers wrap. A user-defined type
/// whose `is_element` is true has these traits without a specialisation. Specialise `element`, with
/// `own_element` as the base, for another accumulator, or for `canonical(accumulator) → accumulator`, which
/// is called on each result and gives every NaN the same bits.
template <class Element> struct element;

/// Traits of a user-defined type, the base of a specialisation of `element`. Contributions are combined in
/// `Accumulator`, which is trivially copyable; `static_cast` converts an element to it and, once, at the end,
/// the total to an element.
///
/// Cost: parts of a node with several ranks travel as accumulators.
template <class Element, class Accumulator = Element> struct own_element {
    using accumulator = Accumulator;
    static constexpr type_id id = type_id::own;
    static constexpr std::string_view name = policy_name<Element>();
    static constexpr bool in_vectors = false;
};

/// Traits of a type of another library that has the bits of an element type of Herring's, the base of a
/// specialisation of `element`. A reducer of the type is one of `Stored` whose interface has spans of the
/// type: no copy, the same kernels and engine, and ranks with either type agree.
///
/// Shape:   the size and the alignment of `Stored`, and trivially copyable ([HRG-P15]).
/// Traps:   the compiler cannot see the bits: a type of 16 bits with another exponent is taken too.
/// Example: `template <> struct herring::element<c10::Half> : herring::same_bits_as<herring::float16> {};`
template <class Stored> struct same_bits_as { using same_bits = Stored; };

namespace detail {
template <type_id Id, class Accumulator> struct element_facts {
    using accumulator = Accumulator;
    static constexpr type_id id = Id;
    static constexpr char const* name = to_string(Id);
    static constexpr bool in_vectors = true;
    static constexpr bool on_devices = Id < type_id::own; // neither bool nor integers of 8 and 16 bits
};

template <class Number> constexpr bool is_nan(Number value) noexcept {
    if constexpr (std::is_floating_point_v<Number>)
        return !(value == value);
    else
        return false;
}
/// Returns the one quiet NaN for every NaN, and other values unchanged.
template <class Number> constexpr Number with_one_nan(Number value) noexcept {
    return is_nan(value) ? static_cast<Number>(__builtin_nanf("")) : value;
}
} // namespace detail

template <class Element>
requires(is_element<Element>) //
    struct element<Element> : own_element<Element> {
};

template <> struct element<float> : detail::element_facts<type_id::float32, float> {};
template <> struct element<double> : detail::element_facts<type_id::float64, double> {};
template <> struct element<bool> : detail::element_facts<type_id::boolean, unsigned char> {};
template <> struct element<signed char> : detail::element_facts<type_id::int8, signed char> {};
template <> struct element<short> : detail::element_facts<type_id::int16, short> {};
template <> struct element<unsigned char> : detail::element_facts<type_id::uint8, unsigned char> {};
template <> struct element<unsigned short> : detail::element_facts<type_id::uint16, unsigned short> {};
// `long` and `long long` are two types, and one on the wire.
template <> struct element<int> : detail::element_facts<type_id::int32, int> {};
template <> struct element<long> : detail::element_facts<type_id::int64, long> {};
template <> struct element<long long> : detail::element_facts<type_id::int64, long long> {};
template <> struct element<unsigned> : detail::element_facts<type_id::uint32, unsigned> {};
template <> struct element<unsigned long> : detail::element_facts<type_id::uint64, unsigned long> {};
template <>
struct element<unsigned long long> : detail::element_facts<type_id::uint64, unsigned long long> {};
template <> struct element<bfloat16> : detail::element_facts<type_id::bfloat16, float> {};
template <> struct element<float16> : detail::element_facts<type_id::float16, float> {};

// The compiler's own types of 16 bits, which std::float16_t and std::bfloat16_t are names of. nvcc has none.
#if defined __FLT16_MANT_DIG__ && !defined __CUDACC__
template <> struct element<_Float16> : same_bits_as<float16> {};
#endif
#if defined __STDCPP_BFLOAT16_T__ && !defined __CUDACC__
template <> struct element<decltype(0.0bf16)> : same_bits_as<bfloat16> {};
#endif

/// A type that a reducer can carry: trivially copyable, with `element<Element>`.
template <class Element>
concept element_type = std::is_trivially_copyable_v<Element> && requires {
    typename element<Element>::accumulator;
    { element<Element>::id } -> std::convertible_to<type_id>;
    { element<Element>::name } -> std::convertible_to<std::string_view>;
};

/// An element type that kernels combine a register at a time.
template <class Element>
concept element_in_vectors = element_type<Element> && requires {
    requires bool(element<Element>::in_vectors);
};

/// The type in which contributions of an element type are combined.
template <element_type Element> using accumulator = typename element<Element>::accumulator;

template <> inline constexpr bool is_element<bfloat16> = true;
template <> inline constexpr bool is_element<float16> = true;

namespace detail {

template <class Element>
concept has_same_bits = requires {
    typename element<Element>::same_bits;
};
template <class Element> struct stored_as { using type = Element; };
template <has_same_bits Element> struct stored_as<Element> {
    using type = typename element<Element>::same_bits;
};
/// The type by which engine and kernels have a program's elements.
template <class Element> using stored_element = typename stored_as<Element>::type;

/// True if memory of the type can be read and written as memory of the stored one.
template <class Element>
inline constexpr bool
    fits_as_stored = std::is_trivially_copyable_v<Element>&& is_element<stored_element<Element>> &&
                     sizeof(Element) == sizeof(stored_element<Element>) &&
                     alignof(Element) == alignof(stored_element<Element>);

} // namespace detail

static_assert(element_type<float> && element_type<double> && element_type<std::int32_t>);
static_assert(element_type<std::int64_t> && element_type<bfloat16> && element_type<float16>);
static_assert(sizeof(bool) == 1 && sizeof(int) == 4 && sizeof(long) == 8 && sizeof(long long) == 8);
static_assert(std::is_trivial_v<bfloat16> && sizeof(bfloat16) == 2 && alignof(bfloat16) == 2);
static_assert(std::is_trivial_v<float16> && sizeof(float16) == 2 && alignof(float16) == 2);

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_ELEMENT_HPP
