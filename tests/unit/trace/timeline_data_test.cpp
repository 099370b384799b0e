// herring: tests of trace/timeline_data.hpp: what is read from an image, and images that are none.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_data.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <string>

using herring::read_timeline, herring::timeline_data;
using timelines::image, timelines::trace_event;

namespace {
std::string why_not(std::vector<std::byte> const& bytes) {
    try {
        read_timeline(bytes);
    } catch (herring::error const& e) {
        CHECK(e.code() == herring::errc::bad_argument);
        return e.what();
    }
    return {};
}
} // namespace

TEST_CASE("timeline data: records of both rings in the order of time, with names and sizes") {
    image written;
    written.record(2000, trace_event::bucket_submitted).record(4000, trace_event::wait_end, 1);
    written.record(3000, trace_event::part_arrived, 1);
    timeline_data const data = read_timeline(written.bytes());
    REQUIRE(data.records.size() == 3);
    CHECK(data.records[0].ns == 1'001'000);
    CHECK(data.records[1].what == trace_event::part_arrived);
    CHECK(data.records[1].peer == 1);
    CHECK(data.records[2].ns == 1'003'000);
    CHECK(data.tensor_names == std::vector<std::string>{"a", "b"});
    CHECK(data.bucket_bytes == std::vector<std::uint64_t>{4096});
    CHECK(data.node_of == std::vector<int>{0, 1});
    CHECK_FALSE(data.ended);
    CHECK(data.lost == 0);
}

TEST_CASE("timeline data: a ring that went round has its newest records, and the rest is counted") {
    image written(4);
    for (std::uint64_t i = 0; i < 10; ++i) written.record(1000 + i, trace_event::tensor_ready);
    timeline_data const data = read_timeline(written.bytes());
    CHECK(data.records.size() == 3); // the slot of the next one may be half written
    CHECK(data.records.back().ns == 1'000'009);
    CHECK(data.lost == 7);
    written.head.settled = 1;
    CHECK(read_timeline(written.bytes()).records.size() == 4);
    CHECK(read_timeline(written.bytes()).lost == 6);
}

TEST_CASE(
    "timeline data: records that were replaced while they were read are left out, not put in their places") {
    image written(4);
    for (std::uint64_t i = 0; i < 10; ++i) written.record(1000 + i, trace_event::tensor_ready);
    auto const head = written.head;
    for (std::uint64_t i = 10; i < 12; ++i) written.record(9000 + i, trace_event::tensor_ready);
    auto const later = written.head;
    written.head = head; // it was read before the records were
    timeline_data const data = herring::detail::read_image(written.bytes(), later.rings);
    REQUIRE(data.records.size() == 1);
    CHECK(data.records[0].ns == 1'000'009);
    CHECK(data.lost == 9);
    CHECK(data.backwards == 0);
}

TEST_CASE("timeline data: a clock that goes back, and one that jumps") {
    image written;
    written.record(9000, trace_event::tensor_ready).record(3000, trace_event::tensor_ready);
    written.record(3500, trace_event::tensor_ready);
    timeline_data data = read_timeline(written.bytes());
    CHECK(data.backwards == 1);
    CHECK(data.records[1].ns == data.records[0].ns);
    CHECK(data.records[2].ns == data.records[0].ns + 500);
    CHECK_FALSE(data.clock_jumped);
    written.head.lasts = 1;
    written.head.last[0] = {1'000'000, 1'999'000, 10};
    CHECK_FALSE(read_timeline(written.bytes()).clock_jumped);
    written.head.last[0].ticks += 300'000; // 0.3 ms that the clock knows nothing of
    data = read_timeline(written.bytes());
    CHECK(data.clock_jumped);
    CHECK(data.records[0].ns == 1'008'000); // by the rate of set-up
}

TEST_CASE("timeline data: of two measurements of the clocks the line is taken, of one its offset") {
    timeline_data data;
    CHECK_FALSE(data.is_aligned());
    CHECK(data.common_ns(77) == 77);
    CHECK(data.bound_ns() == -1);
    data.fixes[0] = {1'000'000'000, 500, 20};
    data.reading_ns = 3;
    CHECK(data.common_ns(77) == 577);
    CHECK(data.bound_ns() == 23);
    CHECK_FALSE(data.is_drift_corrected());
    data.fixes[1] = {3'000'000'000, 1500, 40};
    CHECK(data.is_drift_corrected());
    CHECK(data.common_ns(1'000'000'000) == 1'000'000'500);
    CHECK(data.common_ns(2'000'000'000) == 2'000'001'000);
    CHECK(data.common_ns(5'000'000'000) == 5'000'002'500);
    CHECK(data.bound_ns() == 43);
}

TEST_CASE("timeline data: what is no timeline, or cut, is refused with its reason") {
    image const good;
    std::vector<std::byte> const bytes = good.bytes();
    CHECK(why_not(bytes).empty());
    CHECK(why_not({}).find("no timeline, or cut") != std::string::npos);
    for (std::size_t const size : {std::size_t{100}, sizeof good.head, bytes.size() - 1}) {
        CAPTURE(size);
        CHECK(why_not({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).find("cut") !=
              std::string::npos);
    }
    image bad = good;
    bad.head.magic[0] = 'x';
    CHECK(why_not(bad.bytes()).find("does not begin") != std::string::npos);
    bad = good;
    bad.head.order = 0x04030201;
    CHECK(why_not(bad.bytes()).find("order of bytes") != std::string::npos);
    bad = good;
    bad.head.format = 9;
    CHECK(why_not(bad.bytes()).find("format 9") != std::string::npos);
    auto const damaged = [&](auto change) {
        std::vector<std::byte> all = bytes;
        auto head = good.head;
        change(head);
        std::memcpy(all.data(), &head, sizeof head);
        CHECK(why_not(all).find("damaged") != std::string::npos);
    };
    damaged([](auto& h) { h.ranks = 0; });
    damaged([](auto& h) { h.rank = 2; });
    damaged([](auto& h) { h.ranks = 0xffffffff; });
    damaged([](auto& h) { h.buckets = 0xffffffff; });
    damaged([](auto& h) { h.names_bytes = 0xfffffff0; });
    damaged([](auto& h) { h.tensors = 5; });
    damaged([](auto& h) { h.rings[0].slots = ~std::uint64_t{0}; });
    damaged([](auto& h) { h.rings[1].slots = std::uint64_t{1} << 59; });
}

TEST_CASE("timeline data: records that are none are left out, and counted") {
    image written;
    written.record(2000, trace_event::part_sent, 7); // of two ranks
    written.record(2001, trace_event::part_sent, 1);
    written.rings[1][1].event = 200;
    written.record(2002, trace_event::part_sent, 1);
    timeline_data const data = read_timeline(written.bytes());
    CHECK(data.damaged == 2);
    CHECK(data.records.size() == 1);
}
