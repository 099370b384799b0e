// herring: memory that the ranks of a node share, and that the kernel frees when they end, however they end.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_SHARED_MAPPING_HPP
#define HERRING_INTRA_NODE_SHARED_MAPPING_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/private_memory.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

/// One mapping for all ranks of a node, zeroed at first; the node's largest request decides its size.
///
/// The node's first rank creates an unnamed file (memfd) and connects to an abstract socket of each other
/// rank, to send the file's descriptor. Both ends compare users (SO_PEERCRED) before they send or take
/// anything, and close connections of other users. No file system holds the file: when the last rank that
/// maps it ends, by SIGKILL too, the kernel frees it. Every rank allocates its share of the pages itself, so
/// that they lie near its core, and a lack of memory is an error here instead of a SIGBUS later. The file
/// cannot be shrunk.
///
/// Blocks:   the constructor is collective over all ranks of the world: three all_gathers, no other waits.
/// Errors:   `no_resources` with the size and the remedy. A failure of a rank becomes an error on every rank,
///           which names that rank; nothing is left behind, and the world stays usable.
/// Lifetime: independent of the world after construction. Addresses differ between ranks: share offsets.
class shared_mapping {
  public:
    shared_mapping() = default;
    HERRING_SEPARABLE shared_mapping(world& all, std::size_t bytes);
    HERRING_SEPARABLE shared_mapping(world& all, std::size_t bytes, std::chrono::milliseconds timeout);
    shared_mapping(shared_mapping&& other) noexcept
        : mapping_(std::move(other.mapping_)), bytes_(std::exchange(other.bytes_, 0)) {}
    shared_mapping& operator=(shared_mapping&& other) noexcept {
        mapping_ = std::move(other.mapping_);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }

    /// Returns the whole mapping: as many bytes as the node's largest request, aligned to a page.
    std::span<std::byte> bytes() const noexcept { return {mapping_.data(), bytes_}; }

    /// Enters these pages into this process's page table, so that first use does not fault; contents stay.
    HERRING_SEPARABLE void prefault(std::size_t offset, std::size_t size) const noexcept;

  private:
    static std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

    struct introduction;
    struct building;

    mapped_pages mapping_{};
    std::size_t bytes_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/intra_node/shared_mapping_impl.hpp"
#endif

#endif // HERRING_INTRA_NODE_SHARED_MAPPING_HPP
