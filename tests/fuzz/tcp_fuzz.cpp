// herring: fuzz target of transport/tcp/: frames of a data connection, split anywhere, into receives and the early-message store.
// SPDX-License-Identifier: Apache-2.0
//
// Input: records. A record says what it is: a receive that is posted, a frame with its payload (its checksum is right), or
// bytes as they are; behind it how many bytes the socket is given at once.
#include "fuzz.hpp"

#include "herring/machine/address.hpp"
#include "herring/transport/tcp/inbox.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/socket.h>

using namespace herring;
using namespace herring::detail;
using fuzz::require;

namespace {

constexpr std::uint64_t job = 7;
constexpr std::size_t largest = 512, kept = 2048, receives = 8;

/// What a transport does with one connection.
struct rank {
    tcp_inbox inbox{job, largest, kept};
    tcp_peer peer;
    tcp_lane lane;
    drain_buffer<completion> done{64};
    std::array<std::array<std::byte, largest + 16>, receives> memory{};
    std::array<std::size_t, receives> room{}; // 0: not posted
    std::array<std::uint64_t, receives> tags{};
    int socket = -1;

    rank() {
        int both[2];
        require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both) == 0, "a socket");
        lane.socket = descriptor(both[0]);
        lane.in = tcp_reader(tcp_stash_bytes);
        socket = both[1];
        peer.id = peer_id{0};
        peer.rank = 3;
        peer.incarnation = 9;
        peer.posted = match_table(receives);
        for (auto& each : memory) each.fill(std::byte{0xA5});
    }
    ~rank() { ::close(socket); }

    auto losing() {
        return [](tcp_peer& lost, int number) noexcept {
            require(number == EPROTO || number == EMSGSIZE, "a peer is lost for what it sent");
            if (number == EMSGSIZE) require(lost.reason[0] != 0, "and it is said why");
            lost.is_lost = true;
        };
    }
    void is_received(std::uint64_t token, std::size_t bytes) {
        require(token < receives && room[token] != 0, "what is received was posted");
        require(bytes <= room[token] - 1, "and fits");
        for (std::size_t i = room[token] - 1; i < memory[token].size(); ++i)
            require(memory[token][i] == std::byte{0xA5}, "nothing is written behind a receive");
        memory[token].fill(std::byte{0xA5});
        room[token] = 0;
    }
    void post(std::size_t token, std::uint64_t tag, std::size_t bytes) {
        for (std::size_t i = 0; i < receives; ++i) // no engine posts two receives of one tag
            if (room[i] != 0 && (i == token || tags[i] == tag)) return;
        tags[token] = tag;
        room[token] = bytes + 1;
        posted_receive const receive{tag, token, {memory[token].data(), bytes}};
        if (!inbox.take(peer, receive, done, losing())) peer.posted.insert(receive);
        hand_out();
    }
    void hand_out() {
        auto const take = [&](completion const& c) noexcept { is_received(c.token, c.bytes); };
        inbox.hand_out(done, take);
    }
    void read() {
        while (!peer.is_lost) {
            auto const destination = [&](frame const& header, std::span<std::byte const> envelope) noexcept {
                require(envelope.size() <= most_envelope_bytes, "an envelope is bounded before it is copied");
                return inbox.destination(peer, lane, header, envelope, losing());
            };
            std::size_t moved = 0;
            auto const received = [&](frame const& header) noexcept {
                ++moved;
                if (lane.early == nullptr)
                    is_received(lane.token, static_cast<std::size_t>(header.length));
                else
                    inbox.complete(peer, *lane.early, done, losing());
            };
            stream_state const ended = lane.in.read(lane.socket, 4, destination, received);
            hand_out();
            if (ended != stream_state::ok) {
                peer.is_lost = true;
                break;
            }
            if (moved == 0) break;
        }
        std::size_t bytes = 0;
        for (tcp_unexpected const& each : peer.unexpected) bytes += each.bytes.size() + 128;
        require(bytes <= kept, "early messages take no more than was agreed");
    }
    void give(std::span<std::byte const> bytes, std::size_t at_once) {
        while (!bytes.empty() && !peer.is_lost) {
            auto const part = bytes.first(std::min(at_once, bytes.size()));
            ssize_t const sent = ::send(socket, part.data(), part.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            if (sent <= 0) break; // a message waits for its receive, and the socket is full
            bytes = bytes.subspan(static_cast<std::size_t>(sent));
            read();
        }
    }
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    auto const to = std::make_unique<rank>();
    fuzz::memory::begin();
    endpoint address;
    if (address.read(in.rest)) (void)address.text();
    std::size_t budget = std::size_t{1} << 16; // of bytes that are sent
    while (!in.empty() && budget > 0 && !to->peer.is_lost) {
        auto const what = in.number(1);
        std::size_t const at_once = 1 + in.number(1) * in.number(1);
        if (what % 4 == 0) {
            std::size_t const token = in.number(1) % receives;
            auto const tag = in.number(1);
            to->post(token, tag, in.number(2) % (largest + 1));
            continue;
        }
        std::vector<std::byte> bytes;
        if (what % 4 == 1) {
            auto const raw = in.bytes(in.number(1));
            bytes.assign(raw.begin(), raw.end());
        } else {
            frame front{
                .job = job, .incarnation = 9, .tag = in.number(1), .length = in.number(2), .source = 3};
            if ((what & 8) != 0) front.length = in.number(8);
            if ((what & 16) != 0) front.job = in.number(8);
            if ((what & 32) != 0) front.source = static_cast<std::uint32_t>(in.number(4));
            if ((what & 64) != 0) front.epoch = static_cast<std::uint32_t>(in.number(4));
            if ((what & 128) != 0) front.incarnation = static_cast<std::uint32_t>(in.number(4));
            // Every other frame has an envelope, now and then one that is too long.
            front.envelope =
                what % 4 == 3 ? static_cast<std::uint32_t>(in.number(1) % (most_envelope_bytes + 2)) : 0;
            bool const due = front.envelope <= most_envelope_bytes;
            frame_buffer header;
            encode(front, header.data());
            frame read;
            require(decode(header, read) == due, "an envelope that is too long makes a frame none");
            require(!due || (read.length == front.length && read.tag == front.tag &&
                             read.envelope == front.envelope),
                    "a frame comes back");
            bytes.assign(header.begin(), header.end());
            auto const beside = in.bytes(front.envelope);
            bytes.insert(bytes.end(), beside.begin(), beside.end());
            bytes.resize(frame_bytes + front.envelope);
            auto const body = in.bytes(std::min<std::uint64_t>(front.length, in.number(1)));
            bytes.insert(bytes.end(), body.begin(), body.end());
            if (what % 4 == 2) bytes.resize(frame_bytes + std::min<std::uint64_t>(front.length, largest));
        }
        budget -= std::min(budget, bytes.size() + 1);
        to->give(bytes, at_once);
    }
    fuzz::memory::require_below(4096, 1 << 22);
    return 0;
}
