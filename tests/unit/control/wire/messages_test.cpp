// herring: tests of control/wire/: replies and reports come back as they were; other bytes are refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/wire/messages.hpp"

#include "herring/control/wire/message_kind.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace herring::detail;
using herring::errc;
using herring::failure;
using wire::message_kind;

namespace {
std::span<std::byte const> first(byte_buffer const& bytes, std::size_t size) {
    return std::span<std::byte const>(bytes).first(size);
}
} // namespace

TEST_CASE("wire: a reply names a rank of the world, nobody, or that it does not wait") {
    for (int const rank : {-1, 0, 3}) {
        byte_buffer const bytes = wire::write_answer({rank_state::waiting, rank});
        wait_report reply;
        REQUIRE(wire::read_answer(bytes, 4, reply));
        CHECK(reply.state == rank_state::waiting);
        CHECK(reply.awaits == rank);
    }
    wait_report reply;
    REQUIRE(wire::read_answer(wire::write_answer({rank_state::idle, -1}), 4, reply));
    CHECK(reply.state == rank_state::idle);
    CHECK_FALSE(wire::read_answer(wire::write_answer({rank_state::waiting, 4}), 4, reply));
    CHECK_FALSE(wire::read_answer(first(wire::write_answer({}), 3), 4, reply));
}

TEST_CASE("wire: a blocked report comes back, and one that is cut or too long does not") {
    blocked_report report;
    report.waits = 2;
    report.channels = 3;
    report.waits_of_process = 2;
    report.waiting[0] = {1, 5};
    report.waiting[1] = {2, 6};
    report.begun[2] = {2, 6};
    report.name_call("sum of double");
    byte_buffer const bytes = wire::write_report(report);
    CHECK(bytes.size() <= wire::most_body(message_kind::blocked, {4, false, true}));
    blocked_report read;
    REQUIRE(wire::read_report(bytes, read));
    CHECK(read == report);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK_FALSE(wire::read_report(first(bytes, size), read));
    byte_buffer longer;
    longer.append(bytes);
    wire::append<std::uint16_t>(longer, 0);
    CHECK_FALSE(wire::read_report(longer, read));
    report.waits = blocked_report::most_waits + 1;
    byte_buffer unsound;
    wire::append<std::uint64_t>(unsound, report.waits);
    wire::append<std::uint64_t>(unsound, report.channels);
    wire::append<std::uint64_t>(unsound, report.waits_of_process);
    for (std::uint64_t const letters : report.call) wire::append<std::uint64_t>(unsound, letters);
    CHECK_FALSE(wire::read_report(unsound, read));
}

TEST_CASE("wire: what one kind of message may carry depends on who sends it, and when") {
    constexpr wire::sender stranger{4, false, false}, not_yet{4, true, false}, rank{4, false, true},
        rank_0{4, true, true};
    CHECK(wire::most_body(message_kind::welcome, not_yet) == 8 + 8 * world_times::count + 33 + 17 * 4);
    CHECK(wire::most_body(message_kind::welcome, rank_0) == 0);
    CHECK(wire::most_body(message_kind::hello, stranger) == wire::hello_limit - wire::head_bytes);
    CHECK(wire::most_body(message_kind::contribute, rank) == wire::blob_limit);
    CHECK(wire::most_body(message_kind::collective_result, rank_0) == 4 * (wire::blob_limit + 8));
    CHECK(wire::most_body(message_kind::collective_result, {1000, true, true}) == wire::body_limit);
    CHECK(wire::most_body(message_kind::split, rank) == 8);
    for (wire::sender const& by : {stranger, not_yet, rank_0})
        CHECK(wire::most_body(message_kind::split, by) == 0);
    // What nobody sends there has no bytes, so that nothing is kept for it.
    CHECK(wire::most_body(message_kind::collective_result, not_yet) == 0);
    CHECK(wire::most_body(message_kind::collective_result, rank) == 0);
    CHECK(wire::most_body(message_kind::contribute, stranger) == 0);
    CHECK(wire::most_body(message_kind::contribute, rank_0) == 0);
    for (wire::sender const& by : {stranger, not_yet, rank, rank_0})
        for (unsigned const kind :
             {0u, 19u, 20u, 22u, 99u, 0xFFFFu}) // resume comes before its sender is known
            CHECK(wire::most_body(static_cast<message_kind>(kind), by) == 0);
}

TEST_CASE("wire: a sequence has the number of a world in front of its own number") {
    for (std::uint64_t const world : {std::uint64_t{0}, std::uint64_t{1}, wire::most_world})
        for (std::uint64_t const number : {std::uint64_t{0}, std::uint64_t{7}, wire::most_number}) {
            CHECK(wire::world_of(wire::sequence_in(world, number)) == world);
            CHECK(wire::number_of(wire::sequence_in(world, number)) == number);
        }
    CHECK(wire::sequence_in(0, 7) == 7); // as where there are no groups
}

TEST_CASE("wire: what another process says is UTF-8 when it is shown") {
    auto const shown = [](std::string text) {
        wire::make_printable(text);
        std::string const once = text;
        wire::make_printable(text);
        CHECK(text == once);
        return text;
    };
    for (char const* good :
         {"", "plain \t\n",
          "gr\xc3\xb6\xc3\x9f"
          "e",
          "\xe2\x82\xac", "\xed\x9f\xbf\xee\x80\x80", "\xf0\x9f\x90\x9f", "\xf4\x8f\xbf\xbf", "\xc2\xa0"})
        CHECK(shown(good) == good);
    CHECK(shown("\xff\xfe") == "??");
    CHECK(shown("a\x80z") == "a?z"); // nothing begins
    CHECK(shown("\xc3") == "?");     // cut
    CHECK(shown("\xe2\x82") == "??");
    CHECK(shown("\xf0\x9f\x90 ") == "??? ");
    CHECK(shown("\xc3\xc3\xb6") == "?\xc3\xb6");     // and goes on after it
    CHECK(shown("\xc1\xbf\xe0\x9f\xbf") == "?????"); // longer than need be
    CHECK(shown("\xf0\x8f\xbf\xbf") == "????");
    CHECK(shown("\xed\xa0\x80") == "???");           // half of a character of UTF-16
    CHECK(shown("\xf4\x90\x80\x80\xf5") == "?????"); // beyond the last one
    CHECK(shown("\xc2\x9b"
                "2J") == "??2J"); // moves the cursor
    CHECK(shown(std::string("a\0b\x1b\x7f", 5)) == "a?b??");
}

TEST_CASE("wire: a failure names ranks of the world, and its words can be shown") {
    failure heard;
    auto const sent = [](int reporter, int peer, char const* words) {
        return wire::write_failure(failure::make(errc::timeout, reporter, peer, "a\x1b[2Jb", words));
    };
    REQUIRE(wire::read_failure(sent(-1, 3, "more\x7f\x01than\none"), 4, heard));
    CHECK(std::string_view(heard.operation) == "a?[2Jb");
    CHECK(std::string_view(heard.text) == "more??than\none");
    CHECK_FALSE(wire::read_failure(sent(0, 4, ""), 4, heard));
    CHECK_FALSE(wire::read_failure(sent(4, 0, ""), 4, heard));
    CHECK_FALSE(wire::read_failure(sent(0, -2, ""), 4, heard));
    CHECK_FALSE(wire::read_failure(sent(std::numeric_limits<int>::min(), 0, ""), 4, heard));
}

TEST_CASE(
    "wire: a welcome to the same world comes back; another, and ranks on nodes that nobody counts, do not") {
    wire::welcome told{7,         resolve({}),    {0, 0, 1},
                       {0, 1, 1}, {0, 0, 25'000}, herring::detail::fixed_array<herring::role>(3)};
    told.roles[2] = herring::role::server;
    told.links = {.latency_ns = 10'000, .rate_mbit = 100'000, .queue_bytes = 1'000'000'000, .probe = true};
    byte_buffer const bytes = told.write();
    wire::welcome read;
    REQUIRE(read.read(bytes, 3) == nullptr);
    CHECK(read.job == 7);
    CHECK(read.times == told.times);
    CHECK(read.nodes == told.nodes);
    CHECK(read.machines == told.machines);
    for (std::size_t r = 0; r < 3; ++r) CHECK(read.roles[r] == told.roles[r]);
    CHECK(read.rates == told.rates);
    CHECK(read.links == told.links);
    byte_buffer beyond = told.write(), odd = told.write(); // links lie behind 8 bytes and the times
    std::size_t const behind = 8 + 8 * herring::detail::world_times::count;
    beyond.data()[behind + 3] = std::byte{0x40};
    odd.data()[behind + 32] = std::byte{2};
    CHECK(read.read(beyond, 3) != nullptr);
    CHECK(read.read(odd, 3) != nullptr);
    for (std::size_t const shares : {0u, 1u}) { // a server on the node of a worker
        wire::welcome wrong{7,         resolve({}), {0, 0, 1},
                            {0, 1, 1}, {0, 0, 0},   herring::detail::fixed_array<herring::role>(3)};
        wrong.roles[shares] = herring::role::server;
        CHECK(read.read(wrong.write(), 3) != nullptr);
    }
    byte_buffer unknown_role = told.write(), too_fast = told.write();
    unknown_role.data()[unknown_role.size() - 1] = std::byte{2};
    too_fast.data()[too_fast.size() - 2] = std::byte{0x7f};
    CHECK(read.read(unknown_role, 3) != nullptr);
    CHECK(read.read(too_fast, 3) != nullptr);
    REQUIRE(read.read(bytes, 3) == nullptr);
    for (std::size_t const ranks : {0u, 2u, 4u}) CHECK(read.read(bytes, ranks) != nullptr);
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK(read.read(first(bytes, size), 3) != nullptr);
    for (auto const& nodes : {std::vector<int>{0, 2, 1}, {1, 0, 0}, {0, -1, 0}, {0, 1, 1 << 30}})
        CHECK(read.read(wire::welcome{7, resolve({}), nodes, {0, 0, 0}}.write(), 3) != nullptr);
}

TEST_CASE("wire: waits, and lists of who is missing") {
    std::chrono::milliseconds waited{};
    REQUIRE(wire::read_wait(wire::write_wait(std::chrono::milliseconds(1500)), waited));
    CHECK(waited.count() == 1500);
    CHECK_FALSE(wire::read_wait(wire::write_wait(std::chrono::milliseconds(-1)), waited));
    CHECK_FALSE(wire::read_wait(first(wire::write_wait(waited), 7), waited));
    wire::waiting_for read;
    REQUIRE(read.read(wire::waiting_for{2, "rank 2\r\x1b"}.write(), 3));
    CHECK(read.rank == 2);
    CHECK(read.who == "rank 2??");
    CHECK_FALSE(read.read(wire::waiting_for{3, "rank 3"}.write(), 3));
    CHECK_FALSE(read.read(first(wire::waiting_for{2, ""}.write(), 3), 3));
}

TEST_CASE("wire: a hello's names have limits of their own") {
    wire::hello said;
    said.node = std::string(wire::hello::most_node + 50, 'n');
    said.boot = "b";
    said.role = herring::role::server;
    said.rate = 25'000;
    wire::hello read;
    REQUIRE(read.read(said.write()));
    CHECK(read.role == herring::role::server);
    CHECK(read.rate == 25'000);
    CHECK(read.node.size() == wire::hello::most_node);
    byte_buffer raw;
    raw.append(first(said.write(), wire::nonce_bytes + 1 + 16 + 8 * world_times::count + 5));
    wire::append<std::uint16_t>(raw, 0);
    wire::append<std::uint16_t>(raw, wire::hello::most_boot + 1);
    wire::append<std::uint16_t>(raw, 0);
    wire::append(raw, std::string(wire::hello::most_boot + 1, 'b'));
    CHECK_FALSE(read.read(raw));
    // One character more than a rack's name may have, so that rank 0 sees that it is too long.
    said.rack = std::string(wire::most_rack + 9, 'r');
    REQUIRE(read.read(said.write()));
    CHECK(read.rack.size() == wire::most_rack + 1);
}

TEST_CASE("wire: a welcome has racks of whole nodes") {
    wire::welcome told;
    told.times = herring::detail::resolve({});
    told.nodes = {0, 1, 0};
    told.machines = {0, 0, 0};
    told.racks = {0, 1, 0};
    wire::welcome read;
    REQUIRE(read.read(told.write(), 3) == nullptr);
    CHECK(read.racks == told.racks);
    told.racks = {0, 1, 1};
    CHECK(std::string(read.read(told.write(), 3)) == "a node in two racks");
    told.racks = {1, 0, 1};
    CHECK(read.read(told.write(), 3) != nullptr);
    told.racks = {};
    REQUIRE(read.read(told.write(), 3) == nullptr);
    CHECK(read.racks == std::vector<int>{0, 0, 0});
}

TEST_CASE("wire: a value is read from exactly its bytes") {
    std::uint32_t const value = 7;
    std::uint32_t read = 0;
    auto const bytes = std::as_bytes(std::span(&value, 1));
    REQUIRE(wire::read_value(bytes, read));
    CHECK(read == 7);
    CHECK_FALSE(wire::read_value(bytes.first(3), read));
    CHECK_FALSE(wire::read_value({}, read));
    std::uint64_t longer = 0;
    CHECK_FALSE(wire::read_value(bytes, longer));
}

TEST_CASE("wire: signs of life name ranks of the world, and nobody where nothing is said") {
    wire::signs_of_life none, said, read;
    CHECK(none.write().empty());
    REQUIRE(read.read({}, 9));
    CHECK((read.cut_off == -1 && !read.has(0) && !read.has(8)));
    said.add(0, 9);
    said.add(8, 9);
    said.cut_off = 3;
    byte_buffer const bytes = said.write();
    CHECK(bytes.size() == wire::most_body(message_kind::heartbeat, {9, false, true}));
    REQUIRE(read.read(bytes, 9));
    CHECK(read.cut_off == 3);
    for (std::size_t r = 0; r < 20; ++r) CHECK(read.has(r) == (r == 0 || r == 8));
    std::vector<int> named;
    read.for_each([&](int r) { named.push_back(r); });
    CHECK(named == std::vector<int>{0, 8});
    wire::signs_of_life many;
    std::vector<int> due;
    for (int r = 0; r < 200; r += 1 + r % 7) many.add(r, 200), due.push_back(r);
    named.clear();
    many.for_each([&](int r) { named.push_back(r); });
    CHECK(named == due);
    CHECK_FALSE(read.read(bytes, 8));                  // a rank that there is not
    CHECK_FALSE(read.read(bytes, 17));                 // too few bits
    CHECK_FALSE(read.read(first(bytes, 3), 9));        // cut short
    CHECK_FALSE(wire::signs_of_life().read(bytes, 2)); // cut off from a rank that there is not
    CHECK(wire::most_body(message_kind::heartbeat, {9, true, true}) == 0);
}
