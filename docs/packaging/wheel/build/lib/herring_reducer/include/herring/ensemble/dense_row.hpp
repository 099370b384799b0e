// herring: a dense row, one number an element, as a member encodes it: head, layout by the policies, encoder.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_ROW_HPP
#define HERRING_ENSEMBLE_DENSE_ROW_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/outputs.hpp"
#include "herring/kernel/exponential.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/model/element.hpp"
#include "herring/wire/wire.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::detail::ensembles {

static_assert(std::endian::native == std::endian::little, "rows are little-endian");

/// The head before a row's lanes. Rows of plain values have none, unless an output needs the index.
///
/// The sum is in fp32, in a fixed order, over the decoded lanes: so decoded probabilities sum to 1.
struct row_head {
    float origin = 0;      ///< the logit that a lane of 0 stands for: the row's largest
    float sum = 0;         ///< of the encoded exponentials; 0 where the space needs none
    float entropy = 0;     ///< in nats, of the row before encoding; 0 where no output needs it
    std::uint32_t top = 0; ///< index of the row's largest element; 0 where nothing needs it

    static row_head read(std::span<std::byte const> row) noexcept {
        row_head head;
        std::memcpy(&head, row.data(), sizeof head);
        return head;
    }
    void write(std::span<std::byte> row) const noexcept { std::memcpy(row.data(), this, sizeof *this); }

    /// True if a fold can compute with the head, whatever the lanes are. `one`: the code of the largest
    /// exponential.
    bool possible(std::size_t elements, bool summed, float one) const noexcept {
        // A little more than one · elements, which rounding can reach.
        float const most = one * (static_cast<float>(elements) + 1) * 1.001f;
        return std::isfinite(origin) && (!summed || (sum >= one && sum <= most)) && top < elements;
    }
    /// True if `sum` is the sum of the lanes. The encoder's order gives the same bits; any order of up to
    /// 16,777 additions rounds by less than the tolerance.
    bool has_sum(float of_lanes) const noexcept { return std::fabs(sum - of_lanes) <= 0.001f * of_lanes; }
    /// True if `entropy` can be that of so many probabilities of which the largest is `most`; 0: the largest
    /// is not known.
    ///
    /// Shape:  −ln p ≤ H ≤ −p·ln p − (1 − p)·ln((1 − p) / (n − 1)). Lower bound: the rest lies on as few
    ///         elements as possible; upper bound: the rest is spread evenly.
    bool has_entropy(std::size_t elements, float most) const noexcept {
        // The member's entropy is of the row before encoding: logits as bfloat16 move both bounds by up to
        // 0.2.
        constexpr float apart = 0.25f;
        float const others = static_cast<float>(elements - 1);
        float least = 0, largest = kernel::logarithm(others + 1);
        if (most > 0) {
            least = -kernel::logarithm(most);
            largest = most * least;
            float const rest = 1 - most;
            if (rest > 0 && elements > 1)
                largest += rest * (kernel::logarithm(others) - kernel::logarithm(rest));
        }
        return entropy >= 0 && entropy >= least - apart && entropy <= largest + apart;
    }
};
static_assert(sizeof(row_head) == 16);

template <class Wire, class Element> struct lane_of_wire {
    using type = accumulator<Element>; // the type of decoded numbers
};
template <class Wire, class Element>
requires wire_with_lanes<Wire, Element> //
struct lane_of_wire<Wire, Element> {
    using type = typename Wire::template lane<Element>;
};

/// The layout of a row and the work on it, as the policies of a pack determine them.
///
/// Shape:  a row is a `row_head`, where one is needed, then its elements as the wire encodes them: lanes, or
///         tiles that it decodes.
template <class Number, class Combine, class Wire, class Outputs> struct dense_traits {
    using element = Number;
    using combine = Combine;
    using wire = Wire;
    using named_outputs = Outputs;
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
    // Logits travel minus their largest, unless the wire keeps every bit.
    static constexpr bool shifted =
        of_logs || (std::is_same_v<space, herring::space::logit> && !Wire::facts.exact);
    static constexpr bool summed = of_probabilities || of_logs;

    // Elements that are encoded at a time, and decoded at a time where there are no lanes.
    static constexpr std::size_t tile =
        (1024 + Wire::facts.group - 1) / Wire::facts.group * Wire::facts.group;
    static constexpr number infinite = std::numeric_limits<number>::infinity();
    // `one`: the code of an exponential of 1. `largest`: the largest number that can be encoded.
    static constexpr bool half = std::is_same_v<lane, float16>;
    static constexpr float one = half ? 0x1p15f : Wire::facts.one;
    static constexpr number largest = half                ? number(65504)
                                      : Wire::facts.exact ? std::numeric_limits<number>::max()
                                                          : static_cast<number>(Wire::facts.largest);

    static std::size_t row_bytes(std::size_t elements) noexcept {
        return (has_head ? sizeof(row_head) : 0) + Wire::template bytes<Number>(elements);
    }
    /// Returns the first element of a row.
    static std::byte const* lanes_of(std::span<std::byte const> row) noexcept {
        return row.data() + (has_head ? sizeof(row_head) : 0);
    }
    /// Decodes elements `from` and on.
    static void decode_tile(std::byte const* encoded, std::size_t from, std::span<number> to) noexcept {
        Wire::template decode<Number>(
            {encoded + Wire::template bytes<Number>(from), Wire::template bytes<Number>(to.size())}, to);
    }

    /// Returns the limits of a lane.
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

    /// Returns the limits of an element of a combined row if all rows are good; sums that overflow a float
    /// exceed them.
    static kernel::lane_limits<Number> result_limits() noexcept {
        using word = typename kernel::lane_limits<Number>::word;
        constexpr word infinity = __builtin_bit_cast(word, static_cast<Number>(infinite));
        constexpr word finite = static_cast<word>(infinity - 1);
        if constexpr (!of_probabilities)
            return {finite, of_logits ? infinity : finite};
        else if constexpr (weighting::normalised && combine::facts.linear)
            return {__builtin_bit_cast(word, static_cast<Number>(number(1.001f))), -1};
        else
            return {finite, -1};
    }

    static constexpr std::size_t padded(std::size_t bytes) noexcept { return round_up(bytes, 64); }
};

/// The encoder of a row: checks it, encodes it, and sums what it has encoded. `Traits`: a `dense_traits`.
template <class Traits> class dense_encoder {
    using element = typename Traits::element;
    using number = typename Traits::number;
    using lanes = typename Traits::lanes;
    using block = typename Traits::block;
    using lane = typename Traits::lane;
    using wire = typename Traits::wire;

  public:
    static row_check encode(std::span<element const> row, std::span<std::byte> out) noexcept {
        auto const extremes = kernel::extremes_of<!Traits::of_logits>(row.data(), row.size());
        if (extremes.has_nan) return row_check::not_a_number;
        if constexpr (Traits::of_logits) {
            if (extremes.largest == Traits::infinite) return row_check::infinite;
            if (extremes.largest == -Traits::infinite) return row_check::no_mass;
        } else {
            if (!(extremes.largest_magnitude <= Traits::largest)) return row_check::infinite;
        }
        row_head head;
        if constexpr (Traits::template asked<outputs::disagreement>)
            head.top = static_cast<std::uint32_t>(kernel::index_of(row.data(), row.size(), extremes.largest));
        if constexpr (Traits::of_logits) head.origin = extremes.largest;
        encode_tiles(row, extremes.largest, head, out.subspan(Traits::has_head ? sizeof(row_head) : 0));
        if constexpr (Traits::has_head) head.write(out);
        return row_check::good;
    }

  private:
    // Encodes the elements, and completes the head.
    static void encode_tiles(std::span<element const> row, [[maybe_unused]] number most,
                             [[maybe_unused]] row_head& head, std::span<std::byte> out) noexcept {
        alignas(64) number room[Traits::has_lanes ? 1 : Traits::tile + block::size];
        [[maybe_unused]] float plain = 0, moment = 0; // Σ e^d and Σ d·e^d, before encoding
        for (std::size_t i = 0; i < row.size(); i += Traits::tile) {
            std::size_t const n = row.size() - i < Traits::tile ? row.size() - i : Traits::tile;
            [[maybe_unused]] kernel::lane_sum encoded, sum, moments;
            for (std::size_t j = 0; j < n; j += block::size) {
                std::size_t const m = n - j < block::size ? n - j : block::size;
                block x = kernel::load_row<element>(reinterpret_cast<std::byte const*>(row.data() + i + j), m,
                                                    Traits::of_logits ? -Traits::infinite : number(0));
                if constexpr (Traits::of_logits) {
                    block const d = kernel::each([c = lanes{} + most](lanes v) { return v - c; }, x);
                    if constexpr (Traits::shifted) x = d;
                    if constexpr (Traits::of_probabilities || Traits::wants_mean_entropy) {
                        block const e = kernel::exponential(d);
                        if constexpr (Traits::wants_mean_entropy) {
                            sum.add(e);
                            moments.add(kernel::each(moment_of, d, e));
                        }
                        if constexpr (Traits::of_probabilities)
                            x = Traits::one == 1 ? e
                                                 : kernel::each([](lanes v) { return v * Traits::one; }, e);
                    }
                }
                if constexpr (Traits::shifted && Traits::half) x = kernel::each(kept_finite, x);
                if constexpr (Traits::has_lanes) {
                    lane* const to = reinterpret_cast<lane*>(out.data()) + (i + j);
                    if (m == block::size) {
                        kernel::block<lane> const wide{x.a, x.b, x.c, x.d};
                        wide.round().store(to);
                        if constexpr (Traits::summed) {
                            auto const back = wide.rounded_numbers();
                            encoded.add(exponentials({back.a, back.b, back.c, back.d}));
                        }
                    } else {
                        kernel::store_row(to, x, m);
                        if constexpr (Traits::summed) encoded.add(exponentials(last_of<lane>(to, m)));
                    }
                } else {
                    x.store_wide(room + j);
                }
            }
            if constexpr (!Traits::has_lanes) {
                wire::template encode<element>(
                    std::span<number const>(room, n),
                    out.subspan(wire::template bytes<element>(i), wire::template bytes<element>(n)));
                if constexpr (Traits::summed) {
                    Traits::decode_tile(out.data(), i, std::span(room, n));
                    for (std::size_t j = 0; j < n; j += block::size)
                        encoded.add(exponentials(
                            last_of<number>(room + j, n - j < block::size ? n - j : block::size)));
                }
            }
            if constexpr (Traits::summed) head.sum += encoded.total();
            if constexpr (Traits::wants_mean_entropy) {
                plain += sum.total();
                moment += moments.total();
            }
        }
        if constexpr (Traits::wants_mean_entropy) {
            float const entropy = kernel::logarithm(plain) - moment / plain;
            head.entropy = entropy > 0 ? entropy : 0;
        }
    }

    static constexpr auto moment_of = [](lanes d, lanes e) {
        lanes const least = lanes{} + kernel::least_exponent; // below it e is 0
        return kernel::product(kernel::detail::greater_of(d, least), e);
    };
    // Keeps logits finite that fp16 would round to −inf, which masks.
    static constexpr auto kept_finite = [](lanes v) {
        lanes const least = lanes{} - Traits::largest;
        lanes const nearest = v < least ? least : v;
        return v == lanes{} - Traits::infinite ? v : nearest;
    };
    // Returns the terms that an encoded block adds to the sum.
    HERRING_ALWAYS_INLINE static block exponentials(block const& x) noexcept {
        if constexpr (Traits::of_logs)
            return kernel::exponential(x);
        else
            return x;
    }
    template <class Lane> static block last_of(Lane const* lanes_in, std::size_t count) noexcept {
        return kernel::load_row<Lane>(reinterpret_cast<std::byte const*>(lanes_in), count,
                                      Traits::of_logs ? -Traits::infinite : number(0));
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DENSE_ROW_HPP
