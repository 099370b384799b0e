// herring: the devices of a node's ranks: a warning if ranks share one, errors if one cannot reach another.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_NODE_DEVICES_HPP
#define HERRING_GPU_NODE_DEVICES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
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
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// Identity of a process, also across containers.
struct process_mark {
    long id;
    std::uint64_t token;
    static process_mark mine() noexcept {
        static std::uint64_t const token = herring::detail::random_bits();
        return {static_cast<long>(::getpid()), token};
    }
    friend bool operator==(process_mark const&, process_mark const&) = default;
};

/// True at the process's first call for this device of this node.
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

/// Warns on stderr, once per process and device, if ranks of a node share a device: they share its speed, and
/// several processes use it by turns, which is slow. Collective. Returns true on the rank that warns, the
/// first of those that share the device.
///
/// `name`: bytes that identify the device in all processes of the node. `device`, `text`: the number of the
/// device in this process and its name, for the warning.
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

/// A rank's device in the text of an error.
struct device_of_rank {
    int rank;
    int number; ///< of the device in the process that reports the error; −1: not visible there
    std::string_view name;
};

/// Returns the error of rank `own.rank` whose device cannot access the device of `other`, or whose process
/// does not see that device. The text names both ranks, because all ranks receive it.
HERRING_SETUP inline failure peer_access_error(device_of_rank const& own,
                                               device_of_rank const& other) noexcept {
    if (other.number < 0)
        return failure::make(errc::unsupported, own.rank, other.rank, "construction",
                             {"rank ", own.rank, ", with device ", own.number, " (", own.name,
                              "), does not see the device of rank ", other.rank, " (", other.name,
                              "); widen CUDA_VISIBLE_DEVICES, or use intra_node::pcie_staging"});
    return failure::make(errc::unsupported, own.rank, other.rank, "construction",
                         {"device ", own.number, " (", own.name, ") of rank ", own.rank,
                          " cannot reach device ", other.number, " (", other.name, ") of rank ", other.rank,
                          "; use intra_node::pcie_staging, which needs no device to reach another"});
}

/// Returns the error of rank `reporter`: data that the device of rank `who` moves to or from the memory of
/// rank `whose` is lost, though CUDA reports that the device reaches that memory. `how`: "read" or "write".
HERRING_SETUP inline failure peer_loss_error(int who, int whose, char const* how, int reporter) noexcept {
    return failure::make(
        errc::unsupported, reporter, who == reporter ? whose : who, "construction",
        {"the device of rank ", who, " does not ", how, " the memory of rank ", whose,
         "'s, though CUDA says that it reaches it: look for an IOMMU that translates, or for ACS, "
         "between them; or use intra_node::pcie_staging"});
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_NODE_DEVICES_HPP
