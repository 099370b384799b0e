// herring: the seeds that tests over chaos run with, and how a failing one is run again.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_SEEDS_HPP
#define HERRING_TESTS_CONFORMANCE_SEEDS_HPP

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/random.h>
#include <unistd.h>

namespace herring::conformance {

/// The same ones in every run, and as many that nobody has tried; HERRING_CHAOS_SEED alone, if that is set.
inline std::vector<std::uint64_t> seeds(int count) {
    if (char const* const one = std::getenv("HERRING_CHAOS_SEED"); one != nullptr && one[0] != 0)
        return {std::strtoull(one, nullptr, 10)};
    std::vector<std::uint64_t> made;
    for (int i = 0; i < count; ++i) {
        std::uint32_t fresh = 0;
        if (i % 2 == 1 && ::getrandom(&fresh, sizeof fresh, 0) == sizeof fresh)
            made.push_back(1'000'000 + fresh);
        else
            made.push_back(static_cast<std::uint64_t>(i) + 1);
    }
    return made;
}

/// The command that runs this program again with a seed; `what` selects among its tests.
inline std::string replay(std::uint64_t seed, std::string const& what = {}) {
    char path[4096] = "<this program>";
    ssize_t const length = ::readlink("/proc/self/exe", path, sizeof path - 1);
    if (length > 0) path[length] = 0;
    return "HERRING_CHAOS_SEED=" + std::to_string(seed) + " " + path + what;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_SEEDS_HPP
