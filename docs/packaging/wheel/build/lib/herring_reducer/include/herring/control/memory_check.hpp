// herring: a check that the memory which all ranks are about to fill is free, before the kernel kills a rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_MEMORY_CHECK_HPP
#define HERRING_CONTROL_MEMORY_CHECK_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/free_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Bytes below which no rank checks: reading the limits takes longer than small reducers take to be
/// constructed.
inline constexpr std::size_t memory_worth_asking_for = std::size_t{16} << 20;

/// Returns the failure of the first rank that is short of memory, in the words of rank `me`; without a code
/// where there is none.
HERRING_SETUP inline failure memory_failure(std::span<memory_need const> all, int me,
                                            std::string_view operation, std::string_view what) {
    std::uint64_t together = 0;
    int const rank = short_of_memory(all, together);
    if (rank < 0) return {};
    memory_need const& of = all[static_cast<std::size_t>(rank)];
    return as_seen_by(
        failure::make(
            errc::no_resources, rank, -1, operation,
            {"this rank needs ", bytes_text(of.bytes), " of ", what, ", the ranks of its control group ",
             bytes_text(together), ", and ", bytes_text(of.free),
             " of memory are free; reduce a smaller layout, put fewer ranks here, or raise the memory limit "
             "of the machine's job, container or control group"}),
        me);
}

/// Checks, collectively, the memory that every rank is about to fill with `bytes` of its own. The kernel
/// hands out memory that it does not have, and kills a process that touches it.
///
/// Cost:   one all_gather, and a dozen small files.
/// Errors: `no_resources`, on every rank, with sizes; the others name the first rank that is short.
HERRING_SETUP inline void check_memory(world& ranks, std::size_t bytes) {
    memory_need const mine{bytes, memory_group(), free_memory()};
    gather_result const replies = ranks.all_gather(std::as_bytes(std::span(&mine, 1)));
    fixed_array<memory_need> all(replies.size());
    for (std::size_t r = 0; r < all.size(); ++r) {
        if (!wire::read_value(std::as_const(replies)[r], all[r]))
            throw error(errc::mismatch, ranks.rank(), static_cast<int>(r), "construction",
                        "it is in another collective; let every rank make the same calls in the same order");
    }
    failure const why = memory_failure({all.data(), all.size()}, ranks.rank(), "construction", "memory");
    if (why.what != errc::ok) throw error(why);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_MEMORY_CHECK_HPP
