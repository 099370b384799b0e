// herring: rows of one number an element: encoded by members, checked and folded by the frontend.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DENSE_ROWS_HPP
#define HERRING_ENSEMBLE_DENSE_ROWS_HPP

#include <cstddef>
#include <limits>
#include <span>

#include "herring/base/config.hpp"
#include "herring/ensemble/dense_encoder.hpp"
#include "herring/ensemble/dense_fold.hpp"
#include "herring/ensemble/dense_traits.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/row_head.hpp"
#include "herring/kernel/rows.hpp"
#include "herring/outputs/outputs.hpp"

namespace HERRING_NAMESPACE::detail::ensembles {

/// Rows of one number an element.
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
    // Only sums of probabilities are checked. In log space a wrong sum shifts all elements of the row by one constant, which its lanes
    // can do as well, and a check would cost an exponential for each lane.
    static constexpr bool sums = traits::of_probabilities;
    // Lanes are relative to the largest: what that one holds is known.
    static constexpr bool relative = traits::of_probabilities || traits::shifted;
    static constexpr bool looks_for_largest =
        traits::has_lanes && traits::template asked<outputs::disagreement> && !relative;

    // Σ of what lanes mean as the encoder has it, of a tile: in the same order, and so the same bits.
    static float sum_of(std::byte const* at, std::size_t n) noexcept {
        kernel::lane_sum sum;
        for (std::size_t j = 0; j < n; j += block::size) {
            sum.add(kernel::load_row<lane>(at + j * sizeof(lane), n - j < block::size ? n - j : block::size));
        }
        return sum.total();
    }
    // Whether the facts are those of the lanes. `sum` and `largest` are of the lanes, where they were looked for.
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
