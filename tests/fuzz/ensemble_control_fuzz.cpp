// herring: fuzz target of an ensemble's control: bodies of messages, and whole connections to a frontend's end and to a member's.
// SPDX-License-Identifier: Apache-2.0
//
// Input: what is met (0: decoders, 1: a frontend, 2: a frontend without a secret, 3: a member), then a body behind its kind, or
// records: a message, whose checksums are right, or bytes as they are.
#include "fuzz.hpp"

#include "herring/ensemble/dialler_core.hpp"
#include "herring/ensemble/door_core.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/name_lookup.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

using namespace herring::detail;
namespace ensembles = herring::detail::ensembles;
using fuzz::require;

namespace {

ensembles::shape own() { return {"speech", "combine::mean", "float", 8, 32, 64, "v1"}; }

/// What was read can be written, and reads as the same bytes again.
template <class Message> void comes_back(std::span<std::byte const> body) {
    Message first, second;
    if (!first.read(body)) return;
    byte_buffer const written = first.write();
    require(written.size() == body.size(), "a message has one size");
    require(second.read(written), "what was written can be read");
    byte_buffer const again = second.write();
    require(again.size() == written.size() && std::memcmp(again.data(), written.data(), again.size()) == 0,
            "what was read comes back");
}

void decode(fuzz::input& in) {
    auto const which = in.number(1) % 4;
    if (which == 0) comes_back<ensembles::hello>(in.rest);
    if (which == 1) comes_back<ensembles::admit>(in.rest);
    if (which == 2) comes_back<ensembles::refuse>(in.rest);
    if (which == 3) comes_back<ensembles::lane_hello>(in.rest);
}

byte_buffer record(fuzz::input& in) {
    byte_buffer made;
    auto const what = in.number(1);
    if ((what & 1) != 0) {
        made.append(in.bytes(in.number(1)));
        return made;
    }
    auto const kind = static_cast<ensembles::message>(60 + in.number(1) % 20);
    auto const body = in.bytes(in.number(2));
    auto const version =
        (what & 2) != 0 ? static_cast<std::uint16_t>(in.number(2)) : ensembles::protocol_version;
    ensembles::append_message(made, kind, body, version);
    if ((what & 4) != 0) made.data()[in.number(2) % made.size()] ^= static_cast<std::byte>(in.number(1));
    return made;
}

/// Gives the records to the socket; `turn` lets the other end read.
template <class Turn> void give(fuzz::input& in, int socket, Turn&& turn) {
    for (int i = 0; i < 16 && !in.empty(); ++i) {
        byte_buffer const bytes = record(in);
        (void)::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        turn();
    }
    ::shutdown(socket, SHUT_WR);
    turn();
}

std::string const secret_digits(64, 'a');

void door(fuzz::input& in, bool secret) {
    ensembles::door_options options;
    options.address = "127.0.0.1:0";
    if (secret) options.secret = secret_digits;
    ensembles::door_core core(options, own(), {"a"});
    core.share(-1);
    endpoint at;
    std::string why;
    at = resolve("127.0.0.1", 1, herring::clock::now() + std::chrono::seconds(5), why)[0];
    at.port(static_cast<std::uint16_t>(std::stoi(core.address().substr(core.address().rfind(':') + 1))));
    descriptor const socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(::connect(socket.get(), at.get(), at.size) == 0, "a frontend listens");
    std::vector<ensembles::door_notice> notices;
    auto const turn = [&] {
        core.thread().wake();
        core.turn(notices);
    };
    turn();
    give(in, socket.get(), turn);
    for (auto const& each : notices)
        require(each.kind == ensembles::door_notice::what::refused, "nobody is admitted without a lane");
    require(core.counters().admitted == 0, "and none is counted");
}

void dialler(fuzz::input& in) {
    std::string why;
    endpoint const anywhere =
        resolve("127.0.0.1", 0, herring::clock::now() + std::chrono::seconds(5), why)[0];
    descriptor const listener(listen_on(anywhere));
    require(listener.get() >= 0, "a port");
    ensembles::dialler_options options;
    options.frontends = {local_end(listener.get()).text()};
    options.name = "a";
    options.secret = secret_digits;
    ensembles::dialler_core core(options, own());
    std::vector<ensembles::dialler_notice> notices;
    auto const turn = [&] {
        core.thread().wake();
        core.turn(notices);
    };
    turn(); // dials
    turn(); // knocks
    descriptor const socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    give(in, socket.get(), turn);
    for (auto const& each : notices)
        require(each.kind == ensembles::dialler_notice::what::disconnected,
                "what proves nothing neither connects a member nor ends it");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    fuzz::memory::begin();
    switch (in.number(1) % 4) {
    case 0:
        decode(in);
        break;
    case 1:
        door(in, true);
        break;
    case 2:
        door(in, false);
        break;
    default:
        dialler(in);
    }
    fuzz::memory::require_below(std::size_t{1} << 16, std::size_t{1} << 21);
    return 0;
}
