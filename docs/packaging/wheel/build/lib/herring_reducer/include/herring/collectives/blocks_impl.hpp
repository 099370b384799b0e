// herring: calls that move a block for each pair of ranks: the errors of a call.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_BLOCKS_IMPL_HPP
#define HERRING_COLLECTIVES_BLOCKS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/collectives/blocks.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void check_blocks(calls& checks, char const* operation, std::span<std::byte const> whole,
                                    std::span<std::byte const> part, std::size_t own_place) {
    if (part.empty() || whole.empty()) return;
    auto const from = reinterpret_cast<std::uintptr_t>(whole.data());
    auto const to = reinterpret_cast<std::uintptr_t>(part.data());
    if (to != from + own_place && from < to + part.size() && to < from + whole.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"the buffers of ", whole.size(), " and ", part.size(), " bytes overlap, ",
                             (from < to ? to - from : from - to),
                             " bytes apart: give memory that does not overlap"});
}
HERRING_SEPARABLE void throw_not_blocks(calls& checks, char const* operation, std::size_t in, std::size_t out,
                                        std::size_t ranks) {
    checks.throw_misuse(
        errc::bad_argument, operation,
        {"blocks of one size are due for each of ", ranks, " ranks: ", in, " elements in, ", out, " out"});
}
HERRING_SEPARABLE void check_counts(calls& checks, char const* operation, char const* name,
                                    std::size_t elements, std::span<std::size_t const> counts,
                                    std::size_t ranks) {
    std::size_t sum = 0;
    bool fits = counts.size() == ranks;
    for (std::size_t const one : counts) {
        fits = fits && one <= elements - sum;
        if (!fits) break;
        sum += one;
    }
    if (!fits || sum != elements)
        checks.throw_misuse(errc::bad_argument, operation,
                            {name, " has ", counts.size(), " counts for ", ranks, " ranks, and the buffer ",
                             elements,
                             " elements: give one count for each rank, whose sum is the buffer's size"});
}
HERRING_SEPARABLE status compare_counts(std::span<std::uint64_t const> counts, int rank, int ranks,
                                        char const* operation) {
    auto const n = static_cast<std::size_t>(ranks);
    for (std::size_t from = 0; from < n; ++from)
        for (std::size_t to = 0; to < n; ++to) {
            std::uint64_t const sent = counts[2 * n * from + to], expected = counts[2 * n * to + n + from];
            if (sent == expected) continue;
            char text[200];
            std::snprintf(
                text, sizeof text,
                "rank %zu sends %llu elements to rank %zu, which expects %llu; nothing was moved: let "
                "both ranks give one count",
                from, static_cast<unsigned long long>(sent), to, static_cast<unsigned long long>(expected));
            return status(failure::make(errc::mismatch, rank,
                                        static_cast<int>(static_cast<int>(from) == rank ? to : from),
                                        operation, text));
        }
    return {};
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_COLLECTIVES_BLOCKS_IMPL_HPP
