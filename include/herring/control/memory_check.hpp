// herring: whether what all ranks are about to fill fits into what is free, before the kernel kills one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_MEMORY_CHECK_HPP
#define HERRING_CONTROL_MEMORY_CHECK_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"

#include <cstddef>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Below this much nobody asks: reading the limits takes longer than small reducers take to be made.
inline constexpr std::size_t memory_worth_asking_for = std::size_t{16} << 20;

struct memory_need; // machine/free_memory.hpp

/// The failure of the first rank that is short of memory, in the words of rank `me`; without a code where there is none.
HERRING_SEPARABLE failure memory_failure(std::span<memory_need const> all, int me, std::string_view operation,
                                         std::string_view what);

/// Collective: every rank is about to fill `bytes` of its own. The kernel hands out memory that it does not have, and kills
/// whoever touches it.
///
/// Cost:   one all_gather, and a dozen small files.
/// Errors: `no_resources`, on every rank, with sizes; the others name the first rank that is short.
HERRING_SEPARABLE void check_memory(world& ranks, std::size_t bytes);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/control/memory_check_impl.hpp"
#endif

#endif // HERRING_CONTROL_MEMORY_CHECK_HPP
