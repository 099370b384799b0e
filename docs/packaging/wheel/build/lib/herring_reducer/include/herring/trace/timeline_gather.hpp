// herring: the timelines of all ranks, gathered on rank 0.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_GATHER_HPP
#define HERRING_TRACE_TIMELINE_GATHER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/trace/timeline.hpp"
#include "herring/trace/timeline_clocks.hpp"
#include "herring/trace/timeline_data.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE {

/// Gathers the timelines of all ranks of a reducer on rank 0, and measures the clocks a second time, so that
/// their drift is corrected. Collective; the trace of every rank is a timeline.
///
/// Shape:   on rank 0 one timeline a rank, in the order of ranks; none on other ranks.
/// Cost:    all-gathers of the world of at most 256 KiB a rank; on rank 0 memory for all images.
/// Blocks:  as `world::all_gather`.
/// Errors:  as `world::all_gather`; `bad_state` without a reducer, and if the world has servers.
HERRING_SETUP inline std::vector<timeline_data> gather_timelines(detail::timeline_rings& of) {
    if (of.ranks() == nullptr)
        throw error(errc::bad_state, -1, -1, "gather_timelines",
                    {"this timeline belongs to no reducer; call it with reduce.trace()"});
    world& ranks = *of.ranks();
    if (ranks.servers() > 0)
        throw error(
            errc::bad_state, ranks.rank(), -1, "gather_timelines",
            {"the world has servers, which are in no other collective while they serve; set "
             "HERRING_TIMELINE_DIR: each rank keeps a file there, of which bench/inspect makes pictures"});
    of.note_fix(detail::measure_clock(ranks));
    std::vector<std::byte> const mine = of.image();
    constexpr std::size_t piece = std::size_t{256} << 10;
    auto const count = static_cast<std::size_t>(ranks.size());
    std::uint64_t const own_size = mine.size();
    std::vector<std::uint64_t> sizes(count);
    auto const gathered = ranks.all_gather(std::as_bytes(std::span(&own_size, 1)));
    for (std::size_t r = 0; r < count; ++r)
        if (gathered[r].size() == sizeof own_size)
            std::memcpy(&sizes[r], gathered[r].data(), sizeof own_size);
    std::uint64_t const most = *std::max_element(sizes.begin(), sizes.end());
    std::vector<std::vector<std::byte>> images(ranks.rank() == 0 ? count : 0);
    for (std::size_t at = 0; at < most; at += piece) {
        std::size_t const begin = std::min(at, mine.size());
        auto const all =
            ranks.all_gather(std::span(mine).subspan(begin, std::min(piece, mine.size() - begin)));
        for (std::size_t r = 0; r < images.size(); ++r)
            images[r].insert(images[r].end(), all[r].begin(), all[r].end());
    }
    std::vector<timeline_data> found;
    for (auto const& image : images) found.push_back(read_timeline(image));
    return found;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_TIMELINE_GATHER_HPP
