// herring: checks that the memory which all ranks are about to fill is free: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_MEMORY_CHECK_IMPL_HPP
#define HERRING_CONTROL_MEMORY_CHECK_IMPL_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/memory_check.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/free_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE failure memory_failure(std::span<memory_need const> all, int me, std::string_view operation,
                                         std::string_view what) {
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

HERRING_SEPARABLE void check_memory(world& ranks, std::size_t bytes) {
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

#endif // HERRING_CONTROL_MEMORY_CHECK_IMPL_HPP
