// herring: detects local ranks that share a device, and warns about it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_SHARED_DEVICE_WARNING_HPP
#define HERRING_GPU_SHARED_DEVICE_WARNING_HPP

#include "herring/base/config.hpp"
#include "herring/gather_result.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

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

/// Collective. Ranks of a node may share a device, which is slow: the first of these ranks warns on stderr, once per
/// process and device. Returns whether this rank is the one that warns.
///
/// `name`: bytes that identify the device in all processes of the node; `device`, `text`: its number in this process
/// and its name in the warning.
HERRING_SETUP inline bool warn_if_shared(world& ranks, std::span<std::byte const> name, int device,
                                         char const* text) {
    gather_result const all = ranks.all_gather(name);
    int sharing = 0, first = -1;
    for (int const rank : ranks.topology().members(ranks.node())) {
        auto const other = all[static_cast<std::size_t>(rank)];
        if (other.size() != name.size() || std::memcmp(other.data(), name.data(), name.size()) != 0) continue;
        if (first < 0) first = rank;
        ++sharing;
    }
    if (first != ranks.rank() || sharing < 2) return false;
    if (!detail::first_time(ranks.node(), name)) return true;
    std::fprintf(
        stderr,
        "herring: rank %d: %d ranks of this node share device %d (%s): they work by turns; start one "
        "rank a device\n",
        ranks.rank(), sharing, device, text);
    return true;
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_SHARED_DEVICE_WARNING_HPP
