// herring: a member's row of one number an element on its way out: checked, encoded, and summed as it was encoded.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_ENCODER_HPP
#define HERRING_ENSEMBLE_DENSE_ENCODER_HPP

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/ensemble/dense_traits.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/row_head.hpp"
#include "herring/kernel/exponential.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/outputs/outputs.hpp"
#include "herring/wire/wire.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// `Traits`: a `dense_traits`.
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
    // Encodes what travels of the elements, and completes the head.
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
    // Logits that fp16 would round to −inf, which masks.
    static constexpr auto kept_finite = [](lanes v) {
        lanes const least = lanes{} - Traits::largest;
        lanes const nearest = v < least ? least : v;
        return v == lanes{} - Traits::infinite ? v : nearest;
    };
    // What an encoded block adds to the sum.
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

#endif // HERRING_ENSEMBLE_DENSE_ENCODER_HPP
