// herring: matches incoming frames with posted receives, and buffers messages that come before their receive.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TCP_INBOX_HPP
#define HERRING_TRANSPORT_TCP_INBOX_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/tcp/frame.hpp"
#include "herring/transport/tcp/peer.hpp"
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

/// Decides where payloads go. Does no I/O. A header is checked against the bounds of the plan before it is believed.
///
/// `lose(peer, errno)` is called where a peer cannot go on; `peer.reason` is set by then.
class tcp_inbox {
  public:
    /// `buffered`: bytes of early messages, of all peers, at most.
    tcp_inbox(std::uint64_t job, std::size_t largest_message, std::size_t buffered) noexcept
        : job_(job), largest_(largest_message), limit_(buffered) {}

    /// Frames of another job or another sender, which were dropped.
    std::uint64_t dropped() const noexcept { return dropped_; }

    /// Where the payload of a frame goes; nullptr: it stays in the socket for now, or the peer is lost.
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

    /// An early message is complete; its receive may have been posted while it came in.
    template <class Lose>
    void complete(tcp_peer& peer, tcp_unexpected& message, drain_buffer<completion>& done,
                  Lose const& lose) noexcept {
        message.complete = true;
        posted_receive match;
        if (peer.posted.take(message.tag & ~carried_bits, match)) take(peer, match, done, lose);
    }

    /// Copies the early message of a receive's tag, if one is complete. False: there is none.
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
        } else { // its envelope stays until it is reported
            found->bytes = {};
            taken_.splice(taken_.end(), peer.unexpected, found);
        }
        done.push(what);
        return true;
    }

    /// Hands out what is done, and lets go of the envelopes with it.
    template <class Take> std::size_t hand_out(drain_buffer<completion>& done, Take& take) noexcept {
        if (taken_.empty()) [[likely]]
            return done.hand_out(take);
        return hand_out_early(done, take);
    }

  private:
    // Bytes of a buffered message beside its payload, so that empty ones are bounded, too.
    static constexpr std::size_t cost = 128;

    template <class Take>
    [[gnu::noinline]] std::size_t hand_out_early(drain_buffer<completion>& done, Take& take) noexcept {
        std::list<tcp_unexpected> reported; // until the end of this; the functor may post: more is taken
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
    std::list<tcp_unexpected> taken_; // by receives whose completions are not handed out yet
    std::byte nothing_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_TCP_INBOX_HPP
