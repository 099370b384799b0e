// herring: tagged messages over libfabric: posts, completions and their errors, waiting.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_MESSENGER_HPP
#define HERRING_TRANSPORT_OFI_MESSENGER_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/ofi/channel.hpp"
#include "herring/transport/ofi/endpoint.hpp"
#include "herring/transport/ofi/escapable_calls.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/handshake.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/ofi/sleep.hpp"
#include "herring/transport/transport.hpp"

#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail {

/// `transport::ofi` without its compile-time facts: the same code for all providers.
///
/// Libfabric does not report that a peer has left, nor, with several providers, that it was killed. A peer
/// that leaves announces it by a goodbye (ofi_handshake); the world reports a death.
class ofi_messenger {
  public:
    HERRING_SETUP ofi_messenger(world& ranks, transport_needs const& wanted, ofi_facts const& tag)
        : ranks_(ranks), sleep_(ranks.rank()), largest_(wanted.largest_message),
          envelope_(wanted.peers.empty() ? 0 : wanted.envelope_bytes),
          overflow_(tag.tells_truncation || wanted.peers.empty() ? 0 : wanted.largest_message),
          channel_(ranks, wanted.peers, posts_of(wanted), tag), handshake_(ranks, channel_, sleep_) {
        if (wanted.peers.empty()) return;
        std::size_t const count = wanted.peers.size();
        if (count * wanted.receives_per_peer > tag.most_receives)
            throw error(errc::no_resources, ranks.rank(), -1, "libfabric",
                        {"provider '", tag.libfabric, "' has at most ", tag.most_receives,
                         " receives posted at once, and this plan needs ", count * wanted.receives_per_peer,
                         " (", count, " peers): use a smaller window or larger chunks"});
        ofi_place at;
        if (tag.where == provider::located_by::device) at.turn = static_cast<std::size_t>(ranks.local_rank());
        if (tag.where == provider::located_by::interface) at.node = ranks.local_address();
        if (tag.where == provider::located_by::name) {
            std::uint64_t const mine = random_bits();
            auto const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), wanted.timeout);
            if (!wire::read_value(std::as_const(all)[0], number_))
                throw error(
                    errc::mismatch, ranks.rank(), 0, "libfabric",
                    "it is in another collective; let every rank make the same calls in the same order");
            at.node = "fi_ns://" + name_of(ranks.rank());
        }
        try {
            set_up(wanted, tag, at);
        } catch (...) { // no destructor runs
            channel_.end();
            remove_names(tag);
            throw;
        }
    }
    ofi_messenger(ofi_messenger const&) = delete;
    ofi_messenger& operator=(ofi_messenger const&) = delete;
    ~ofi_messenger() {
        if (channel_.is_open() && ranks_.failed() == nullptr)
            handshake_.say_goodbye([this]() noexcept { return drain_completions(); });
        channel_.end();
    }

    /// Begins a send. False: not now, for the provider has no room or is still connecting, or the peer is
    /// lost. Always false if envelopes were announced.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return post_send(to, tag, {}, from, token);
    }
    /// The same with an envelope of the announced size, which is sent in front of the payload, as a part of
    /// its own.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept {
        ofi_peer& p = channel_.of(to);
        if (p.is_lost || envelope.size() != envelope_) return false;
        if (from.size() > largest_) return channel_.refused(p, -FI_EMSGSIZE, from.size());
        void const* const data = from.empty() ? &nothing_ : from.data();
        void* const memory = channel_.endpoint().descriptor_of(data);
        // A full queue has room again once completions are read: one more try.
        for (bool again = true; !p.is_lost && free_ != nullptr; again = false) {
            ofi_post& o = *free_;
            std::byte* const place = envelope_of(o);
            if (place != nullptr) std::memcpy(place, envelope.data(), envelope_);
            long const rc = channel_.call([&]() noexcept -> long {
                if (place == nullptr) [[likely]]
                    return fi_tsend(channel_.endpoint().get(), data, from.size(), memory, p.address, tag, &o);
                iovec const both[] = {{place, envelope_}, {const_cast<void*>(data), from.size()}};
                void* memories[] = {channel_.endpoint().descriptor_of(place), memory};
                return fi_tsendv(channel_.endpoint().get(), both, memories, from.empty() ? 1 : 2, p.address,
                                 tag, &o);
            });
            if (rc == 0) {
                ++p.sending;
                bind(o, ofi_post::send, p, from.size(), token);
                return true;
            }
            if (rc != -FI_EAGAIN) return channel_.refused(p, rc, from.size());
            if (!again || drain_completions() == 0) break;
        }
        return sleep_.not_now();
    }

    /// Begins a receive. False: the peer is lost, or more receives are posted than were announced. A receive
    /// that the provider has no room for is queued, and posted as others complete, so it never waits for a
    /// receive posted after it.
    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        ofi_peer& p = channel_.of(from);
        if (p.is_lost || free_ == nullptr) return false;
        ofi_post& o = *free_;
        bind(o, ofi_post::receive, p, into.size(), token);
        o.into = into.empty() ? &nothing_ : into.data();
        o.tag = tag & ~carried_bits;
        long const rc = queued_ == nullptr ? post(o) : -FI_EAGAIN;
        if (rc == 0) [[likely]]
            return true;
        if (no_room(rc)) return queue(o);
        release(o);
        return channel_.refused(p, rc, into.size());
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        if (!channel_.is_open()) return 0;
        std::size_t count = hand_out_landed(on_completion) + channel_.found().hand_out(on_completion);
        fi_cq_tagged_entry entries[batch];
        for (int round = 0; round < rounds; ++round) {
            std::size_t const got = read(entries);
            if (got == 0) break;
            for (std::size_t i = 0; i < got; ++i) {
                completion done;
                ofi_post* kept = nullptr;
                if (!complete(entries[i], done, kept)) continue;
                on_completion(done);
                if (kept != nullptr) release(*kept);
                ++count;
            }
        }
        if (queued_ != nullptr) post_queued();
        if (handshake_.has_departures()) handshake_.retire_departed();
        count += hand_out_landed(on_completion) + channel_.found().hand_out(on_completion);
        if (count > 0) sleep_.news();
        return count;
    }

    void wait(time_point until) noexcept {
        while (channel_.found().empty() && landed_ == nullptr) {
            if (channel_.is_open() && drain_completions() > 0) break;
            bool const open = channel_.is_open(); // drain_completions may have closed it
            if (!sleep_.doze(until, open ? channel_.endpoint().fabric() : nullptr,
                             open ? channel_.endpoint().queue() : nullptr,
                             open ? channel_.endpoint().descriptor() : -1))
                return;
        }
        sleep_.news();
    }
    void wake() noexcept { sleep_.wake(); }

    /// Closes the endpoint. Afterwards libfabric neither reads nor writes posted memory.
    HERRING_SETUP void abandon() noexcept {
        if (channel_.is_open()) channel_.close();
    }

    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device = -1) {
        channel_.register_memory(memory, device);
    }

    char const* describe(peer_id peer) const noexcept { return channel_.of(peer).reason; }

    /// Returns the number of errors that belong to no message: libfabric reports some failed connections that
    /// way.
    std::uint64_t unplaced() const noexcept { return unplaced_; }

  private:
    static constexpr std::size_t batch = 8; // completions a read
    static constexpr int rounds = 8;        // reads a poll; some providers give one completion at a time

    static std::size_t posts_of(transport_needs const& wanted) noexcept {
        return wanted.peers.size() * (wanted.sends_per_peer + wanted.receives_per_peer);
    }
    HERRING_SETUP void set_up(transport_needs const& wanted, ofi_facts const& tag, ofi_place const& at) {
        std::size_t const posts = posts_of(wanted);
        ofi_info granted = ofi_select(tag, at, wanted.largest_message + envelope_, ranks_.rank());
        if (envelope_ > 0 && (granted->tx_attr->iov_limit < 2 ||
                              granted->rx_attr->iov_limit < (overflow_.size() > 0 ? 3u : 2u)))
            throw error(errc::unsupported, ranks_.rank(), -1, "libfabric",
                        {"provider '", tag.libfabric,
                         "' takes messages of one part only, and an envelope is a part of its own: use the "
                         "transport without checked"});
        channel_.open(tag, std::move(granted), posts + ofi_handshake::posts_a_peer * wanted.peers.size(),
                      ranks_.rank());
        // One more with envelopes: a post is in use until its completion is reported.
        posts_ = fixed_array<ofi_post>(posts + (envelope_ > 0 ? 1 : 0));
        for (std::size_t i = posts_.size(); i-- > 0;) release(posts_[i]);
        envelopes_ = fixed_array<std::byte>(posts_.size() * envelope_);
        handshake_.register_memory();
        channel_.register_memory({envelopes_.data(), envelopes_.size()}, -1);
        channel_.register_memory({overflow_.data(), overflow_.size()}, -1);
        channel_.connect(ranks_, wanted, tag);
        handshake_.greet(tag, deadline_in(wanted.timeout), [this]() noexcept { return drain_completions(); });
        ranks_.barrier(wanted.timeout);
        remove_names(tag); // mappings stay
    }
    /// Removes the names of all ranks from /dev/shm, because a rank may be killed before it removes its own.
    HERRING_SETUP void remove_names(ofi_facts const& tag) const {
        if (tag.where != provider::located_by::name) return;
        for (int r = 0; r < ranks_.size(); ++r) ::shm_unlink(name_of(r).c_str());
    }
    /// Returns the name of a rank's endpoint in /dev/shm.
    HERRING_SETUP std::string name_of(int rank) const {
        return text({"herring-", ranks_.job(), "-", rank, "-", number_});
    }

    // ---- posts and completions

    void bind(ofi_post& o, ofi_post::kind what, ofi_peer const& p, std::size_t bytes,
              std::uint64_t token) noexcept {
        free_ = o.next;
        o.what = what;
        o.peer = static_cast<std::uint32_t>(channel_.place(p));
        o.bytes = bytes;
        o.token = token;
    }
    void release(ofi_post& o) noexcept {
        o.next = free_;
        free_ = &o;
    }

    /// Posts a receive. Not inlined, so that one place calls fi_trecv.
    [[gnu::noinline]] long post(ofi_post& o) noexcept {
        fi_addr_t const from = channel_.peers()[o.peer].address;
        void* const memory = channel_.endpoint().descriptor_of(o.into);
        if (std::byte* const place = envelope_of(o); place != nullptr) {
            iovec const parts[] = {
                {place, envelope_}, {o.into, o.bytes}, {overflow_.data(), overflow_.size()}};
            void* memories[] = {channel_.endpoint().descriptor_of(place), memory,
                                channel_.endpoint().descriptor_of(overflow_.data())};
            std::size_t const count = o.bytes < overflow_.size() ? 3 : o.bytes > 0 ? 2 : 1;
            return channel_.call([&]() noexcept {
                return fi_trecvv(channel_.endpoint().get(), parts, memories, count, from, o.tag, carried_bits,
                                 &o);
            });
        }
        if (o.bytes >= overflow_.size()) [[likely]]
            return channel_.call([&]() noexcept {
                return fi_trecv(channel_.endpoint().get(), o.into, o.bytes, memory, from, o.tag, carried_bits,
                                &o);
            });
        iovec const both[] = {{o.into, o.bytes}, {overflow_.data(), overflow_.size()}};
        void* memories[] = {memory, channel_.endpoint().descriptor_of(overflow_.data())};
        return channel_.call([&]() noexcept {
            return fi_trecvv(channel_.endpoint().get(), both, memories, 2, from, o.tag, carried_bits, &o);
        });
    }
    /// True if the provider has no room for a receive now; shm (1.17) returns -FI_ENOMEM while other receives
    /// are posted.
    static bool no_room(long rc) noexcept { return rc == -FI_EAGAIN || rc == -FI_ENOMEM; }
    bool queue(ofi_post& o) noexcept {
        o.next = nullptr;
        (queued_ == nullptr ? queued_ : last_queued_->next) = &o;
        last_queued_ = &o;
        (void)sleep_.not_now();
        return true;
    }
    HERRING_SETUP void post_queued() noexcept {
        while (queued_ != nullptr) {
            ofi_post& o = *queued_;
            ofi_post* const next = o.next;
            ofi_peer& p = channel_.peers()[o.peer];
            long const rc = p.is_lost ? -FI_ECANCELED : post(o);
            if (no_room(rc) || rc == escapable_calls::abandoned) return;
            queued_ = next;
            if (rc == 0) continue;
            release(o);
            if (!p.is_lost) channel_.refused(p, rc, o.bytes);
        }
    }

    /// Reads up to `batch` completions, and handles errors.
    std::size_t read(fi_cq_tagged_entry* entries) noexcept {
        for (;;) {
            long const got = channel_.call(
                [&]() noexcept { return fi_cq_read(channel_.endpoint().queue(), entries, batch); });
            if (got > 0) [[likely]]
                return static_cast<std::size_t>(got);
            if (got == 0 || got == -FI_EAGAIN || got == escapable_calls::abandoned) return 0;
            if (!read_error(got)) return 0;
        }
    }

    /// Returns the memory for the envelope of a post; nullptr: no envelope was announced.
    std::byte* envelope_of(ofi_post const& o) noexcept {
        return envelope_ == 0 ? nullptr
                              : envelopes_.data() + static_cast<std::size_t>(&o - posts_.data()) * envelope_;
    }

    /// Translates a completion. False: there is nothing to report. `kept`: the post that holds the envelope,
    /// for the caller to release after the report.
    bool complete(fi_cq_tagged_entry const& entry, completion& done, ofi_post*& kept) noexcept {
        if (entry.op_context == nullptr) [[unlikely]]
            return false; // the completion belongs to no post
        ofi_post& o = *static_cast<ofi_post*>(entry.op_context);
        ofi_peer& p = channel_.peers()[o.peer];
        switch (o.what) {
        case ofi_post::send:
            --p.sending;
            ++p.sent;
            done = {o.token, o.bytes, peer_id::at(o.peer), completion::sent, errc::ok};
            break;
        case ofi_post::receive: {
            ++p.received;
            std::size_t const beside = std::min(envelope_, entry.len), bytes = entry.len - beside;
            if (bytes > o.bytes) [[unlikely]]
                report_truncation(p, o.bytes, bytes - o.bytes);
            done = {o.token, bytes, peer_id::at(o.peer), completion::received, errc::ok, entry.tag};
            if (envelope_ == 0 || p.is_lost) [[likely]]
                break;
            done.envelope = {envelope_of(o), beside};
            kept = &o;
            return true;
        }
        case ofi_post::hello:
        case ofi_post::goodbye:
        case ofi_post::note_out:
            handshake_.done(o);
            return false;
        }
        release(o);
        return !p.is_lost;
    }

    /// Reads the queue and keeps the completions for the next poll.
    std::size_t drain_completions() noexcept {
        fi_cq_tagged_entry entries[batch];
        std::size_t found = 0;
        for (int round = 0; round < rounds; ++round) {
            std::size_t const got = read(entries);
            if (got == 0) break;
            found += got;
            for (std::size_t i = 0; i < got; ++i) {
                completion done;
                ofi_post* kept = nullptr;
                if (!complete(entries[i], done, kept)) continue;
                if (kept == nullptr)
                    channel_.found().push(done);
                else
                    land(*kept, done);
            }
        }
        if (queued_ != nullptr) post_queued();
        if (handshake_.has_departures()) handshake_.retire_departed();
        return found;
    }

    /// Keeps a received message with its envelope for the next poll.
    void land(ofi_post& o, completion const& done) noexcept {
        o.next = nullptr;
        o.bytes = done.bytes;
        o.tag = done.tag;
        o.beside = done.envelope.size();
        (landed_ == nullptr ? landed_ : last_landed_->next) = &o;
        last_landed_ = &o;
    }
    template <class OnCompletion> std::size_t hand_out_landed(OnCompletion& on_completion) noexcept {
        std::size_t count = 0;
        for (ofi_post* next = std::exchange(landed_, nullptr); next != nullptr; ++count) {
            ofi_post& o = *std::exchange(next, next->next);
            completion done{o.token, o.bytes, peer_id::at(o.peer), completion::received, errc::ok, o.tag};
            done.envelope = {envelope_of(o), o.beside};
            on_completion(std::as_const(done));
            release(o);
        }
        return count;
    }

    // ---- errors

    /// Handles an error of fi_cq_read. False: there is nothing more to read now.
    HERRING_SETUP bool read_error(long why) noexcept {
        if (why != -FI_EAVAIL) {
            for (ofi_peer& p : channel_.peers()) {
                std::snprintf(p.reason, sizeof p.reason, "libfabric's completion queue broke: %s",
                              ofi_text(why));
                channel_.lose(p, errc::device);
            }
            return false;
        }
        fi_cq_err_entry e{};
        if (channel_.call([&]() noexcept { return fi_cq_readerr(channel_.endpoint().queue(), &e, 0); }) != 1)
            return false; // the error is announced, but not there yet
        auto* const o = static_cast<ofi_post*>(e.op_context);
        if (!(posts_.begin() <= o && o < posts_.end()) && !handshake_.owns(o)) {
            ++unplaced_;
            return true;
        }
        ofi_peer& p = channel_.peers()[o->peer];
        if (o->what == ofi_post::send) --p.sending;
        bool const truncated = e.err == FI_ETRUNC && o->what == ofi_post::receive;
        if (handshake_.owns(o))
            handshake_.failed(*o);
        else
            release(*o);
        if (p.is_lost) return true;
        if (truncated) return report_truncation(p, o->bytes, e.olen), true;
        char text[120] = "";
        char const* const of_provider =
            fi_cq_strerror(channel_.endpoint().queue(), e.prov_errno, e.err_data, text, sizeof text);
        std::snprintf(
            p.reason, sizeof p.reason,
            "libfabric reports for a message %s it: %s (provider: %s, %d); its process ended, or the "
            "network between is broken",
            o->what == ofi_post::send || o->what == ofi_post::note_out ? "to" : "from", fi_strerror(e.err),
            of_provider == nullptr ? "nothing" : of_provider, e.prov_errno);
        channel_.lose(p, errc::peer_lost);
        return true;
    }

    /// Reports a peer as lost because its message was longer than the receive.
    HERRING_SETUP void report_truncation(ofi_peer& p, std::size_t due, std::size_t beyond) noexcept {
        if (p.is_lost) return;
        std::snprintf(
            p.reason, sizeof p.reason,
            "it sent more than the %zu bytes that were due, by %zu: do all ranks call the same operations "
            "with the same sizes?",
            due, beyond);
        channel_.lose(p, errc::mismatch);
    }

    world& ranks_;
    ofi_sleep sleep_;
    std::size_t largest_;  // announced bytes of a message
    std::size_t envelope_; // bytes of every envelope
    /// The rest of a message that is longer than its receive, where the provider reports no truncation.
    fixed_array<std::byte> overflow_;
    fixed_array<ofi_post> posts_;
    fixed_array<std::byte> envelopes_; // one place a post
    ofi_post* free_ = nullptr;
    ofi_post* landed_ = nullptr; // received with an envelope and not reported yet, the oldest first
    ofi_post* last_landed_ = nullptr;
    ofi_post* queued_ = nullptr; // receives that the provider has no room for, the oldest first
    ofi_post* last_queued_ = nullptr;
    std::byte nothing_{};
    std::uint64_t unplaced_ = 0;
    std::uint64_t number_ = 0; // of this transport in names in /dev/shm, the same on all ranks
    ofi_channel channel_;
    ofi_handshake handshake_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_MESSENGER_HPP
