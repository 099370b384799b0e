// herring: tests of kernel/lanes.hpp: blocks against the same work done one element at a time, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/lanes.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "doctest/doctest.h"
#include "herring/update/rules.hpp"

namespace {

using herring::accumulator;
using herring::bfloat16;
using herring::float16;
using herring::kernel::block;
using herring::kernel::load_one;
using herring::kernel::round_one;

template <class T>
using bits_of = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                   std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;
template <class T> bits_of<T> bits(T value) { return std::bit_cast<bits_of<T>>(value); }

static_assert(std::is_trivially_copyable_v<block<float>> &&
              sizeof(block<float>) == 4 * herring::kernel::vector_bytes);
static_assert(block<float>::size == block<bfloat16>::size && block<float>::size == block<float16>::size &&
                  block<float>::size == 2 * block<double>::size,
              "counted in accumulators");

/// Values of T as bytes, shifted so that no vector of them is aligned.
template <class T> class unaligned {
  public:
    explicit unaligned(std::size_t count) : bytes_(count * sizeof(T) + 1) {}
    void* data() { return bytes_.data() + 1; }
    void set(std::size_t i, T value) { std::memcpy(bytes_.data() + 1 + i * sizeof(T), &value, sizeof value); }
    T get(std::size_t i) const {
        T made;
        std::memcpy(&made, bytes_.data() + 1 + i * sizeof(T), sizeof made);
        return made;
    }

  private:
    std::vector<std::byte> bytes_;
};

/// The accumulators of a block, in the order of its elements.
template <class T> std::vector<accumulator<T>> wide(block<T> const& from) {
    std::vector<accumulator<T>> made(block<T>::size);
    from.store_wide(made.data());
    return made;
}
template <class T> block<T> block_of(std::vector<accumulator<T>> const& from) {
    return block<T>::load_wide(from.data());
}
template <class T> std::vector<T> rounded(block<T> const& from) {
    unaligned<T> to(block<T>::size);
    from.round().store(to.data());
    std::vector<T> made(block<T>::size);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = to.get(i);
    return made;
}

} // namespace

TEST_CASE_TEMPLATE("a block is loaded, kept and stored in order, at any alignment", T, float, double,
                   std::int32_t, std::int64_t, bfloat16, float16) {
    std::size_t const size = block<T>::size;
    unaligned<T> from(size), to(size + 1);
    for (std::size_t i = 0; i < size; ++i) from.set(i, static_cast<T>(static_cast<float>(i) - 7.0f));
    to.set(size, static_cast<T>(99.0f));
    block<T> const loaded = block<T>::load(from.data());
    auto const numbers = wide(loaded);
    for (std::size_t i = 0; i < size; ++i)
        CHECK(numbers[i] == static_cast<accumulator<T>>(static_cast<float>(i) - 7.0f));
    loaded.round().store(to.data());
    for (std::size_t i = 0; i < size; ++i) CHECK(bits(to.get(i)) == bits(from.get(i)));
    CHECK(bits(to.get(size)) == bits(static_cast<T>(99.0f))); // nothing behind it is written

    unaligned<accumulator<T>> partial(size);
    block_of<T>(numbers).store_wide(partial.data());
    for (std::size_t i = 0; i < size; ++i) CHECK(bits(partial.get(i)) == bits(numbers[i]));
}

TEST_CASE_TEMPLATE("16-bit floats: every one of them is widened as the scalar is, NaNs included", T, bfloat16,
                   float16) {
    std::size_t const size = block<T>::size;
    unaligned<T> from(size);
    std::size_t wrong = 0;
    for (std::uint32_t first = 0; first < 0x10000; first += static_cast<std::uint32_t>(size)) {
        for (std::size_t i = 0; i < size; ++i)
            from.set(i, T::from_bits(static_cast<std::uint16_t>(first + i)));
        auto const made = wide(block<T>::load(from.data()));
        for (std::size_t i = 0; i < size; ++i) {
            auto const due = static_cast<float>(from.get(i));
            wrong += std::isnan(due) ? !std::isnan(made[i]) : bits(made[i]) != bits(due);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("16-bit floats: rounded to nearest, ties to even, as the scalar is", T, bfloat16,
                   float16) {
    // Every value, the middle between it and the next one, and the neighbours of both.
    std::vector<float> values;
    for (std::uint32_t low = 0; low < 0x10000; ++low) {
        auto const value = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(low)));
        auto const next = static_cast<float>(T::from_bits(static_cast<std::uint16_t>(low + 1)));
        if (!std::isfinite(value)) continue;
        for (float const at : {value, std::isfinite(next) ? value / 2 + next / 2 : value * 1.0005f})
            for (float const to :
                 {0.0f, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()})
                values.push_back(to == 0.0f ? at : std::nextafter(at, to));
    }
    float const infinity = std::numeric_limits<float>::infinity(),
                largest = std::numeric_limits<float>::max();
    values.insert(values.end(), {infinity, -infinity, largest, -largest, 65519.996f, 65520.0f});
    while (values.size() % block<T>::size != 0) values.push_back(0.0f);
    std::size_t wrong = 0;
    for (std::size_t first = 0; first < values.size(); first += block<T>::size) {
        auto const from = block<T>::load_wide(values.data() + first);
        auto const made = rounded(from);
        auto const back = wide(block<T>(from.rounded_numbers()));
        for (std::size_t i = 0; i < made.size(); ++i) {
            wrong += bits(back[i]) != bits(static_cast<float>(made[i]));
            wrong += made[i].bits != static_cast<T>(values[first + i]).bits ||
                     made[i].bits != round_one<T>(values[first + i]).bits;
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("a NaN in any lane is seen, and becomes the one quiet NaN", T, float, double, bfloat16,
                   float16) {
    using number = accumulator<T>;
    std::vector<number> const numbers(block<T>::size, number(-2.5));
#if defined(__SSE2__) // elsewhere it says yes, and canonical() looks
    CHECK_FALSE(block_of<T>(numbers).any_nan());
    std::vector<number> infinite(block<T>::size, std::numeric_limits<number>::infinity());
    CHECK_FALSE(block_of<T>(infinite).any_nan());
#endif
    number const quiet = std::numeric_limits<number>::quiet_NaN();
    auto const odd = std::bit_cast<number>(
        static_cast<bits_of<number>>(bits(quiet) | 0x123 | bits_of<number>(1) << (8 * sizeof(number) - 1)));
    for (std::size_t at = 0; at < block<T>::size; ++at) {
        auto some = numbers;
        some[at] = odd;
        block<T> const made = block_of<T>(some);
        CHECK(made.any_nan());
        auto const clean = wide(made.canonical());
        for (std::size_t i = 0; i < clean.size(); ++i)
            CHECK(bits(clean[i]) == (i == at ? bits(quiet) : bits(numbers[i])));
        CHECK(bits(rounded(made.canonical())[at]) == bits(round_one<T>(odd)));
    }
    CHECK(bits(round_one<T>(odd)) == bits(round_one<T>(quiet)));
}

TEST_CASE_TEMPLATE("integers have no NaNs", T, std::int32_t, std::int64_t) {
    block<T> const made = block_of<T>(std::vector<T>(block<T>::size, std::numeric_limits<T>::min()));
    CHECK_FALSE(made.any_nan());
    CHECK(wide(made.canonical()) == wide(made));
}

TEST_CASE_TEMPLATE("combined and finished: by lanes as by scalars", T, float, double, bfloat16, float16) {
    using number = accumulator<T>;
    std::vector<number> a(block<T>::size), b(block<T>::size);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = number(0.1) * static_cast<number>(i);
        b[i] = number(1) / static_cast<number>(i + 3);
    }
    auto const sums = wide(block_of<T>(a).combined(block_of<T>(b), herring::update::sum{}));
    auto const thirds = wide(block_of<T>(a).finished(herring::update::average::divided<number>{3}));
    for (std::size_t i = 0; i < a.size(); ++i) {
        CHECK(bits(sums[i]) == bits(a[i] + b[i]));
        CHECK(bits(thirds[i]) == bits(a[i] / 3));
    }
}

// Meant for UndefinedBehaviorSanitizer as well: nothing may overflow in a signed type.
TEST_CASE_TEMPLATE("sums of integers wrap: modulo 2^32 or 2^64, by lanes as by scalars", T, std::int32_t,
                   std::int64_t) {
    T const most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
    T const pairs[][2] = {{most, 1}, {least, -1}, {most, most}, {least, least}, {most, least}, {-1, 1}};
    for (auto const& [a, b] : pairs) {
        auto const due = static_cast<T>(bits(a) + bits(b));
        CHECK(herring::update::sum::combine(a, b) == due);
        std::vector<T> const left(block<T>::size, a), right(block<T>::size, b);
        for (T const made : wide(block_of<T>(left).combined(block_of<T>(right), herring::update::sum{})))
            CHECK(made == due);
    }
}

TEST_CASE("one element: widened and rounded as in a block") {
    unaligned<float16> from(1);
    from.set(0, float16(-0.333f));
    CHECK(load_one<float16>(from.data()) == static_cast<float>(float16(-0.333f)));
    CHECK(round_one<float16>(70000.0f).bits == 0x7c00); // infinity
    CHECK(round_one<std::int64_t>(std::int64_t{1} << 53) == std::int64_t{1} << 53);
}
