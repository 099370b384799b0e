// herring: fuzz target of an ensemble's control: bodies of messages, and whole connections to a frontend's end and to a member's.
// SPDX-License-Identifier: Apache-2.0
//
// Input: what is met (0: decoders, 1: a frontend, 2: a frontend without a secret, 3: a member), then a body behind its kind, or
// records: a message, whose checksums are right, or bytes as they are.
#include "fuzz.hpp"

#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/dialler.hpp"
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

/// A frontend whose members prove nothing: some are refused, none is admitted.
struct frontend_sink {
    void admitted(ensembles::peer_index, std::uint64_t, std::uint32_t, ensembles::lane_ends&&) { wrong(); }
    void draining(ensembles::peer_index, std::uint64_t) { wrong(); }
    void lost(ensembles::peer_index, std::uint64_t, std::string_view) { wrong(); }
    void refused(herring::admission_refusal, std::string_view) {}
    int local_memory() { return -1; }
    static void wrong() { require(false, "nobody is admitted without a lane"); }
};
/// A member whose frontend proves nothing.
struct member_sink {
    void connected(std::size_t, ensembles::admission const&, ensembles::lane_ends&&) { wrong(); }
    void disconnected(std::size_t, std::string_view) {}
    void refused(std::size_t, herring::failure const&) { wrong(); }
    descriptor local_memory(std::size_t, ensembles::admission const&) {
        wrong();
        return descriptor();
    }
    static void wrong() { require(false, "what proves nothing neither connects a member nor ends it"); }
};

void acceptor(fuzz::input& in, bool secret) {
    ensembles::acceptor_options options;
    options.address = "127.0.0.1:0";
    if (secret) options.secret = secret_digits;
    frontend_sink sink;
    ensembles::acceptor_core core(options, own(), {"a"}, ensembles::acceptor_calls::of(sink));
    core.share(-1);
    endpoint at;
    std::string why;
    at = resolve("127.0.0.1", 1, herring::clock::now() + std::chrono::seconds(5), why)[0];
    at.port(static_cast<std::uint16_t>(std::stoi(core.address().substr(core.address().rfind(':') + 1))));
    descriptor const socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(::connect(socket.get(), at.get(), at.size) == 0, "a frontend listens");
    auto const turn = [&] {
        core.thread().wake();
        core.turn();
    };
    turn();
    give(in, socket.get(), turn);
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
    member_sink sink;
    ensembles::dialler_core core(options, own(), ensembles::dialler_calls::of(sink));
    auto const turn = [&] {
        core.thread().wake();
        core.turn();
    };
    turn(); // dials
    turn(); // knocks
    descriptor const socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.get() < 0) return;
    give(in, socket.get(), turn);
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
        acceptor(in, true);
        break;
    case 2:
        acceptor(in, false);
        break;
    default:
        dialler(in);
    }
    fuzz::memory::require_below(std::size_t{1} << 16, std::size_t{1} << 21);
    return 0;
}
