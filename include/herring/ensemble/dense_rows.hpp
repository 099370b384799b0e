// herring: rows of one number an element: encoded by members, checked and folded by the frontend.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_ROWS_HPP
#define HERRING_ENSEMBLE_DENSE_ROWS_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/element.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/row_head.hpp"
#include "herring/kernel/exponential.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/outputs/outputs.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

template <class Wire, class Element> struct lane_of_wire {
    using type = accumulator<Element>; // of what is decoded first
};
template <class Wire, class Element>
requires wire_with_lanes<Wire, Element> //
struct lane_of_wire<Wire, Element> {
    using type = typename Wire::template lane<Element>;
};

/// What an ensemble answers with, beside who contributed.
template <class Number, class Outputs> struct dense_results : Outputs::template results<accumulator<Number>> {
    std::span<Number> values;     ///< the combined row
    std::span<std::byte> scratch; ///< of fold, 64-byte aligned
};

/// Rows of one number an element.
template <class Number, class Combine, class Wire, class Outputs> class dense_rows {
    using number = accumulator<Number>;
    using space = typename Combine::space;
    using weighting = typename Combine::weighting;
    using lanes = kernel::vector<number>;
    using block = kernel::block<number>;
    using lane = typename lane_of_wire<Wire, Number>::type;

    static constexpr bool of_logits = space::of_logits;
    static constexpr bool of_probabilities = std::is_same_v<space, herring::space::probability>;
    static constexpr bool of_logs = std::is_same_v<space, herring::space::log_probability>;
    template <class Output> static constexpr bool asked = Outputs::template has<Output>;
    static constexpr bool wants_spread = asked<outputs::variance> || asked<outputs::maximal_deviation>;
    static constexpr bool wants_mean_entropy =
        asked<outputs::mean_entropy> || asked<outputs::mutual_information>;
    static constexpr bool wants_entropy_of_mean =
        asked<outputs::entropy_of_mean> || asked<outputs::mutual_information>;
    static constexpr bool has_head = of_logits || asked<outputs::disagreement>;
    static constexpr bool has_lanes = wire_with_lanes<Wire, Number>;
    // Logits travel less their largest, unless every one of their bits travels.
    static constexpr bool shifted =
        of_logs || (std::is_same_v<space, herring::space::logit> && !Wire::facts.exact);
    static constexpr bool summed = of_probabilities || of_logs;

    // Elements that are encoded at a time, and decoded at a time where there are no lanes.
    static constexpr std::size_t tile =
        (1024 + Wire::facts.group - 1) / Wire::facts.group * Wire::facts.group;
    static constexpr number infinite = std::numeric_limits<number>::infinity();
    // What an exponential of 1 is encoded as, and the largest number that is encoded.
    static constexpr bool half = std::is_same_v<lane, float16>;
    static constexpr float one = half ? 0x1p15f : Wire::facts.one;
    static constexpr number largest = half                ? number(65504)
                                      : Wire::facts.exact ? std::numeric_limits<number>::max()
                                                          : static_cast<number>(Wire::facts.largest);

  public:
    using results = dense_results<Number, Outputs>;

    static std::size_t row_bytes(std::size_t elements) noexcept {
        return (has_head ? sizeof(row_head) : 0) + Wire::template bytes<Number>(elements);
    }

    static row_check encode(std::span<Number const> row, std::span<std::byte> out) noexcept {
        auto const extremes = kernel::extremes_of<!of_logits>(row.data(), row.size());
        if (extremes.has_nan) return row_check::not_a_number;
        if constexpr (of_logits) {
            if (extremes.largest == infinite) return row_check::infinite;
            if (extremes.largest == -infinite) return row_check::no_mass;
        } else {
            if (!(extremes.largest_magnitude <= largest)) return row_check::infinite;
        }
        row_head head;
        if constexpr (asked<outputs::disagreement>)
            head.top = static_cast<std::uint32_t>(kernel::index_of(row.data(), row.size(), extremes.largest));
        if constexpr (of_logits) head.origin = extremes.largest;
        encode_tiles(row, extremes.largest, head, out.subspan(has_head ? sizeof(row_head) : 0));
        if constexpr (has_head) head.write(out);
        return row_check::good;
    }

    static row_check check(std::span<std::byte const> row, std::size_t elements) noexcept {
        if (row.size() != row_bytes(elements)) return row_check::wrong_size;
        if constexpr (has_head)
            if (!row_head::read(row).possible(elements, summed, of_probabilities ? one : 1))
                return row_check::malformed;
        bool good = true;
        if constexpr (has_lanes) {
            good = kernel::within<lane>(lanes_of(row), elements, limits());
        } else {
            alignas(64) number room[tile];
            for (std::size_t i = 0; i < elements; i += tile) {
                std::size_t const n = elements - i < tile ? elements - i : tile;
                decode_tile(lanes_of(row), i, std::span(room, n));
                good &= kernel::within<number>(reinterpret_cast<std::byte const*>(room), n, limits());
            }
        }
        return good ? row_check::good : row_check::not_a_number;
    }

    static void decode(std::span<std::byte const> row, std::size_t elements, std::span<Number> out) noexcept {
        source const from = source_of(row, 1);
        alignas(64) number room[has_lanes ? 1 : tile];
        for (std::size_t i = 0; i < elements; i += tile) {
            std::size_t const n = elements - i < tile ? elements - i : tile;
            if constexpr (!has_lanes) decode_tile(from.at, i, std::span(room, n));
            for (std::size_t j = 0; j < n; j += block::size) {
                std::size_t const m = n - j < block::size ? n - j : block::size;
                std::byte const* at = from.at + (i + j) * sizeof(lane);
                if constexpr (!has_lanes) at = reinterpret_cast<std::byte const*>(room + j);
                kernel::store_row(out.data() + i + j, decoded(kernel::load_row<lane>(at, m), from), m);
            }
        }
    }

    static constexpr std::size_t result_bytes(std::size_t elements, std::size_t members) noexcept {
        return padded(elements * sizeof(Number)) +
               (asked<outputs::variance> ? padded(elements * sizeof(number)) : 0) + scratch_bytes(members);
    }
    static results results_in(std::span<std::byte> memory, std::size_t elements,
                              std::size_t /*members*/) noexcept {
        results made;
        auto const take = [&](std::size_t bytes) {
            std::byte* const at = memory.data();
            memory = memory.subspan(padded(bytes));
            return at;
        };
        made.values = {reinterpret_cast<Number*>(take(elements * sizeof(Number))), elements};
        if constexpr (asked<outputs::variance>)
            made.template get<outputs::variance>() = {
                reinterpret_cast<number*>(take(elements * sizeof(number))), elements};
        made.scratch = memory;
        return made;
    }

    static bool fold(std::span<std::span<std::byte const> const> rows, std::span<float const> weights,
                     std::size_t elements, results& out) noexcept {
        folding state(rows, weights, out);
        if (state.count == 0) return false;
        state.run(elements);
        state.finish(elements);
        return true;
    }

  private:
    // A row that counts, as the loops over elements see it.
    struct source {
        std::byte const* at; // its first lane
        number scale = 1;    // of a lane, decoded
        number addend = 0;   // to a lane, decoded
        number linear = 1;   // weight · scale: of a lane, in a linear rule
        float weight = 1;    // those of outputs sum to 1
        float entropy = 0;
        std::uint32_t top = 0;
    };

    static constexpr std::size_t padded(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
    static constexpr std::size_t scratch_bytes(std::size_t members) noexcept {
        return padded(members * sizeof(source)) + padded(members * sizeof(float)) +
               padded(members * sizeof(number)) + padded(members * 4 * sizeof(lanes)) +
               (has_lanes ? 0 : members * padded(tile * sizeof(number)));
    }
    static std::byte const* lanes_of(std::span<std::byte const> row) noexcept {
        return row.data() + (has_head ? sizeof(row_head) : 0);
    }
    static void decode_tile(std::byte const* encoded, std::size_t from, std::span<number> to) noexcept {
        Wire::template decode<Number>(
            {encoded + Wire::template bytes<Number>(from), Wire::template bytes<Number>(to.size())}, to);
    }

    static kernel::lane_limits<lane> limits() noexcept {
        using word = typename kernel::lane_limits<lane>::word;
        constexpr word infinity =
            __builtin_bit_cast(word, static_cast<lane>(std::numeric_limits<number>::infinity()));
        constexpr word finite = static_cast<word>(infinity - 1);
        if constexpr (of_probabilities)
            return {__builtin_bit_cast(word, static_cast<lane>(static_cast<number>(one))), -1};
        else if constexpr (shifted)
            return {0, infinity};
        else if constexpr (of_logits)
            return {finite, infinity};
        else
            return {finite, finite};
    }

    HERRING_ALWAYS_INLINE static block decoded(block const& x, source const& from) noexcept {
        if constexpr (of_probabilities)
            return kernel::each([s = lanes{} + from.scale](lanes v) { return v * s; }, x);
        else if constexpr (of_logits)
            return kernel::each([c = lanes{} + from.addend](lanes v) { return v + c; }, x);
        else
            return x;
    }

    static source source_of(std::span<std::byte const> row, float weight) noexcept {
        source made{lanes_of(row)};
        made.weight = weight;
        if constexpr (has_head) {
            auto const head = row_head::read(row);
            made.entropy = head.entropy;
            made.top = head.top;
            if constexpr (of_probabilities) made.scale = 1 / head.sum;
            if constexpr (std::is_same_v<space, herring::space::logit> && shifted) made.addend = head.origin;
            if constexpr (of_logs) made.addend = -kernel::logarithm(head.sum);
        }
        return made;
    }

    // Encodes what travels of the elements, and completes the head.
    static void encode_tiles(std::span<Number const> row, [[maybe_unused]] number most,
                             [[maybe_unused]] row_head& head, std::span<std::byte> out) noexcept {
        alignas(64) number room[has_lanes ? 1 : tile + block::size];
        [[maybe_unused]] float plain = 0, moment = 0; // Σ e^d and Σ d·e^d, before encoding
        for (std::size_t i = 0; i < row.size(); i += tile) {
            std::size_t const n = row.size() - i < tile ? row.size() - i : tile;
            [[maybe_unused]] kernel::lane_sum encoded, sum, moments;
            for (std::size_t j = 0; j < n; j += block::size) {
                std::size_t const m = n - j < block::size ? n - j : block::size;
                block x = kernel::load_row<Number>(reinterpret_cast<std::byte const*>(row.data() + i + j), m,
                                                   of_logits ? -infinite : number(0));
                if constexpr (of_logits) {
                    block const d = kernel::each([c = lanes{} + most](lanes v) { return v - c; }, x);
                    if constexpr (shifted) x = d;
                    if constexpr (of_probabilities || wants_mean_entropy) {
                        block const e = kernel::exponential(d);
                        if constexpr (wants_mean_entropy) {
                            sum.add(e);
                            moments.add(kernel::each(moment_of, d, e));
                        }
                        if constexpr (of_probabilities)
                            x = one == 1 ? e : kernel::each([](lanes v) { return v * one; }, e);
                    }
                }
                if constexpr (shifted && half) x = kernel::each(kept_finite, x);
                if constexpr (has_lanes) {
                    lane* const to = reinterpret_cast<lane*>(out.data()) + (i + j);
                    if (m == block::size) {
                        kernel::block<lane> const wide{x.a, x.b, x.c, x.d};
                        wide.round().store(to);
                        if constexpr (summed) {
                            auto const back = wide.rounded_numbers();
                            encoded.add(exponentials({back.a, back.b, back.c, back.d}));
                        }
                    } else {
                        kernel::store_row(to, x, m);
                        if constexpr (summed) encoded.add(exponentials(last_of<lane>(to, m)));
                    }
                } else {
                    x.store_wide(room + j);
                }
            }
            if constexpr (!has_lanes) {
                Wire::template encode<Number>(
                    std::span<number const>(room, n),
                    out.subspan(Wire::template bytes<Number>(i), Wire::template bytes<Number>(n)));
                if constexpr (summed) {
                    decode_tile(out.data(), i, std::span(room, n));
                    for (std::size_t j = 0; j < n; j += block::size)
                        encoded.add(exponentials(
                            last_of<number>(room + j, n - j < block::size ? n - j : block::size)));
                }
            }
            if constexpr (summed) head.sum += encoded.total();
            if constexpr (wants_mean_entropy) {
                plain += sum.total();
                moment += moments.total();
            }
        }
        if constexpr (wants_mean_entropy) {
            float const entropy = kernel::logarithm(plain) - moment / plain;
            head.entropy = entropy > 0 ? entropy : 0;
        }
    }

    static constexpr auto moment_of = [](lanes d, lanes e) {
        lanes const least = lanes{} + kernel::least_exponent; // below it e is 0
        return kernel::product(kernel::detail::greater_of(d, least), e);
    };
    // Logits that fp16 would round to −inf, which masks.
    static constexpr auto kept_finite = [](lanes v) {
        lanes const least = lanes{} - largest;
        lanes const nearest = v < least ? least : v;
        return v == lanes{} - infinite ? v : nearest;
    };
    // What an encoded block adds to the sum.
    HERRING_ALWAYS_INLINE static block exponentials(block const& x) noexcept {
        if constexpr (of_logs)
            return kernel::exponential(x);
        else
            return x;
    }
    template <class Lane> static block last_of(Lane const* lanes_in, std::size_t count) noexcept {
        return kernel::load_row<Lane>(reinterpret_cast<std::byte const*>(lanes_in), count,
                                      of_logs ? -infinite : number(0));
    }

    // One fold: the rows that count, their factors, and what is gathered on the way.
    struct folding {
        // Whether each row has a factor in a linear rule; else the sum is divided.
        static constexpr bool scaled = weighting::weighted || of_probabilities;
        static constexpr bool shifts = (std::is_same_v<space, herring::space::logit> && shifted) || of_logs;
        // With negative weights −inf would become +inf.
        static constexpr bool masks = of_logits && !of_probabilities && !weighting::normalised;
        static constexpr bool staged = wants_spread || !Combine::facts.linear;

        results& out;
        source* sources = nullptr;
        float* weights = nullptr;   // what a rule is given
        number* column = nullptr;   // an element of all rows, for rules that take no vectors
        lanes* stage = nullptr;     // a block of all rows, register by register
        number* unpacked = nullptr; // a tile of all rows, where there are no lanes
        std::size_t count = 0;
        number divisor = 1;         // of the sum, where rows have no factors
        number reciprocal = 0;      // of the divisor, where it is exact
        number constant = 0;        // to the sum
        kernel::lane_sum entropies; // Σ p·ln p of a tile
        float entropy = 0;
        lanes most{}; // the largest variances

        folding(std::span<std::span<std::byte const> const> rows, std::span<float const> given,
                results& results) noexcept
            : out(results) {
            std::byte* at = out.scratch.data();
            auto const take = [&]<class Item>(Item*& items, std::size_t n) {
                items = reinterpret_cast<Item*>(at);
                at += padded(n * sizeof(Item));
            };
            take(sources, rows.size());
            take(weights, rows.size());
            take(column, rows.size());
            take(stage, rows.size() * 4);
            unpacked = reinterpret_cast<number*>(at);

            // A row without weight does not count: 0 · −inf is no number.
            float total = 0;
            for (std::size_t row = 0; row < rows.size(); ++row) {
                float const weight = weighting::weighted && !given.empty() ? given[row] : 1.0f;
                if (weight == 0) continue;
                total += weight;
                sources[count++] = source_of(rows[row], weight);
            }
            if (weighting::normalised && !(total > 0)) count = 0;
            auto const share = 1 / static_cast<float>(count == 0 ? 1 : count);
            for (std::size_t row = 0; row < count; ++row) {
                source& from = sources[row];
                if constexpr (std::is_same_v<weighting, herring::weighting::renormalised>)
                    from.weight = from.weight / total;
                else if constexpr (!weighting::weighted)
                    from.weight = share;
                weights[row] = from.weight;
                from.linear = static_cast<number>(from.weight) * from.scale;
                if constexpr (shifts)
                    constant += scaled ? static_cast<number>(from.weight) * from.addend : from.addend;
                if constexpr (!weighting::normalised) from.weight = share; // of outputs
            }
            divisor = static_cast<number>(count);
            if ((count & (count - 1)) == 0 && count != 0) reciprocal = 1 / divisor;
            if constexpr (shifts && !scaled) constant /= divisor;
        }

        void run(std::size_t elements) noexcept {
            for (std::size_t i = 0; i < elements; i += tile) {
                std::size_t const n = elements - i < tile ? elements - i : tile;
                if constexpr (!has_lanes)
                    for (std::size_t row = 0; row < count; ++row)
                        decode_tile(sources[row].at, i, std::span(tile_of(row), n));
                for (std::size_t j = 0; j < n; j += block::size)
                    fold_block(i, j, n - j < block::size ? n - j : block::size);
                if constexpr (wants_entropy_of_mean) {
                    entropy -= entropies.total();
                    entropies = {};
                }
            }
        }

        HERRING_ALWAYS_INLINE number* tile_of(std::size_t row) const noexcept {
            return unpacked + row * (padded(tile * sizeof(number)) / sizeof(number));
        }
        // n lanes of a row, from an offset in the tile on.
        HERRING_ALWAYS_INLINE block load(std::size_t row, std::size_t from, std::size_t offset,
                                         std::size_t n) const noexcept {
            if constexpr (has_lanes)
                return kernel::load_row<lane>(sources[row].at + (from + offset) * sizeof(lane), n);
            else
                return kernel::load_row<number>(reinterpret_cast<std::byte const*>(tile_of(row) + offset), n);
        }

        HERRING_ALWAYS_INLINE void fold_block(std::size_t from, std::size_t offset, std::size_t n) noexcept {
            if constexpr (staged) {
                for (std::size_t row = 0; row < count; ++row) {
                    block const x = dense_rows::decoded(load(row, from, offset, n), sources[row]);
                    stage[row] = x.a;
                    stage[count + row] = x.b;
                    stage[2 * count + row] = x.c;
                    stage[3 * count + row] = x.d;
                }
                if constexpr (wants_spread) spread(from + offset, n); // before a rule sorts the stage
            }
            block total;
            if constexpr (Combine::facts.linear)
                total = linear(from, offset, n);
            else
                total = {by_rule(0), by_rule(1), by_rule(2), by_rule(3)};
            kernel::store_row(out.values.data() + from + offset, total, n);
            if constexpr (wants_entropy_of_mean)
                entropies.add(kernel::each(
                    [](lanes p) {
                        lanes const least = lanes{} + std::numeric_limits<float>::min();
                        return p >= least ? kernel::product(p, kernel::logarithm(p)) : lanes{};
                    },
                    total));
        }

        HERRING_ALWAYS_INLINE block linear(std::size_t from, std::size_t offset,
                                           std::size_t n) const noexcept {
            block total = load(0, from, offset, n);
            [[maybe_unused]] block least = total;
            if constexpr (scaled) total = times(total, sources[0].linear);
            for (std::size_t row = 1; row < count; ++row) {
                block x = load(row, from, offset, n);
                if constexpr (masks)
                    least = kernel::each([](lanes a, lanes b) { return a < b ? a : b; }, least, x);
                if constexpr (scaled) x = times(x, sources[row].linear);
                total = kernel::each([](lanes a, lanes b) { return a + b; }, total, x);
            }
            if constexpr (!scaled) {
                if (reciprocal != 0) // a power of two: the same bits
                    total = kernel::each([r = lanes{} + reciprocal](lanes v) { return v * r; }, total);
                else
                    total = kernel::each([d = lanes{} + divisor](lanes v) { return v / d; }, total);
            }
            if constexpr (shifts)
                total = kernel::each([c = lanes{} + constant](lanes v) { return v + c; }, total);
            if constexpr (masks)
                total = kernel::each(
                    [](lanes v, lanes lowest) {
                        lanes const masked = lanes{} - infinite;
                        return lowest == masked ? masked : v;
                    },
                    total, least);
            return total;
        }
        HERRING_ALWAYS_INLINE static block times(block const& x, number factor) noexcept {
            return kernel::each([f = lanes{} + factor](lanes v) { return kernel::product(v, f); }, x);
        }

        HERRING_ALWAYS_INLINE lanes by_rule(std::size_t part) const noexcept {
            std::span<lanes> const rows(stage + part * count, count);
            std::span<float const> const given(weights, count);
            if constexpr (Combine::facts.takes_vectors) {
                return Combine::combine(rows, given);
            } else {
                lanes result{};
                for (std::size_t i = 0; i < sizeof(lanes) / sizeof(number); ++i) {
                    for (std::size_t row = 0; row < count; ++row) column[row] = rows[row][i];
                    result[i] = Combine::combine(std::span<number>(column, count), given);
                }
                return result;
            }
        }

        HERRING_ALWAYS_INLINE void spread(std::size_t at, std::size_t n) noexcept {
            block variances = variance_of_stage();
            if (n < block::size) { // what lies behind the row is none of it
                number room[block::size];
                variances.store_wide(room);
                for (std::size_t i = n; i < block::size; ++i) room[i] = 0;
                variances = block::load_wide(room);
            }
            if constexpr (asked<outputs::variance>)
                kernel::store_row(out.template get<outputs::variance>().data() + at, variances, n);
            if constexpr (asked<outputs::maximal_deviation>) {
                auto const greater = [](lanes a, lanes b) { return kernel::detail::greater_of(a, b); };
                most = greater(most,
                               greater(greater(variances.a, variances.b), greater(variances.c, variances.d)));
            }
        }
        // In two passes over the stage: the mean, then the squares of the distances from it.
        HERRING_ALWAYS_INLINE block variance_of_stage() const noexcept {
            lanes const* const rows = stage;
            source const* const from = sources;
            std::size_t const k = count;
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

        void finish([[maybe_unused]] std::size_t elements) noexcept {
            [[maybe_unused]] float mean_of_entropies = 0;
            if constexpr (wants_mean_entropy)
                for (std::size_t row = 0; row < count; ++row)
                    mean_of_entropies += sources[row].weight * sources[row].entropy;
            if constexpr (asked<outputs::maximal_deviation>) {
                number largest_variance = 0;
                for (std::size_t i = 0; i < sizeof(lanes) / sizeof(number); ++i)
                    largest_variance = most[i] > largest_variance ? number(most[i]) : largest_variance;
                out.template get<outputs::maximal_deviation>() = std::sqrt(largest_variance);
            }
            if constexpr (asked<outputs::disagreement>) {
                std::size_t const top = kernel::index_of_largest(out.values.data(), elements);
                std::size_t others = 0;
                for (std::size_t row = 0; row < count; ++row) others += sources[row].top != top;
                out.template get<outputs::disagreement>() =
                    static_cast<float>(others) / static_cast<float>(count);
            }
            if constexpr (asked<outputs::entropy_of_mean>)
                out.template get<outputs::entropy_of_mean>() = entropy;
            if constexpr (asked<outputs::mean_entropy>)
                out.template get<outputs::mean_entropy>() = mean_of_entropies;
            if constexpr (asked<outputs::mutual_information>)
                out.template get<outputs::mutual_information>() =
                    entropy > mean_of_entropies ? entropy - mean_of_entropies : 0.0f;
        }
    };
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DENSE_ROWS_HPP
