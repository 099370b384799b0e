// herring: the line to a rank's peers over libfabric: an endpoint, calls on it that end, and who is lost and why.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_LINE_HPP
#define HERRING_TRANSPORT_OFI_LINE_HPP

#include "herring/base/append_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/ofi/endpoint.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/ofi/way_out.hpp"
#include "herring/transport/transport.hpp"
#include "herring/world.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// A rank that messages go to and come from.
struct ofi_peer {
    int rank = -1;
    bool is_lost = false;
    fi_addr_t address = FI_ADDR_UNSPEC;
    std::uint64_t sending = 0;            ///< messages to it that are out
    std::uint64_t sent = 0, received = 0; ///< that are through
    char reason[280] = "";                ///< why it is lost
};

/// A post that is out. The first member belongs to the provider meanwhile (FI_CONTEXT2).
struct ofi_post {
    enum kind : std::uint8_t { send, receive, hello, goodbye, note_out };
    fi_context2 context{};
    ofi_post* next = nullptr;
    std::uint64_t token = 0;
    std::size_t bytes = 0;
    std::uint32_t peer = 0; // its place among the peers
    kind what = send;
    std::byte* into = nullptr; // of a receive
    std::uint64_t tag = 0;
};

/// What messages and greetings stand on: the endpoint, the peers, and what the next poll is to tell.
///
/// A peer is lost once, with a reason. All are at the end, and when a call into libfabric had to be left: then the
/// endpoint is not used again.
///
/// Threads:  one at a time.
/// Cost:     a call: see way_out.
/// Lifetime: `end` comes before the memory of what was posted goes.
class ofi_line {
  public:
    /// `found`: completions that there is room for until the next poll, beside the losses.
    HERRING_SETUP ofi_line(world& ranks, std::span<int const> peers, std::size_t found, ofi_facts const& tag)
        : peers_(peers.size()), found_(found + peers.size()), closes_in_flight_(tag.closes_in_flight),
          calls_(ranks, !tag.always_returns && !peers.empty()) {
        for (std::size_t i = 0; i < peers.size(); ++i) peers_[i].rank = peers[i];
    }
    ofi_line(ofi_line const&) = delete;
    ofi_line& operator=(ofi_line const&) = delete;
    ~ofi_line() { end(); }

    /// Errors: those of ofi_endpoint.
    HERRING_SETUP void open(ofi_facts const& tag, ofi_info granted, std::size_t posts, int rank) {
        endpoint_ = new ofi_endpoint(tag, std::move(granted), posts, peers_.size(), rank);
        open_ = true;
    }
    /// Tells the others where this rank is, and enters where its peers are. Collective.
    HERRING_SETUP void connect(world& ranks, transport_needs const& wanted, ofi_facts const& tag) {
        ofi_address const here = endpoint_->address();
        auto const addresses = ranks.all_gather(std::as_bytes(std::span(&here, 1)), wanted.timeout);
        fixed_array<fi_addr_t> to(peers_.size());
        endpoint_->enter(addresses, wanted.peers, tag, {to.data(), to.size()});
        for (std::size_t i = 0; i < to.size(); ++i) peers_[i].address = to[i];
    }

    /// Whether the endpoint is in use.
    bool is_open() const noexcept { return open_; }
    /// Only after `open`, and while no call was left.
    ofi_endpoint& endpoint() noexcept { return *endpoint_; }
    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device) {
        if (endpoint_ != nullptr) endpoint_->register_memory(memory, device);
    }

    /// What a call of libfabric's returns. Once it has not returned, the endpoint is never used again.
    template <class Call> long call(Call const& one) noexcept {
        if (endpoint_ == nullptr) [[unlikely]]
            return way_out::none_returned;
        long const rc = calls_(one);
        if (rc == way_out::none_returned) [[unlikely]] {
            forsake();
            ofi_endpoint::keep(std::exchange(endpoint_, nullptr));
        }
        return rc;
    }

    /// From here on libfabric touches nothing that was posted.
    HERRING_SETUP void close() noexcept {
        forsake();
        if (endpoint_ == nullptr) return;
        auto const closing = [this]() noexcept -> long { return endpoint_->close(), 0; };
        if ((closes_in_flight_ || !sends_in_flight()) && calls_(closing) == 0) return;
        ofi_endpoint::keep(std::exchange(endpoint_, nullptr));
    }
    HERRING_SETUP void end() noexcept {
        if (open_) close();
        delete std::exchange(endpoint_, nullptr);
    }
    /// Whether `close` closes with messages on their way.
    bool closes_in_flight() const noexcept { return closes_in_flight_; }

    fixed_array<ofi_peer>& peers() noexcept { return peers_; }
    ofi_peer& of(peer_id peer) noexcept { return peers_[peer.place()]; }
    ofi_peer const& of(peer_id peer) const noexcept { return peers_[peer.place()]; }
    std::size_t place(ofi_peer const& p) const noexcept {
        return static_cast<std::size_t>(&p - peers_.data());
    }
    peer_id id(ofi_peer const& p) const noexcept { return peer_id::at(place(p)); }

    /// What lies here for the next poll.
    drain_buffer<completion>& found() noexcept { return found_; }

    /// Its reason is there already.
    HERRING_SETUP void lose(ofi_peer& p, errc why) noexcept {
        if (p.is_lost) return;
        p.is_lost = true;
        found_.push(completion{0, 0, id(p), completion::lost, why});
    }
    /// A post was refused for good. Returns false.
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
    /// Nothing is posted or read any more.
    HERRING_SETUP void forsake() noexcept {
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
    way_out calls_;
    ofi_endpoint* endpoint_ = nullptr; // owned, until it is kept
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_LINE_HPP
