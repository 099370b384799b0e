// herring: writes the corpus of every fuzz target by the encoders: sound inputs, and the same with one thing wrong.
// SPDX-License-Identifier: Apache-2.0
//
//   make_corpus FOLDER      writes FOLDER/<target>/<name>; tests/fuzz/run.sh --corpus builds and runs it
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/replica.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/split.hpp"
#include "herring/control/wire/message_kind.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/engine/command.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/join/gather_exchange.hpp"
#include "herring/service/messages.hpp"
#include "row_formats.hpp"
#include "unit/trace/timelines.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

using namespace herring::detail;
using wire::append;
using wire::message_kind;

namespace {

std::filesystem::path top;

void write(char const* target, std::string const& name, byte_buffer const& bytes) {
    std::filesystem::create_directories(top / target);
    std::ofstream out(top / target / name, std::ios::binary);
    out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

byte_buffer joined(std::initializer_list<std::uint8_t> front, std::span<std::byte const> rest = {}) {
    byte_buffer made;
    for (std::uint8_t const each : front) append<std::uint8_t>(made, each);
    made.append(rest);
    return made;
}

/// A message as a record of rendezvous_fuzz.
void add(byte_buffer& to, message_kind kind, std::uint8_t sequence, std::span<std::byte const> body,
         std::uint8_t at_once) {
    bool const is_long = body.size() > 255;
    to.append(joined({static_cast<std::uint8_t>(is_long ? 16 : 0), at_once, 1,
                      static_cast<std::uint8_t>(kind), sequence}));
    append<std::uint8_t>(to, body.size() & 255);
    if (is_long) append<std::uint8_t>(to, body.size() >> 8);
    to.append(body);
}

void wire_corpus() {
    wire::hello said;
    said.size = 4;
    said.rank = 3;
    said.incarnation = 9;
    said.has_secret = true;
    said.nonce.fill(std::byte{5});
    said.node = "host/boot/net:1";
    said.boot = "boot";
    said.rack = "r7";
    auto const why = herring::failure::make(herring::errc::peer_lost, 1, 2, "all_reduce", "it died; see why");
    blocked_report report;
    report.waits = report.waits_of_process = 1;
    report.channels = 2;
    report.waiting[0] = {1, 5};
    report.begun[0] = {0, 3};
    report.begun[1] = {1, 6};
    report.name_call("sum of double");
    byte_buffer message;
    wire::append_message(message, message_kind::barrier, 2, 7, {});
    rendezvous::pending_collective pending(3);
    for (int r = 0; r < 3; ++r)
        pending.add(r, message_kind::contribute,
                    std::as_bytes(std::span("\0abc", static_cast<std::size_t>(r + 1))));
    auto const both = [](char const* name, std::uint8_t which, std::uint8_t ranks, byte_buffer const& body) {
        write("wire", name, joined({which, ranks}, body));
        std::span<std::byte const> const all(body);
        write("wire", std::string(name) + "-cut", joined({which, ranks}, all.first(all.size() - 1)));
        byte_buffer more = joined({which, ranks}, body);
        append<std::uint8_t>(more, 0);
        write("wire", std::string(name) + "-more", more);
    };
    both("head", 0, 3, message);
    both("hello", 1, 3, said.write());
    both("failure", 2, 3, wire::write_failure(why));
    write("wire", "failure-far-rank", joined({2, 1}, wire::write_failure(why)));
    both("report", 3, 3, wire::write_report(report));
    both("answer", 4, 3, wire::write_answer({rank_state::waiting, 2}));
    both("wait", 5, 3, wire::write_wait(std::chrono::milliseconds(1500)));
    both("missing", 6, 3, wire::waiting_for{2, "ranks 2, 3"}.write());
    both("welcome", 7, 2, wire::welcome{7, resolve({}), {0, 0, 1}, {0, 0, 0}}.write());
    wire::welcome with_server{7,         resolve({}),    {0, 0, 1},
                              {0, 0, 0}, {0, 0, 25'000}, fixed_array<herring::role>(3)};
    with_server.roles[2] = herring::role::server;
    both("welcome-server", 7, 2, with_server.write());
    with_server.racks = {0, 0, 1};
    both("welcome-racks", 7, 2, with_server.write());
    write("wire", "welcome-far-node",
          joined({7, 2}, wire::welcome{7, resolve({}), {0, 2, 1}, {0, 0, 0}}.write()));
    command call{.what = command::kind::collective, .operation = 3, .root = 1, .elements = 1000};
    call.set_name("broadcast");
    std::byte call_bytes[command::bytes];
    call.write(call_bytes);
    byte_buffer command_body;
    command_body.append(call_bytes);
    both("command", 12, 3, command_body);
    both("challenge", 8, 2, wire::challenge{{std::byte{1}}, {std::byte{2}}, true, false}.write());
    both("challenge-seals", 8, 2, wire::challenge{{std::byte{1}}, {std::byte{2}}, true, true}.write());
    both("admit", 9, 2, wire::admit{{std::byte{1}}, {std::byte{2}}}.write());
    both("resume", 11, 2, wire::resume{{std::byte{1}}, 1, 2, 3, 4}.write());
    wire::signs_of_life signs;
    signs.cut_off = 1;
    signs.add(8, 9);
    both("signs", 10, 8, signs.write());
    both("split", 13, 2, split_choice{3, -1}.write());
    both("split-result", 13, 2, split_choice{3, -1, 7}.write_result());
    both("gathered", 14, 2, pending.take());
    byte_buffer wraps;
    for (std::uint64_t const size : {~std::uint64_t{0} - 7, std::uint64_t{16}})
        append<std::uint64_t>(wraps, size);
    append<std::uint64_t>(wraps, 0);
    write("wire", "gathered-wraps", joined({14, 1}, wraps));
}

void service_corpus() {
    leasing::ask wish;
    wish.type = "float, transport tcp";
    wish.servers = 2;
    wish.terms = {
        .workers = 3, .address = "10.0.0.1:4711", .seals = true, .timeout = std::chrono::seconds(7)};
    wish.tensors = {{"a", 5, 1}, {"", 0, 0}};
    write("service", "ask", joined({0}, leasing::write(wish)));
    write("service", "orders", joined({1}, leasing::write(leasing::orders{1, "/srv", wish})));
    write("service", "hello", joined({2}, leasing::hello{{}, "alice"}.write()));
    byte_buffer message;
    wire::append_message(message, static_cast<message_kind>(leasing::message::ask), 0, 0,
                         leasing::write(wish), leasing::protocol_version);
    write("service", "message", joined({3}, message));
    wish.servers = 0;
    write("service", "ask-nothing", joined({0}, leasing::write(wish)));
}

void control_seal_corpus() {
    // A record: what becomes of it, its kind, sequence, size of its body, body; and for 1 and 2 a place, for 1 bits.
    byte_buffer const body = joined({1, 2, 3, 4, 5, 6, 7, 8, 9});
    auto const scene = [&](char const* name, std::initializer_list<std::uint8_t> records) {
        byte_buffer made;
        for (std::uint8_t const what : records) {
            made.append(joined({what, 1, 7, 9}, body));
            if (what == 1) made.append(joined({40, 0, 1}));
            if (what == 2) made.append(joined({5, 0}));
        }
        write("control_seal", name, made);
    };
    scene("sound", {0, 0, 0});
    scene("sound-large-pieces", {200, 0, 0});
    scene("flipped", {0, 1, 0});
    scene("cut", {0, 2, 0});
    scene("repeated", {0, 3, 0});
    scene("left-out", {0, 4, 0});
    scene("last-again", {0, 0, 5});
    write("control_seal", "raw", joined({7, 12, 0x48, 0x45, 0x52, 0x52, 5, 0, 9, 0, 1, 0, 0, 0}));
    write("control_seal", "empty-bodies", joined({0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 1, 0}));
}

void rendezvous_corpus() {
    constexpr std::uint8_t to_rank_0 = 1, admitted = 2, secret = 4, again = 8;
    wire::hello said;
    said.size = 2;
    said.rank = 1;
    said.incarnation = 1;
    said.node = said.boot = "x";
    auto const why = herring::failure::make(herring::errc::timeout, 1, 0, "wait", "late");
    blocked_report report;
    report.waits = report.waits_of_process = 1;
    auto const scene = [](char const* name, std::uint8_t flags, auto&& fill) {
        byte_buffer made = joined({flags});
        fill(made);
        write("rendezvous", name, made);
    };
    std::byte const three[3]{};
    auto const greet = [&](byte_buffer& to, std::uint32_t size, std::uint8_t at_once) {
        said.size = size;
        byte_buffer words = said.write();
        words.append(wire::proof{});
        add(to, message_kind::hello, 0, words, at_once);
    };
    scene("hello", to_rank_0, [&](byte_buffer& to) {
        add(to, message_kind::knock, 0, {}, 7);
        greet(to, 2, 7);
    });
    scene("hello-unasked", to_rank_0, [&](byte_buffer& to) { greet(to, 2, 255); });
    scene("hello-twice", to_rank_0, [&](byte_buffer& to) {
        add(to, message_kind::knock, 0, {}, 255);
        greet(to, 3, 255);
        greet(to, 2, 255);
    });
    scene("hello-leave", to_rank_0, [&](byte_buffer& to) {
        add(to, message_kind::knock, 0, {}, 255);
        greet(to, 2, 255);
        add(to, message_kind::leave, 0, {}, 255);
    });
    scene("hello-no-secret", to_rank_0 | secret, [&](byte_buffer& to) {
        add(to, message_kind::knock, 0, {}, 255);
        greet(to, 2, 255);
    });
    scene("no-secret", secret, [&](byte_buffer& to) {
        add(to, message_kind::challenge, 0, wire::challenge{{}, {}, true}.write(), 255);
        add(to, message_kind::admit, 0, wire::admit{}.write(), 255);
    });
    scene("rank", to_rank_0 | admitted, [&](byte_buffer& to) {
        add(to, message_kind::heartbeat, 0, {}, 5);
        add(to, message_kind::contribute, 1, three, 5);
        add(to, message_kind::barrier, 2, {}, 5);
    });
    auto const add_long = [](byte_buffer& to, message_kind kind, std::uint64_t sequence,
                             std::span<std::byte const> body) {
        to.append(joined({8, 9, 1, static_cast<std::uint8_t>(kind)}));
        append<std::uint64_t>(to, sequence);
        append<std::uint8_t>(to, body.size());
        to.append(body);
    };
    scene("rank-splits", to_rank_0 | admitted, [&](byte_buffer& to) {
        add(to, message_kind::contribute, 1, three, 9);
        add(to, message_kind::barrier, 2, {}, 9);
        add(to, message_kind::split, 3, split_choice{1, 5}.write(), 9);
        add_long(to, message_kind::barrier, wire::sequence_in(1, 1), {});
        add_long(to, message_kind::leave, wire::sequence_in(1, 0), {});
        add(to, message_kind::leave, 1, {}, 9);
    });
    scene("rank-in-no-world", to_rank_0 | admitted,
          [&](byte_buffer& to) { add_long(to, message_kind::barrier, wire::sequence_in(9, 1), {}); });
    scene("rank-suspects", to_rank_0 | admitted, [&](byte_buffer& to) {
        add(to, message_kind::suspicion, 1, wire::write_failure(why), 255);
        add(to, message_kind::probe_reply, 1, wire::write_answer({rank_state::waiting, 0}), 255);
        add(to, message_kind::blocked, 0, wire::write_report(report), 255);
        add(to, message_kind::deadline_passed, 1, wire::write_wait(std::chrono::milliseconds(9)), 255);
    });
    scene("rank-fails", to_rank_0 | admitted,
          [&](byte_buffer& to) { add(to, message_kind::fail, 0, wire::write_failure(why), 255); });
    scene("rank-crossed", to_rank_0 | admitted,
          [&](byte_buffer& to) { add(to, message_kind::barrier, 1, {}, 255); });
    scene("rank-resumes", to_rank_0 | admitted | again, [&](byte_buffer& to) {
        add(to, message_kind::resumed, 0, {}, 255);
        add(to, message_kind::contribute, 1, three, 5);
        add(to, message_kind::heartbeat, 1, {}, 5);
    });
    scene("rank-resumes-too-much", to_rank_0 | admitted | again, [&](byte_buffer& to) {
        add(to, message_kind::resumed, 9, {}, 255);
        add(to, message_kind::contribute, 1, three, 5);
    });
    scene("rank-resumes-early", to_rank_0 | admitted | again, [&](byte_buffer& to) {
        add(to, message_kind::contribute, 1, three, 255);
        add(to, message_kind::resumed, 0, {}, 255);
    });
    scene("no-rank-0", 0, [&](byte_buffer& to) {
        add(to, message_kind::fail, 0, wire::write_failure(why), 255);
        add(to, message_kind::collective_result, 1, three, 255);
    });
    scene("refused-by-far-rank", 0, [&](byte_buffer& to) {
        auto const far = herring::failure::make(herring::errc::refused, 1, 1 << 26, "join", "no");
        add(to, message_kind::refuse, 0, wire::write_failure(far), 255);
    });
    scene("rank-0-waits", 0, [&](byte_buffer& to) {
        add(to, message_kind::still_waiting_for, 0, wire::waiting_for{1, "rank 1"}.write(), 3);
        add(to, message_kind::refuse, 0, wire::write_failure(why), 3);
    });
    scene("rank-0", admitted, [&](byte_buffer& to) {
        rendezvous::pending_collective pending(2);
        for (int r = 0; r < 2; ++r) pending.add(r, message_kind::contribute, three);
        add(to, message_kind::heartbeat, 0, {}, 9);
        add(to, message_kind::collective_result, 1, pending.take(), 9);
        add(to, message_kind::collective_result, 2, {}, 9);
        add(to, message_kind::probe, 1, {}, 9);
        add(to, message_kind::leave, 0, {}, 9);
    });
    scene("rank-0-splits", admitted, [&](byte_buffer& to) {
        rendezvous::pending_collective pending(2);
        for (int r = 0; r < 2; ++r) pending.add(r, message_kind::contribute, three);
        add(to, message_kind::collective_result, 1, pending.take(), 9);
        add(to, message_kind::collective_result, 2, {}, 9);
        for (int r = 0; r < 2; ++r) pending.add(r, message_kind::split, split_choice{1, 0, 7}.write_result());
        add(to, message_kind::collective_result, 3, pending.take(), 9);
        add_long(to, message_kind::collective_result, wire::sequence_in(7, 1), {});
        add_long(to, message_kind::fail, wire::sequence_in(7, 0), wire::write_failure(why));
    });
    scene("rank-0-result-wraps", admitted, [&](byte_buffer& to) {
        byte_buffer body;
        append<std::uint64_t>(body, ~std::uint64_t{0} - 7);
        append<std::uint64_t>(body, 8);
        add(to, message_kind::collective_result, 1, body, 255);
    });
    write("rendezvous", "text",
          joined({to_rank_0, 1, 255, 1, 18}, std::as_bytes(std::span("GET / HTTP/1.1\r\n\r\n", 18))));
}

void tcp_corpus() {
    auto const file = [](char const* name, std::initializer_list<std::uint8_t> bytes) {
        write("tcp", name, joined(bytes));
    };
    file("posted", {0, 1, 1, 0, 5, 4, 0, 3, 9, 1, 5, 4, 0, 4, 'a', 'b', 'c', 'd'});
    file("early", {3, 60, 1, 5, 4, 0, 4, 'a', 'b', 'c', 'd', 0, 1, 1, 2, 5, 16, 0});
    file("too-long-for-its-receive", {0, 1, 1, 0, 5, 2, 0, 2, 255, 1, 5, 4, 0, 0});
    file("too-long-for-all", {11, 255, 1, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 128, 4, 'a', 'b', 'c', 'd'});
    file("other-job", {18, 255, 1, 5, 4, 0, 9, 9, 9, 9, 9, 9, 9, 9, 0});
    file("no-frame", {1, 255, 1, 4, 'G', 'E', 'T', ' '});
}

void environment_corpus() {
    auto const file = [](char const* name, std::string_view text) {
        byte_buffer made;
        append(made, text);
        write("environment", name, made);
    };
    using namespace std::string_view_literals;
    file("own", "A=1\0B=4\0C=10.0.0.1:4711\0D=5s"sv);
    file("torchrun", "F=0\0G=2\0H=node0\0I=29500"sv);
    file("open-mpi", "J=1\0L=2\0]=2\0Y=7"sv);
    file("slurm", "O=3\0P=8\0Q=17\0R=gpu[07-09,12],login\0S=2"sv);
    file("links", "latency=10000,rack_latency=3000,send=500,receive=500,rate=100000,queue=1048576"sv);
    file("links-probe", "probe,rate=1000000000,rate=1"sv);
    file("links-of-a-rank", "A=1\0B=4\0C=10.0.0.1:4711\0_=probe,latency=1"sv);
    file("address", "[::1]:4711"sv);
    file("no-address", "[::1"sv);
    file("nodes", "gpu[07-09"sv);
    file("time", "999999999999s"sv);
    file("number", "999999999999999999"sv);
    file("memory", "MemTotal: 99999999999999999999 kB"sv);
    file("groups", "7:cpu,memory:/a/b\n0::/c\n0::no/root\n"sv);
}

void tcp_lane_corpus() {
    // The records of tcp_lane_fuzz: 0 the frontend's end, 1 the member's.
    auto const file = [](char const* name, std::initializer_list<std::uint8_t> bytes) {
        write("tcp_lane", name, joined(bytes));
    };
    file("rows", {0, 0, 0, 20, 0,   3, 9, 9, 1, 100, 4, 'a', 'b', 'c', 'd',
                  3, 1, 1, 2,  200, 0, 0, 1, 3, 9,   9, 3,   8,   0});
    file("rows-without-a-place",
         {0, 3, 9, 9, 1, 1, 1, 5, 3, 9, 9, 2, 1, 1, 5, 3, 9, 9, 3, 1, 0, 3, 9, 9, 4, 1, 0, 3, 9, 9,
          5, 1, 0, 3, 9, 9, 6, 1, 0, 3, 9, 9, 7, 1, 0, 3, 9, 9, 8, 1, 0, 0, 4, 3, 9, 9, 9, 1, 0});
    file("declined", {0, 0, 0, 20, 0, 6, 9, 9, 0, 1, 5, 0, 6, 9, 9, 0, 5, 1, 0});
    file("row-too-long", {0, 3, 9, 9, 1, 201, 0});
    file("row-far-too-long", {0, 11, 9, 9, 1, 255, 255, 255, 255, 0});
    file("no-head", {0, 35, 9, 9, 1, 4, 6, 1, 0});
    file("text", {0, 1, 9, 9, 4, 'G', 'E', 'T', ' '});
    file("ask-at-the-frontend", {0, 19, 9, 9, 1, 4, 1, 0});
    file("requests", {1, 3, 9, 9, 1, 5, 0, 40, 3, 'a', 'b', 'c', 0, 0, 100, 3,
                      1, 1, 2, 9, 9, 0, 0, 0,  1, 0,   2,   0,   6, 0, 3});
    file("requests-too-many",
         {1, 3, 9, 9, 1, 5, 0, 4, 0, 3, 9, 9, 2, 5, 0, 4, 0, 3, 9, 9, 3, 5, 0, 4, 0, 3, 9, 9, 4, 5, 0, 4, 0});
    file("request-too-long", {1, 11, 9, 9, 1, 5, 0, 45, 1, 0, 0, 0});
    file("row-at-the-member", {1, 19, 9, 9, 1, 0, 0, 4, 2, 0});
}

void shared_lane_corpus() {
    // The records of shared_lane_fuzz: 0 the hostile member, 1 the hostile frontend.
    write("shared_lane", "rows", joined({0, 3, 3, 1, 1, 8, 0, 0xef, 1, 2, 8, 1, 0xef, 6, 4, 0, 4, 1, 3, 6}));
    write("shared_lane", "declined", joined({0, 3, 1, 1, 0, 0, 1, 6, 3, 5, 2, 6}));
    write("shared_lane", "spare", joined({0, 1, 77, 8, 3, 0xef, 6, 4, 3, 1, 78, 8, 3, 0xef, 6}));
    write("shared_lane", "too-long", joined({0, 3, 1, 1, 49, 0, 0xef, 6}));
    write("shared_lane", "no-such-place", joined({0, 3, 1, 1, 8, 7, 0xef, 6}));
    write("shared_lane", "bells", joined({0, 5, 2, 2, 2, 2, 2, 6, 5, 2, 2, 2, 2, 2, 6, 5, 2, 2, 6}));
    write("shared_lane", "scribbled", joined({0, 3, 0, 0, 16, 7, 1, 2, 3, 4, 5, 6, 7, 8, 6}));
    write("shared_lane", "asked", joined({1, 1, 9, 50, 0, 8, 0, 7, 3, 0, 0, 16, 1, 10, 50, 1, 8, 0, 7}));
    write("shared_lane", "asked-expired", joined({1, 1, 9, 50, 0, 8, 1, 7, 4, 5, 2, 7}));
    write("shared_lane", "asked-too-long", joined({1, 1, 9, 50, 0, 41, 0, 7}));
    byte_buffer facts = joined({2});
    for (std::uint64_t const fact : {std::uint64_t{0x3151455247495248}, std::uint64_t{2}, std::uint64_t{40},
                                     std::uint64_t{2}, std::uint64_t{3}})
        append<std::uint64_t>(facts, fact);
    write("shared_lane", "facts-of-requests", facts);
    facts = joined({3});
    for (std::uint64_t const fact : {std::uint64_t{0x31574f5247495248}, std::uint64_t{1}, std::uint64_t{3},
                                     std::uint64_t{48}, std::uint64_t{99}})
        append<std::uint64_t>(facts, fact);
    write("shared_lane", "facts-of-rows", facts);
}

/// A message as a record of ensemble_control_fuzz.
void add(byte_buffer& to, ensembles::message kind, std::span<std::byte const> body) {
    to.append(joined({0, static_cast<std::uint8_t>(static_cast<unsigned>(kind) - 60)}));
    append<std::uint16_t>(to, body.size());
    to.append(body);
}

void ensemble_control_corpus() {
    ensembles::hello said;
    said.incarnation = 9;
    said.name = "a";
    said.boot = "boot";
    said.shape = {"speech", "combine::mean", "float", 8, 32, 64, "v1"};
    ensembles::admit told;
    told.facts.credits = told.facts.in_flight = 4;
    told.local = "herring-ensemble-1";
    ensembles::refuse const refused{herring::admission_refusal::elements, "it has 9 elements"};
    ensembles::lane_hello lane;
    lane.ticket = 5;
    auto const decoder = [](char const* name, std::uint8_t which, byte_buffer const& body) {
        write("ensemble_control", name, joined({0, which}, body));
    };
    decoder("hello", 0, said.write());
    decoder("admit", 1, told.write());
    decoder("refuse", 2, refused.write());
    decoder("lane-hello", 3, lane.write());
    byte_buffer hello = said.write();
    hello.append(wire::proof{});
    byte_buffer join;
    add(join, ensembles::message::apply, {});
    add(join, ensembles::message::hello, hello);
    add(join, ensembles::message::heartbeat, {});
    add(join, ensembles::message::leave, {});
    write("ensemble_control", "join", joined({2}, join));
    write("ensemble_control", "join-unproven", joined({1}, join));
    byte_buffer of_lane;
    add(of_lane, ensembles::message::lane_hello, lane.write());
    add(of_lane, ensembles::message::lane_proof, wire::proof{});
    write("ensemble_control", "lane", joined({2}, of_lane));
    write("ensemble_control", "junk", joined({1, 1, 4}, std::as_bytes(std::span("GET ", 4))));
    byte_buffer admits, refuses;
    wire::challenge asked;
    asked.has_secret = true;
    byte_buffer body;
    body.append(wire::proof{});
    body.append(told.write());
    add(admits, ensembles::message::challenge, asked.write());
    add(admits, ensembles::message::admit, body);
    add(admits, ensembles::message::goodbye, {});
    write("ensemble_control", "false-frontend", joined({3}, admits));
    add(refuses, ensembles::message::refuse, refused.write());
    write("ensemble_control", "false-refusal", joined({3}, refuses));
}

/// Three rows of a format, whole, with weights, one a byte short, and folded without their check.
template <class Case> void rows_of(std::uint8_t which) {
    using element = typename Case::element;
    constexpr std::uint8_t elements = 21, unchecked = 1, weights = 2, lengths = 4;
    std::string const name = std::to_string(which / 10) + std::to_string(which % 10);
    std::vector<std::vector<std::byte>> rows;
    for (std::size_t r = 0; r < 3; ++r) {
        std::vector<element> row(elements);
        for (std::size_t i = 0; i < elements; ++i)
            row[i] = static_cast<element>(static_cast<float>((i * 7 + r * 5) % 11) * 0.75f - 4);
        rows.emplace_back(Case::format::row_bytes(elements));
        if (Case::format::encode(row, rows.back()) != ensembles::row_check::good) std::abort();
    }
    auto const file = [&](char const* kind, std::uint8_t what) {
        byte_buffer made = joined({which, elements - 1, 2, what});
        if ((what & weights) != 0)
            for (float const each : {0.5f, 2.0f, 1.0f}) made.append(std::as_bytes(std::span(&each, 1)));
        for (auto const& row : rows) {
            std::size_t const size = row.size() - (&row == &rows[1] && (what & lengths) != 0 ? 1 : 0);
            if ((what & lengths) != 0) append<std::uint16_t>(made, size);
            made.append(std::span<std::byte const>(row).first(size));
        }
        write("rows", name + kind, made);
    };
    file("-whole", 0);
    file("-weights", weights);
    file("-short", lengths);
    file("-unchecked", unchecked);
}
void checkpoint_corpus() {
    namespace checkpoints = herring::detail::checkpoints;
    checkpoints::manifest one{.generation = 2,
                              .steps = 9,
                              .element = "float",
                              .optimizer = "adamw",
                              .states = 2,
                              .groups = {{1e-3, 0.9, -0.0, 1e-300}, {}},
                              .tensors = {{"fc", 30, 0}, {"a\n\\b", 0, 1}},
                              .parts = {{"herring-9-2.0", 240, 20, 7}, {"herring-9-2.1", 120, 44, 8}},
                              .sections = {{"user", {"herring-9-2.user", 0, 16, 9}}}};
    auto const text = [](std::string_view from) { return std::as_bytes(std::span(from)); };
    std::string const whole = checkpoints::write_manifest(one);
    write("checkpoint", "manifest", joined({0}, text(whole)));
    write("checkpoint", "manifest-cut", joined({0}, text(whole).first(whole.size() - 1)));
    write("checkpoint", "manifest-body", joined({1}, text(whole).first(whole.size() - 16)));
    write("checkpoint", "manifest-empty", joined({0}, text(checkpoints::write_manifest({}))));
    write("checkpoint", "manifest-no-line", joined({1}, text("herring checkpoint 1\nhyper")));
    checkpoints::file_table const table{{{0, 20, 10}, {0, 0, 20}, {2, 0, 3}}, {1, 2}};
    write("checkpoint", "table", joined({2}, checkpoints::write_table(table)));
    write("checkpoint", "table-of-nothing", joined({2}, checkpoints::write_table({})));
    write("checkpoint", "cover", joined({3, 3, 30, 0, 0, 0, 3, 0}, checkpoints::write_table(table)));
    write("checkpoint", "cover-twice", joined({3, 3, 30, 0, 0, 0, 2, 0}, checkpoints::write_table(table)));
    byte_buffer huge;
    append<std::uint64_t>(huge, ~std::uint64_t{0} / 24 + 1);
    append<std::uint64_t>(huge, std::uint64_t{1} << 62);
    write("checkpoint", "table-of-too-much", joined({2}, huge));
    checkpoints::replica of_rank{.policy = "every<3>",
                                 .steps = 9,
                                 .outer_steps = 3,
                                 .groups = 11,
                                 .state = std::vector<std::byte>(8, std::byte{1}),
                                 .exchanged = {std::byte{1}, std::byte{0}}};
    write("checkpoint", "replica", joined({4}, checkpoints::write_replica(of_rank)));
    of_rank.own_bytes = 4;
    byte_buffer with_weights = checkpoints::write_replica(of_rank);
    append<std::uint32_t>(with_weights, 7);
    write("checkpoint", "replica-own", joined({4}, with_weights));
    of_rank.own_bytes = ~std::uint64_t{0};
    write("checkpoint", "replica-of-too-much", joined({4}, checkpoints::write_replica(of_rank)));
}
template <class... Cases> void rows_corpus(std::tuple<Cases...> const*) {
    std::uint8_t which = 0;
    (rows_of<Cases>(which++), ...);
}

void timeline_corpus() {
    using timelines::image, timelines::trace_event;
    auto const put = [](char const* name, image const& of) {
        byte_buffer made;
        made.append(of.bytes());
        write("timeline", name, made);
    };
    image sound(4);
    sound.record(2000, trace_event::tensor_ready).record(3000, trace_event::bucket_submitted);
    sound.record(4000, trace_event::wait_begin).record(9000, trace_event::wait_end, 1);
    sound.record(5000, trace_event::part_arrived, 1).record(5500, trace_event::fold_begin);
    sound.record(6000, trace_event::fold_end).record(8000, trace_event::bucket_reduced);
    put("sound", sound);
    image changed = sound;
    changed.record(100, trace_event::credit_stall, 1).record(200, trace_event::waits_for, 1);
    put("goes_back", changed);
    changed = sound;
    changed.head.lasts = 1;
    changed.head.last[0] = {1, -5, 3};
    put("clock_jumped", changed);
    changed = sound;
    changed.head.settled = 1;
    changed.head.fixes[0] = {1'000'000, 500, 20};
    changed.head.fixes[1] = {3'000'000'000, -700, 20};
    put("copy", changed);
    auto const put_damaged = [&](char const* name, auto const& change) {
        auto bytes = sound.bytes();
        auto head = sound.head;
        change(head);
        std::memcpy(bytes.data(), &head, sizeof head);
        byte_buffer made;
        made.append(bytes);
        write("timeline", name, made);
    };
    put_damaged("too_many_ranks", [](auto& head) { head.ranks = 0xffffffff; });
    put_damaged("too_many_records", [](auto& head) { head.rings[1].slots = std::uint64_t{1} << 58; });
    changed = sound;
    changed.head.rings[0].head = ~std::uint64_t{0};
    put("head_at_the_end", changed);
    changed = sound;
    changed.head.format = 2;
    put("other_format", changed);
}

/// Two calls of two ranks, as gather_fuzz reads them.
void gather_corpus() {
    for (int variant = 0; variant < 5; ++variant) {
        bool const is_rank_1 = variant % 2 != 0 || variant == 4, has_secret = variant / 2 != 0;
        gathered_rank peer;
        peer.has_secret = has_secret;
        byte_buffer second;
        append(second, variant == 4 ? "\r\x1b[2Jhost" : std::string(has_secret ? 0 : 64, 'b') + "[::1]:4711");
        byte_buffer made = joined({1, std::uint8_t{is_rank_1}, std::uint8_t{has_secret}});
        for (bool const last : {false, true}) {
            byte_buffer const words = last ? std::move(second) : peer.write();
            made.append(joined({7}));
            for (int r = 0; r < 2; ++r)
                made.append(
                    joined({static_cast<std::uint8_t>(last ? 7 : 3), static_cast<std::uint8_t>(words.size())},
                           words));
        }
        std::string const name = std::string(is_rank_1 ? "rank-1" : "rank-0") +
                                 (has_secret ? "-secret" : "") + (variant == 4 ? "-cursor" : "");
        write("gather", name, made);
        made.drop(1); // another world
        write("gather", name + "-cut", made);
    }
}

} // namespace

int main(int count, char** words) {
    if (count != 2) return 2;
    top = words[1];
    wire_corpus();
    rendezvous_corpus();
    service_corpus();
    control_seal_corpus();
    tcp_corpus();
    tcp_lane_corpus();
    environment_corpus();
    gather_corpus();
    shared_lane_corpus();
    timeline_corpus();
    ensemble_control_corpus();
    checkpoint_corpus();
    rows_corpus(static_cast<fuzz::row_cases const*>(nullptr));
}
