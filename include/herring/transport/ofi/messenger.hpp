// herring: tagged messages over libfabric, the path that moves bytes: posts, completions and their errors, waiting.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_MESSENGER_HPP
#define HERRING_TRANSPORT_OFI_MESSENGER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/ofi/endpoint.hpp"
#include "herring/transport/ofi/greetings.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/line.hpp"
#include "herring/transport/ofi/select.hpp"
#include "herring/transport/ofi/sleep.hpp"
#include "herring/transport/ofi/way_out.hpp"
#include "herring/transport/transport.hpp"

#include <rdma/fi_tagged.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include <sys/mman.h>

namespace HERRING_NAMESPACE::detail {

/// What `transport::ofi` is made of, the same code for all providers.
///
/// Libfabric tells neither that a peer has left nor, on several providers, that it was killed. The first is told by a
/// goodbye (ofi_greetings), the second by the world.
class ofi_messenger {
  public:
    HERRING_SETUP ofi_messenger(world& ranks, transport_needs const& wanted, ofi_facts const& tag)
        : ranks_(ranks), sleep_(ranks.rank()), largest_(wanted.largest_message),
          spill_(tag.tells_truncation || wanted.peers.empty() ? 0 : wanted.largest_message),
          line_(ranks, wanted.peers, posts_of(wanted), tag), greetings_(ranks, line_, sleep_) {
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
            std::memcpy(&number_, all[0].data(), std::min(all[0].size(), sizeof number_));
            at.node = "fi_ns://" + name_of(ranks.rank());
        }
        try {
            set_up(wanted, tag, at);
        } catch (...) { // this one's destructor does not run
            line_.end();
            // One of them may be dead, and nobody else takes its name away.
            if (tag.where == provider::located_by::name)
                for (int r = 0; r < ranks.size(); ++r) ::shm_unlink(name_of(r).c_str());
            throw;
        }
    }
    ofi_messenger(ofi_messenger const&) = delete;
    ofi_messenger& operator=(ofi_messenger const&) = delete;
    ~ofi_messenger() {
        if (line_.is_open() && ranks_.failed() == nullptr)
            greetings_.part([this]() noexcept { return gather(); });
        line_.end();
    }

    /// False for «not now»: the provider has no room, makes its connection, or the peer is lost.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        ofi_peer& p = line_.of(to);
        if (p.is_lost) return false;
        if (from.size() > largest_) return line_.refused(p, -FI_EMSGSIZE, from.size());
        void const* const data = from.empty() ? &nothing_ : from.data();
        void* const memory = line_.endpoint().descriptor_of(data);
        // A queue that is full empties when completions are read: then once more.
        for (bool again = true; !p.is_lost && free_ != nullptr; again = false) {
            ofi_post& o = *free_;
            long const rc = line_.call([&]() noexcept {
                return fi_tsend(line_.endpoint().get(), data, from.size(), memory, p.address, tag, &o);
            });
            if (rc == 0) {
                ++p.sending;
                take(o, ofi_post::send, p, from.size(), token);
                return true;
            }
            if (rc != -FI_EAGAIN) return line_.refused(p, rc, from.size());
            if (!again || gather() == 0) break;
        }
        return sleep_.not_now();
    }

    /// False: the peer is lost, or more is posted than was announced. What the provider has no room for is given to it
    /// as others complete, so a receive never waits for one that is posted after it.
    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        ofi_peer& p = line_.of(from);
        if (p.is_lost || free_ == nullptr) return false;
        ofi_post& o = *free_;
        take(o, ofi_post::receive, p, into.size(), token);
        o.into = into.empty() ? &nothing_ : into.data();
        o.tag = tag & ~carried_bits;
        long const rc = queued_ == nullptr ? give(o) : -FI_EAGAIN;
        if (rc == 0) [[likely]]
            return true;
        if (no_room(rc)) return queue(o);
        release(o);
        return line_.refused(p, rc, into.size());
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        if (!line_.is_open()) return 0;
        std::size_t count = line_.found().hand_out(on_completion);
        fi_cq_tagged_entry entries[batch];
        for (int round = 0; round < rounds; ++round) {
            std::size_t const got = read(entries);
            if (got == 0) break;
            for (std::size_t i = 0; i < got; ++i) {
                completion done;
                if (!complete(entries[i], done)) continue;
                on_completion(done);
                ++count;
            }
        }
        if (queued_ != nullptr) give_queued();
        if (greetings_.anyone_leaves()) greetings_.see_off();
        count += line_.found().hand_out(on_completion);
        if (count > 0) sleep_.news();
        return count;
    }

    void wait(time_point until) noexcept {
        while (line_.found().empty()) {
            if (line_.is_open() && gather() > 0) break;
            bool const open = line_.is_open(); // a call of gather's may not have returned
            if (!sleep_.doze(until, open ? line_.endpoint().fabric() : nullptr,
                             open ? line_.endpoint().queue() : nullptr,
                             open ? line_.endpoint().descriptor() : -1))
                return;
        }
        sleep_.news();
    }
    void wake() noexcept { sleep_.wake(); }

    /// From here on libfabric touches nothing that was posted.
    HERRING_SETUP void abandon() noexcept {
        if (line_.is_open()) line_.close();
    }

    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device = -1) {
        line_.register_memory(memory, device);
    }

    char const* describe(peer_id peer) const noexcept { return line_.of(peer).reason; }

    /// Errors that belonged to no message: libfabric tells of some connections that way.
    std::uint64_t unplaced() const noexcept { return unplaced_; }

  private:
    static constexpr std::size_t batch = 8; // completions a read
    static constexpr int rounds = 8;        // reads a poll; some providers give one completion at a time

    static std::size_t posts_of(transport_needs const& wanted) noexcept {
        return wanted.peers.size() * (wanted.sends_per_peer + wanted.receives_per_peer);
    }
    HERRING_SETUP void set_up(transport_needs const& wanted, ofi_facts const& tag, ofi_place const& at) {
        std::size_t const posts = posts_of(wanted);
        line_.open(tag, ofi_select(tag, at, wanted.largest_message, ranks_.rank()),
                   posts + ofi_greetings::posts_a_peer * wanted.peers.size(), ranks_.rank());
        posts_ = fixed_array<ofi_post>(posts);
        for (std::size_t i = posts; i-- > 0;) release(posts_[i]);
        greetings_.register_memory();
        line_.register_memory({spill_.data(), spill_.size()}, -1);
        line_.connect(ranks_, wanted, tag);
        greetings_.greet(tag, deadline_in(wanted.timeout), [this]() noexcept { return gather(); });
        ranks_.barrier(wanted.timeout);
        // Those who have mapped what it names keep it; a rank that is killed from now on leaves nothing in /dev/shm.
        if (tag.where == provider::located_by::name) ::shm_unlink(name_of(ranks_.rank()).c_str());
    }
    /// What an endpoint of that rank's is called in /dev/shm.
    HERRING_SETUP std::string name_of(int rank) const {
        return text({"herring-", ranks_.job(), "-", rank, "-", number_});
    }

    // ---- posts and completions ------------------------------------------------------------------------------------

    void take(ofi_post& o, ofi_post::kind what, ofi_peer const& p, std::size_t bytes,
              std::uint64_t token) noexcept {
        free_ = o.next;
        o.what = what;
        o.peer = static_cast<std::uint32_t>(line_.place(p));
        o.bytes = bytes;
        o.token = token;
    }
    void release(ofi_post& o) noexcept {
        o.next = free_;
        free_ = &o;
    }

    /// Posts a receive. Not inlined: there is one place that calls fi_trecv.
    [[gnu::noinline]] long give(ofi_post& o) noexcept {
        fi_addr_t const from = line_.peers()[o.peer].address;
        void* const memory = line_.endpoint().descriptor_of(o.into);
        if (o.bytes >= spill_.size()) [[likely]]
            return line_.call([&]() noexcept {
                return fi_trecv(line_.endpoint().get(), o.into, o.bytes, memory, from, o.tag, carried_bits,
                                &o);
            });
        iovec const both[] = {{o.into, o.bytes}, {spill_.data(), spill_.size()}};
        void* memories[] = {memory, line_.endpoint().descriptor_of(spill_.data())};
        return line_.call([&]() noexcept {
            return fi_trecvv(line_.endpoint().get(), both, memories, 2, from, o.tag, carried_bits, &o);
        });
    }
    /// Of a receive; shm has no memory where others are busy (1.17).
    static bool no_room(long rc) noexcept { return rc == -FI_EAGAIN || rc == -FI_ENOMEM; }
    bool queue(ofi_post& o) noexcept {
        o.next = nullptr;
        (queued_ == nullptr ? queued_ : last_queued_->next) = &o;
        last_queued_ = &o;
        (void)sleep_.not_now();
        return true;
    }
    HERRING_SETUP void give_queued() noexcept {
        while (queued_ != nullptr) {
            ofi_post& o = *queued_;
            ofi_post* const next = o.next;
            ofi_peer& p = line_.peers()[o.peer];
            long const rc = p.is_lost ? -FI_ECANCELED : give(o);
            if (no_room(rc) || rc == way_out::none_returned) return;
            queued_ = next;
            if (rc == 0) continue;
            release(o);
            if (!p.is_lost) line_.refused(p, rc, o.bytes);
        }
    }

    /// Up to `batch` completions; errors are seen to.
    std::size_t read(fi_cq_tagged_entry* entries) noexcept {
        for (;;) {
            long const got =
                line_.call([&]() noexcept { return fi_cq_read(line_.endpoint().queue(), entries, batch); });
            if (got > 0) [[likely]]
                return static_cast<std::size_t>(got);
            if (got == 0 || got == -FI_EAGAIN || got == way_out::none_returned) return 0;
            if (!read_error(got)) return 0;
        }
    }

    /// What is to be told of a completion; false: nothing.
    bool complete(fi_cq_tagged_entry const& entry, completion& done) noexcept {
        if (entry.op_context == nullptr) [[unlikely]]
            return false; // of no post
        ofi_post& o = *static_cast<ofi_post*>(entry.op_context);
        ofi_peer& p = line_.peers()[o.peer];
        switch (o.what) {
        case ofi_post::send:
            --p.sending;
            ++p.sent;
            done = {o.token, o.bytes, peer_id::at(o.peer), completion::sent, errc::ok};
            break;
        case ofi_post::receive:
            ++p.received;
            if (entry.len > o.bytes) [[unlikely]]
                cut(p, o.bytes, entry.len - o.bytes);
            done = {o.token, entry.len, peer_id::at(o.peer), completion::received, errc::ok, entry.tag};
            break;
        case ofi_post::hello:
        case ofi_post::goodbye:
        case ofi_post::note_out:
            greetings_.done(o);
            return false;
        }
        release(o);
        return !p.is_lost;
    }

    /// Reads the queue; what is found lies there for the next poll.
    std::size_t gather() noexcept {
        fi_cq_tagged_entry entries[batch];
        std::size_t found = 0;
        for (int round = 0; round < rounds; ++round) {
            std::size_t const got = read(entries);
            if (got == 0) break;
            found += got;
            for (std::size_t i = 0; i < got; ++i) {
                completion done;
                if (complete(entries[i], done)) line_.found().push(done);
            }
        }
        if (queued_ != nullptr) give_queued();
        if (greetings_.anyone_leaves()) greetings_.see_off();
        return found;
    }

    // ---- errors ---------------------------------------------------------------------------------------------------

    /// After an error from fi_cq_read. False: there is nothing more to read now.
    HERRING_SETUP bool read_error(long why) noexcept {
        if (why != -FI_EAVAIL) {
            for (ofi_peer& p : line_.peers()) {
                std::snprintf(p.reason, sizeof p.reason, "libfabric's completion queue broke: %s",
                              ofi_text(why));
                line_.lose(p, errc::device);
            }
            return false;
        }
        fi_cq_err_entry e{};
        if (line_.call([&]() noexcept { return fi_cq_readerr(line_.endpoint().queue(), &e, 0); }) != 1)
            return false; // told, and not there yet
        auto* const o = static_cast<ofi_post*>(e.op_context);
        if (!(posts_.begin() <= o && o < posts_.end()) && !greetings_.owns(o)) {
            ++unplaced_;
            return true;
        }
        ofi_peer& p = line_.peers()[o->peer];
        if (o->what == ofi_post::send) --p.sending;
        bool const truncated = e.err == FI_ETRUNC && o->what == ofi_post::receive;
        if (greetings_.owns(o))
            greetings_.failed(*o);
        else
            release(*o);
        if (p.is_lost) return true;
        if (truncated) return cut(p, o->bytes, e.olen), true;
        char text[120] = "";
        char const* const of_provider =
            fi_cq_strerror(line_.endpoint().queue(), e.prov_errno, e.err_data, text, sizeof text);
        std::snprintf(
            p.reason, sizeof p.reason,
            "libfabric reports for a message %s it: %s (provider: %s, %d); its process ended, or the "
            "network between is broken",
            o->what == ofi_post::send || o->what == ofi_post::note_out ? "to" : "from", fi_strerror(e.err),
            of_provider == nullptr ? "nothing" : of_provider, e.prov_errno);
        line_.lose(p, errc::peer_lost);
        return true;
    }

    /// A message was longer than its receive.
    HERRING_SETUP void cut(ofi_peer& p, std::size_t due, std::size_t beyond) noexcept {
        if (p.is_lost) return;
        std::snprintf(
            p.reason, sizeof p.reason,
            "it sent more than the %zu bytes that were due, by %zu: do all ranks call the same operations "
            "with the same sizes?",
            due, beyond);
        line_.lose(p, errc::mismatch);
    }

    world& ranks_;
    ofi_sleep sleep_;
    std::size_t largest_;          // message that was announced
    fixed_array<std::byte> spill_; // takes what is longer than its receive, where the provider does not tell
    fixed_array<ofi_post> posts_;
    ofi_post* free_ = nullptr;
    ofi_post* queued_ = nullptr; // receives that the provider has no room for, the oldest first
    ofi_post* last_queued_ = nullptr;
    std::byte nothing_{};
    std::uint64_t unplaced_ = 0;
    std::uint64_t number_ = 0; // tells names of one job's endpoints apart; the same on all ranks
    ofi_line line_;
    ofi_greetings greetings_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_MESSENGER_HPP
