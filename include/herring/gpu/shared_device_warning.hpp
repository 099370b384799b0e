// herring: whether local ranks share a device, and the line that says so.
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

/// Whether this process has not asked so of this node's device before.
HERRING_SETUP inline bool first_time(int node, std::span<std::byte const> name) {
    static std::mutex guard;
    static std::vector<std::pair<int, std::string>> known;
    std::pair<int, std::string> asked(node,
                                      std::string(reinterpret_cast<char const*>(name.data()), name.size()));
    std::lock_guard const lock(guard);
    for (auto const& one : known)
        if (one == asked) return false;
    known.push_back(std::move(asked));
    return true;
}

} // namespace detail

/// Collective. A device that several ranks of a node share is allowed, and slow: the first of them says so in a line on
/// stderr, once a process and device however many reducers it makes. Returns whether this rank is that one.
///
/// `device`, `text`: its number here and its name; `name`: the bytes by which all processes of the node tell it apart.
HERRING_SETUP inline bool warn_if_shared(world& ranks, std::span<std::byte const> name, int device,
                                         char const* text) {
    gather_result const all = ranks.all_gather(name);
    int sharing = 0, first = -1;
    for (int const rank : ranks.topology().members(ranks.node())) {
        auto const theirs = all[static_cast<std::size_t>(rank)];
        if (theirs.size() != name.size() || std::memcmp(theirs.data(), name.data(), name.size()) != 0)
            continue;
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
