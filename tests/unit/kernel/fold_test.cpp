// herring: the fold kernels against the plainest possible left fold, bit for bit.
// SPDX-License-Identifier: Apache-2.0
#include "herring/kernel/fold.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

#include "doctest/doctest.h"
#include "herring/update/rules.hpp"
#include "sanitizers.hpp"

namespace {

// Slow, and after where memory is read and written: that depends on sizes and on how many lists there are, not on the rule.
constexpr bool sanitized = HERRING_TEST_ASAN || HERRING_TEST_TSAN;

using herring::accumulator;
using herring::bfloat16;
using herring::float16;
using herring::kernel::fold;
using herring::kernel::fold_exchanging;
using herring::kernel::fold_partial;
using herring::kernel::source;

// Storage at a chosen misalignment, with guard bytes on both sides.
class buffer {
  public:
    buffer(std::size_t bytes, std::size_t misalignment)
        : bytes_(bytes), start_(64 + misalignment), all_(bytes + 192 + misalignment, std::byte{0xa5}) {}
    std::byte* data() { return all_.data() + start_; }
    template <class T> T get(std::size_t i) const {
        T made;
        std::memcpy(&made, all_.data() + start_ + i * sizeof(T), sizeof made);
        return made;
    }
    template <class T> void set(std::size_t i, T value) {
        std::memcpy(data() + i * sizeof(T), &value, sizeof value);
    }
    template <class T> T* as() { return reinterpret_cast<T*>(data()); }
    bool guards_intact() const {
        for (std::size_t i = 0; i < all_.size(); ++i)
            if ((i < start_ || i >= start_ + bytes_) && all_[i] != std::byte{0xa5}) return false;
        return true;
    }

  private:
    std::size_t bytes_, start_;
    std::vector<std::byte> all_;
};

using generator = std::mt19937_64;
using sizes = std::initializer_list<std::size_t>;

// Values of all magnitudes, with the specials that make orders and roundings visible.
template <class T> T draw(generator& from) {
    std::uint64_t const bits = from();
    if constexpr (std::is_integral_v<T>) {
        // The whole range, so that sums wrap: under UndefinedBehaviorSanitizer that must be without a word.
        return bits % 8 == 0 ? static_cast<T>(bits % 3 - 1) : static_cast<T>(from());
    } else {
        float value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(bits >> 32)),
                                 static_cast<int>(bits % 40) - 50);
        switch (bits / 64 % 97) {
        case 0:
            value = 0.0f;
            break;
        case 1:
            value = -0.0f;
            break;
        case 2:
            value = std::numeric_limits<float>::infinity();
            break;
        case 3:
            value = -std::numeric_limits<float>::infinity();
            break;
        case 4:
            value = std::bit_cast<float>(0xffc0'1234u);
            break;
        case 5:
            value = std::bit_cast<float>(0x7fa0'0000u);
            break;
        case 6:
            value = 1e-42f;
            break;
        case 7:
            value = 6e-8f;
            break;
        case 8:
            value = 65504.0f;
            break;
        default:
            break;
        }
        return static_cast<T>(value);
    }
}

template <class T>
using bits_of =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <class T> accumulator<T> read(buffer const& from, bool wide, std::size_t i) {
    return wide ? from.get<accumulator<T>>(i) : static_cast<accumulator<T>>(from.get<T>(i));
}

// The definition: one element, one operation after the other; written independently of the policies.
enum class rule { sum, average, min, max };
template <class Acc> Acc combine(rule how, Acc a, Acc b) {
    if constexpr (std::is_integral_v<Acc>) {
        using U = std::make_unsigned_t<Acc>;
        if (how == rule::sum) return static_cast<Acc>(static_cast<U>(a) + static_cast<U>(b));
    } else {
        if (how == rule::sum || how == rule::average) return a + b;
        if (std::isnan(a)) return a;
        if (std::isnan(b)) return b;
    }
    if (how == rule::min) return b < a ? b : a;
    return b > a ? b : a;
}
template <class T> bits_of<T> finish(rule how, accumulator<T> total, int ranks) {
    if constexpr (!std::is_integral_v<accumulator<T>>) {
        if (how == rule::average && ranks != 0) total /= static_cast<accumulator<T>>(ranks);
        if (std::isnan(total)) total = std::numeric_limits<accumulator<T>>::quiet_NaN();
    }
    return std::bit_cast<bits_of<T>>(static_cast<T>(total));
}

struct shape {
    std::size_t before, group, after, count;
    std::size_t targets = 1;
    std::size_t in_place = 0; // so many targets are sources
    bool some_wide = false;
    int ranks = 3;
};

template <class Update, class T> void check(rule how, shape s, generator& from) {
    using acc = accumulator<T>;
    std::size_t const k = s.before + s.group + s.after;
    std::vector<buffer> buffers;
    std::vector<source> sources;
    std::vector<bool> wide;
    for (std::size_t i = 0; i < k; ++i) {
        bool const is_wide = s.some_wide && i >= s.in_place && from() % 2 == 0;
        buffers.emplace_back(s.count * (is_wide ? sizeof(acc) : sizeof(T)), from() % 33);
        for (std::size_t e = 0; e < s.count; ++e)
            is_wide ? buffers.back().set(e, draw<acc>(from)) : buffers.back().set(e, draw<T>(from));
        wide.push_back(is_wide);
    }
    for (std::size_t i = 0; i < k; ++i)
        sources.push_back(
            {buffers[i].data(), wide[i] ? herring::part_kind::accumulator : herring::part_kind::stored});
    std::vector<bits_of<T>> expected(s.count);
    std::vector<acc> expected_partial(s.count);
    for (std::size_t e = 0; e < s.count; ++e) {
        auto const range = [&](std::size_t first, std::size_t last, bool started, acc total) {
            for (std::size_t i = first; i < last; ++i) {
                acc const next = read<T>(buffers[i], wide[i], e);
                total = started ? combine(how, total, next) : next;
                started = true;
            }
            return total;
        };
        acc total = range(0, s.before, false, acc{});
        if (s.group != 0) {
            acc const group = range(s.before, s.before + s.group, false, acc{});
            total = s.before != 0 ? combine(how, total, group) : group;
        }
        total = range(s.before + s.group, k, s.before + s.group != 0, total);
        expected_partial[e] = total;
        expected[e] = finish<T>(how, total, s.ranks);
    }
    std::span<source const> const all = sources;
    auto const before = all.first(s.before), group = all.subspan(s.before, s.group),
               after = all.last(s.after);

    buffer partial(s.count * sizeof(acc), from() % 33);
    fold_partial<Update, T>(before, group, after, partial.as<acc>(), s.count);
    std::size_t wrong = 0;
    for (std::size_t e = 0; e < s.count; ++e) {
        acc const a = partial.get<acc>(e), b = expected_partial[e];
        bool const both_nan = a != a && b != b;
        wrong += !both_nan && std::bit_cast<bits_of<acc>>(a) != std::bit_cast<bits_of<acc>>(b);
    }
    std::vector<buffer> others;
    std::vector<T*> targets;
    for (std::size_t t = s.in_place; t < s.targets; ++t)
        others.emplace_back(s.count * sizeof(T), from() % 33);
    for (std::size_t t = 0; t < s.targets; ++t)
        targets.push_back(t < s.in_place ? buffers[t].as<T>() : others[t - s.in_place].as<T>());
    if (s.group == 0)
        fold<Update, T>(all, targets, s.count, s.ranks);
    else
        fold<Update, T>(before, group, after, targets, s.count, s.ranks);
    for (std::size_t t = 0; t < s.targets; ++t) {
        buffer const& target = t < s.in_place ? buffers[t] : others[t - s.in_place];
        for (std::size_t e = 0; e < s.count; ++e) wrong += target.get<bits_of<T>>(e) != expected[e];
    }
    bool guarded = partial.guards_intact();
    for (auto const& b : buffers) guarded = guarded && b.guards_intact();
    for (auto const& b : others) guarded = guarded && b.guards_intact();
    if (wrong != 0 || !guarded) {
        INFO("before ", s.before, " group ", s.group, " after ", s.after, " count ", s.count, " targets ",
             s.targets, " in place ", s.in_place, " wide ", s.some_wide, " ranks ", s.ranks);
        CHECK(wrong == 0);
        CHECK(guarded);
    }
}

template <class T> void check_rules(shape s, generator& from) {
    if constexpr (herring::update_supports<herring::update::sum, T>)
        check<herring::update::sum, T>(rule::sum, s, from);
    if constexpr (!sanitized || std::is_same_v<T, bool>) {
        check<herring::update::min, T>(rule::min, s, from);
        check<herring::update::max, T>(rule::max, s, from);
    }
    if constexpr (!std::is_integral_v<T>) check<herring::update::average, T>(rule::average, s, from);
}

} // namespace

TEST_CASE_TEMPLATE("fold is the strict left fold, bit for bit", T, float, double, std::int32_t, std::int64_t,
                   bfloat16, float16, std::int8_t, std::uint16_t, bool) {
    generator from(1);
    for (std::size_t k = 1; k <= 20;
         k += sanitized && k > 4 ? 3 : 1) // four have loops of their own, 16 fit the registers
        for (std::size_t count = 0; count <= 200; count += count < 70 ? 1 : 13)
            check_rules<T>(
                {.before = k, .group = 0, .after = 0, .count = count, .ranks = static_cast<int>(k)}, from);
}

TEST_CASE_TEMPLATE("a group is one operand at its place", T, float, double, std::int32_t, std::int64_t,
                   bfloat16, float16) {
    generator from(2);
    for (std::size_t const before : sizes{0, 1, 3, 9})
        for (std::size_t const group : sizes{1, 2, 5, 17})
            for (std::size_t const after : sizes{0, 1, 2, 12})
                for (std::size_t const count : sizes{0, 1, 31, 200, 1024, 2051})
                    check_rules<T>({.before = before,
                                    .group = group,
                                    .after = after,
                                    .count = count,
                                    .some_wide = count % 2 == 1},
                                   from);
}

TEST_CASE_TEMPLATE("wide sources, several targets, in place, finished or not", T, float, double, std::int32_t,
                   std::int64_t, bfloat16, float16, bool) {
    generator from(3);
    for (std::size_t const k : sizes{1, 2, 4, 8, 9, 30})
        for (std::size_t const targets : sizes{1, 2, 4, 7})
            for (int ranks : {0, 1, 4, 7})
                for (std::size_t const count : sizes{5, 96, 1100})
                    check_rules<T>({.before = k,
                                    .group = 0,
                                    .after = 0,
                                    .count = count,
                                    .targets = targets,
                                    .in_place = std::min(k, targets) - (count == 96),
                                    .some_wide = true,
                                    .ranks = ranks},
                                   from);
}

TEST_CASE_TEMPLATE("an exchange has the bits of a fold, and puts what comes next in the place that was read",
                   T, float, double, std::int32_t, std::int64_t, bfloat16, float16) {
    generator from(5);
    using update = herring::update::sum;
    for (std::size_t const count : sizes{0, 1, 31, 200, 1024, 2051})
        for (std::size_t const refilled : {std::size_t{0}, count / 3, count})
            for (std::size_t const at : sizes{0, 1}) { // which of the two is in the place
                buffer place(count * sizeof(T), from() % 33), own(count * sizeof(T), from() % 33),
                    expected(count * sizeof(T), 0), copy(count * sizeof(T), 0);
                std::vector<T> next(refilled);
                for (T& x : next) x = draw<T>(from);
                for (std::size_t e = 0; e < count; ++e) {
                    place.set(e, draw<T>(from));
                    own.set(e, draw<T>(from));
                }
                if (count > 0) std::memcpy(copy.data(), place.data(), count * sizeof(T));
                source const in_place{place.data()}, mine{own.data()};
                source const sources[] = {at == 0 ? in_place : mine, at == 0 ? mine : in_place};
                std::array<T*, 1> const target{expected.as<T>()};
                fold<update, T>(sources, target, count, 2);
                fold_exchanging<update, T>(sources, own.as<T>(), count, 2, place.as<T>(), next);
                std::size_t wrong = 0;
                for (std::size_t e = 0; e < count; ++e) {
                    wrong += own.get<bits_of<T>>(e) != expected.get<bits_of<T>>(e);
                    bits_of<T> const kept =
                        e < refilled ? std::bit_cast<bits_of<T>>(next[e]) : copy.get<bits_of<T>>(e);
                    wrong += place.get<bits_of<T>>(e) != kept;
                }
                INFO("count ", count, " refilled ", refilled, " place ", at);
                REQUIRE(wrong == 0);
                REQUIRE(place.guards_intact());
                REQUIRE(own.guards_intact());
            }
}

TEST_CASE("thousands of sources, more than one tile") {
    generator from(4);
    check_rules<float>({.before = 3000, .group = 0, .after = 0, .count = 70, .ranks = 3000}, from);
    check_rules<bfloat16>(
        {.before = 500, .group = 700, .after = 11, .count = 2500, .some_wide = true, .ranks = 7}, from);
    check_rules<double>({.before = 3, .group = 0, .after = 0, .count = 100'003}, from);
}

TEST_CASE("a partial may be folded into itself") {
    std::vector<float> partial(1000, 1.5f);
    std::vector<bfloat16> more(1000, bfloat16(0.25f));
    std::array<source, 2> const both{source{partial.data(), herring::part_kind::accumulator},
                                     source{more.data()}};
    fold_partial<herring::update::sum, bfloat16>(both, partial.data(), partial.size());
    for (float const value : partial) REQUIRE(value == 1.75f);
}

TEST_CASE("16-bit sums are rounded once, not at every step") {
    // 256 + 1 + 1: rounding to 8 bits after each addition would stay at 256.
    std::vector<bfloat16> big(33, bfloat16(256.0f)), one(33, bfloat16(1.0f));
    std::array<source, 3> const sources{source{big.data()}, source{one.data()}, source{one.data()}};
    std::array<bfloat16*, 1> const targets{big.data()};
    fold<herring::update::sum, bfloat16>(sources, targets, big.size(), 3);
    for (bfloat16 const value : big) REQUIRE(static_cast<float>(value) == 258.0f);
}

namespace {
// A rule of a user's own that cannot be written for vectors, and that is not associative.
struct last_but_longest {
    using axis = herring::axes::update;
    static constexpr char const* name = "last_but_longest";
    static constexpr herring::update_facts facts{.associative = false};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept { return b != 0 ? b : a * 0.5f; }
    template <class Acc> static constexpr Acc finish(Acc total, int ranks) noexcept {
        return total + static_cast<Acc>(ranks);
    }
};
static_assert(herring::update_policy<last_but_longest>);
} // namespace

TEST_CASE("a user's rule that works on single elements only") {
    std::vector<float> a(100, 8.0f), b(100, 0.0f), to(100);
    std::array<source, 3> const sources{source{a.data()}, source{b.data()}, source{b.data()}};
    std::array<float*, 1> const targets{to.data()};
    fold<last_but_longest, float>(sources, targets, to.size(), 3);
    for (float const value : to) REQUIRE(value == 5.0f);
}
