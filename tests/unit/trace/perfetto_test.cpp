// herring: tests of trace/perfetto.hpp: what was written is read back, by a reader of protobuf that knows no more than the format.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/perfetto.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

using timelines::schedule, timelines::trace_event;

namespace {
/// Fields of a message by their numbers, as Perfetto's .proto files have them.
struct message {
    std::multimap<std::uint32_t, std::uint64_t> numbers;
    std::multimap<std::uint32_t, std::string> texts;

    explicit message(std::string_view bytes) {
        std::size_t at = 0;
        auto const varint = [&] {
            std::uint64_t value = 0;
            for (int shift = 0;; shift += 7) {
                REQUIRE(at < bytes.size());
                auto const byte = static_cast<unsigned char>(bytes[at++]);
                value |= std::uint64_t{byte & 0x7fu} << shift;
                if (byte < 0x80) return value;
            }
        };
        while (at < bytes.size()) {
            std::uint64_t const key = varint();
            auto const field = static_cast<std::uint32_t>(key >> 3);
            if ((key & 7) == 0) {
                numbers.insert({field, varint()});
            } else if ((key & 7) == 1) {
                std::uint64_t value = 0;
                for (int i = 0; i < 8; ++i)
                    value |= std::uint64_t{static_cast<unsigned char>(bytes[at++])} << 8 * i;
                numbers.insert({field, value});
            } else {
                REQUIRE((key & 7) == 2);
                std::size_t const size = varint();
                REQUIRE(size <= bytes.size() - at);
                texts.insert({field, std::string(bytes.substr(at, size))});
                at += size;
            }
        }
    }
    std::uint64_t number(std::uint32_t field) const {
        return numbers.count(field) ? numbers.find(field)->second : 0;
    }
    std::string text(std::uint32_t field) const {
        return texts.count(field) ? texts.find(field)->second : "";
    }
    message in(std::uint32_t field) const { return message(text(field)); }
};

std::vector<herring::timeline_data> two_ranks() {
    schedule a(0, 2), b(1, 2);
    a.at(100, trace_event::tensor_ready, {.index = 0, .bytes = 1000}).submitted(110, 0, 0);
    a.at(120, trace_event::part_sent, {.index = 0, .peer = 1, .execution = 0, .bytes = 500, .message = 9});
    a.wait(130, 300, 1).at(140, trace_event::waits_for, {.peer = 1}).reduced(290, 0, 0);
    b.arrived(200, 0, 0, 9).at(210, trace_event::fold_begin, {.index = 0}).at(220, trace_event::fold_end);
    std::vector<herring::timeline_data> all;
    all.push_back(a.done());
    all.push_back(b.done());
    return all;
}

/// A slice, or an instant: no end.
struct slice {
    std::string track, name; // of its track, behind its process
    std::int64_t begin = 0, end = -1;
    std::map<std::string, std::uint64_t> notes{};
    std::uint64_t flow_out = 0, flow_in = 0;
};

/// What a trace shows, in its order.
std::vector<slice> shown_by(std::vector<herring::timeline_data> const& all) {
    message const trace(herring::detail::perfetto_trace(all).bytes());
    CHECK(trace.numbers.empty());
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, std::vector<std::size_t>> open;
    std::map<std::uint64_t, std::uint64_t> last;
    std::set<std::uint64_t> sequences;
    std::vector<slice> shown;
    for (auto const& [field, bytes] : trace.texts) {
        REQUIRE(field == 1); // Trace.packet
        message const packet(bytes);
        // The first packet of a sequence says that its state is new.
        CHECK((packet.number(13) == 1) == sequences.insert(packet.number(10)).second);
        if (packet.texts.count(60)) { // track_descriptor
            message const track = packet.in(60);
            std::uint64_t const id = track.number(1), parent = track.number(5);
            if (track.texts.count(3)) { // process
                CHECK(track.in(3).number(1) == packet.number(10));
                CHECK(track.in(3).text(6).starts_with("rank "));
                tracks[id] = track.in(3).text(6);
            } else {
                REQUIRE(tracks.count(parent));
                tracks[id] = tracks[parent] + "/" + track.text(2);
            }
            continue;
        }
        message const event = packet.in(11);
        std::uint64_t const track = event.number(11);
        REQUIRE(tracks.count(track));
        CHECK(packet.number(8) >= last[track]);
        last[track] = packet.number(8);
        auto const ns = static_cast<std::int64_t>(packet.number(8));
        if (event.number(9) == 2) { // TYPE_SLICE_END
            REQUIRE(!open[track].empty());
            shown[open[track].back()].end = ns;
            open[track].pop_back();
            continue;
        }
        if (event.number(9) == 1) open[track].push_back(shown.size());
        slice s{tracks[track], event.text(23), ns};
        for (auto [note, end] = event.texts.equal_range(4); note != end; ++note) {
            message const one(note->second);
            s.notes[one.text(10)] = one.number(4);
        }
        s.flow_out = event.number(47);
        s.flow_in = event.number(48);
        shown.push_back(s);
    }
    for (auto const& [track, left] : open) CHECK(left.empty());
    return shown;
}
/// The one of this name.
slice named(std::vector<slice> const& all, std::string const& name) {
    slice found;
    int many = 0;
    for (slice const& s : all)
        if (s.name == name) found = s, ++many;
    CHECK_MESSAGE(many == 1, name);
    return found;
}
} // namespace

TEST_CASE("perfetto: processes, tracks, slices that end, and an arrow from rank to rank") {
    auto const shown = shown_by(two_ranks());
    std::set<std::string> names;
    for (slice const& s : shown) names.insert(s.track + "/" + s.name);
    std::string const host = " on somewhere/";
    CHECK(names == std::set<std::string>{
                       "rank 0" + host + "step/backward", "rank 0" + host + "step/weight",
                       "rank 0" + host + "step/wait", "rank 0" + host + "step/for rank 1",
                       "rank 0" + host + "in flight 1/bucket 0", "rank 0" + host + "sent/part to rank 1",
                       "rank 1" + host + "arrived/part from rank 0", "rank 1" + host + "folds/fold 0"});
    slice const sent = named(shown, "part to rank 1");
    CHECK(sent.begin == 20); // since the first record
    CHECK(sent.end == -1);
    CHECK(sent.notes == std::map<std::string, std::uint64_t>{{"bytes", 500}, {"rank", 1}, {"execution", 0}});
    CHECK(sent.flow_out != 0);
    CHECK(named(shown, "part from rank 0").flow_in == sent.flow_out);
    for (slice const& s : shown) CHECK((s.flow_out != 0) + (s.flow_in != 0) == s.name.starts_with("part "));
}

TEST_CASE("perfetto: buckets that are in flight at once have tracks of their own, and keep their lengths") {
    schedule s(0, 2);
    s.submitted(0, 0, 0).submitted(500, 1, 1).reduced(2000, 0, 0).reduced(2500, 1, 1);
    auto const shown = shown_by({s.done()});
    slice const first = named(shown, "bucket 0"), second = named(shown, "bucket 1");
    CHECK(first.track == "rank 0 on somewhere/in flight 1");
    CHECK(second.track == "rank 0 on somewhere/in flight 2");
    CHECK(std::vector{first.begin, first.end} == std::vector<std::int64_t>{0, 2000});
    CHECK(std::vector{second.begin, second.end} == std::vector<std::int64_t>{500, 2500});
    CHECK(first.notes == std::map<std::string, std::uint64_t>{{"bytes", 1000}, {"execution", 0}});
    CHECK(second.notes.at("execution") == 1);
}

TEST_CASE("perfetto: a name is what it is, whatever characters it has") {
    schedule s(0, 1);
    s.data.tensor_names[0] = "a\"b\\c\nd \xc3\xa9";
    s.at(100, trace_event::tensor_ready, {.index = 0}).wait(130, 300);
    CHECK(named(shown_by({s.done()}), s.data.tensor_names[0]).begin == 0);
}

TEST_CASE("perfetto: no time is before the trace, whatever a clock says") {
    schedule s(0, 1);
    s.submitted(1'000'000, 0, 0).reduced(2'000'000, 0, 0);
    s.data.fixes[0] = {0, 0, 1}; // a drift by which later is earlier
    s.data.fixes[1] = {1'000'000'000, -3'000'000'000, 1};
    CHECK(s.data.common_ns(2'000'000) < s.data.common_ns(1'000'000));
    slice const bucket = named(shown_by({s.done()}), "bucket 0");
    CHECK(bucket.begin == 0);
    CHECK(bucket.end == 0);
}

TEST_CASE("perfetto: numbers of any size come back") {
    for (std::uint64_t const value :
         {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, ~std::uint64_t{0}}) {
        herring::detail::protobuf_message m;
        m.number(48, value).fixed64(3, value).text(2, std::string(200, 'x'));
        message const read(m.bytes());
        CHECK(read.number(48) == value);
        CHECK(read.number(3) == value);
        CHECK(read.text(2).size() == 200);
    }
}

TEST_CASE("perfetto: a file that cannot be written is no error") {
    CHECK_FALSE(herring::write_perfetto("/nowhere/at/all", two_ranks()));
    CHECK(message(herring::detail::perfetto_trace({}).bytes()).texts.empty());
}
