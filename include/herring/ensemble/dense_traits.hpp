// herring: what the policies of an ensemble make of a row of one number an element: what travels, and what is computed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_TRAITS_HPP
#define HERRING_ENSEMBLE_DENSE_TRAITS_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/combine/combine.hpp"
#include "herring/ensemble/row_head.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/model/element.hpp"
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

/// Shape:  a row is a `row_head`, where one is needed, and its elements as the wire has them: lanes, or tiles that it decodes.
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

    static std::size_t row_bytes(std::size_t elements) noexcept {
        return (has_head ? sizeof(row_head) : 0) + Wire::template bytes<Number>(elements);
    }
    /// The first element of a row.
    static std::byte const* lanes_of(std::span<std::byte const> row) noexcept {
        return row.data() + (has_head ? sizeof(row_head) : 0);
    }
    /// Elements `from` and on, of those that are encoded.
    static void decode_tile(std::byte const* encoded, std::size_t from, std::span<number> to) noexcept {
        Wire::template decode<Number>(
            {encoded + Wire::template bytes<Number>(from), Wire::template bytes<Number>(to.size())}, to);
    }

    /// What a lane may hold.
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

    /// What an element of a combined row may be, of rows that are good; but for sums that are too large for a float.
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

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DENSE_TRAITS_HPP
