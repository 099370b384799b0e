// herring: tests of control/wire/: replies and reports come back as they were; other bytes are refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/wire/messages.hpp"

#include "herring/control/wire/limits.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>

using namespace herring::detail;
using wire::message_kind;

namespace {
std::span<std::byte const> first(byte_buffer const& bytes, std::size_t size) {
    return std::span<std::byte const>(bytes).first(size);
}
} // namespace

TEST_CASE("wire: a reply names a rank of the world, nobody, or that it does not wait") {
    for (wire::message_kind const kind : {message_kind::probe_reply, message_kind::blocked})
        CHECK(wire::most_body(kind, 4) == 8192);
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
    byte_buffer const bytes = wire::write_report(report);
    CHECK(bytes.size() <= wire::most_body(message_kind::blocked, 4));
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
    CHECK_FALSE(wire::read_report(unsound, read));
}

TEST_CASE("wire: what one kind of message may carry") {
    CHECK(wire::most_body(message_kind::welcome, 4) == 8 + 8 * world_times::count + 8 * 4);
    CHECK(wire::most_body(message_kind::contribute, 4) == wire::blob_limit);
    CHECK(wire::most_body(message_kind::collective_result, 4) == wire::body_limit);
    CHECK(wire::most_body(static_cast<message_kind>(99), 4) == 8192);
}
