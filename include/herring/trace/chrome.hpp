// herring: timelines as Chrome's trace viewer and its like read them: JSON, with one track a bucket in flight.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRACE_CHROME_HPP
#define HERRING_TRACE_CHROME_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/trace/timeline.hpp"
#include "herring/trace/timeline_data.hpp"
#include "herring/trace/timeline_gather.hpp"
#include "herring/trace/timeline_picture.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE {
namespace detail {

/// A trace as JSON: a process for each rank, a thread for each track. Slices of one track do not overlap: buckets in flight have as
/// many tracks as there are at once.
///
/// Units:   microseconds, with three digits behind the point, since the first record.
/// Source:  Trace Event Format (Google, 2016); a message is a slice of 1 ns, because arrows go between slices.
class chrome_trace {
  public:
    HERRING_SETUP explicit chrome_trace(std::span<timeline_data const> ranks) {
        for (picture_process const& p : timeline_picture(ranks).processes) {
            about(p.rank, 0, "process_name", p.name);
            for (std::size_t t = 0; t < p.tracks.size(); ++t) {
                about(p.rank, t + 1, "thread_name", p.tracks[t].name);
                for (picture_slice const& s : p.tracks[t].slices) slice(p.rank, t + 1, s);
            }
        }
        text_ += "\n]}\n";
    }
    std::string const& text() const noexcept { return text_; }

    /// A text within quotes.
    HERRING_SETUP static std::string quoted(std::string_view value) {
        std::string out;
        for (char const c : value)
            if (c == '"' || c == '\\')
                (out += '\\') += c;
            else
                out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
        return out;
    }

  private:
    HERRING_SETUP void begin(char const* phase, int rank, std::size_t thread, std::string_view name) {
        append(text_, {first_ ? "\n" : ",\n", "{\"ph\":\"", phase, "\",\"pid\":", rank, ",\"tid\":", thread,
                       ",\"name\":\"", quoted(name), "\""});
        first_ = false;
    }
    HERRING_SETUP void about(int rank, std::size_t thread, char const* what, std::string_view name) {
        begin("M", rank, thread, what);
        append(text_, {",\"args\":{\"name\":\"", quoted(name), "\"}}"});
        if (thread == 0) return;
        begin("M", rank, thread, "thread_sort_index");
        append(text_, {",\"args\":{\"sort_index\":", thread, "}}"});
    }
    HERRING_SETUP void slice(int rank, std::size_t thread, picture_slice const& s) {
        bool const message = s.flow_in != 0 || s.flow_out != 0;
        bool const instant = s.begin_ns == s.end_ns && !message;
        begin(instant ? "i" : "X", rank, thread, s.name);
        time("ts", s.begin_ns);
        if (instant) text_ += ",\"s\":\"t\"";
        if (!instant) time("dur", message ? 1 : s.end_ns - s.begin_ns);
        char const* separator = ",\"args\":{";
        auto const note = [&](char const* name, std::int64_t value) {
            if (value < 0) return;
            append(text_, {separator, "\"", name, "\":", value});
            separator = ",";
        };
        note("bytes", s.bytes);
        note("rank", s.peer);
        note("execution", s.execution);
        text_ += *separator == ',' && separator[1] == '\0' ? "}}" : "}";
        if (s.flow_out != 0) flow("s", rank, thread, s, s.flow_out);
        if (s.flow_in != 0) flow("f", rank, thread, s, s.flow_in);
    }
    HERRING_SETUP void flow(char const* phase, int rank, std::size_t thread, picture_slice const& s,
                            std::uint64_t id) {
        begin(phase, rank, thread, "message");
        time("ts", s.begin_ns);
        char room[24];
        std::snprintf(room, sizeof room, "%016llx", static_cast<unsigned long long>(id));
        append(text_, {",\"cat\":\"message\",\"id\":\"", room, "\"", *phase == 'f' ? ",\"bp\":\"e\"}" : "}"});
    }
    HERRING_SETUP void time(char const* name, std::int64_t ns) {
        char room[64];
        std::int64_t const shown = ns > 0 ? ns : 0;
        std::snprintf(room, sizeof room, ",\"%s\":%lld.%03lld", name, static_cast<long long>(shown / 1000),
                      static_cast<long long>(shown % 1000));
        text_ += room;
    }

    std::string text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    bool first_ = true;
};

} // namespace detail

/// Writes JSON for chrome://tracing, Perfetto and other viewers, of timelines that are here.
///
/// Errors: none: false, and a line on stderr, where it cannot be written.
HERRING_SETUP inline bool write_chrome(std::string const& path, std::span<timeline_data const> ranks) {
    return detail::write_timelines(path, ranks, "write_chrome", [](std::span<timeline_data const> all) {
        return detail::chrome_trace(all).text();
    });
}
/// Gathers the timelines of all ranks, and writes them on rank 0. Collective: `write_chrome(path, reduce.trace())`.
///
/// Cost:   as `gather_timelines`.
/// Blocks: as `gather_timelines`.
/// Errors: as `gather_timelines`; false on rank 0, and a line on stderr, where it cannot be written.
HERRING_SETUP inline bool write_chrome(std::string const& path, detail::timeline_rings& of) {
    return detail::write_gathered(path, of, "write_chrome", [](std::span<timeline_data const> all) {
        return detail::chrome_trace(all).text();
    });
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRACE_CHROME_HPP
