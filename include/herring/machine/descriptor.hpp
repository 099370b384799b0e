// herring: a file descriptor that is closed with its scope, and small files read by one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_DESCRIPTOR_HPP
#define HERRING_MACHINE_DESCRIPTOR_HPP

#include "herring/base/config.hpp"

#include <cerrno>
#include <cstddef>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// Owns a file descriptor. −1: none.
class descriptor {
  public:
    explicit descriptor(int owned = -1) noexcept : owned_(owned) {}
    descriptor(descriptor&& other) noexcept : owned_(std::exchange(other.owned_, -1)) {}
    descriptor& operator=(descriptor&& other) noexcept {
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~descriptor() {
        if (owned_ >= 0) ::close(owned_);
    }
    int get() const noexcept { return owned_; }
    int release() noexcept { return std::exchange(owned_, -1); }

  private:
    int owned_;
};

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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_DESCRIPTOR_HPP
