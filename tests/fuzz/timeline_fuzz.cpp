// herring: fuzz target of trace/timeline_data.hpp: a recorder's file, or another rank's timeline, that holds anything.
// SPDX-License-Identifier: Apache-2.0
//
// Input: the image. What is read is counted, drawn and looked at: none of it may end the program, or take more memory than the
// image has bytes for.
#include "../../bench/timeline_inspect.hpp"
#include "fuzz.hpp"

#include "herring/trace/perfetto.hpp"
#include "herring/trace/prometheus.hpp"
#include "herring/trace/timeline_report.hpp"

#include <span>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::span<std::byte const> const image(reinterpret_cast<std::byte const*>(data), size);
    fuzz::memory::begin();
    std::vector<herring::timeline_data> found;
    try {
        found.push_back(herring::read_timeline(image));
    } catch (herring::error const& why) {
        fuzz::require(why.code() == herring::errc::bad_argument, "what is refused has a reason");
        return 0;
    }
    // 48 bytes for a record of 32, doubled as they come, and again where they are sorted.
    fuzz::memory::require_below(8 * size + 4096, 32 * size + 65'536);
    herring::timeline_data const& one = found[0];
    std::int64_t before = std::numeric_limits<std::int64_t>::min();
    for (auto const& r : one.records) {
        fuzz::require(r.ns >= before, "records are in the order of time");
        fuzz::require(r.peer >= -1 && r.peer < one.ranks, "of ranks of the world");
        fuzz::require(static_cast<int>(r.what) < herring::trace_event_count, "of events that there are");
        before = r.ns;
    }
    herring::timeline_report const report(one);
    for (char const letter : report.text()) fuzz::require(letter >= ' ' || letter == '\n', "text is text");
    fuzz::require(report.json().ends_with("}"), "one object");
    (void)herring::detail::timeline_metrics(report).text();
    (void)bench::timeline_inspection(found).text();
    (void)herring::detail::perfetto_trace(found).bytes();
    return 0;
}
