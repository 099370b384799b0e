// herring: fuzz target of control/wire/ and the result of an all_gather: every body, read from any bytes.
// SPDX-License-Identifier: Apache-2.0
//
// Input: which body, how many ranks the world has, then the body.
#include "fuzz.hpp"

#include "herring/control/all_or_none.hpp"
#include "herring/control/rendezvous/pending_collective.hpp"
#include "herring/control/split.hpp"
#include "herring/control/wire/message_kind.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/engine/command.hpp"
#include "herring/model/topology.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace herring::detail;
using fuzz::require;

namespace {

bool same(std::span<std::byte const> a, std::span<std::byte const> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

void read_head(std::span<std::byte const> body) {
    wire::head read;
    if (!read.read(body)) return;
    byte_buffer again;
    wire::append_message(again, read.type, read.rank, read.sequence, {}, read.version);
    wire::head written;
    require(written.read(again) && written.type == read.type && written.rank == read.rank &&
                written.sequence == read.sequence && written.version == read.version,
            "a head that is read can be written");
}

void read_failure(std::span<std::byte const> body, std::size_t ranks) {
    herring::failure read, again;
    if (!wire::read_failure(body, ranks, read)) return;
    require(read.what != herring::errc::ok && std::strcmp(to_string(read.what), "unknown") != 0,
            "the code of a failure is one");
    require(read.peer >= -1 && read.peer < static_cast<int>(ranks) && read.reporter < static_cast<int>(ranks),
            "a failure names ranks of the world");
    for (char const c : std::string_view(read.text))
        require(c != '\x1b' && c != '\r', "its words can be shown");
    require(wire::read_failure(wire::write_failure(read), ranks, again),
            "a failure that is read can be written");
    require(again.what == read.what && again.peer == read.peer && again.reporter == read.reporter &&
                std::strcmp(again.text, read.text) == 0 && std::strcmp(again.operation, read.operation) == 0,
            "a failure comes back as it was");
    (void)read.message();
}

void gather(std::span<std::byte const> body, std::size_t ranks) {
    herring::gather_result all;
    if (!rendezvous::unpack(body, ranks, all)) return;
    std::size_t total = 0;
    rendezvous::pending_collective pending(static_cast<int>(ranks));
    for (std::size_t r = 0; r < ranks; ++r) {
        total += std::as_const(all)[r].size();
        pending.add(static_cast<int>(r), wire::message_kind::contribute, std::as_const(all)[r]);
    }
    require(total + 8 * ranks == body.size(), "every byte of a result is a rank's");
    require(same(pending.take(), body), "a result comes back as it was");
    try {
        given_by_all const given =
            all_or_none(0, "fuzz", {}, {}, [&](std::span<std::byte const>) { return std::move(all); });
        for (std::size_t r = 0; r < given.size(); ++r) (void)given[r];
    } catch (herring::error const& why) {
        require(why.peer() >= -1 && why.peer() < static_cast<int>(ranks),
                "an error names a rank of the world");
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    auto const which = in.number(1);
    std::size_t const ranks = 1 + in.number(1);
    std::span<std::byte const> const body = in.rest;
    fuzz::memory::begin();
    switch (which % 15) {
    case 0:
        read_head(body);
        break;
    case 1: {
        wire::hello read;
        if (read.read(body)) require(same(read.write(), body), "a hello comes back as it was");
        break;
    }
    case 2:
        read_failure(body, ranks);
        break;
    case 3: {
        blocked_report read;
        if (!wire::read_report(body, read)) break;
        require(read.sound() && same(wire::write_report(read), body), "a report comes back as it was");
        blocked_report const all[2] = {read, read};
        (void)describe(deadlock_search(all, (which & 16) != 0).in(0));
        break;
    }
    case 4: {
        wait_report read;
        if (!wire::read_answer(body, static_cast<int>(ranks), read)) break;
        require(read.awaits >= -2 && read.awaits < static_cast<int>(ranks),
                "an answer names a rank of the world");
        require(same(wire::write_answer(read), body), "an answer comes back as it was");
        break;
    }
    case 5: {
        std::chrono::milliseconds read{};
        if (!wire::read_wait(body, read)) break;
        require(read.count() >= 0 && read <= herring::never, "a wait is a time");
        require(same(wire::write_wait(read), body), "a wait comes back as it was");
        break;
    }
    case 6: {
        wire::waiting_for read;
        if (!read.read(body, ranks)) break;
        require(read.rank >= 0 && read.rank < static_cast<int>(ranks),
                "who is missing is a rank of the world");
        require(read.write().size() == body.size(), "a list of who is missing is as long as it was");
        break;
    }
    case 7: {
        wire::welcome read;
        if (read.read(body, ranks) != nullptr) break;
        require(read.write().size() == body.size(), "a welcome is as long as it was");
        require(herring::topology(read.nodes, {read.roles.data(), read.roles.size()}).node_of == read.nodes,
                "nodes are numbered as everybody does");
        break;
    }
    case 12: {
        command read;
        constexpr std::size_t operations = 6;
        if (!read.read(body, operations, static_cast<int>(ranks))) break;
        require(read.operation < operations && read.root >= -1 && read.root < static_cast<int>(ranks) &&
                    read.elements <= most_elements,
                "a command is of an operation, a rank and a size that there are");
        std::byte again[command::bytes];
        read.write(again);
        require(std::strlen(read.text().text) < sizeof command::words::text, "its words have an end");
        command twice;
        require(twice.read(again, operations, static_cast<int>(ranks)) && twice.elements == read.elements &&
                    twice.what == read.what,
                "a command comes back as it was");
        break;
    }
    case 8: {
        wire::challenge read;
        if (read.read(body)) require(same(read.write(), body), "a challenge comes back as it was");
        break;
    }
    case 9: {
        wire::admit read;
        if (read.read(body)) require(same(read.write(), body), "an admission comes back as it was");
        std::span<std::byte const> before;
        wire::proof shown{};
        if (wire::split_proof(body, before, shown))
            require(before.size() + shown.size() == body.size(), "a proof is at the end");
        break;
    }
    case 10: {
        wire::signs_of_life read;
        if (!read.read(body, ranks)) break;
        require(read.cut_off >= -1 && read.cut_off < static_cast<int>(ranks),
                "who is cut off is a rank of the world");
        for (std::size_t r = ranks; r < ranks + 9; ++r)
            require(!read.has(r), "who was heard is a rank of the world");
        if (read.cut_off >= 0 || !read.bits.empty())
            require(same(read.write(), body), "signs of life come back as they were");
        break;
    }
    case 11: {
        wire::resume read;
        if (read.read(body)) require(same(read.write(), body), "a resume comes back as it was");
        break;
    }
    case 13: {
        split_choice read;
        if (read.read(body))
            require(same(body.size() == split_choice::bytes ? read.write() : read.write_result(), body),
                    "a colour and a key come back as they were");
        break;
    }
    default:
        gather(body, ranks);
    }
    fuzz::memory::require_below(4 * size + 16384, 16 * size + 65536);
    return 0;
}
