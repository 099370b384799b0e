// herring: tagged messages over one endpoint of libfabric's: posts, completions, hello and goodbye, waiting.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_OFI_MESSENGER_HPP
#define HERRING_DETAIL_OFI_MESSENGER_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/liveness.hpp"
#include "herring/detail/ofi_endpoint.hpp"
#include "herring/detail/ofi_handle.hpp"
#include "herring/detail/ofi_select.hpp"
#include "herring/detail/ofi_sleep.hpp"
#include "herring/detail/pile.hpp"
#include "herring/detail/table.hpp"
#include "herring/detail/way_out.hpp"
#include "herring/transport/transport.hpp"

#include <rdma/fi_tagged.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <sys/mman.h>

namespace herring::detail {

/// What `transport::ofi` is made of, the same code for all providers.
///
/// Libfabric tells neither that a peer has left nor, on several providers, that it was killed. The first is told by a
/// message: on construction each pair exchanges a hello, which makes the connection and shows that it works; who
/// leaves says goodbye, and how many messages it has got rid of, so that the receiver waits for them, in whatever
/// order they come. The second is told by the world.
class ofi_messenger {
  public:
    HERRING_SETUP ofi_messenger(world& ranks, transport_needs const& wanted, ofi_facts const& tag)
        : ranks_(ranks), sleep_(ranks.rank()), index_(static_cast<std::size_t>(ranks.size())),
          largest_(wanted.largest_message),
          spill_(tag.tells_truncation || wanted.peers.empty() ? 0 : wanted.largest_message),
          closes_in_flight_(tag.closes_in_flight),
          calls_(ranks, !tag.always_returns && !wanted.peers.empty()) {
        if (wanted.peers.empty()) return;
        std::size_t const count = wanted.peers.size();
        if (count * wanted.receives_per_peer > tag.most_receives)
            throw error(errc::no_resources, ranks.rank(), -1, "libfabric",
                        {"provider '", tag.libfabric, "' has at most ", tag.most_receives,
                         " receives posted at once, and this plan needs ", count * wanted.receives_per_peer,
                         " (", count, " peers): use a smaller window or larger chunks"});
        std::size_t const posts = count * (wanted.sends_per_peer + wanted.receives_per_peer);
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
            endpoint_ = new ofi_endpoint(tag, ofi_select(tag, at, wanted.largest_message, ranks.rank()),
                                         posts + 3 * count, count, ranks.rank());
            set_up(wanted, tag, posts);
        } catch (...) { // this one's destructor does not run
            shut();
            delete endpoint_;
            // One of them may be dead, and nobody else takes its name away.
            if (tag.where == provider::located_by::name)
                for (int r = 0; r < ranks.size(); ++r) ::shm_unlink(name_of(r).c_str());
            throw;
        }
    }
    ofi_messenger(ofi_messenger const&) = delete;
    ofi_messenger& operator=(ofi_messenger const&) = delete;
    ~ofi_messenger() {
        leave();
        delete endpoint_;
    }

    /// False for «not now»: the provider has no room, makes its connection, or the peer is lost.
    bool post_send(int to, std::uint64_t tag, std::span<std::byte const> from, std::uint64_t token) noexcept {
        peer& p = of(to);
        if (p.is_lost) return false;
        if (from.size() > largest_) return refused(p, -FI_EMSGSIZE, from.size());
        void const* const data = from.empty() ? &nothing_ : from.data();
        void* const memory = endpoint_->descriptor_of(data);
        // A queue that is full empties when completions are read: then once more.
        for (bool again = true; !p.is_lost && free_ != nullptr; again = false) {
            operation& o = *free_;
            long const rc = call([&]() noexcept {
                return fi_tsend(endpoint_->get(), data, from.size(), memory, p.address, tag, &o);
            });
            if (rc == 0) {
                ++p.sending;
                take(o, operation::send, p, from.size(), token);
                return true;
            }
            if (rc != -FI_EAGAIN) return refused(p, rc, from.size());
            if (!again || gather() == 0) break;
        }
        return sleep_.not_now();
    }

    /// False: the peer is lost, or more is posted than was announced. What the provider has no room for is given to it
    /// as others complete, so a receive never waits for one that is posted after it.
    bool post_receive(int from, std::uint64_t tag, std::span<std::byte> into, std::uint64_t token) noexcept {
        peer& p = of(from);
        if (p.is_lost || free_ == nullptr) return false;
        operation& o = *free_;
        take(o, operation::receive, p, into.size(), token);
        o.into = into.empty() ? &nothing_ : into.data();
        o.tag = tag & ~carried_bits;
        long const rc = queued_ == nullptr ? give(o) : -FI_EAGAIN;
        if (rc == 0) [[likely]]
            return true;
        if (no_room(rc)) return queue(o);
        release(o);
        return refused(p, rc, into.size());
    }

    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        if (!open_) return 0;
        std::size_t count = done_.hand_out(on_completion);
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
        if (leaving_ > 0) see_off();
        count += done_.hand_out(on_completion);
        if (count > 0) sleep_.news();
        return count;
    }

    void wait(time_point until) noexcept {
        while (done_.empty()) {
            if (open_ && gather() > 0) break;
            if (!sleep_.doze(until, open_ ? endpoint_->fabric() : nullptr,
                             open_ ? endpoint_->queue() : nullptr, open_ ? endpoint_->descriptor() : -1))
                return;
        }
        sleep_.news();
    }
    void wake() noexcept { sleep_.wake(); }

    /// From here on libfabric touches nothing that was posted.
    HERRING_SETUP void abandon() noexcept {
        if (open_) shut();
    }

    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device = -1) {
        if (endpoint_ != nullptr) endpoint_->register_memory(memory, device);
    }

    char const* describe(int rank) const noexcept {
        return peers_[static_cast<std::size_t>(index_[static_cast<std::size_t>(rank)])].reason;
    }

    /// Errors that belonged to no message: libfabric tells of some connections that way.
    std::uint64_t unplaced() const noexcept { return unplaced_; }

  private:
    static constexpr std::size_t batch = 8; // completions a read
    static constexpr int rounds = 8;        // reads a poll; some providers give one completion at a time
    // How long who leaves tries to say so, and for how long nothing of what it announced may come.
    static constexpr std::chrono::milliseconds farewell{200}, grace{250};

    /// Hello and goodbye. Not tagged, so that every tag is the engine's.
    struct note {
        enum kind : std::uint32_t { hello = 0x6f6c6c68, goodbye = 0x65796273 };
        std::uint64_t job = 0;
        std::uint32_t what = hello;
        std::uint32_t rank = 0;
        std::uint64_t messages = 0; ///< with a goodbye: that were sent to the end
    };
    struct notes {
        note hello, goodbye, out;
    };
    /// A post that is out. The first member belongs to the provider meanwhile (FI_CONTEXT2).
    struct operation {
        enum kind : std::uint8_t { send, receive, hello, goodbye, note_out };
        fi_context2 context{};
        operation* next = nullptr;
        std::uint64_t token = 0;
        std::size_t bytes = 0;
        std::uint32_t peer = 0;
        kind what = send;
        std::byte* into = nullptr; // of a receive
        std::uint64_t tag = 0;
    };
    struct peer {
        int rank = -1;
        bool is_lost = false;
        bool greeted = false;  // its hello is here
        bool greeting = false; // this rank's is on its way, or there
        bool leaving = false;  // its goodbye is here
        bool parting = false;  // this rank's is on its way, or there
        bool writing = false;  // a note is on its way
        int expected = 0;      // notes that it can be heard by
        fi_addr_t address = FI_ADDR_UNSPEC;
        std::uint64_t sending = 0;
        std::uint64_t sent = 0, received = 0;
        std::uint64_t announced = 0; // with its goodbye
        // While it leaves: what has moved, and for how long nothing did.
        std::uint64_t moved = 0;
        time_point looked{};
        clock::duration still{};
        char reason[280] = "";
    };

    peer& of(int rank) noexcept {
        return peers_[static_cast<std::size_t>(index_[static_cast<std::size_t>(rank)])];
    }
    std::size_t place(peer const& p) const noexcept { return static_cast<std::size_t>(&p - peers_.data()); }

    HERRING_SETUP void set_up(transport_needs const& wanted, ofi_facts const& tag, std::size_t posts) {
        std::size_t const count = wanted.peers.size();
        make_room(wanted, posts);
        ofi_address const here = endpoint_->address();
        auto const addresses = ranks_.all_gather(std::as_bytes(std::span(&here, 1)), wanted.timeout);
        table<fi_addr_t> to(count);
        endpoint_->enter(addresses, wanted.peers, tag, {to.data(), count});
        for (std::size_t i = 0; i < count; ++i) peers_[i].address = to[i];
        greet(tag, clock::now() + wanted.timeout);
        ranks_.barrier(wanted.timeout);
        // Those who have mapped what it names keep it; a rank that is killed from now on leaves nothing in /dev/shm.
        if (tag.where == provider::located_by::name) ::shm_unlink(name_of(ranks_.rank()).c_str());
        open_ = true;
    }

    /// What an endpoint of that rank's is called in /dev/shm.
    HERRING_SETUP std::string name_of(int rank) const {
        return text({"herring-", ranks_.job(), "-", rank, "-", number_});
    }

    HERRING_SETUP void make_room(transport_needs const& wanted, std::size_t posts) {
        std::size_t const count = wanted.peers.size();
        peers_ = table<peer>(count);
        notes_ = table<notes>(count);
        operations_ = table<operation>(posts + 3 * count); // the last ones are for notes
        for (std::size_t i = posts; i-- > 0;) {
            operations_[i].next = free_;
            free_ = &operations_[i];
        }
        done_ = double_pile<completion>(posts + count);
        for (std::size_t i = 0; i < count; ++i) {
            peers_[i].rank = wanted.peers[i];
            index_[static_cast<std::size_t>(wanted.peers[i])] = static_cast<int>(i);
            for (operation::kind const what : {operation::hello, operation::goodbye, operation::note_out}) {
                operation& o = note_operation(peers_[i], what);
                o.what = what;
                o.peer = static_cast<std::uint32_t>(i);
            }
        }
        endpoint_->register_memory({reinterpret_cast<std::byte*>(notes_.data()), count * sizeof(notes)});
        endpoint_->register_memory({spill_.data(), spill_.size()});
    }
    operation& note_operation(peer const& p, operation::kind what) noexcept {
        return operations_[operations_.size() - 3 * (peers_.size() - place(p)) +
                           static_cast<std::size_t>(what - operation::hello)];
    }

    HERRING_SETUP void shut() noexcept {
        forsake();
        if (endpoint_ == nullptr) return;
        auto const close = [this]() noexcept -> long { return endpoint_->close(), 0; };
        if ((closes_in_flight_ || !sends_in_flight()) && calls_(close) == 0) return;
        ofi_endpoint::keep(std::exchange(endpoint_, nullptr));
    }
    /// Nothing is posted or read any more.
    HERRING_SETUP void forsake() noexcept {
        open_ = false;
        queued_ = nullptr;
        for (peer& p : peers_) p.is_lost = true;
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

    bool sends_in_flight() const noexcept {
        for (peer const& p : peers_)
            if (p.sending > 0) return true;
        return false;
    }

    // ---- posts and completions ------------------------------------------------------------------------------------

    void take(operation& o, operation::kind what, peer const& p, std::size_t bytes,
              std::uint64_t token) noexcept {
        free_ = o.next;
        o.what = what;
        o.peer = static_cast<std::uint32_t>(place(p));
        o.bytes = bytes;
        o.token = token;
    }
    void release(operation& o) noexcept {
        o.next = free_;
        free_ = &o;
    }

    /// Posts a receive. Not inlined: there is one place that calls fi_trecv.
    [[gnu::noinline]] long give(operation& o) noexcept {
        fi_addr_t const from = peers_[o.peer].address;
        void* const memory = endpoint_->descriptor_of(o.into);
        if (o.bytes >= spill_.size()) [[likely]]
            return call([&]() noexcept {
                return fi_trecv(endpoint_->get(), o.into, o.bytes, memory, from, o.tag, carried_bits, &o);
            });
        iovec const both[] = {{o.into, o.bytes}, {spill_.data(), spill_.size()}};
        void* memories[] = {memory, endpoint_->descriptor_of(spill_.data())};
        return call([&]() noexcept {
            return fi_trecvv(endpoint_->get(), both, memories, 2, from, o.tag, carried_bits, &o);
        });
    }
    /// Of a receive; shm has no memory where others are busy (1.17).
    static bool no_room(long rc) noexcept { return rc == -FI_EAGAIN || rc == -FI_ENOMEM; }
    bool queue(operation& o) noexcept {
        o.next = nullptr;
        (queued_ == nullptr ? queued_ : last_queued_->next) = &o;
        last_queued_ = &o;
        (void)sleep_.not_now();
        return true;
    }
    HERRING_SETUP void give_queued() noexcept {
        while (queued_ != nullptr) {
            operation& o = *queued_;
            operation* const next = o.next;
            peer& p = peers_[o.peer];
            long const rc = p.is_lost ? -FI_ECANCELED : give(o);
            if (no_room(rc) || rc == way_out::none_returned) return;
            queued_ = next;
            if (rc == 0) continue;
            release(o);
            if (!p.is_lost) refused(p, rc, o.bytes);
        }
    }

    /// Up to `batch` completions; errors are seen to.
    std::size_t read(fi_cq_tagged_entry* entries) noexcept {
        for (;;) {
            long const got = call([&]() noexcept { return fi_cq_read(endpoint_->queue(), entries, batch); });
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
        operation& o = *static_cast<operation*>(entry.op_context);
        peer& p = peers_[o.peer];
        switch (o.what) {
        case operation::send:
            --p.sending;
            ++p.sent;
            done = {o.token, o.bytes, p.rank, completion::sent, errc::ok};
            break;
        case operation::receive:
            ++p.received;
            if (entry.len > o.bytes) [[unlikely]]
                cut(p, o.bytes, entry.len - o.bytes);
            done = {o.token, entry.len, p.rank, completion::received, errc::ok, entry.tag};
            break;
        case operation::hello:
            hear(p, notes_[o.peer].hello);
            return false;
        case operation::goodbye:
            hear(p, notes_[o.peer].goodbye);
            return false;
        case operation::note_out:
            p.writing = false;
            return false;
        }
        release(o);
        return !p.is_lost;
    }

    /// Reads the queue; what is found lies in `done_` for the next poll.
    std::size_t gather() noexcept {
        fi_cq_tagged_entry entries[batch];
        std::size_t found = 0;
        for (int round = 0; round < rounds; ++round) {
            std::size_t const got = read(entries);
            if (got == 0) break;
            found += got;
            for (std::size_t i = 0; i < got; ++i) {
                completion done;
                if (complete(entries[i], done)) done_.push(done);
            }
        }
        if (queued_ != nullptr) give_queued();
        if (leaving_ > 0) see_off();
        return found;
    }

    // ---- errors ---------------------------------------------------------------------------------------------------

    /// After an error from fi_cq_read. False: there is nothing more to read now.
    HERRING_SETUP bool read_error(long why) noexcept {
        if (why != -FI_EAVAIL) {
            for (peer& p : peers_) {
                std::snprintf(p.reason, sizeof p.reason, "libfabric's completion queue broke: %s",
                              ofi_text(why));
                lose(p, errc::device);
            }
            return false;
        }
        fi_cq_err_entry e{};
        if (call([&]() noexcept { return fi_cq_readerr(endpoint_->queue(), &e, 0); }) != 1)
            return false; // told, and not there yet
        auto* const o = static_cast<operation*>(e.op_context);
        if (o < operations_.begin() || o >= operations_.end()) {
            ++unplaced_;
            return true;
        }
        peer& p = peers_[o->peer];
        if (o->what == operation::send) --p.sending;
        if (o->what == operation::note_out) p.writing = false;
        bool const truncated = e.err == FI_ETRUNC && o->what == operation::receive;
        if (o->what == operation::send || o->what == operation::receive) release(*o);
        if (p.is_lost) return true;
        if (truncated) return cut(p, o->bytes, e.olen), true;
        char text[120] = "";
        char const* const of_provider =
            fi_cq_strerror(endpoint_->queue(), e.prov_errno, e.err_data, text, sizeof text);
        std::snprintf(
            p.reason, sizeof p.reason,
            "libfabric reports for a message %s it: %s (provider: %s, %d); its process ended, or the "
            "network between is broken",
            o->what == operation::send || o->what == operation::note_out ? "to" : "from", fi_strerror(e.err),
            of_provider == nullptr ? "nothing" : of_provider, e.prov_errno);
        lose(p, errc::peer_lost);
        return true;
    }

    /// A message was longer than its receive.
    HERRING_SETUP void cut(peer& p, std::size_t due, std::size_t beyond) noexcept {
        if (p.is_lost) return;
        std::snprintf(
            p.reason, sizeof p.reason,
            "it sent more than the %zu bytes that were due, by %zu: do all ranks call the same operations "
            "with the same sizes?",
            due, beyond);
        lose(p, errc::mismatch);
    }

    /// A post was refused for good.
    HERRING_SETUP bool refused(peer& p, long rc, std::size_t bytes) noexcept {
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

    HERRING_SETUP void lose(peer& p, errc why) noexcept {
        if (p.is_lost) return;
        p.is_lost = true;
        if (p.leaving) --leaving_;
        done_.push({0, 0, p.rank, completion::lost, why});
    }

    // ---- hello and goodbye ----------------------------------------------------------------------------------------

    /// Both of a peer's notes can come from now on. False: not now.
    HERRING_SETUP bool expect_notes(peer& p) noexcept {
        notes& into = notes_[place(p)];
        for (; p.expected < 2; ++p.expected) {
            note& one = p.expected == 0 ? into.hello : into.goodbye;
            operation& o = note_operation(p, p.expected == 0 ? operation::hello : operation::goodbye);
            long const rc = call([&]() noexcept {
                return fi_recv(endpoint_->get(), &one, sizeof one, endpoint_->descriptor_of(&one), p.address,
                               &o);
            });
            if (rc == 0) continue;
            if (rc != -FI_EAGAIN) refused(p, rc, sizeof one);
            return false;
        }
        return true;
    }
    HERRING_SETUP bool send_note(peer& p, note::kind what) noexcept {
        note& from = notes_[place(p)].out;
        from = {ranks_.job(), what, static_cast<std::uint32_t>(ranks_.rank()), p.sent};
        long const rc = call([&]() noexcept {
            return fi_send(endpoint_->get(), &from, sizeof from, endpoint_->descriptor_of(&from), p.address,
                           &note_operation(p, operation::note_out));
        });
        if (rc != 0 && rc != -FI_EAGAIN) refused(p, rc, sizeof from);
        return p.writing = rc == 0;
    }

    HERRING_SETUP void hear(peer& p, note const& heard) noexcept {
        if (p.is_lost) return;
        if (heard.job != ranks_.job() || heard.rank != static_cast<std::uint32_t>(p.rank) ||
            heard.what != (p.greeted ? note::goodbye : note::hello)) {
            std::snprintf(p.reason, sizeof p.reason, "it sent what is neither its hello nor its goodbye");
            return lose(p, errc::protocol);
        }
        if (!p.greeted) {
            p.greeted = true; // nobody leaves before all have been greeted: what comes next is its goodbye
            return;
        }
        p.leaving = true;
        p.announced = heard.messages;
        p.moved = p.received + p.sent;
        p.looked = clock::now();
        ++leaving_;
    }

    /// Who has said goodbye is lost once all that it sent is here, and it has all that was sent to it; or when nothing
    /// has moved for a while, for there may be no receive for some of it. Times in which this rank did not look do not
    /// count.
    HERRING_SETUP void see_off() noexcept {
        time_point const now = clock::now();
        for (peer& p : peers_) {
            if (!p.leaving || p.is_lost) continue;
            std::uint64_t const moved = p.received + p.sent;
            p.still = moved == p.moved ? p.still + awake(now - p.looked) : clock::duration(0);
            p.moved = moved;
            p.looked = now;
            if ((p.received < p.announced || p.sending > 0) && p.still < grace) continue;
            std::snprintf(
                p.reason, sizeof p.reason,
                "it destroyed its reducer while others still wait for it; let every rank make the same "
                "calls");
            lose(p, errc::peer_lost);
        }
    }

    /// The lower rank of a pair speaks first: two that connect to each other at once are work for nothing.
    HERRING_SETUP void greet(ofi_facts const& tag, time_point deadline) {
        for (peer& p : peers_)
            while (!p.is_lost && !expect_notes(p)) turn(deadline, tag);
        for (;;) {
            bool complete = true;
            for (peer& p : peers_) {
                if (!p.greeting && !p.is_lost && (p.rank > ranks_.rank() || p.greeted))
                    p.greeting = send_note(p, note::hello);
                complete = complete && p.greeted && p.greeting && !p.writing;
            }
            if (complete) return;
            turn(deadline, tag);
        }
    }
    HERRING_SETUP void turn(time_point deadline, ofi_facts const& tag) {
        ranks_.check();
        if (gather() == 0) sleep_.nap();
        ranks_.check();
        for (peer const& p : peers_)
            if (p.is_lost)
                throw error(errc::unreachable, ranks_.rank(), p.rank, "connect",
                            {"provider '", tag.libfabric, "': ", p.reason});
        if (clock::now() < deadline) return;
        for (peer const& p : peers_)
            if (!p.greeted || !p.greeting || p.writing)
                throw error(errc::timeout, ranks_.rank(), p.rank, "connect",
                            {"provider '", tag.libfabric,
                             "': no hello from that rank within the deadline; this one is at ",
                             ranks_.local_address(),
                             "; is a firewall between the hosts, or its HERRING_INTERFACE not "
                             "routable from here?"});
    }

    /// Says goodbye to those who stay, as far as that can be done in a short time.
    HERRING_SETUP void leave() noexcept {
        if (!open_) return;
        if (ranks_.failed() == nullptr) {
            time_point const until = clock::now() + farewell;
            gather(); // who has left already?
            for (bool complete = false; !complete && clock::now() < until;) {
                complete = true;
                for (peer& p : peers_) {
                    if (p.is_lost || p.leaving) continue;
                    if (!p.parting) p.parting = send_note(p, note::goodbye);
                    complete = complete && p.parting && !p.writing && (closes_in_flight_ || p.sending == 0);
                }
                if (gather() == 0 && !complete) sleep_.nap();
            }
        }
        abandon();
    }

    world& ranks_;
    ofi_sleep sleep_;
    table<int> index_; // rank → place in peers_; only of those that are
    table<peer> peers_;
    table<notes> notes_;
    table<operation> operations_;
    operation* free_ = nullptr;
    operation* queued_ = nullptr; // receives that the provider has no room for, the oldest first
    operation* last_queued_ = nullptr;
    double_pile<completion> done_;
    std::size_t largest_;    // message that was announced
    table<std::byte> spill_; // takes what is longer than its receive, where the provider does not tell
    std::byte nothing_{};
    bool open_ = false;
    int leaving_ = 0; // peers that said goodbye, and are not lost yet
    std::uint64_t unplaced_ = 0;
    std::uint64_t number_ = 0; // tells names of one job's endpoints apart; the same on all ranks
    bool closes_in_flight_;
    way_out calls_;
    ofi_endpoint* endpoint_ = nullptr; // owned, until it is kept
};

} // namespace herring::detail

#endif // HERRING_DETAIL_OFI_MESSENGER_HPP
