// herring: the image of a timeline, in memory and in the recorder's file: header, tables, two rings.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_IMAGE_HPP
#define HERRING_TRACE_TIMELINE_IMAGE_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/machine/ticks.hpp"
#include "herring/trace/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// One event as it is stored: four words of 64 bits.
struct timeline_entry {
    std::uint64_t ticks;
    std::uint32_t index;     ///< tensor or bucket
    std::uint32_t execution; ///< modulo 2^32
    std::uint32_t bytes;     ///< 4 GiB − 1: that or more
    std::uint32_t message;
    std::int32_t peer;
    std::uint8_t event; ///< a trace_event
    std::uint8_t spare[3];
};
static_assert(sizeof(timeline_entry) == 32 && std::is_trivially_copyable_v<timeline_entry>);

/// One measurement of this rank's clock against rank 0's: rank 0's = this rank's + offset, within the bound.
struct clock_fix {
    std::int64_t at_ns;     ///< on this rank's clock
    std::int64_t offset_ns; ///< rank 0's clock − this rank's
    std::int64_t bound_ns;  ///< −1: not measured
};

/// State of one of the two rings: records 0 to head − 1 were written, record i into slot i mod slots.
struct timeline_ring_place {
    std::uint64_t head;  ///< stored by the ring's only writer, after the record
    std::uint64_t slots; ///< a power of two; in a copy the number of records

    /// Returns the number of records in the ring.
    constexpr std::uint64_t kept() const noexcept { return head < slots ? head : slots; }
    /// Returns how many of the oldest records a reader must drop when `now` records were written by the end
    /// of its reading: those that newer records replaced, and the one that the next record may have half
    /// replaced.
    constexpr std::uint64_t overwritten(std::uint64_t now) const noexcept {
        if (now < head) now = head;
        if (now < slots || slots == 0) return 0;
        std::uint64_t const gone = now - slots - (head - kept()) + 1;
        return gone < kept() ? gone : kept();
    }
};

/// The front of the image. Numbers in the byte order of the machine that wrote it, which `order` tells.
///
/// Shape:   followed by bytes of each bucket (uint64), node of each rank (int32), names of tensors (each
///          ended by 0), padding to 64 bytes, and the records of both rings.
struct timeline_header {
    static constexpr char expected_magic[8] = {'H', 'R', 'G', 'T', 'I', 'M', 'E', '\n'};
    static constexpr std::uint32_t expected_order = 0x01020304;
    static constexpr std::uint32_t expected_format = 1;
    enum class state : std::uint32_t { running = 1, ended, failed };

    char magic[8];
    std::uint32_t order;
    std::uint32_t format;
    char version[16]; ///< of the library
    char host[64];
    std::uint64_t host_id; ///< equal for processes with one clock: boot and time namespace
    std::uint64_t job;
    std::uint64_t digest; ///< of the plan, and so of the layout
    std::uint32_t reducer;
    std::uint32_t pid;
    std::int32_t rank;
    std::uint32_t ranks;
    std::uint32_t tensors;
    std::uint32_t buckets;
    std::uint32_t names_bytes;
    std::uint32_t uses_tsc;
    state now;
    std::uint32_t process_space; ///< the PID namespace of `pid`; 0: not known
    tick_anchor first, second;   ///< before and after set-up
    tick_anchor last[2];         ///< written in turn: a torn one is never the valid one
    std::uint64_t lasts;         ///< number of writes to `last`
    clock_fix fixes[2];          ///< at construction, and at gathering
    timeline_ring_place rings[2];
    std::uint64_t settled; ///< not 0: a copy, which no thread writes
};
static_assert(std::is_trivially_copyable_v<timeline_header>);

/// True if the event goes to the engine's ring: under progress::thread, too, each ring has one writer.
constexpr bool is_of_engine(trace_event event) noexcept {
    return event == trace_event::bucket_reduced || event > trace_event::wait_end;
}

/// Offsets of the parts of an image, in bytes.
struct timeline_places {
    std::size_t nodes, buckets, names, rings[2], end;

    /// Requires counts of an own header, or checked ones: at most 2^32 each.
    static constexpr timeline_places of(timeline_header const& h) noexcept {
        timeline_places p{};
        p.buckets = round_up(sizeof(timeline_header), 8);
        p.nodes = p.buckets + std::size_t{h.buckets} * 8;
        p.names = p.nodes + std::size_t{h.ranks} * 4;
        p.rings[0] = round_up(p.names + h.names_bytes, 64);
        p.rings[1] = p.rings[0] + static_cast<std::size_t>(h.rings[0].slots) * sizeof(timeline_entry);
        p.end = p.rings[1] + static_cast<std::size_t>(h.rings[1].slots) * sizeof(timeline_entry);
        return p;
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRACE_TIMELINE_IMAGE_HPP
