// herring: the memory that this process may still take, by the machine and by its control groups.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_FREE_MEMORY_HPP
#define HERRING_MACHINE_FREE_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/machine/identity.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include <sys/stat.h>

namespace HERRING_NAMESPACE::detail {

/// Returns the number behind `name` at the start of a line, times `unit`; 0 if there is none.
HERRING_SETUP inline std::uint64_t number_after(std::string const& text, std::string_view name,
                                                std::uint64_t unit = 1) {
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.compare(at, name.size(), name) == 0) {
            constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
            std::uint64_t const number = std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
            return number > most / unit ? most : number * unit;
        }
        at = text.find('\n', at);
        if (at == std::string::npos) break;
    }
    return 0;
}

/// Returns the bytes that a control group may still take; the largest number if it has no limit or cannot be
/// read.
///
/// Clean file pages count as free: the kernel drops them first.
HERRING_SETUP inline std::uint64_t free_in_group(std::string const& folder, char const* limit_file,
                                                 char const* usage_file, char const* stat_prefix) {
    constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
    std::string const limit_text = small_file(text({folder, limit_file}));
    if (limit_text.empty() || limit_text[0] < '0' || limit_text[0] > '9') return unlimited; // "max"
    std::uint64_t const limit = std::strtoull(limit_text.c_str(), nullptr, 10);
    if (limit >= unlimited / 4) return unlimited;
    std::uint64_t const usage = std::strtoull(small_file(text({folder, usage_file})).c_str(), nullptr, 10);
    std::string const stat = small_file(text({folder, "/memory.stat"}));
    std::uint64_t const files = number_after(stat, text({stat_prefix, "inactive_file "})) +
                                number_after(stat, text({stat_prefix, "active_file "}));
    std::uint64_t const taken = usage > files ? usage - files : 0;
    return limit > taken ? limit - taken : 0;
}

/// Calls `take(path, unified)` for each memory group in the text of /proc/self/cgroup and for each of its
/// ancestors, which limit it too. Skips paths that do not start at the root.
template <class Take> HERRING_SETUP void for_memory_groups(std::string_view groups, Take&& take) {
    while (!groups.empty()) {
        std::string_view const line = groups.substr(0, groups.find('\n')); // "0::/path" or "7:memory:/path"
        groups.remove_prefix(line.size() < groups.size() ? line.size() + 1 : line.size());
        std::size_t const first = line.find(':');
        std::size_t const second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string const controllers = text({",", line.substr(first + 1, second - first - 1), ","});
        bool const unified = controllers == ",,";
        if (!unified && controllers.find(",memory,") == std::string::npos) continue;
        std::string_view path = line.substr(second + 1);
        if (!path.empty() && path[0] != '/') continue;
        for (;; path = path.substr(0, path.rfind('/'))) {
            take(path, unified);
            if (path.empty() || path == "/") break;
        }
    }
}

/// Returns an estimate of the bytes, swap included, that this process can take before the kernel kills a
/// process.
///
/// Ask before taking shared memory: the kernel does not refuse memory that it cannot back, it kills a
/// process.
/// Cost: reads a dozen small files; at set-up only.
HERRING_SETUP inline std::uint64_t free_memory() {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    std::string const machine = small_file("/proc/meminfo");
    std::uint64_t const available = number_after(machine, "MemAvailable:", 1024);
    std::uint64_t const swap = number_after(machine, "SwapFree:", 1024);
    if (available != 0 && __builtin_add_overflow(available, swap, &least))
        least = std::numeric_limits<std::uint64_t>::max();

    for_memory_groups(small_file("/proc/self/cgroup"), [&](std::string_view path, bool unified) {
        std::uint64_t const here =
            unified ? free_in_group(text({"/sys/fs/cgroup", path}), "/memory.max", "/memory.current", "")
                    : free_in_group(text({"/sys/fs/cgroup/memory", path}), "/memory.limit_in_bytes",
                                    "/memory.usage_in_bytes", "total_");
        if (least >= swap && here < least - swap && here != std::numeric_limits<std::uint64_t>::max())
            least = here + swap;
    });
    return least;
}

/// Returns a number that is equal for processes of one machine in one control group: they share a memory
/// limit.
HERRING_SETUP inline std::uint64_t memory_group() {
    struct ::stat about {};
    std::uint64_t const space = ::stat("/proc/self/ns/cgroup", &about) == 0 ? about.st_ino : 0;
    std::string const name = text({boot_id(), "/", space, "/", small_file("/proc/self/cgroup")});
    return hash_of(name.data(), name.size());
}

/// Returns "1536 bytes" or "94.7 MiB".
HERRING_SETUP inline std::string bytes_text(std::uint64_t size) {
    char words[64];
    if (size < 10u << 20)
        std::snprintf(words, sizeof words, "%llu bytes", static_cast<unsigned long long>(size));
    else
        std::snprintf(words, sizeof words, "%.1f MiB", static_cast<double>(size) / 1048576.0);
    return words;
}

/// The memory that a rank announces before it takes it.
struct memory_need {
    std::uint64_t bytes = 0;                                        ///< bytes that this rank will fill
    std::uint64_t group = 0;                                        ///< `memory_group()`
    std::uint64_t free = std::numeric_limits<std::uint64_t>::max(); ///< `free_memory()`
};

/// Returns the first rank whose group has less free than its ranks need `together`, −1 if there is none. The
/// same on every rank.
HERRING_SETUP inline int short_of_memory(std::span<memory_need const> all, std::uint64_t& together) noexcept {
    for (std::size_t r = 0; r < all.size(); ++r) {
        together = 0;
        for (memory_need const& other : all)
            if (other.group == all[r].group && __builtin_add_overflow(together, other.bytes, &together))
                together = std::numeric_limits<std::uint64_t>::max();
        if (all[r].bytes > 0 && together > all[r].free) return static_cast<int>(r);
    }
    return -1;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_FREE_MEMORY_HPP
