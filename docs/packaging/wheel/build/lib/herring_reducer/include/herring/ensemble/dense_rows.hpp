// herring: dense rows at the frontend: checked, decoded, and folded into one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_ROWS_HPP
#define HERRING_ENSEMBLE_DENSE_ROWS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/dense_row.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/kernel/exponential.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/model/element.hpp"
#include "herring/wire/wire.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The results of an answer of dense rows.
template <class Number, class Outputs> struct dense_results : Outputs::template results<accumulator<Number>> {
    std::span<Number> values;     ///< the combined row
    std::span<std::byte> scratch; ///< memory of the fold, 64-byte aligned
};

/// A row that counts, as the loops over elements see it.
template <class Traits> struct dense_source {
    using number = typename Traits::number;
    using lanes = typename Traits::lanes;
    using block = typename Traits::block;
    using space = typename Traits::space;

    std::byte const* at; ///< its first lane
    number scale = 1;    ///< factor of a decoded lane
    number addend = 0;   ///< added to a decoded lane
    number linear = 1;   ///< weight · scale: factor of a lane in a linear rule
    float weight = 1;    ///< the weights of outputs sum to 1
    float entropy = 0;
    std::uint32_t top = 0;

    static dense_source of(std::span<std::byte const> row, float weight) noexcept {
        dense_source made{Traits::lanes_of(row)};
        made.weight = weight;
        if constexpr (Traits::has_head) {
            auto const head = row_head::read(row);
            made.entropy = head.entropy;
            made.top = head.top;
            if constexpr (Traits::of_probabilities) made.scale = 1 / head.sum;
            if constexpr (std::is_same_v<space, herring::space::logit> && Traits::shifted)
                made.addend = head.origin;
            if constexpr (Traits::of_logs) made.addend = -kernel::logarithm(head.sum);
        }
        return made;
    }
    /// Returns the row's numbers from its lanes.
    HERRING_ALWAYS_INLINE block decoded(block const& x) const noexcept {
        if constexpr (Traits::of_probabilities)
            return kernel::each([s = lanes{} + scale](lanes v) { return v * s; }, x);
        else if constexpr (Traits::of_logits)
            return kernel::each([c = lanes{} + addend](lanes v) { return v + c; }, x);
        else
            return x;
    }
};

/// One fold: the rows that count, their factors, and the outputs.
template <class Traits> class dense_fold {
    using element = typename Traits::element;
    using number = typename Traits::number;
    using lanes = typename Traits::lanes;
    using block = typename Traits::block;
    using lane = typename Traits::lane;
    using wire = typename Traits::wire;
    using combine = typename Traits::combine;
    using space = typename Traits::space;
    using weighting = typename Traits::weighting;
    using source = dense_source<Traits>;

  public:
    using results = dense_results<element, typename Traits::named_outputs>;

    /// Returns the bytes of `results::scratch`.
    static constexpr std::size_t scratch_bytes(std::size_t members) noexcept {
        return Traits::padded(members * sizeof(source)) + Traits::padded(members * sizeof(float)) +
               Traits::padded(members * sizeof(number)) + Traits::padded(members * 4 * sizeof(lanes)) +
               (Traits::has_lanes ? 0 : members * Traits::padded(Traits::tile * sizeof(number)));
    }

    dense_fold(std::span<std::span<std::byte const> const> rows, std::span<float const> given,
               results& into) noexcept
        : out_(into) {
        std::byte* at = out_.scratch.data();
        auto const take = [&]<class Item>(Item*& items, std::size_t n) {
            items = reinterpret_cast<Item*>(at);
            at += Traits::padded(n * sizeof(Item));
        };
        take(sources_, rows.size());
        take(weights_, rows.size());
        take(column_, rows.size());
        take(stage_, rows.size() * 4);
        unpacked_ = reinterpret_cast<number*>(at);

        // A row of weight 0 does not count: 0 · −inf is NaN.
        float total = 0;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            float const weight = weighting::weighted && !given.empty() ? given[row] : 1.0f;
            if (weight == 0) continue;
            total += weight;
            sources_[count_++] = source::of(rows[row], weight);
        }
        if (weighting::normalised && !(total > 0)) count_ = 0;
        auto const share = 1 / static_cast<float>(count_ == 0 ? 1 : count_);
        for (std::size_t row = 0; row < count_; ++row) {
            source& from = sources_[row];
            if constexpr (std::is_same_v<weighting, herring::weighting::renormalised>)
                from.weight = from.weight / total;
            else if constexpr (!weighting::weighted)
                from.weight = share;
            weights_[row] = from.weight;
            from.linear = static_cast<number>(from.weight) * from.scale;
            if constexpr (shifts)
                constant_ += scaled ? static_cast<number>(from.weight) * from.addend : from.addend;
            if constexpr (!weighting::normalised) from.weight = share; // of outputs
        }
        divisor_ = static_cast<number>(count_);
        if ((count_ & (count_ - 1)) == 0 && count_ != 0) reciprocal_ = 1 / divisor_;
        if constexpr (shifts && !scaled) constant_ /= divisor_;
    }

    /// True if no row has a weight.
    bool is_empty() const noexcept { return count_ == 0; }
    /// Folds all elements.
    void run(std::size_t elements) noexcept {
        for (std::size_t i = 0; i < elements; i += Traits::tile) {
            std::size_t const n = elements - i < Traits::tile ? elements - i : Traits::tile;
            if constexpr (!Traits::has_lanes)
                for (std::size_t row = 0; row < count_; ++row)
                    Traits::decode_tile(sources_[row].at, i, std::span(tile_of(row), n));
            for (std::size_t j = 0; j < n; j += block::size)
                fold_block(i, j, n - j < block::size ? n - j : block::size);
            if constexpr (Traits::wants_entropy_of_mean) {
                entropy_ -= entropies_.total();
                entropies_ = {};
            }
        }
    }
    /// Computes the outputs of the whole row; after `run`.
    void finish([[maybe_unused]] std::size_t elements) noexcept {
        [[maybe_unused]] float mean_of_entropies = 0;
        if constexpr (Traits::wants_mean_entropy)
            for (std::size_t row = 0; row < count_; ++row)
                mean_of_entropies += sources_[row].weight * sources_[row].entropy;
        if constexpr (Traits::template asked<outputs::maximal_deviation>) {
            number largest_variance = 0;
            for (std::size_t i = 0; i < sizeof(lanes) / sizeof(number); ++i)
                largest_variance = most_[i] > largest_variance ? number(most_[i]) : largest_variance;
            out_.template get<outputs::maximal_deviation>() = std::sqrt(largest_variance);
        }
        if constexpr (Traits::template asked<outputs::disagreement>) {
            std::size_t const top = kernel::index_of_largest(out_.values.data(), elements);
            std::size_t others = 0;
            for (std::size_t row = 0; row < count_; ++row) others += sources_[row].top != top;
            out_.template get<outputs::disagreement>() =
                static_cast<float>(others) / static_cast<float>(count_);
        }
        if constexpr (Traits::template asked<outputs::entropy_of_mean>)
            out_.template get<outputs::entropy_of_mean>() = entropy_;
        if constexpr (Traits::template asked<outputs::mean_entropy>)
            out_.template get<outputs::mean_entropy>() = mean_of_entropies;
        if constexpr (Traits::template asked<outputs::mutual_information>)
            out_.template get<outputs::mutual_information>() =
                entropy_ > mean_of_entropies ? entropy_ - mean_of_entropies : 0.0f;
    }

  private:
    // True if each row has a factor in a linear rule; else the sum is divided.
    static constexpr bool scaled = weighting::weighted || Traits::of_probabilities;
    static constexpr bool shifts =
        (std::is_same_v<space, herring::space::logit> && Traits::shifted) || Traits::of_logs;
    // Masks explicitly: with negative weights −inf would become +inf.
    static constexpr bool masks = Traits::of_logits && !Traits::of_probabilities && !weighting::normalised;
    static constexpr bool staged = Traits::wants_spread || !combine::facts.linear;

    HERRING_ALWAYS_INLINE number* tile_of(std::size_t row) const noexcept {
        return unpacked_ + row * (Traits::padded(Traits::tile * sizeof(number)) / sizeof(number));
    }
    // Loads n lanes of a row, from an offset in the tile on.
    HERRING_ALWAYS_INLINE block load(std::size_t row, std::size_t from, std::size_t offset,
                                     std::size_t n) const noexcept {
        if constexpr (Traits::has_lanes)
            return kernel::load_row<lane>(sources_[row].at + (from + offset) * sizeof(lane), n);
        else
            return kernel::load_row<number>(reinterpret_cast<std::byte const*>(tile_of(row) + offset), n);
    }

    HERRING_ALWAYS_INLINE void fold_block(std::size_t from, std::size_t offset, std::size_t n) noexcept {
        if constexpr (staged) {
            for (std::size_t row = 0; row < count_; ++row) {
                block const x = sources_[row].decoded(load(row, from, offset, n));
                stage_[row] = x.a;
                stage_[count_ + row] = x.b;
                stage_[2 * count_ + row] = x.c;
                stage_[3 * count_ + row] = x.d;
            }
            if constexpr (Traits::wants_spread) spread(from + offset, n); // before a rule sorts the stage
        }
        block total;
        if constexpr (combine::facts.linear)
            total = linear(from, offset, n);
        else
            total = {by_rule(0), by_rule(1), by_rule(2), by_rule(3)};
        kernel::store_row(out_.values.data() + from + offset, total, n);
        if constexpr (Traits::wants_entropy_of_mean)
            entropies_.add(kernel::each(
                [](lanes p) {
                    lanes const least = lanes{} + std::numeric_limits<float>::min();
                    return p >= least ? kernel::product(p, kernel::logarithm(p)) : lanes{};
                },
                total));
    }

    HERRING_ALWAYS_INLINE block linear(std::size_t from, std::size_t offset, std::size_t n) const noexcept {
        block total = load(0, from, offset, n);
        [[maybe_unused]] block least = total;
        if constexpr (scaled) total = times(total, sources_[0].linear);
        for (std::size_t row = 1; row < count_; ++row) {
            block x = load(row, from, offset, n);
            if constexpr (masks)
                least = kernel::each([](lanes a, lanes b) { return a < b ? a : b; }, least, x);
            if constexpr (scaled) x = times(x, sources_[row].linear);
            total = kernel::each([](lanes a, lanes b) { return a + b; }, total, x);
        }
        if constexpr (!scaled) {
            if (reciprocal_ != 0) // a power of two: the same bits
                total = kernel::each([r = lanes{} + reciprocal_](lanes v) { return v * r; }, total);
            else
                total = kernel::each([d = lanes{} + divisor_](lanes v) { return v / d; }, total);
        }
        if constexpr (shifts)
            total = kernel::each([c = lanes{} + constant_](lanes v) { return v + c; }, total);
        if constexpr (masks)
            total = kernel::each(
                [](lanes v, lanes lowest) {
                    lanes const masked = lanes{} - Traits::infinite;
                    return lowest == masked ? masked : v;
                },
                total, least);
        return total;
    }
    HERRING_ALWAYS_INLINE static block times(block const& x, number factor) noexcept {
        return kernel::each([f = lanes{} + factor](lanes v) { return kernel::product(v, f); }, x);
    }

    HERRING_ALWAYS_INLINE lanes by_rule(std::size_t part) const noexcept {
        std::span<lanes> const rows(stage_ + part * count_, count_);
        std::span<float const> const given(weights_, count_);
        if constexpr (combine::facts.takes_vectors) {
            return combine::combine(rows, given);
        } else {
            lanes result{};
            for (std::size_t i = 0; i < sizeof(lanes) / sizeof(number); ++i) {
                for (std::size_t row = 0; row < count_; ++row) column_[row] = rows[row][i];
                result[i] = combine::combine(std::span<number>(column_, count_), given);
            }
            return result;
        }
    }

    HERRING_ALWAYS_INLINE void spread(std::size_t at, std::size_t n) noexcept {
        block variances = variance_of_stage();
        if (n < block::size) { // lanes behind the end of the row count as 0
            number room[block::size];
            variances.store_wide(room);
            for (std::size_t i = n; i < block::size; ++i) room[i] = 0;
            variances = block::load_wide(room);
        }
        if constexpr (Traits::template asked<outputs::variance>)
            kernel::store_row(out_.template get<outputs::variance>().data() + at, variances, n);
        if constexpr (Traits::template asked<outputs::maximal_deviation>) {
            auto const greater = [](lanes a, lanes b) { return kernel::detail::greater_of(a, b); };
            most_ =
                greater(most_, greater(greater(variances.a, variances.b), greater(variances.c, variances.d)));
        }
    }
    // Returns the variances, in two passes over the stage: the mean, then the squared distances from it.
    HERRING_ALWAYS_INLINE block variance_of_stage() const noexcept {
        lanes const* const rows = stage_;
        source const* const from = sources_;
        std::size_t const k = count_;
        auto const at = [rows, k](std::size_t row) {
            return block{rows[row], rows[k + row], rows[2 * k + row], rows[3 * k + row]};
        };
        auto const add = [](lanes a, lanes b) { return a + b; };
        block mean{}, sum{};
        for (std::size_t row = 0; row < k; ++row)
            mean = kernel::each(add, mean, times(at(row), static_cast<number>(from[row].weight)));
        for (std::size_t row = 0; row < k; ++row) {
            block const squares = kernel::each(
                [](lanes x, lanes m) {
                    lanes const away = x - m;
                    return kernel::product(away, away);
                },
                at(row), mean);
            sum = kernel::each(add, sum, times(squares, static_cast<number>(from[row].weight)));
        }
        return kernel::each(
            [](lanes v) { // masked: 0
                return v <= lanes{} + std::numeric_limits<number>::max() ? v : lanes{};
            },
            sum);
    }

    results& out_;
    source* sources_ = nullptr;
    float* weights_ = nullptr;   // the weights given to a rule
    number* column_ = nullptr;   // one element of all rows, for rules that take no vectors
    lanes* stage_ = nullptr;     // one block of all rows, register by register
    number* unpacked_ = nullptr; // one tile of all rows, where there are no lanes
    std::size_t count_ = 0;
    number divisor_ = 1;         // divisor of the sum, where rows have no factors
    number reciprocal_ = 0;      // 1 / divisor, where that is exact
    number constant_ = 0;        // added to the sum
    kernel::lane_sum entropies_; // Σ p·ln p of a tile
    float entropy_ = 0;
    lanes most_{}; // the largest variances
};

/// Rows of one number an element (`row_format`).
template <class Number, class Combine, class Wire, class Outputs> class dense_rows {
    using traits = dense_traits<Number, Combine, Wire, Outputs>;
    using number = typename traits::number;
    using block = typename traits::block;
    using lane = typename traits::lane;
    using source = dense_source<traits>;
    using folding = dense_fold<traits>;

  public:
    using results = typename folding::results;

    static std::size_t row_bytes(std::size_t elements) noexcept { return traits::row_bytes(elements); }

    static row_check encode(std::span<Number const> row, std::span<std::byte> out) noexcept {
        return dense_encoder<traits>::encode(row, out);
    }
    static row_check check(std::span<std::byte const> row, std::size_t elements) noexcept {
        if (row.size() != traits::row_bytes(elements)) return row_check::wrong_size;
        bool good = true;
        [[maybe_unused]] float sum = 0;
        [[maybe_unused]] number largest = std::numeric_limits<number>::lowest();
        alignas(64) number room[traits::has_lanes ? 1 : traits::tile];
        for (std::size_t i = 0; i < elements; i += traits::tile) {
            std::size_t const n = elements - i < traits::tile ? elements - i : traits::tile;
            std::byte const* at = reinterpret_cast<std::byte const*>(room);
            if constexpr (traits::has_lanes)
                at = traits::lanes_of(row) + i * sizeof(lane);
            else
                traits::decode_tile(traits::lanes_of(row), i, std::span(room, n));
            good &= kernel::within<lane>(at, n, traits::limits());
            if constexpr (sums) sum += sum_of(at, n);
            if constexpr (looks_for_largest) {
                number const here = kernel::extremes_of<false>(reinterpret_cast<lane const*>(at), n).largest;
                largest = here > largest ? here : largest;
            }
        }
        if (!good) return row_check::not_a_number;
        if constexpr (traits::has_head)
            if (!fits(row_head::read(row), traits::lanes_of(row), elements, sum, largest))
                return row_check::malformed;
        return row_check::good;
    }

    static void decode(std::span<std::byte const> row, std::size_t elements, std::span<Number> out) noexcept {
        source const from = source::of(row, 1);
        alignas(64) number room[traits::has_lanes ? 1 : traits::tile];
        for (std::size_t i = 0; i < elements; i += traits::tile) {
            std::size_t const n = elements - i < traits::tile ? elements - i : traits::tile;
            if constexpr (!traits::has_lanes) traits::decode_tile(from.at, i, std::span(room, n));
            for (std::size_t j = 0; j < n; j += block::size) {
                std::size_t const m = n - j < block::size ? n - j : block::size;
                std::byte const* at = from.at + (i + j) * sizeof(lane);
                if constexpr (!traits::has_lanes) at = reinterpret_cast<std::byte const*>(room + j);
                kernel::store_row(out.data() + i + j, from.decoded(kernel::load_row<lane>(at, m)), m);
            }
        }
    }

    static constexpr std::size_t result_bytes(std::size_t elements, std::size_t members) noexcept {
        return traits::padded(elements * sizeof(Number)) +
               (traits::template asked<outputs::variance> ? traits::padded(elements * sizeof(number)) : 0) +
               folding::scratch_bytes(members);
    }
    static results results_in(std::span<std::byte> memory, std::size_t elements,
                              std::size_t /*members*/) noexcept {
        results made;
        auto const take = [&](std::size_t bytes) {
            std::byte* const at = memory.data();
            memory = memory.subspan(traits::padded(bytes));
            return at;
        };
        made.values = {reinterpret_cast<Number*>(take(elements * sizeof(Number))), elements};
        if constexpr (traits::template asked<outputs::variance>)
            made.template get<outputs::variance>() = {
                reinterpret_cast<number*>(take(elements * sizeof(number))), elements};
        made.scratch = memory;
        return made;
    }

    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const> weights,
                     std::size_t elements, results& out) noexcept {
        folding state(rows, weights, out);
        if (state.is_empty()) return false;
        state.run(elements);
        state.finish(elements);
        return true;
    }
    static bool is_sound(results const& out) noexcept {
        if constexpr (traits::template asked<outputs::mean_entropy>)
            if (float const x = out.template get<outputs::mean_entropy>(); !(x >= 0 && x < traits::infinite))
                return false;
        return kernel::within<Number>(reinterpret_cast<std::byte const*>(out.values.data()),
                                      out.values.size(), traits::result_limits());
    }

  private:
    // Only sums of probabilities are checked. In log space a wrong sum shifts all elements of the row by one
    // constant, as its lanes could, and a check would cost an exponential for each lane.
    static constexpr bool sums = traits::of_probabilities;
    // Lanes are relative to the largest element, so the value of its lane is known.
    static constexpr bool relative = traits::of_probabilities || traits::shifted;
    static constexpr bool looks_for_largest =
        traits::has_lanes && traits::template asked<outputs::disagreement> && !relative;

    // Returns the sum of a tile's lanes, in the encoder's order, and so with the same bits.
    static float sum_of(std::byte const* at, std::size_t n) noexcept {
        kernel::lane_sum sum;
        for (std::size_t j = 0; j < n; j += block::size) {
            sum.add(kernel::load_row<lane>(at + j * sizeof(lane), n - j < block::size ? n - j : block::size));
        }
        return sum.total();
    }
    // True if the head agrees with the lanes. `sum` and `largest` are those of the lanes, where they were
    // computed.
    static bool fits(row_head const& head, [[maybe_unused]] std::byte const* lanes, std::size_t elements,
                     [[maybe_unused]] float sum, [[maybe_unused]] number largest) noexcept {
        if (!head.possible(elements, traits::summed, traits::of_probabilities ? traits::one : 1))
            return false;
        if constexpr (sums)
            if (!head.has_sum(sum)) return false;
        // Lanes keep the order of elements, though several may have become equal. A codec of groups need not.
        if constexpr (traits::has_lanes && traits::template asked<outputs::disagreement>) {
            if constexpr (relative) largest = traits::of_probabilities ? number(traits::one) : number(0);
            if (kernel::load_one<lane>(lanes + head.top * sizeof(lane)) != largest) return false;
        }
        if constexpr (traits::wants_mean_entropy) {
            if constexpr (sums && traits::has_lanes)
                return head.has_entropy(elements, traits::one / sum);
            else
                return head.has_entropy(elements, 0);
        }
        return true;
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DENSE_ROWS_HPP
