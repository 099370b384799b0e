// herring: the peers of transport::tcp; matches frames with posted receives, and buffers early messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_INBOX_HPP
#define HERRING_TRANSPORT_TCP_INBOX_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/model/roles.hpp"
#include "herring/net/frame_stream.hpp"
#include "herring/transport/envelope.hpp"
#include "herring/transport/tcp/frame.hpp"
#include "herring/transport/tcp/match_table.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <list>
#include <new>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Messages to a peer, and from it. The note is the token of the send.
using tcp_writer = frame_writer<frame_bytes + most_envelope_bytes, std::uint64_t>;
using tcp_reader = frame_reader<frame, frame_bytes>;

/// Bytes that are read along with the rest of a payload: the next head with up to 4 KiB behind it.
inline constexpr std::size_t tcp_stash_bytes = frame_bytes + most_envelope_bytes + 4096;

/// An early message, buffered until its receive is posted.
struct tcp_unexpected {
    std::uint64_t tag = 0;
    fixed_array<std::byte> bytes;
    kept_envelope envelope;
    bool complete = false; ///< the whole payload is read
};

/// One connection to a peer, and the payload that is being read from it.
struct tcp_lane {
    descriptor socket;
    data_socket watched; ///< entry of the open socket in the world's list
    tcp_writer out;
    tcp_reader in;
    std::size_t at = 0; ///< place among the connections of all peers

    kept_envelope envelope;          ///< of the message that is read
    tcp_unexpected* early = nullptr; ///< where it is early
    std::uint64_t token = 0;         ///< else: of the posted receive

    bool is_open() const noexcept { return socket.get() >= 0; }
};

/// A peer: its connections, posted receives and early messages.
struct tcp_peer {
    peer_id id{};
    int rank = -1;
    bool is_lost = false;
    std::uint32_t incarnation = 0; ///< of its transport; frames of another are dropped
    std::size_t next_lane = 0;
    fixed_array<tcp_lane> lanes;
    match_table posted;
    std::list<tcp_unexpected> unexpected;
    char reason[200] = ""; ///< why the peer is lost
};

/// Decides the destination of each payload. Does no I/O. A header is checked against the bounds of the plan
/// first.
///
/// `lose(peer, errno)` is called, with `peer.reason` set, where a peer cannot go on.
class tcp_inbox {
  public:
    /// `buffered`: most bytes of early messages, of all peers.
    tcp_inbox(std::uint64_t job, std::size_t largest_message, std::size_t buffered) noexcept
        : job_(job), largest_(largest_message), limit_(buffered) {}

    /// Returns the number of dropped frames, of another job or another sender.
    std::uint64_t dropped() const noexcept { return dropped_; }

    /// Returns the destination of a payload. `wait`: there is no memory for it now, or the peer is lost.
    template <class Lose>
    landing destination(tcp_peer& peer, tcp_lane& l, frame const& header, std::span<std::byte const> envelope,
                        Lose const& lose) noexcept {
        l.envelope.keep(envelope);
        if (header.length > largest_) {
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "it announced a message of %llu bytes where at most %zu can be due: do all ranks call the "
                "same operations with the same sizes?",
                static_cast<unsigned long long>(header.length), largest_);
            lose(peer, EMSGSIZE);
            return {};
        }
        if (header.job != job_ || header.epoch != 0 || header.incarnation != peer.incarnation ||
            header.source != static_cast<std::uint32_t>(peer.rank)) {
            ++dropped_;
            return {landing::action::skip};
        }
        posted_receive match;
        if (peer.posted.take(header.tag & ~carried_bits, match)) {
            if (match.into.size() < header.length) {
                std::snprintf(
                    peer.reason, sizeof peer.reason,
                    "it sent %llu bytes where %zu were due: do all ranks call the same operations with the "
                    "same sizes?",
                    static_cast<unsigned long long>(header.length), match.into.size());
                lose(peer, EMSGSIZE);
                return {};
            }
            l.early = nullptr;
            l.token = match.token;
            return {landing::action::land, match.into.data()};
        }
        std::size_t const bytes = static_cast<std::size_t>(header.length);
        if (buffered_ + bytes + cost > limit_) return {};
        l.early = keep(peer, bytes, lose);
        if (l.early == nullptr) return {};
        buffered_ += bytes + cost;
        l.early->tag = header.tag;
        l.early->envelope = l.envelope;
        return {landing::action::land, l.early->bytes.data()};
    }

    /// Marks an early message as complete, and delivers it if its receive was posted meanwhile.
    template <class Lose>
    void complete(tcp_peer& peer, tcp_unexpected& message, drain_buffer<completion>& done,
                  Lose const& lose) noexcept {
        message.complete = true;
        posted_receive match;
        if (peer.posted.take(message.tag & ~carried_bits, match)) take(peer, match, done, lose);
    }

    /// Delivers a complete early message with the tag of a receive. False: there is none.
    template <class Lose>
    bool take(tcp_peer& peer, posted_receive const& to, drain_buffer<completion>& done,
              Lose const& lose) noexcept {
        auto const found = std::find_if(peer.unexpected.begin(), peer.unexpected.end(), [&](auto const& m) {
            return (m.tag & ~carried_bits) == to.tag && m.complete;
        });
        if (found == peer.unexpected.end()) return false;
        std::size_t const bytes = found->bytes.size();
        if (bytes > to.into.size()) {
            std::snprintf(peer.reason, sizeof peer.reason, "it sent %zu bytes where %zu were due", bytes,
                          to.into.size());
            lose(peer, EMSGSIZE);
            return true;
        }
        if (bytes > 0) std::memcpy(to.into.data(), found->bytes.data(), bytes);
        buffered_ -= bytes + cost;
        completion const what{
            to.token, bytes, peer.id, completion::received, errc::ok, found->tag, found->envelope.view()};
        if (found->envelope.size == 0) {
            peer.unexpected.erase(found);
        } else { // the envelope stays until the message is reported
            found->bytes = {};
            taken_.splice(taken_.end(), peer.unexpected, found);
        }
        done.push(what);
        return true;
    }

    /// Reports completions and frees their envelopes. Returns their number.
    template <class Take> std::size_t hand_out(drain_buffer<completion>& done, Take& take) noexcept {
        if (taken_.empty()) [[likely]]
            return done.hand_out(take);
        return hand_out_early(done, take);
    }

  private:
    // Bytes of a buffered message beside its payload, which bound the number of empty messages.
    static constexpr std::size_t cost = 128;

    template <class Take>
    [[gnu::noinline]] std::size_t hand_out_early(drain_buffer<completion>& done, Take& take) noexcept {
        // Freed at the end; `taken_` may grow meanwhile, for the functor may post.
        std::list<tcp_unexpected> reported;
        reported.swap(taken_);
        return done.hand_out(take);
    }

    // Allocates an early message. nullptr: there is no memory, and the peer is lost.
    template <class Lose>
    HERRING_SETUP tcp_unexpected* keep(tcp_peer& peer, std::size_t bytes, Lose const& lose) noexcept {
        try {
            fixed_array<std::byte> payload(bytes);
            tcp_unexpected& kept = peer.unexpected.emplace_back();
            kept.bytes = std::move(payload);
            return &kept;
        } catch (std::bad_alloc const&) {
            std::snprintf(peer.reason, sizeof peer.reason,
                          "this rank has no memory for a message of %zu bytes that came before its receive; "
                          "raise the limit "
                          "(ulimit -v, cgroup), or lower tcp_tuning::unexpected_bytes",
                          bytes);
            lose(peer, ENOMEM);
            return nullptr;
        }
    }

    std::uint64_t job_;
    std::size_t largest_;
    std::size_t limit_;
    std::size_t buffered_ = 0;
    std::uint64_t dropped_ = 0;
    std::list<tcp_unexpected> taken_; // delivered, with envelopes that are not reported yet
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_INBOX_HPP
