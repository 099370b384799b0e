// herring: fuzz target of a whole world's control: messages split anywhere, from ranks and from what is none, to rank 0 and to a rank.
// SPDX-License-Identifier: Apache-2.0
//
// Input: flags, then records. The other end is in the hands of the input: a rank (or somebody) that rank 0 meets, or the rank 0 (or
// whatever listens there) that a rank meets. A record is a message, whose checksums are right, or bytes as they are; behind
// it how many bytes are sent at once.
#include "fuzz.hpp"

#include "herring/control/rendezvous/rendezvous.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/world.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

using namespace herring::detail;
namespace rendezvous = herring::detail::rendezvous;
using fuzz::require;
using rendezvous::message_kind;
using std::chrono::milliseconds;

namespace {

constexpr int ranks = 2;
constexpr milliseconds soon{8}, plenty{20'000};

struct record {
    std::vector<std::byte> bytes{};
    std::size_t at_once = 0;
};

/// 64 KiB at most.
std::vector<record> records(fuzz::input& in, std::uint32_t usual_rank) {
    std::vector<record> found;
    for (std::size_t budget = std::size_t{1} << 16; !in.empty() && budget > 0 && found.size() < 64;) {
        record& made = found.emplace_back();
        auto const what = in.number(1);
        made.at_once = 1 + in.number(1) * in.number(1);
        if ((what & 1) != 0) {
            auto const raw = in.bytes(in.number(1));
            made.bytes.assign(raw.begin(), raw.end());
        } else {
            auto const kind = static_cast<message_kind>((what & 2) != 0 ? in.number(2) : in.number(1) % 22);
            auto const rank = (what & 4) != 0 ? static_cast<std::uint32_t>(in.number(4)) : usual_rank;
            auto const sequence = (what & 8) != 0 ? in.number(8) : in.number(1);
            auto const text = in.bytes(in.number((what & 16) != 0 ? 2 : 1));
            byte_buffer bytes;
            std::uint16_t const version =
                (what & 32) != 0 ? static_cast<std::uint16_t>(in.number(2)) : rendezvous::protocol_version;
            rendezvous::append_message(bytes, kind, rank, sequence, text, version);
            made.bytes.assign(bytes.begin(), bytes.end());
            if ((what & 64) != 0 && !made.bytes.empty()) // announces more than it sends, or is altered
                made.bytes[in.number(1) % made.bytes.size()] ^= static_cast<std::byte>(in.number(1));
        }
        budget -= std::min(budget, made.bytes.size() + 1);
    }
    return found;
}

void give(int socket, std::vector<record> const& all) {
    for (record const& each : all) {
        std::span<std::byte const> rest(each.bytes);
        while (!rest.empty()) {
            auto const part = rest.first(std::min(each.at_once, rest.size()));
            ssize_t const sent = ::send(socket, part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent <= 0) return;
            rest = rest.subspan(static_cast<std::size_t>(sent));
            std::this_thread::yield();
        }
    }
}

/// The job of the welcome that comes; nothing: none does.
std::optional<std::uint64_t> await_welcome(int socket) {
    std::vector<std::byte> come;
    std::byte some[512];
    pollfd ready{socket, POLLIN, 0};
    while (::poll(&ready, 1, 200) == 1) {
        ssize_t const n = ::recv(socket, some, sizeof some, 0);
        if (n <= 0) break;
        come.insert(come.end(), some, some + n);
        for (std::span<std::byte const> rest(come); rest.size() >= rendezvous::head_bytes;) {
            rendezvous::head h;
            if (!h.read(rest) || rest.size() < rendezvous::head_bytes + h.length) break;
            rendezvous::welcome told;
            if (h.type == message_kind::welcome &&
                told.read(rest.subspan(rendezvous::head_bytes, h.length), ranks) == nullptr)
                return told.job;
            rest = rest.subspan(rendezvous::head_bytes + h.length);
        }
    }
    return {};
}

/// Reads until the other end closes: so that nothing waits for this end.
void drain(int socket) {
    std::byte junk[4096];
    pollfd ready{socket, POLLIN, 0};
    while (::poll(&ready, 1, 200) == 1 && ::recv(socket, junk, sizeof junk, 0) > 0) {
    }
}

rendezvous::settings settings(int rank, endpoint const& at, int listener, bool has_secret) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = ranks;
    made.addresses = fixed_array<endpoint>(1);
    made.addresses[0] = at;
    made.address_text = "here";
    made.node = made.boot = "here";
    made.timeout = soon;
    made.deadline = herring::clock::now() + soon;
    made.asked.detector = {.peer_timeout = plenty,
                           .heartbeat = milliseconds(10),
                           .reply_timeout = milliseconds(100),
                           .verdict_timeout = milliseconds(100)};
    made.times = resolve(made.asked);
    if (listener >= 0) made.listeners.emplace_back(listener);
    if (has_secret) made.secret.emplace(secrets{secret(std::string(64, 'a')), {}, {}});
    return made;
}

/// An error that a decoder or a collective ends in has a name, and names ranks of the world.
template <class Work> void named(Work&& work) {
    try {
        work();
    } catch (herring::error const& why) {
        require(why.code() != herring::errc::ok, "an error has a name");
        require(why.peer() >= -1 && why.peer() < ranks, "an error names a rank of the world");
    }
}

void live(rendezvous::settings&& made) {
    named([&] {
        membership joined = rendezvous::join_world(std::move(made));
        require(joined.map.size() == ranks && joined.ranks_on_this_machine >= 1 &&
                    joined.ranks_on_this_machine <= ranks,
                "the world that was joined is the one that was asked for");
        herring::world w(std::move(joined));
        std::byte const mine[3]{};
        named([&] {
            auto const all = w.all_gather(mine, soon);
            require(all.size() == ranks && (w.rank() != 0 || std::as_const(all)[0].size() == sizeof mine),
                    "everybody's bytes; and rank 0 has its own");
        });
        named([&] { w.barrier(soon); });
        named([&] {
            herring::world group = w.split(1, -w.rank(), soon);
            require(group.size() >= 1 && group.size() <= ranks && group.rank() < group.size(),
                    "a group has ranks of its world, among them this one");
            group.barrier(soon);
        });
    });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    auto const flags = in.number(1);
    bool const to_rank_0 = (flags & 1) != 0;
    bool const has_secret = (flags & 4) != 0; // of the library's end; the input's proves nothing
    std::vector<record> first = records(in, to_rank_0 ? 1 : 0);
    if ((flags & 2) != 0) { // the other end is admitted before its records come
        byte_buffer bytes;
        if (to_rank_0) {
            rendezvous::hello said;
            said.size = ranks;
            said.rank = 1;
            said.incarnation = 1;
            said.node = said.boot = "there";
            byte_buffer words = said.write();
            words.append(rendezvous::proof{});
            rendezvous::append_message(bytes, message_kind::knock, 1, 0, {});
            rendezvous::append_message(bytes, message_kind::hello, 1, 0, words);
        } else {
            rendezvous::append_message(bytes, message_kind::challenge, 0, 0, rendezvous::challenge{}.write());
            rendezvous::append_message(bytes, message_kind::admit, 0, 0, rendezvous::admit{}.write());
            rendezvous::welcome told{1, resolve({}), {0, 1}, {0, 1}};
            rendezvous::append_message(bytes, message_kind::welcome, 0, 0, told.write());
        }
        first.insert(first.begin(), record{{bytes.begin(), bytes.end()}, 4096});
    }
    static endpoint const anywhere = [] {
        std::string why;
        return resolve("127.0.0.1", 0, herring::clock::now() + plenty, why)[0];
    }();
    int const listener = listen_on(anywhere);
    require(listener >= 0, "a port");
    endpoint const at = local_end(listener);
    fuzz::memory::begin();
    if (to_rank_0) {
        int const socket = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(::connect(socket, at.get(), at.size) == 0, "a connection");
        std::thread other([&] {
            // Where there is no secret: the records come over a second connection of the rank that is admitted.
            if ((flags & 14) == 10) {
                give(socket, {first.front()});
                first.erase(first.begin());
                rendezvous::resume said;
                said.rank = 1;
                said.incarnation = said.attempt = 1;
                said.job = await_welcome(socket).value_or(0);
                byte_buffer words = said.write(), bytes;
                words.append(rendezvous::proof{});
                rendezvous::append_message(bytes, message_kind::knock, 1, 0, {});
                rendezvous::append_message(bytes, message_kind::resume, 1, 0, words);
                int const again = ::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (::connect(again, at.get(), at.size) == 0) { // its world may have ended
                    give(again, {record{{bytes.begin(), bytes.end()}, 4096}});
                    give(again, first);
                    ::shutdown(again, SHUT_WR);
                    drain(again);
                }
                ::close(again);
            } else {
                give(socket, first);
            }
            ::shutdown(socket, SHUT_WR);
            drain(socket);
            ::close(socket);
        });
        live(settings(0, at, listener, has_secret));
        other.join();
    } else {
        std::thread other([&] {
            pollfd knock{listener, POLLIN, 0};
            if (::poll(&knock, 1, 1000) == 1) {
                int const socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
                ::close(listener); // who tries again finds nobody, and gives up at its deadline
                give(socket, first);
                ::shutdown(socket, SHUT_WR);
                drain(socket);
                ::close(socket);
            } else {
                ::close(listener);
            }
        });
        live(settings(1, at, -1, has_secret));
        other.join();
    }
    fuzz::memory::require_below(std::size_t{1} << 18, std::size_t{1} << 22);
    return 0;
}
