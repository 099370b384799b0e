// herring: whether the ranks of a machine have a core each: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_CORES_HPP
#define HERRING_IMPL_CORES_HPP

#include "herring/base/config.hpp"
#include "herring/base/identity.hpp"
#include "herring/gather_result.hpp"
#include "herring/session/cores.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sched.h>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE cores_of_rank cores_of_rank::here(int threads) {
    cores_of_rank result;
    std::string const boot = boot_id();
    result.machine = hash_of(boot.data(), boot.size());
    result.threads = threads;
    if (::sched_getaffinity(0, sizeof result.cores, &result.cores) != 0)
        for (int core = 0; core < std::min(usable_cores(), CPU_SETSIZE); ++core) CPU_SET(core, &result.cores);
    return result;
}

HERRING_SEPARABLE bool oversubscribed(cores_of_rank const& mine, gather_result const& ranks) noexcept {
    for (::cpu_set_t set = mine.cores;;) {
        ::cpu_set_t wider = set, common;
        std::int64_t threads = 0;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            auto const other = cores_of_rank::from(ranks[r]);
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

HERRING_SEPARABLE bool share_cores(world& ranks, int threads) {
    auto const mine = cores_of_rank::here(threads);
    return oversubscribed(mine, ranks.all_gather(mine.bytes()));
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_CORES_HPP
