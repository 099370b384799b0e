// herring: the largest elements of a row of logits, with their ids.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_LARGEST_ENTRIES_HPP
#define HERRING_ENSEMBLE_LARGEST_ENTRIES_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/wire/entry.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// Finds the `Most` largest elements of a row, or fewer of them.
///
/// Cost:     the constructor reads the row once, and keeps the largest element of each of at most 4 · Most groups. The k-th
///           largest of those is a bound that at least k elements reach, so `first` reads the groups only that reach it: in a
///           row in random order few elements are looked at one by one. In any order the time is linear.
/// Memory:   some 48 · Most bytes, in the object.
/// Lifetime: of the row.
template <class Element, std::size_t Most> class largest_entries {
    using lanes = kernel::vector<float>;
    using block = kernel::row_block<Element>;
    static constexpr float infinite = std::numeric_limits<float>::infinity();
    static constexpr std::size_t most_groups = Most < 16 ? 64 : 4 * Most;
    static constexpr std::size_t most_found = 2 * Most;

  public:
    explicit largest_entries(std::span<Element const> row) noexcept : row_(row) {
        while (row.size() > most_groups * group_) group_ *= 2;
        for (std::size_t i = 0; i < row.size(); i += group_) {
            std::size_t const end = end_of(i);
            lanes top = lanes{} - infinite;
            for (std::size_t j = i; j < end; j += block::size) {
                auto const x = load(j, end);
                has_nan_ |= x.any_nan();
                top = greater(top, greater(greater(x.a, x.b), greater(x.c, x.d)));
            }
            maxima_[groups_++] = largest_lane(top);
        }
        for (std::size_t g = 0; g < groups_; ++g) largest_ = std::max(largest_, maxima_[g]);
    }

    /// Then nothing else means anything.
    bool has_nan() const noexcept { return has_nan_; }
    /// −inf of no elements.
    float largest() const noexcept { return largest_; }
    /// Where the largest is, of equal ones the first; of a row that has one.
    std::size_t index_of_largest() const noexcept {
        std::size_t group = 0;
        while (maxima_[group] != largest_) ++group;
        std::size_t const from = group * group_;
        return from + kernel::index_of(row_.data() + from, row_.size() - from, largest_);
    }

    /// The `count` largest, in the order of their ids; of equal ones at the last place the lowest ids. Those that are −inf are none
    /// of them. count ≤ Most; to be called once.
    std::span<entry const> first(std::size_t count) noexcept {
        float bar = -infinite;
        bool reached = false; // whether an element that equals the bar counts
        if (groups_ >= count) {
            std::copy(maxima_, maxima_ + groups_, values_);
            bar = nth_largest(groups_, count);
            reached = bar != -infinite;
        }
        for (std::size_t g = 0; g < groups_; ++g) {
            if (!(reached ? maxima_[g] >= bar : maxima_[g] > bar)) continue;
            std::size_t const end = end_of(g * group_);
            for (std::size_t i = g * group_; i < end; i += block::size) {
                auto const x = load(i, end);
                if (!exceeds(x, bar, reached)) continue;
                float each[block::size];
                x.store_wide(each);
                for (std::size_t j = 0; j < block::size; ++j) {
                    if (!(reached ? each[j] >= bar : each[j] > bar)) continue;
                    found_[found_count_++] = {static_cast<std::uint32_t>(i + j), each[j]};
                    if (found_count_ == most_found) {
                        bar = keep(count);
                        reached = false; // for count elements do, with lower ids
                    }
                }
            }
        }
        if (found_count_ > count) (void)keep(count);
        return {found_, found_count_};
    }

  private:
    std::size_t end_of(std::size_t from) const noexcept { return std::min(row_.size(), from + group_); }
    HERRING_ALWAYS_INLINE block load(std::size_t i, std::size_t end) const noexcept {
        return kernel::load_row<Element>(reinterpret_cast<std::byte const*>(row_.data() + i),
                                         end - i < block::size ? end - i : block::size, -infinite);
    }
    HERRING_ALWAYS_INLINE static lanes greater(lanes a, lanes b) noexcept {
        return kernel::detail::greater_of(a, b);
    }
    static float largest_lane(lanes x) noexcept {
        float each[sizeof x / sizeof(float)];
        std::memcpy(each, &x, sizeof x);
        float most = each[0];
        for (float const value : each) most = value > most ? value : most;
        return most;
    }
    HERRING_ALWAYS_INLINE static bool exceeds(block const& x, float bar, bool reached) noexcept {
        lanes const least = lanes{} + bar;
        lanes const most = greater(greater(x.a, x.b), greater(x.c, x.d));
        return reached ? kernel::detail::any(most >= least) : kernel::detail::any(most > least);
    }

    float nth_largest(std::size_t of, std::size_t n) noexcept {
        auto const at = values_ + (n - 1);
        std::nth_element(values_, at, values_ + of, [](float a, float b) noexcept { return a > b; });
        return *at;
    }
    // Drops all that are found but the `count` largest; returns the least of these.
    [[gnu::noinline]] float keep(std::size_t count) noexcept {
        for (std::size_t i = 0; i < found_count_; ++i) values_[i] = found_[i].value;
        float const least = nth_largest(found_count_, count);
        std::size_t equal = count, kept = 0; // of those that equal the least, as many as there is room for
        for (std::size_t i = 0; i < found_count_; ++i) equal -= found_[i].value > least;
        for (std::size_t i = 0; i < found_count_; ++i) {
            if (found_[i].value < least || (found_[i].value == least && equal == 0)) continue;
            equal -= found_[i].value == least;
            found_[kept++] = found_[i];
        }
        found_count_ = kept;
        return least;
    }

    std::span<Element const> row_;
    std::size_t group_ = block::size; // elements of a group
    std::size_t groups_ = 0, found_count_ = 0;
    float largest_ = -infinite;
    bool has_nan_ = false;
    float maxima_[most_groups];
    float values_[most_groups]; // of nth_largest; most_found ≤ most_groups
    entry found_[most_found];
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_LARGEST_ENTRIES_HPP
