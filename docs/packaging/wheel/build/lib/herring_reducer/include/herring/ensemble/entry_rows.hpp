// herring: rows of a few elements with their indices: encoded by members, checked and folded by the frontend.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ENTRY_ROWS_HPP
#define HERRING_ENSEMBLE_ENTRY_ROWS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/kernel/exponential.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/model/element.hpp"
#include "herring/wire/wire.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "herring/wire/codecs.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// Finds the `Most` largest elements of a row, or fewer.
///
/// Cost:     the constructor reads the row once, and keeps the largest element of each of at most 4 · Most
///           groups. The k-th largest of these is a bound that at least k elements reach, so `first` reads
///           only groups that reach it. In a row in random order few elements are compared one by one; in any
///           order the time is linear.
/// Memory:   some 48 · Most bytes, in the object.
/// Lifetime: no longer than the row.
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

    /// True if the row has a NaN. Then the other functions return nothing of meaning.
    bool has_nan() const noexcept { return has_nan_; }
    /// Returns the largest element; −inf for an empty row.
    float largest() const noexcept { return largest_; }
    /// Returns the index of the largest element, of equals the first. Requires a row that is not empty.
    std::size_t index_of_largest() const noexcept {
        std::size_t group = 0;
        while (maxima_[group] != largest_) ++group;
        std::size_t const from = group * group_;
        return from + kernel::index_of(row_.data() + from, row_.size() - from, largest_);
    }

    /// Returns the `count` largest elements in the order of their ids; of equals at the last place the lowest
    /// ids. Elements of −inf are left out. count ≤ Most; to be called once.
    std::span<entry const> first(std::size_t count) noexcept {
        float bar = -infinite;
        bool reached = false; // an element equal to the bar counts
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
                        reached = false; // `count` elements with lower ids reach it
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
    // Drops all found elements but the `count` largest; returns the least of these.
    [[gnu::noinline]] float keep(std::size_t count) noexcept {
        for (std::size_t i = 0; i < found_count_; ++i) values_[i] = found_[i].value;
        float const least = nth_largest(found_count_, count);
        std::size_t equal = count, kept = 0; // equal: found elements equal to the least that have room
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

static_assert(std::endian::native == std::endian::little, "rows are little-endian");

/// The results of an answer of entries.
template <class Outputs> struct entry_results : Outputs::template results<float> {
    /// Every id that a row has, ascending, with Σ w·p or its share of the votes.
    std::span<entry> entries;
    float missing = 0;        ///< Σ w·(1 − Σ p) over the mass that did not travel
    std::uint32_t chosen = 0; ///< id of the largest entry; of equals the lowest
    bool certain = false;     ///< `chosen` is the same whatever elements the missing mass belongs to
    std::span<entry> room;    ///< memory of entries
    std::span<std::byte> scratch;
};

/// Rows of `Wire::count(elements)` entries, or of one entry where the rule votes (`row_format`).
template <class Element, class Combine, class Wire, class Outputs> class entry_rows {
    using weighting = typename Combine::weighting;
    static constexpr bool votes = Combine::facts.votes;
    template <class Output> static constexpr bool asked = Outputs::template has<Output>;

    struct row_start {
        std::uint32_t count = 0, zero = 0;
    };

    // The most entries of a row of any size.
    static constexpr std::size_t most_entries = [] {
        if constexpr (votes)
            return std::size_t{1};
        else
            return Wire::count(std::numeric_limits<std::size_t>::max());
    }();

  public:
    using results = entry_results<Outputs>;

    /// Returns the most entries of a row.
    static std::size_t row_entries(std::size_t elements) noexcept {
        if constexpr (votes)
            return elements < 1 ? elements : 1;
        else
            return Wire::count(elements);
    }
    static std::size_t row_bytes(std::size_t elements) noexcept {
        return sizeof(row_start) + row_entries(elements) * sizeof(entry);
    }

    static row_check encode(std::span<Element const> row, std::span<std::byte> out) noexcept {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        largest_entries<Element, most_entries> tops(row);
        if (tops.has_nan()) return row_check::not_a_number;
        float const most = tops.largest();
        if (most == infinite) return row_check::infinite;
        if (most == -infinite) return row_check::no_mass;

        std::byte* const lanes = out.data() + sizeof(row_start);
        std::size_t const room = row_entries(row.size());
        std::size_t count = 1;
        float logarithm = 0;
        if constexpr (!votes) logarithm = kernel::logarithm(sum_of_exponentials(row, most));
        if (room == 1) {
            put(lanes, 0,
                {static_cast<std::uint32_t>(tops.index_of_largest()), votes ? 0.0f : 0.0f - logarithm});
        } else {
            std::span<entry const> const chosen = tops.first(room);
            count = chosen.size();
            for (std::size_t i = 0; i < count; ++i)
                put(lanes, i, {chosen[i].id, (chosen[i].value - most) - logarithm});
        }
        for (std::size_t i = count; i < room; ++i) put(lanes, i, {});
        row_start const start{static_cast<std::uint32_t>(count), 0};
        std::memcpy(out.data(), &start, sizeof start);
        return row_check::good;
    }

    static row_check check(std::span<std::byte const> row, std::size_t elements) noexcept {
        if (row.size() != row_bytes(elements)) return row_check::wrong_size;
        row_start start;
        std::memcpy(&start, row.data(), sizeof start);
        std::size_t const count = start.count;
        if (count < 1 || count > row_entries(elements)) return row_check::malformed;
        std::uint64_t next = 0; // the least id that may come
        float mass = 0;
        for (std::size_t i = 0; i < count; ++i) {
            entry const at = get(row, i);
            if (at.value != at.value) return row_check::not_a_number;
            if (at.id < next || at.id >= elements) return row_check::malformed;
            if (!(at.value <= 0) || at.value < -std::numeric_limits<float>::max())
                return row_check::malformed;
            next = std::uint64_t{at.id} + 1;
            mass += kernel::exponential(at.value);
        }
        return votes || mass <= 1.001f ? row_check::good : row_check::malformed;
    }

    /// Writes the entries of a checked row as probabilities; a vote as 1. `out` has row_entries. Returns
    /// their number.
    static std::size_t decode(std::span<std::byte const> row, std::size_t, std::span<entry> out) noexcept {
        std::size_t const count = count_of(row);
        for (std::size_t i = 0; i < count; ++i) {
            out[i] = get(row, i);
            out[i].value = kernel::exponential(out[i].value);
        }
        return count;
    }

    static std::size_t result_bytes(std::size_t elements, std::size_t members) noexcept {
        return padded(members * row_entries(elements) * sizeof(entry)) +
               padded(members * row_entries(elements) * sizeof(float)) + padded(members * sizeof(source)) +
               padded(members * sizeof(std::uint32_t));
    }
    static results results_in(std::span<std::byte> memory, std::size_t elements,
                              std::size_t members) noexcept {
        results made;
        std::size_t const count = members * row_entries(elements);
        made.room = {reinterpret_cast<entry*>(memory.data()), count};
        made.scratch = memory.subspan(padded(count * sizeof(entry)));
        return made;
    }

    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const> weights,
                     std::size_t elements, results& out) noexcept {
        std::byte* at = out.scratch.data();
        auto* const known = reinterpret_cast<float*>(at); // Σ weight · bound of the rows that have the entry
        at += padded(out.room.size() * sizeof(float));
        auto* const sources = reinterpret_cast<source*>(at);
        at += padded(rows.size() * sizeof(source));
        auto* const heap = reinterpret_cast<std::uint32_t*>(at); // rows with entries left, the least id first

        std::size_t count = 0;
        float total = 0;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            float const weight = weighting::weighted && !weights.empty() ? weights[row] : 1.0f;
            if (weight == 0) continue;
            sources[count] = source_of(rows[row], weight, elements);
            if (sources[count].next.id >= elements) continue; // not as it was checked
            heap[count] = static_cast<std::uint32_t>(count);
            total += weight;
            ++count;
        }
        if (count == 0 || (weighting::normalised && !(total > 0))) return false;

        float unknown = 0; // the most that an id can have which no row sent
        out.missing = 0;
        for (std::size_t row = 0; row < count; ++row) {
            if constexpr (weighting::normalised) sources[row].weight /= total;
            unknown += sources[row].weight * sources[row].bound;
            out.missing += sources[row].weight * sources[row].missing;
        }
        auto const later = [&](std::uint32_t a, std::uint32_t b) {
            return sources[a].next.id != sources[b].next.id ? sources[a].next.id > sources[b].next.id : a > b;
        };
        std::make_heap(heap, heap + count, later);
        std::size_t made = 0;
        for (std::size_t left = count; left > 0;) {
            std::pop_heap(heap, heap + left, later);
            source& from = sources[heap[left - 1]];
            if (made == 0 || out.room[made - 1].id != from.next.id) {
                out.room[made] = {from.next.id, 0};
                known[made++] = 0;
            }
            out.room[made - 1].value += from.weight * (votes ? 1 : kernel::exponential(from.next.value));
            known[made - 1] += from.weight * from.bound;
            if (from.advance())
                std::push_heap(heap, heap + left, later);
            else
                --left;
        }
        out.entries = out.room.first(made);
        choose(out, known, unknown);
        if constexpr (asked<outputs::disagreement>) {
            std::size_t others = 0;
            for (std::size_t row = 0; row < count; ++row) others += sources[row].top != out.chosen;
            out.template get<outputs::disagreement>() =
                static_cast<float>(others) / static_cast<float>(count);
        }
        return true;
    }
    static bool is_sound(results const& out) noexcept {
        constexpr float infinite = std::numeric_limits<float>::infinity();
        std::uint64_t next = 0;
        for (entry const& each : out.entries) {
            bool const share = weighting::normalised ? each.value >= 0 && each.value <= 1.001f
                                                     : each.value > -infinite && each.value < infinite;
            if (!share || each.id < next) return false;
            next = std::uint64_t{each.id} + 1;
        }
        return true;
    }

  private:
    // A row that counts, and how far it has been read.
    struct source {
        std::span<std::byte const> row;
        std::size_t at = 0, count = 0, elements = 0;
        entry next;
        float weight = 0;
        float missing = 0; // mass that did not travel
        float bound = 0;   // the most that an element has which did not travel
        std::uint32_t top = 0;

        bool advance() noexcept {
            if (++at >= count) return false;
            next = get(row, at);
            return next.id < elements; // else it is not as it was checked
        }
    };

    static constexpr std::size_t padded(std::size_t bytes) noexcept { return round_up(bytes, 64); }
    static void put(std::byte* lanes, std::size_t i, entry const& from) noexcept {
        std::memcpy(lanes + i * sizeof(entry), &from, sizeof from);
    }
    static entry get(std::span<std::byte const> row, std::size_t i) noexcept {
        entry at;
        std::memcpy(&at, row.data() + sizeof(row_start) + i * sizeof(entry), sizeof at);
        return at;
    }
    // Returns the entries of the row, at most as many as it has room for: a member on this host may have
    // written into its row since the check.
    static std::size_t count_of(std::span<std::byte const> row) noexcept {
        row_start start;
        std::memcpy(&start, row.data(), sizeof start);
        return std::min<std::size_t>(start.count, (row.size() - sizeof start) / sizeof(entry));
    }

    static source source_of(std::span<std::byte const> row, float weight, std::size_t elements) noexcept {
        source made;
        made.elements = elements;
        made.row = row;
        made.count = count_of(row);
        made.next = get(row, 0);
        made.weight = weight;
        made.top = made.next.id;
        if constexpr (!votes) {
            float mass = 0, largest = made.next.value, least = made.next.value;
            for (std::size_t i = 0; i < made.count; ++i) {
                entry const at = get(row, i);
                mass += kernel::exponential(at.value);
                if (at.value > largest) {
                    largest = at.value;
                    made.top = at.id;
                }
                least = at.value < least ? at.value : least;
            }
            made.missing = mass < 1 ? 1 - mass : 0;
            float const smallest = kernel::exponential(least);
            made.bound = made.missing < smallest ? made.missing : smallest;
        }
        return made;
    }

    static void choose(results& out, float const* known, float unknown) noexcept {
        std::size_t best = 0;
        for (std::size_t i = 1; i < out.entries.size(); ++i)
            if (out.entries[i].value > out.entries[best].value) best = i;
        out.chosen = out.entries[best].id;
        // The choice has at least its value; another entry at most its own plus the unknown mass.
        // The factor is for rounded sums.
        float const least = out.entries[best].value;
        bool certain = votes || unknown * 1.00001f < least;
        for (std::size_t i = 0; i < out.entries.size() && certain && !votes; ++i)
            if (i != best) certain = (out.entries[i].value + (unknown - known[i])) * 1.00001f < least;
        out.certain = certain;
    }

    static float sum_of_exponentials(std::span<Element const> row, float most) noexcept {
        using block = kernel::block<float>;
        using lanes = kernel::vector<float>;
        float sum = 0;
        for (std::size_t i = 0; i < row.size(); i += 1024) {
            kernel::lane_sum tile;
            std::size_t const end = row.size() - i < 1024 ? row.size() : i + 1024;
            for (std::size_t j = i; j < end; j += block::size)
                tile.add(kernel::exponential(
                    kernel::each([c = lanes{} + most](lanes v) { return v - c; },
                                 kernel::load_row<Element>(reinterpret_cast<std::byte const*>(row.data() + j),
                                                           end - j < block::size ? end - j : block::size,
                                                           -std::numeric_limits<float>::infinity()))));
            sum += tile.total();
        }
        return sum;
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ENTRY_ROWS_HPP
