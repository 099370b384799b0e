// herring: detects local ranks that share a device, and warns about it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_SHARED_DEVICE_WARNING_HPP
#define HERRING_GPU_SHARED_DEVICE_WARNING_HPP

#include "herring/base/config.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/identity.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// Identifies a process, also across containers.
struct process_mark {
    long id;
    std::uint64_t token;
    static process_mark mine() noexcept {
        static std::uint64_t const token = herring::detail::random_bits();
        return {static_cast<long>(::getpid()), token};
    }
    friend bool operator==(process_mark const&, process_mark const&) = default;
};

/// Whether this is the process's first call for this device of this node.
HERRING_SETUP inline bool first_time(int node, std::span<std::byte const> name) {
    static std::mutex guard;
    static std::vector<std::pair<int, std::string>> known;
    std::pair<int, std::string> device(node,
                                       std::string(reinterpret_cast<char const*>(name.data()), name.size()));
    std::lock_guard const lock(guard);
    for (auto const& seen : known)
        if (seen == device) return false;
    known.push_back(std::move(device));
    return true;
}

} // namespace detail

/// Collective. Ranks of a node may share a device, and its speed; processes use it by turns, too, which is slow: the first
/// of these ranks warns on stderr, once per process and device. Returns whether this rank is the one that warns.
///
/// `name`: bytes that identify the device in all processes of the node; `device`, `text`: its number in this process
/// and its name in the warning.
HERRING_SETUP inline bool warn_if_shared(world& ranks, std::span<std::byte const> name, int device,
                                         char const* text) {
    auto const mark = detail::process_mark::mine();
    auto const process = std::as_bytes(std::span(&mark, 1));
    std::vector<std::byte> own(name.begin(), name.end());
    own.insert(own.end(), process.begin(), process.end());
    gather_result const all = ranks.all_gather(own);
    int sharing = 0, here = 0, first = -1; // here: in this process
    for (int const rank : ranks.topology().members(ranks.node())) {
        auto const other = all[static_cast<std::size_t>(rank)];
        if (other.size() != own.size() || std::memcmp(other.data(), own.data(), name.size()) != 0) continue;
        if (first < 0) first = rank;
        ++sharing;
        here += std::memcmp(other.data() + name.size(), process.data(), process.size()) == 0;
    }
    if (first != ranks.rank() || sharing < 2) return false;
    if (!detail::first_time(ranks.node(), name)) return true;
    std::fprintf(
        stderr, "herring: rank %d: %d ranks of this node share device %d (%s)%s\n", ranks.rank(), sharing,
        device, text,
        here == sharing
            ? ", and so its speed, as threads of one process; one rank a device has all of it"
            : ": processes use it by turns, and a call of 4 KiB takes 4.4 ms where 0.04 ms is usual; "
              "start CUDA's MPS (nvidia-cuda-mps-control -d) or one rank a device, or use "
              "intra_node::pcie_staging, which takes fewer turns");
    return true;
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_SHARED_DEVICE_WARNING_HPP
