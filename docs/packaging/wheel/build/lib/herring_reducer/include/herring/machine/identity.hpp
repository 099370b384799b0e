// herring: identity of this process: host, boot, network namespace and cores; small files of /proc and /sys.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_IDENTITY_HPP
#define HERRING_MACHINE_IDENTITY_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/machine/descriptor.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <fcntl.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

inline constexpr std::size_t most_of_a_small_file = std::size_t{1} << 20;

/// Returns a file of /proc or /sys as text; empty if it cannot be read, cut behind 1 MiB.
HERRING_SETUP inline std::string small_file(std::string const& path) {
    std::string text;
    descriptor const file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return text;
    char part[4096];
    for (ssize_t got = 0; (got = ::read(file.get(), part, sizeof part)) > 0 || (got < 0 && errno == EINTR);)
        if (got > 0) {
            text.append(part, static_cast<std::size_t>(got));
            if (text.size() >= most_of_a_small_file) break;
        }
    return text;
}

/// Returns 64 random bits of the kernel, never 0. Not for secrets.
HERRING_SETUP inline std::uint64_t random_bits() noexcept {
    std::uint64_t bits = 0;
    while (bits == 0) {
        if (::getrandom(&bits, sizeof bits, 0) == static_cast<ssize_t>(sizeof bits)) continue;
        if (errno == EINTR) continue;
        // No such call (a seccomp filter): time and pid differ from those of any other rank.
        bits = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) *
                   0x9E3779B97F4A7C15u ^
               static_cast<std::uint64_t>(::getpid()) << 32;
    }
    return bits;
}

/// FNV-1a hash. Not for secrets.
constexpr std::uint64_t hash_of(char const* text, std::size_t size,
                                std::uint64_t hash = 0xCBF29CE484222325u) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
        hash ^= static_cast<unsigned char>(text[i]);
        hash *= 0x100000001B3u;
    }
    return hash;
}

HERRING_SETUP inline std::string host_name() {
    char name[256] = {};
    if (::gethostname(name, sizeof name - 1) != 0) return "unknown-host";
    return name;
}

/// Returns the kernel's random identifier of this boot: equal exactly for processes on one machine.
HERRING_SETUP inline std::string boot_id() {
    std::string const id = small_file("/proc/sys/kernel/random/boot_id");
    if (id.size() >= 36) return id.substr(0, 36);
    return text({"no-boot-id:", host_name()});
}

/// Returns the inode of this process's network namespace; 0 if /proc has none.
HERRING_SETUP inline std::uint64_t network_namespace() noexcept {
    struct ::stat about {};
    if (::stat("/proc/self/ns/net", &about) != 0) return 0;
    return about.st_ino;
}

/// Returns host name + boot id + network namespace: ranks with equal identities share memory.
HERRING_SETUP inline std::string node_identity() {
    return text({host_name(), "/", boot_id(), "/net:", network_namespace()});
}

/// Returns the number of cores that this process may run on.
HERRING_SETUP inline int usable_cores() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    long const online = ::sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? static_cast<int>(online) : 1;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_IDENTITY_HPP
