// herring: whether the ranks of a machine have a core each: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_CORES_IMPL_HPP
#define HERRING_SESSION_CORES_IMPL_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/machine/identity.hpp"
#include "herring/session/cores.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <sched.h>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE bool cores_of_rank::read(std::span<std::byte const> from) noexcept {
    if (from.size() < 16 || from.size() > sizeof *this) return false;
    std::byte whole[sizeof *this] = {};
    std::memcpy(whole, from.data(), from.size());
    return wire::read_value(whole, *this) && threads >= 0 && threads <= most_threads;
}

HERRING_SEPARABLE cores_of_rank cores_of_rank::here(int threads) {
    cores_of_rank result;
    std::string const boot = boot_id();
    result.machine = hash_of(boot.data(), boot.size());
    result.threads = threads;
    if (::sched_getaffinity(0, sizeof result.cores, &result.cores) != 0)
        for (int core = 0; core < std::min(usable_cores(), CPU_SETSIZE); ++core)
            CPU_SET(static_cast<std::size_t>(core), &result.cores);
    return result;
}

HERRING_SEPARABLE bool oversubscribed(cores_of_rank const& mine,
                                      std::span<cores_of_rank const> ranks) noexcept {
    for (::cpu_set_t set = mine.cores;;) {
        ::cpu_set_t wider = set, common;
        std::int64_t threads = 0;
        for (cores_of_rank const& other : ranks) {
            CPU_AND(&common, &set, &other.cores);
            if (other.machine != mine.machine || CPU_COUNT(&common) == 0) continue;
            if (CPU_EQUAL(&common, &other.cores)) threads += other.threads;
            CPU_OR(&wider, &wider, &other.cores);
        }
        if (threads > CPU_COUNT(&set)) return true;
        if (CPU_EQUAL(&wider, &set)) return false;
        set = wider;
    }
}

HERRING_SEPARABLE bool any_oversubscribed(std::span<cores_of_rank const> ranks) {
    auto const compared = [](void const* one, void const* other) noexcept {
        auto const &a = *static_cast<cores_of_rank const*>(one),
                   &b = *static_cast<cores_of_rank const*>(other);
        if (a.machine != b.machine) return a.machine < b.machine ? -1 : 1;
        return std::memcmp(&a.cores, &b.cores, sizeof a.cores);
    };
    fixed_array<cores_of_rank> sorted(ranks.size());
    for (std::size_t r = 0; r < ranks.size(); ++r) sorted[r] = ranks[r];
    std::qsort(sorted.data(), sorted.size(), sizeof(cores_of_rank), compared);
    std::size_t count = 0; // ranks alike are one, with the threads of all
    for (cores_of_rank const& one : sorted)
        if (count > 0 && compared(&sorted[count - 1], &one) == 0)
            sorted[count - 1].threads += one.threads;
        else
            sorted[count++] = one;
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) { // of each machine
        while (end < count && sorted[end].machine == sorted[begin].machine) ++end;
        for (std::size_t r = begin; r < end; ++r)
            if (oversubscribed(sorted[r], {sorted.data() + begin, end - begin})) return true;
    }
    return false;
}

HERRING_SEPARABLE std::uint32_t cores_of_all(std::span<cores_of_rank const> ranks) noexcept {
    ::cpu_set_t all;
    CPU_ZERO(&all);
    for (cores_of_rank const& one : ranks) {
        if (one.machine != ranks.front().machine) return 0;
        CPU_OR(&all, &all, &one.cores);
    }
    return static_cast<std::uint32_t>(CPU_COUNT(&all));
}

HERRING_SEPARABLE core_sharing share_cores(world& ranks, int threads) {
    auto const mine = cores_of_rank::here(threads);
    gather_result const told = ranks.all_gather(mine.bytes());
    std::vector<cores_of_rank> all(told.size());
    for (std::size_t r = 0; r < told.size(); ++r)
        if (!all[r].read(told[r]))
            throw error(errc::mismatch, ranks.rank(), static_cast<int>(r), "construction",
                        "it is in another collective; let every rank make the same calls in the same order");
    bool const any = any_oversubscribed(all);
    core_sharing found{.mine = oversubscribed(mine, all), .any = any, .all = any ? cores_of_all(all) : 0};
    found.as_one_thread = found.mine;
    if (threads > 1 && found.mine) {
        for (cores_of_rank& one : all) one.threads = 1;
        found.as_one_thread = oversubscribed(cores_of_rank::here(1), all);
    }
    return found;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_CORES_IMPL_HPP
