// herring: the connection of a rank with its peers over libfabric: endpoint, bounded calls, lost peers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_CHANNEL_HPP
#define HERRING_TRANSPORT_OFI_CHANNEL_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/world.hpp"
#include "herring/transport/ofi/endpoint.hpp"
#include "herring/transport/ofi/escapable_calls.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// A peer, and its messages in flight.
struct ofi_peer {
    int rank = -1;
    bool is_lost = false;
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::uint64_t sending = 0;            ///< messages to the peer in flight
    std::uint64_t sent = 0, received = 0; ///< complete messages
    char reason[280] = "";                ///< why the peer is lost
};

/// A post in flight. Meanwhile the provider owns the first member (FI_CONTEXT2).
struct ofi_post {
    enum kind : std::uint8_t { send, receive, hello, goodbye, note_out };
    fi_context2 context{};
    ofi_post* next = nullptr;
    std::uint64_t token = 0;
    std::size_t bytes = 0;
    std::uint32_t peer = 0; // peer_id
    kind what = send;
    std::byte* into = nullptr; // of a receive
    std::uint64_t tag = 0;
    std::size_t beside = 0; ///< bytes of the envelope, once received
};

/// The endpoint of a rank, its peers, and the completions for the next poll.
///
/// A peer is lost once, with a reason. All peers are lost after `close`, and once a call into libfabric was
/// abandoned; the endpoint is not used afterwards.
///
/// Threads:  one at a time.
/// Cost:     of a call: as escapable_calls.
/// Lifetime: call `end` before the memory of posts is freed.
class ofi_channel {
  public:
    /// `found`: most completions between two polls, beside losses.
    HERRING_SETUP ofi_channel(world& ranks, std::span<int const> peers, std::size_t found,
                              ofi_facts const& tag)
        : peers_(peers.size()), found_(found + peers.size()), closes_in_flight_(tag.closes_in_flight),
          calls_(ranks, !tag.always_returns && !peers.empty()) {
        for (std::size_t i = 0; i < peers.size(); ++i) peers_[i].rank = peers[i];
    }
    ofi_channel(ofi_channel const&) = delete;
    ofi_channel& operator=(ofi_channel const&) = delete;
    ~ofi_channel() { end(); }

    /// Errors: those of ofi_endpoint.
    HERRING_SETUP void open(ofi_facts const& tag, ofi_info granted, std::size_t posts, int rank) {
        endpoint_ = new ofi_endpoint(tag, std::move(granted), posts, peers_.size(), rank);
        open_ = true;
    }
    /// Exchanges addresses. Collective.
    HERRING_SETUP void connect(world& ranks, transport_needs const& wanted, ofi_facts const& tag) {
        ofi_address const here = endpoint_->address();
        auto const addresses = ranks.all_gather(std::as_bytes(std::span(&here, 1)), wanted.timeout);
        fixed_array<fi_addr_t> to(peers_.size());
        endpoint_->enter(addresses, wanted.peers, tag, {to.data(), to.size()});
        for (std::size_t i = 0; i < to.size(); ++i) peers_[i].address = to[i];
    }

    /// True if the endpoint is in use.
    bool is_open() const noexcept { return open_; }
    /// Returns the endpoint, which exists while `is_open`.
    ofi_endpoint& endpoint() noexcept { return *endpoint_; }
    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device) {
        if (endpoint_ != nullptr) endpoint_->register_memory(memory, device);
    }

    /// Returns the result of a call into libfabric, or `abandoned`: then the endpoint is never used again.
    template <class Call> long call(Call const& one) noexcept {
        if (endpoint_ == nullptr) [[unlikely]]
            return escapable_calls::abandoned;
        long const rc = calls_(one);
        if (rc == escapable_calls::abandoned) [[unlikely]] {
            abandon();
            ofi_endpoint::leak_until_exit(std::exchange(endpoint_, nullptr));
        }
        return rc;
    }

    /// Closes the endpoint. Afterwards libfabric neither reads nor writes posted memory.
    HERRING_SETUP void close() noexcept {
        abandon();
        if (endpoint_ == nullptr) return;
        auto const closing = [this]() noexcept -> long { return endpoint_->close(), 0; };
        if ((closes_in_flight_ || !sends_in_flight()) && calls_(closing) == 0) return;
        ofi_endpoint::leak_until_exit(std::exchange(endpoint_, nullptr));
    }
    HERRING_SETUP void end() noexcept {
        if (open_) close();
        delete std::exchange(endpoint_, nullptr);
    }
    /// True if the endpoint may be closed with messages in flight.
    bool closes_in_flight() const noexcept { return closes_in_flight_; }

    fixed_array<ofi_peer>& peers() noexcept { return peers_; }
    ofi_peer& of(peer_id peer) noexcept { return peers_[peer.place()]; }
    ofi_peer const& of(peer_id peer) const noexcept { return peers_[peer.place()]; }
    std::size_t place(ofi_peer const& p) const noexcept {
        return static_cast<std::size_t>(&p - peers_.data());
    }
    peer_id id(ofi_peer const& p) const noexcept { return peer_id::at(place(p)); }

    /// Completions for the next poll.
    drain_buffer<completion>& found() noexcept { return found_; }

    /// Reports a peer as lost; `p.reason` is set.
    HERRING_SETUP void lose(ofi_peer& p, errc why) noexcept {
        if (p.is_lost) return;
        p.is_lost = true;
        found_.push(completion{0, 0, id(p), completion::lost, why});
    }
    /// Reports a peer as lost because a post was refused for good. Returns false.
    HERRING_SETUP bool refused(ofi_peer& p, long rc, std::size_t bytes) noexcept {
        if (p.is_lost) return false;
        bool const too_long = rc == -FI_EMSGSIZE;
        if (too_long)
            std::snprintf(p.reason, sizeof p.reason,
                          "a message of %zu bytes is more than was announced, or than the provider carries",
                          bytes);
        else
            std::snprintf(
                p.reason, sizeof p.reason,
                "libfabric takes no message for it: %s; its process ended, or the network between is "
                "broken",
                ofi_text(rc));
        lose(p, too_long ? errc::mismatch : errc::peer_lost);
        return false;
    }

  private:
    /// Ends posts and polls.
    HERRING_SETUP void abandon() noexcept {
        open_ = false;
        for (ofi_peer& p : peers_) p.is_lost = true;
    }
    bool sends_in_flight() const noexcept {
        for (ofi_peer const& p : peers_)
            if (p.sending > 0) return true;
        return false;
    }

    fixed_array<ofi_peer> peers_;
    drain_buffer<completion> found_;
    bool open_ = false;
    bool closes_in_flight_;
    escapable_calls calls_;
    ofi_endpoint* endpoint_ = nullptr; // owned, unless it is leaked
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_CHANNEL_HPP
