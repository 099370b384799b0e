// herring: rows of numbers in registers: extremes, limits of their bits, the index of the largest, sums.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_ROWS_HPP
#define HERRING_KERNEL_ROWS_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"

namespace HERRING_NAMESPACE::kernel {

/// Four registers of accumulators of a row.
template <class Lane> using row_block = block<accumulator<Lane>>;

namespace detail {

template <class Lane>
[[gnu::noinline]] row_block<Lane> load_end(std::byte const* lanes, std::size_t count,
                                           accumulator<Lane> fill) noexcept {
    accumulator<Lane> room[row_block<Lane>::size];
    for (auto& x : room) x = fill;
    for (std::size_t i = 0; i < count; ++i) room[i] = load_one<Lane>(lanes + i * sizeof(Lane));
    return row_block<Lane>::load_wide(room);
}
template <class Element>
[[gnu::noinline]] void store_end(Element* to, row_block<Element> const& from, std::size_t count) noexcept {
    accumulator<Element> room[row_block<Element>::size];
    from.store_wide(room);
    for (std::size_t i = 0; i < count; ++i) store_one(to + i, round_one<Element>(room[i]));
}

// True if a bit is set in one of the lanes.
template <class Vector> HERRING_ALWAYS_INLINE bool any(Vector bits) noexcept {
    std::uint64_t parts[sizeof bits / 8];
    std::memcpy(parts, &bits, sizeof bits);
    std::uint64_t set = 0;
    for (std::uint64_t const part : parts) set |= part;
    return set != 0;
}
template <class Vector> HERRING_ALWAYS_INLINE Vector greater_of(Vector a, Vector b) noexcept {
    return a > b ? a : b;
}

} // namespace detail

/// Loads `count` ≤ row_block::size lanes of a row, at any alignment, followed by `fill`.
template <class Lane>
HERRING_ALWAYS_INLINE row_block<Lane> load_row(std::byte const* lanes, std::size_t count,
                                               accumulator<Lane> fill = 0) noexcept {
    if (count < row_block<Lane>::size) [[unlikely]]
        return detail::load_end<Lane>(lanes, count, fill);
    auto const x = block<Lane>::load(lanes);
    return {x.a, x.b, x.c, x.d};
}

/// Rounds a block to Element and stores its first `count` elements. NaNs become the canonical one.
template <class Element>
HERRING_ALWAYS_INLINE void store_row(Element* to, row_block<Element> x, std::size_t count) noexcept {
    if (count < row_block<Element>::size) [[unlikely]]
        return detail::store_end<Element>(to, x, count);
    if (x.any_nan()) [[unlikely]]
        x = x.canonical();
    block<Element>{x.a, x.b, x.c, x.d}.round().store(to);
}

/// Returns f of each of the four registers of one block, or of several.
template <class Function, class First, class... More>
HERRING_ALWAYS_INLINE First each(Function f, First const& x, More const&... more) noexcept {
    return {f(x.a, more.a...), f(x.b, more.b...), f(x.c, more.c...), f(x.d, more.d...)};
}

/// The extremes of a row.
template <class Number> struct extremes {
    Number largest; ///< −inf if there are no elements
    Number largest_magnitude;
    bool has_nan; ///< then the other two are undefined
};

/// Reads a row once. Finds `largest_magnitude` only with WithMagnitude.
template <bool WithMagnitude = true, class Element>
extremes<accumulator<Element>> extremes_of(Element const* row, std::size_t count) noexcept {
    using number = accumulator<Element>;
    using lanes = vector<number>;
    using block_of = row_block<Element>;
    constexpr number low = -std::numeric_limits<number>::infinity();
    lanes const lowest = lanes{} + low;
    block_of most{lowest, lowest, lowest, lowest};
    block_of least{-lowest, -lowest, -lowest, -lowest};
    bool nan = false;
    for (std::size_t i = 0; i < count; i += block_of::size) {
        std::size_t const n = count - i;
        auto const x = load_row<Element>(reinterpret_cast<std::byte const*>(row + i),
                                         n < block_of::size ? n : block_of::size, load_one<Element>(row + i));
        nan |= x.any_nan();
        most = each([](lanes a, lanes b) { return a > b ? a : b; }, x, most);
        if constexpr (WithMagnitude) least = each([](lanes a, lanes b) { return a < b ? a : b; }, x, least);
    }
    number high = low, bottom = -low;
    number room[2 * block_of::size];
    most.store_wide(room);
    least.store_wide(room + block_of::size);
    for (std::size_t i = 0; i < block_of::size; ++i) {
        high = room[i] > high ? room[i] : high;
        bottom = room[block_of::size + i] < bottom ? room[block_of::size + i] : bottom;
    }
    return {high, -bottom > high ? -bottom : high, nan};
}

/// Returns the index of the first element that equals `wanted`; `count` if none does.
template <class Element>
std::size_t index_of(Element const* row, std::size_t count, accumulator<Element> wanted) noexcept {
    using lanes = vector<accumulator<Element>>;
    using block_of = row_block<Element>;
    lanes const due = lanes{} + wanted;
    std::size_t i = 0;
    for (; count - i >= block_of::size; i += block_of::size) {
        auto const x = load_row<Element>(reinterpret_cast<std::byte const*>(row + i), block_of::size);
        if (detail::any(((x.a == due) | (x.b == due)) | ((x.c == due) | (x.d == due)))) break;
    }
    for (; i < count; ++i)
        if (static_cast<accumulator<Element>>(row[i]) == wanted) return i;
    return count;
}

/// Returns the index of a row's largest element; of equal ones the lowest.
template <class Element> std::size_t index_of_largest(Element const* row, std::size_t count) noexcept {
    return index_of<Element>(row, count, extremes_of<false>(row, count).largest);
}

/// Limits of lanes: bits up to `positive` if the sign bit is clear, magnitudes up to `negative` if it is set;
/// −1: none.
template <class Lane> struct lane_limits {
    using word = std::conditional_t<sizeof(Lane) == 2, std::int16_t,
                                    std::conditional_t<sizeof(Lane) == 4, std::int32_t, std::int64_t>>;
    word positive, negative;

    static lane_limits up_to(Lane positive, Lane negative_magnitude) noexcept {
        return {__builtin_bit_cast(word, positive), __builtin_bit_cast(word, negative_magnitude)};
    }
};

/// True if all lanes are within the limits; infinities and NaNs have the largest magnitudes.
template <class Lane>
bool within(std::byte const* lanes, std::size_t count, lane_limits<Lane> limits) noexcept {
    using word = typename lane_limits<Lane>::word;
    using words = vector<word>;
    constexpr word magnitude = std::numeric_limits<word>::max();
    constexpr std::size_t per_register = sizeof(words) / sizeof(word);
    words const positive = words{} + limits.positive, differ = positive ^ (words{} + limits.negative);
    words bad{}, worse{};
    auto const look = [&](words x) __attribute__((always_inline)) {
        words const limit = positive ^ (words(x < 0) & differ);
        return words((x & magnitude) > limit);
    };
    std::size_t i = 0;
    for (; count - i >= 2 * per_register; i += 2 * per_register) {
        bad |= look(detail::load_vector<words>(lanes + i * sizeof(word)));
        worse |= look(detail::load_vector<words>(lanes + (i + per_register) * sizeof(word)));
    }
    bool good = !detail::any(bad | worse);
    for (; i < count; ++i) {
        word x;
        std::memcpy(&x, lanes + i * sizeof(word), sizeof x);
        good &= (x & magnitude) <= (x < 0 ? limits.negative : limits.positive);
    }
    return good;
}

/// A sum in 16 lanes: element i is added to lane i mod 16, and the lanes are added in a fixed order, so that
/// the bits do not depend on the width of a register.
class lane_sum {
  public:
    HERRING_ALWAYS_INLINE void add(block<float> const& x) noexcept {
        if constexpr (registers == 4) {
            at_[0] += x.a;
            at_[1] += x.b;
            at_[2] += x.c;
            at_[3] += x.d;
        } else {
            at_[0] += x.a;
            at_[1] += x.b;
            at_[0] += x.c;
            at_[1] += x.d;
        }
    }
    float total() const noexcept {
        using quarter [[gnu::vector_size(16)]] = float;
        quarter all[4];
        std::memcpy(all, at_, sizeof all);
        all[0] = (all[0] + all[2]) + (all[1] + all[3]); // lane i and lane i + 8, then i + 4, 2 and 1
        return (all[0][0] + all[0][2]) + (all[0][1] + all[0][3]);
    }

  private:
    static constexpr std::size_t registers = 64 / vector_bytes;
    vector<float> at_[registers]{};
};

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_ROWS_HPP
