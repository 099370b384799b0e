// herring: the timeline of one rank, decoded with bounds from its image: of a file, or of another rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_TIMELINE_DATA_HPP
#define HERRING_TRACE_TIMELINE_DATA_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/ticks.hpp"
#include "herring/trace/timeline_image.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE {

namespace detail {
/// 18 years in nanoseconds: sums and differences of a few such times do not overflow.
inline constexpr std::int64_t longest_time = std::int64_t{1} << 59;
constexpr bool is_time(std::int64_t ns) noexcept { return ns > -longest_time && ns < longest_time; }
} // namespace detail

/// One event.
struct timeline_record {
    std::int64_t ns = 0; ///< on this rank's monotonic clock
    trace_event what{};
    std::uint32_t index = no_bucket; ///< tensor or bucket
    int peer = -1;                   ///< rank
    std::uint32_t execution = 0;     ///< modulo 2^32
    std::uint32_t bytes = 0;         ///< 4 GiB − 1: that or more
    std::uint32_t message = 0;       ///< the same at both ends
};

/// The timeline of one rank: the records of its rings, oldest first.
struct timeline_data {
    int rank = 0;
    int ranks = 1;
    std::uint64_t job = 0, digest = 0;
    std::uint32_t reducer = 1, pid = 0;
    std::string version{}, host{};
    std::uint64_t host_id = 0;
    std::uint32_t process_space = 0;           ///< the PID namespace of `pid`
    std::vector<int> node_of{};                ///< rank → node
    std::vector<std::uint64_t> bucket_bytes{}; ///< bucket → bytes
    std::vector<std::string> tensor_names{};

    std::vector<timeline_record> records{}; ///< ascending in time
    std::uint64_t lost = 0;                 ///< older records that newer ones replaced
    std::uint64_t damaged = 0;              ///< records that cannot be decoded
    std::uint64_t backwards = 0;            ///< how often the ticks went back; there no time passes
    bool clock_jumped = false;              ///< the rate of the ticks changed: times are unreliable
    std::int64_t reading_ns = 0;            ///< the error of the two anchors of the ticks
    bool uses_tsc = false;
    bool ended = false;        ///< the reducer was destroyed; else it lives or its process was killed
    bool failed = false;       ///< the reducer ended after a failure of its world
    std::int64_t begin_ns = 0; ///< construction of the reducer, on this rank's monotonic clock
    detail::clock_fix fixes[2] = {{0, 0, -1}, {0, 0, -1}};

    /// True if this rank's clock was compared with rank 0's.
    bool is_aligned() const noexcept { return fixes[0].bound_ns >= 0 || fixes[1].bound_ns >= 0; }
    /// True if the drift between the clocks is corrected: there are two measurements at least a second apart.
    bool is_drift_corrected() const noexcept {
        return fixes[0].bound_ns >= 0 && fixes[1].bound_ns >= 0 &&
               fixes[1].at_ns - fixes[0].at_ns >= 1'000'000'000;
    }
    /// Converts a time of this rank to rank 0's clock: by the measured offset, or by the line through two
    /// measurements.
    std::int64_t common_ns(std::int64_t own) const noexcept {
        detail::clock_fix const &a = fixes[0], &b = fixes[1];
        if (!is_aligned()) return own;
        if (!is_drift_corrected()) return own + (b.bound_ns >= 0 ? b : a).offset_ns;
        double const part = static_cast<double>(own - a.at_ns) / static_cast<double>(b.at_ns - a.at_ns);
        double const drift = part * static_cast<double>(b.offset_ns - a.offset_ns);
        constexpr auto most = static_cast<double>(detail::longest_time);
        return own + a.offset_ns + static_cast<std::int64_t>(std::clamp(drift, -most, most));
    }
    /// Returns a bound of the error of `common_ns` between the measurements; −1: unknown.
    std::int64_t bound_ns() const noexcept {
        if (!is_aligned()) return -1;
        if (is_drift_corrected()) return std::max(fixes[0].bound_ns, fixes[1].bound_ns) + reading_ns;
        return (fixes[1].bound_ns >= 0 ? fixes[1] : fixes[0]).bound_ns + reading_ns;
    }
};

namespace detail {

[[noreturn]] HERRING_SETUP inline void refuse_timeline(std::initializer_list<text_part> why) {
    throw error(errc::bad_argument, -1, -1, "read_timeline", why);
}

/// Returns the text in `room`, ended by 0 or by the end of the room, made printable.
HERRING_SETUP inline std::string text_in(std::span<char const> room) {
    std::string found(room.data(),
                      static_cast<std::size_t>(std::find(room.begin(), room.end(), '\0') - room.begin()));
    wire::make_printable(found);
    return found;
}

/// Returns the line of a timeline's ticks: through the first and the last anchor or, if the clock jumped in
/// between, through the two anchors of set-up.
HERRING_SETUP inline tick_line line_of(timeline_header const& h, bool& jumped) noexcept {
    tick_anchor const last = h.lasts > 0 ? h.last[(h.lasts - 1) & 1] : h.second;
    tick_line const set_up(h.first, h.second);
    jumped = !is_time(last.ns);
    if (jumped) return set_up;
    tick_line const whole(h.first, last);
    auto const uncertain = [](tick_anchor const& a, tick_anchor const& b) {
        return b.ticks > a.ticks ? static_cast<double>(a.width) / static_cast<double>(b.ticks - a.ticks) +
                                       static_cast<double>(b.width) / static_cast<double>(b.ticks - a.ticks)
                                 : 1.0;
    };
    double const change = set_up.ns_a_tick() > 0 ? whole.ns_a_tick() / set_up.ns_a_tick() - 1 : 0;
    jumped =
        last.ticks < h.first.ticks || last.ns < h.first.ns ||
        std::max(change, -change) > 1e-3 + 2 * uncertain(h.first, h.second) + 2 * uncertain(h.first, last);
    return jumped ? set_up : whole;
}

/// Returns the error of times that comes from reading clock and ticks one after the other.
HERRING_SETUP inline std::int64_t reading_of(timeline_header const& h, tick_line const& line) noexcept {
    std::uint64_t const last = h.lasts > 0 ? h.last[(h.lasts - 1) & 1].width : h.second.width;
    double const ticks = static_cast<double>(std::max(h.first.width, last));
    return static_cast<std::int64_t>(std::min(ticks * line.ns_a_tick(), 1e15));
}

/// Appends the records of one ring. `now`: the ring's head after all of the image was read.
HERRING_SETUP inline void read_ring(std::span<std::byte const> image, timeline_header const& h, int which,
                                    std::uint64_t now, tick_line const& line, timeline_data& into) {
    timeline_ring_place const ring = h.rings[which];
    std::size_t const at = timeline_places::of(h).rings[which];
    std::uint64_t const first = ring.head - ring.kept() + (h.settled == 0 ? ring.overwritten(now) : 0);
    into.lost += first;
    std::uint64_t gone_back = 0, before = 0;
    for (std::uint64_t i = first; i != ring.head; ++i) {
        timeline_entry e;
        std::memcpy(&e, image.data() + at + i % ring.slots * sizeof e, sizeof e);
        std::int64_t const ns = line.ns(e.ticks + gone_back);
        if (!is_time(ns) || e.event >= trace_event_count || e.peer < -1 || e.peer >= into.ranks) {
            ++into.damaged;
            continue;
        }
        e.ticks += gone_back;
        if (e.ticks < before) {
            ++into.backwards;
            gone_back += before - e.ticks;
            e.ticks = before;
        }
        before = e.ticks;
        into.records.push_back({line.ns(e.ticks), static_cast<trace_event>(e.event), e.index, e.peer,
                                e.execution, e.bytes, e.message});
    }
}

/// Decodes an image. `later`: the header's rings after all of the image was read; nullptr: no thread wrote
/// meanwhile.
HERRING_SETUP inline timeline_data read_image(std::span<std::byte const> image,
                                              timeline_ring_place const* later) {
    timeline_header h;
    if (image.size() < sizeof h)
        refuse_timeline(
            {"of ", image.size(), " bytes: no timeline, or cut; its header alone has ", sizeof h});
    std::memcpy(&h, image.data(), sizeof h);
    if (std::memcmp(h.magic, timeline_header::expected_magic, sizeof h.magic) != 0)
        refuse_timeline({"it does not begin as a timeline does"});
    if (h.order != timeline_header::expected_order)
        refuse_timeline({"it was written on a machine with another order of bytes; read it there"});
    if (h.format != timeline_header::expected_format)
        refuse_timeline({"it has format ", h.format, ", and this program reads ",
                         timeline_header::expected_format,
                         "; use the bench/inspect of the version that wrote it"});
    // Checks each count against the size before any sum of counts.
    std::size_t const most = image.size();
    bool const fits = h.ranks > 0 && h.rank >= 0 && static_cast<std::uint32_t>(h.rank) < h.ranks &&
                      h.ranks <= most / 4 && h.buckets <= most / 8 && h.names_bytes <= most &&
                      h.tensors <= h.names_bytes && is_time(h.first.ns) && is_time(h.second.ns) &&
                      h.rings[0].slots <= most / sizeof(timeline_entry) &&
                      h.rings[1].slots <= most / sizeof(timeline_entry);
    timeline_places const at = fits ? timeline_places::of(h) : timeline_places{};
    if (!fits || at.end > most) refuse_timeline({"of ", most, " bytes: it is cut, or its header is damaged"});

    timeline_data data;
    data.rank = h.rank;
    data.ranks = static_cast<int>(h.ranks);
    data.job = h.job;
    data.digest = h.digest;
    data.reducer = h.reducer;
    data.pid = h.pid;
    data.version = text_in(h.version);
    data.host = text_in(h.host);
    data.host_id = h.host_id;
    data.process_space = h.process_space;
    data.uses_tsc = h.uses_tsc != 0;
    data.failed = h.now == timeline_header::state::failed;
    data.ended = data.failed || h.now == timeline_header::state::ended;
    data.begin_ns = h.first.ns;
    for (int i = 0; i < 2; ++i)
        if (is_time(h.fixes[i].at_ns) && is_time(h.fixes[i].offset_ns) && is_time(h.fixes[i].bound_ns))
            data.fixes[i] = h.fixes[i];
    data.node_of.resize(h.ranks);
    std::memcpy(data.node_of.data(), image.data() + at.nodes, h.ranks * sizeof(int));
    data.bucket_bytes.resize(h.buckets);
    if (h.buckets > 0)
        std::memcpy(data.bucket_bytes.data(), image.data() + at.buckets, h.buckets * sizeof(std::uint64_t));
    std::span<char const> names(reinterpret_cast<char const*>(image.data()) + at.names, h.names_bytes);
    for (std::uint32_t i = 0; i < h.tensors; ++i) {
        data.tensor_names.push_back(text_in(names));
        names = names.subspan(std::min(data.tensor_names.back().size() + 1, names.size()));
    }
    tick_line const line = line_of(h, data.clock_jumped);
    data.reading_ns = reading_of(h, line);
    for (int which = 0; which < 2; ++which)
        read_ring(image, h, which, (later == nullptr ? h.rings : later)[which].head, line, data);
    std::stable_sort(data.records.begin(), data.records.end(),
                     [](timeline_record const& a, timeline_record const& b) { return a.ns < b.ns; });
    return data;
}

} // namespace detail

/// Decodes an image that no thread writes: the recorder's file, or the image that a rank sent.
///
/// Cost:    memory in proportion to the bytes of the image.
/// Errors:  `bad_argument`: no timeline, another format or byte order, or cut.
HERRING_SETUP inline timeline_data read_timeline(std::span<std::byte const> image) {
    return detail::read_image(image, nullptr);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_TIMELINE_DATA_HPP
