// herring: a file descriptor that is closed with its scope.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MACHINE_DESCRIPTOR_HPP
#define HERRING_MACHINE_DESCRIPTOR_HPP

#include "herring/base/config.hpp"

#include <utility>

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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_MACHINE_DESCRIPTOR_HPP
