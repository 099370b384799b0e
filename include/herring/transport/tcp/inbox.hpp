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
#include "herring/transport/tcp/link.hpp"
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

/// The messages to a peer; the note is the token of the send.
using tcp_writer = frame_writer<frame_bytes + most_envelope_bytes, std::uint64_t>;

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

    std::uint64_t token = 0; ///< of the posted receive
    std::uint64_t tag = 0;
    std::size_t bytes = 0;
    kept_envelope envelope;
    enum { into_posted, into_unexpected, into_nowhere } destination = into_nowhere;
    tcp_unexpected* early = nullptr;  ///< with into_unexpected
    fixed_array<std::byte> discarded; ///< payload of a dropped frame

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

    /// Returns the destination of a payload; nullptr: it stays in the socket for now, or the peer is lost.
    template <class Lose>
    std::byte* destination(tcp_peer& peer, tcp_lane& l, frame const& header,
                           std::span<std::byte const> envelope, Lose const& lose) noexcept {
        l.bytes = static_cast<std::size_t>(header.length);
        l.tag = header.tag;
        l.envelope.keep(envelope);
        if (header.length > largest_) {
            std::snprintf(
                peer.reason, sizeof peer.reason,
                "it announced a message of %llu bytes where at most %zu can be due: do all ranks call the "
                "same operations with the same sizes?",
                static_cast<unsigned long long>(header.length), largest_);
            lose(peer, EMSGSIZE);
            return nullptr;
        }
        if (header.job != job_ || header.epoch != 0 || header.incarnation != peer.incarnation ||
            header.source != static_cast<std::uint32_t>(peer.rank)) {
            ++dropped_;
            l.destination = tcp_lane::into_nowhere;
            if (l.discarded.size() <= l.bytes && !allocate(peer, l.discarded, l.bytes + 1, lose))
                return nullptr;
            return l.discarded.data();
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
                return nullptr;
            }
            l.destination = tcp_lane::into_posted;
            l.token = match.token;
            return match.into.data() != nullptr ? match.into.data() : &nothing_;
        }
        if (buffered_ + l.bytes + cost > limit_) return nullptr;
        fixed_array<std::byte> bytes;
        if (!allocate(peer, bytes, l.bytes, lose)) return nullptr;
        try {
            l.early = &peer.unexpected.emplace_back();
        } catch (std::bad_alloc const&) {
            return out_of_memory(peer, l.bytes, lose), nullptr;
        }
        buffered_ += l.bytes + cost;
        l.destination = tcp_lane::into_unexpected;
        l.early->tag = header.tag;
        l.early->bytes = std::move(bytes);
        l.early->envelope = l.envelope;
        return l.bytes > 0 ? l.early->bytes.data() : &nothing_;
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

    template <class Lose>
    HERRING_SETUP bool allocate(tcp_peer& peer, fixed_array<std::byte>& to, std::size_t bytes,
                                Lose const& lose) noexcept {
        try {
            to = fixed_array<std::byte>(bytes);
            return true;
        } catch (std::bad_alloc const&) {
            out_of_memory(peer, bytes, lose);
            return false;
        }
    }
    template <class Lose>
    HERRING_SETUP void out_of_memory(tcp_peer& peer, std::size_t bytes, Lose const& lose) noexcept {
        std::snprintf(peer.reason, sizeof peer.reason,
                      "this rank has no memory for a message of %zu bytes that came before its receive; "
                      "raise the limit "
                      "(ulimit -v, cgroup), or lower tcp_tuning::unexpected_bytes",
                      bytes);
        lose(peer, ENOMEM);
    }

    std::uint64_t job_;
    std::size_t largest_;
    std::size_t limit_;
    std::size_t buffered_ = 0;
    std::uint64_t dropped_ = 0;
    std::list<tcp_unexpected> taken_; // delivered, with envelopes that are not reported yet
    std::byte nothing_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_INBOX_HPP
