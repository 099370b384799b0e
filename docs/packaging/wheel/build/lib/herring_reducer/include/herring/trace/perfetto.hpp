// herring: timelines in Perfetto's format: TrackEvents in protobuf, with arrows between ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_PERFETTO_HPP
#define HERRING_TRACE_PERFETTO_HPP

#include "herring/base/config.hpp"
#include "herring/machine/files.hpp"
#include "herring/trace/timeline.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_gather.hpp"
#include "herring/trace/timeline_picture.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {
namespace detail {

/// Appends fields of one protobuf message: varints, fixed numbers, and fields with a length.
class protobuf_message {
  public:
    std::string const& bytes() const noexcept { return bytes_; }

    protobuf_message& number(std::uint32_t field, std::uint64_t value) {
        varint(std::uint64_t{field} << 3);
        varint(value);
        return *this;
    }
    protobuf_message& text(std::uint32_t field, std::string_view value) {
        varint(std::uint64_t{field} << 3 | 2);
        varint(value.size());
        bytes_ += value;
        return *this;
    }
    protobuf_message& message(std::uint32_t field, protobuf_message const& value) {
        return text(field, value.bytes());
    }
    protobuf_message& fixed64(std::uint32_t field, std::uint64_t value) {
        varint(std::uint64_t{field} << 3 | 1);
        for (int i = 0; i < 8; ++i) bytes_ += static_cast<char>(value >> 8 * i & 0xff);
        return *this;
    }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
        bytes_ += static_cast<char>(value);
    }
    std::string bytes_;
};

/// A Perfetto trace: a process for each rank, with its tracks in order.
///
/// Units:   nanoseconds since the first record.
/// Source:  perfetto: protos/perfetto/trace/{trace_packet,track_event/*}.proto: numbers of fields as of
///          v59.1.
class perfetto_trace {
  public:
    HERRING_SETUP explicit perfetto_trace(std::span<timeline_data const> ranks) {
        for (picture_process const& p : timeline_picture(ranks).processes) process(p);
    }
    std::string const& bytes() const noexcept { return trace_.bytes(); }

  private:
    struct packet {
        enum : std::uint32_t { timestamp = 8, sequence = 10, event = 11, flags = 13, track = 60 };
    };
    struct track {
        enum : std::uint32_t { uuid = 1, name = 2, process = 3, parent = 5, child_order = 11, place = 12 };
    };
    struct event {
        enum : std::uint32_t { annotation = 4, type = 9, track = 11, name = 23, flow = 47, last_flow = 48 };
        enum : std::uint64_t { begin = 1, end = 2, instant = 3 };
    };
    static constexpr std::uint64_t by_place = 3;  // ChildTracksOrdering EXPLICIT
    static constexpr std::uint64_t new_state = 1; // SEQ_INCREMENTAL_STATE_CLEARED

    // Returns a unique number of a process or a track of the trace.
    static std::uint64_t uuid_of(int rank, std::size_t of_track) noexcept {
        return (static_cast<std::uint64_t>(rank) + 1) << 16 | of_track;
    }
    HERRING_SETUP void put(protobuf_message&& of, int rank) {
        bool const first = rank >= static_cast<int>(begun_.size()) || !begun_[static_cast<std::size_t>(rank)];
        of.number(packet::sequence, static_cast<std::uint64_t>(rank) + 1);
        if (first) {
            of.number(packet::flags, new_state);
            if (rank >= static_cast<int>(begun_.size())) begun_.resize(static_cast<std::size_t>(rank) + 1);
            begun_[static_cast<std::size_t>(rank)] = true;
        }
        trace_.message(1, of);
    }
    HERRING_SETUP void process(picture_process const& p) {
        // Numbers of Perfetto's processes begin at 1: 0 is the idle process.
        protobuf_message named, about;
        named.number(1, static_cast<std::uint64_t>(p.rank) + 1).text(6, p.name);
        about.number(track::uuid, uuid_of(p.rank, 0))
            .message(track::process, named)
            .number(track::child_order, by_place);
        put(std::move(protobuf_message().message(packet::track, about)), p.rank);
        for (std::size_t t = 0; t < p.tracks.size(); ++t) {
            protobuf_message one;
            one.number(track::uuid, uuid_of(p.rank, t + 1)).text(track::name, p.tracks[t].name);
            one.number(track::parent, uuid_of(p.rank, 0)).number(track::place, t + 1);
            put(std::move(protobuf_message().message(packet::track, one)), p.rank);
        }
        for (std::size_t t = 0; t < p.tracks.size(); ++t) slices(p, t);
    }
    HERRING_SETUP void slices(picture_process const& p, std::size_t t) {
        std::vector<std::int64_t> open; // ends of the slices around the next one
        auto const close = [&](std::int64_t until) {
            for (; !open.empty() && open.back() <= until; open.pop_back()) {
                protobuf_message end;
                end.number(event::type, event::end).number(event::track, uuid_of(p.rank, t + 1));
                at(open.back(), end, p.rank);
            }
        };
        for (picture_slice const& s : p.tracks[t].slices) {
            close(s.begin_ns);
            bool const instant = s.begin_ns == s.end_ns;
            protobuf_message e;
            e.number(event::type, instant ? event::instant : event::begin)
                .number(event::track, uuid_of(p.rank, t + 1));
            e.text(event::name, s.name);
            annotate(e, "bytes", s.bytes);
            annotate(e, "rank", s.peer);
            annotate(e, "execution", s.execution);
            if (s.flow_out != 0) e.fixed64(event::flow, s.flow_out);
            if (s.flow_in != 0) e.fixed64(event::last_flow, s.flow_in);
            at(s.begin_ns, e, p.rank);
            if (!instant) open.push_back(open.empty() ? s.end_ns : std::min(s.end_ns, open.back()));
        }
        close(std::numeric_limits<std::int64_t>::max());
    }
    HERRING_SETUP void at(std::int64_t ns, protobuf_message const& what, int rank) {
        protobuf_message p;
        p.number(packet::timestamp, ns > 0 ? static_cast<std::uint64_t>(ns) : 0).message(packet::event, what);
        put(std::move(p), rank);
    }
    HERRING_SETUP static void annotate(protobuf_message& e, std::string_view name, std::int64_t value) {
        if (value < 0) return;
        protobuf_message one;
        one.text(10, name).number(4, static_cast<std::uint64_t>(value));
        e.message(event::annotation, one);
    }

    protobuf_message trace_;
    std::vector<bool> begun_; // rank → true if its sequence has a packet
};

} // namespace detail

/// Writes a trace for https://ui.perfetto.dev of given timelines, for example of files. Not collective.
///
/// Errors: none. If the file cannot be written: false, and a line on stderr.
HERRING_SETUP inline bool write_perfetto(std::string const& path, std::span<timeline_data const> ranks) {
    return detail::try_write_whole_file(path, detail::perfetto_trace(ranks).bytes(), "write_perfetto");
}
/// Gathers the timelines of all ranks and writes them on rank 0: `write_perfetto(path, reduce.trace())`.
/// Collective.
///
/// Cost:   as `gather_timelines`.
/// Blocks: as `gather_timelines`.
/// Errors: as `gather_timelines`. If the file cannot be written: false on rank 0, and a line on stderr.
HERRING_SETUP inline bool write_perfetto(std::string const& path, detail::timeline_rings& of) {
    std::vector<timeline_data> const all = gather_timelines(of);
    return all.empty() || write_perfetto(path, all); // empty: not rank 0
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_PERFETTO_HPP
