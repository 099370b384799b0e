// herring: the state machine that runs executions over an intra-node reducer and a transport.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ENGINE_HPP
#define HERRING_ENGINE_ENGINE_HPP

#include "herring/element.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/peer.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/plan/plan.hpp"
#include "herring/transport/transport.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace herring {

/// Whom an engine waits for, and why it thinks so.
struct blame {
    int rank = -1;
    bool certain = false; ///< that rank has not called; else it may itself be waiting for somebody
    bool gone = false;    ///< and it never will: it has left
    char const* text = "";
};

/// Runs executions, in order, each through one of four routes (see `route`).
///
/// A state machine: `poll` does what can be done now and returns how much that was; it never waits. It knows no clock
/// and no thread; memory, messages and flags come from the policies.
///
/// Two hops: this rank *pushes* its node's sum of a chunk to the rank that serves it, at most `window` chunks a peer
/// ahead of the results. The server keeps one slot for each contributor and chunk, sums all of them in the order of
/// the nodes once the last is there, and sends the result back, which is the credit for the next push. One hop: every
/// node sends to every node, each sums for itself. All of a pair's messages of a kind are numbered; the number is the
/// tag, so no order is assumed between them.
///
/// Threads:  `submit` and `released` from one thread, all else from one (other) thread.
/// Memory:   plan.staging_bytes(peers) and O(ranks + executions); nothing is allocated after construction.
/// Errors:   the first one stays (`failed`); nothing moves after it.
template <class T, class Transport, class IntraNode, class Update, class Trace> class engine {
  public:
    using accumulator = herring::accumulator<T>;

    engine(world& ranks, topology const& map, herring::plan const& made, Transport& transport, IntraNode& node,
           Trace& trace, std::span<int const> peers, std::size_t executions, std::span<std::byte> mailboxes,
           std::span<std::byte> staging)
        : ranks_(ranks), map_(map), transport_(transport), node_(node), trace_(trace), rank_(ranks.rank()),
          my_node_(map.node(rank_)), local_(map.local_rank(rank_)), local_size_(map.local_size(my_node_)),
          networked_(map.nodes() > 1), wide_(made.partial_bytes != made.element_bytes),
          staged_(wide_ || local_size_ > 1), window_(made.window()), mailbox_bytes_(made.tuning.mailbox_bytes),
          mailboxes_(mailboxes.data()), ring_mask_(std::bit_ceil(executions + 1) - 1),
          ring_(std::make_unique<execution[]>(ring_mask_ + 1)), index_(static_cast<std::size_t>(map.size()), -1) {
        server_ = chunk_cursor({static_cast<std::uint32_t>(local_), static_cast<std::uint32_t>(local_size_)}, my_node_);
        hop_out_ = hop_in_ =
            chunk_cursor({static_cast<std::uint32_t>(local_), static_cast<std::uint32_t>(local_size_)}, -1);
        group_.resize(static_cast<std::size_t>(local_size_));
        remote_.resize(static_cast<std::size_t>(map.nodes()));
        targets_.resize(static_cast<std::size_t>(local_size_));
        lateness_.resize(static_cast<std::size_t>(map.size()));
        peers_.reserve(peers.size());
        for (int const rank : peers) {
            if (rank < rank_) first_peer_ = peers_.size() + 1;
            index_[static_cast<std::size_t>(rank)] = static_cast<int>(peers_.size());
            peers_.emplace_back(rank, chunk_stream::between(local_, local_size_, map.local_rank(rank),
                                                            map.local_size(map.node(rank))),
                                map.node(rank), window_, made, staged_, staging);
        }
        if (first_peer_ == peers_.size()) first_peer_ = 0;
    }
    engine(engine const&) = delete;
    engine& operator=(engine const&) = delete;

    /// Bytes that mailboxes of this size take in every rank's region.
    static constexpr std::size_t mailboxes_bytes(std::size_t each) noexcept {
        return mailbox_shift + mailbox_slots * (each + 320);
    }

    /// Posts the receives of the first window; the caller then waits for all ranks, so that nobody sends before.
    void open() noexcept {
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            for (std::uint32_t slot = 0; slot < window_; ++slot) post_push_receive(i, slot);
            for (std::uint32_t slot = 0; slot < plan::one_hop_window(); ++slot) post_hop_receive(i, slot);
        }
    }

    /// Whether one more execution may be submitted.
    bool has_room() const noexcept { return requested_.load(std::memory_order_relaxed) - released() <= ring_mask_; }

    /// Hands over an execution; its memory belongs to the engine until it is released. Returns its number.
    std::uint64_t submit(execution const& e) noexcept {
        std::uint64_t const number = requested_.load(std::memory_order_relaxed);
        ring_[number & ring_mask_] = e;
        requested_.store(number + 1, std::memory_order_release);
        return number;
    }

    /// Executions whose results lie in this rank's memory, on this rank's side complete.
    std::uint64_t released() const noexcept { return released_.load(std::memory_order_acquire); }
    /// Executions that were submitted.
    std::uint64_t requested() const noexcept { return requested_.load(std::memory_order_acquire); }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept {
        return failed_.load(std::memory_order_acquire) ? &failure_ : nullptr;
    }

    /// Ends everything with this failure, here and, if `announce`, on every rank.
    void fail(failure const& why, bool announce = true) noexcept {
        if (failed_.load(std::memory_order_relaxed)) return;
        failure_ = why;
        failed_.store(true, std::memory_order_release);
        if (announce) ranks_.fail(why);
    }

    /// Does what can be done now. Returns 0 when there was nothing.
    std::size_t poll() noexcept {
        if (failed_.load(std::memory_order_relaxed)) return 0;
        std::size_t progress = 0;
        submitted_ = requested_.load(std::memory_order_acquire);
        if (networked_) progress += transport_.poll([this](completion const& done) noexcept { on(done); });
        progress += arrive();
        progress += run_local();
        if (networked_) {
            progress += serve();
            progress += push();
            progress += hop_send();
            progress += hop_fold();
        }
        return progress + finish();
    }

    /// Sleeps until `poll` may find something, or `until`.
    void sleep(time_point until) noexcept {
        if (!networked_) {
            std::uint32_t const heard = node_.listen();
            node_.sleep(heard, poll() > 0 ? time_point{} : until);
        } else if (local_size_ == 1) {
            transport_.wait(until);
        } else {
            // News may come from the network or from the node, and one cannot sleep on both: look at both in turn,
            // the less often the longer it has taken.
            time_point const now = clock::now();
            if (nap_ < std::chrono::microseconds(2000)) nap_ += nap_ / 8 + std::chrono::microseconds(10);
            transport_.wait(std::min(until, now + nap_));
        }
    }

    /// Ends `sleep`, from any thread.
    void wake() noexcept {
        if (networked_) transport_.wake();
        else node_.wake();
    }

    /// Whom this rank waits for right now; rank −1: nobody.
    blame waiting_for() noexcept {
        std::uint64_t const e = released_.load(std::memory_order_relaxed);
        if (e >= submitted_) return {};
        if (gathered_ < submitted_)
            if (int const l = node_.absent(gathered_); l >= 0)
                return local_blame(l, true, "it has not submitted this operation");
        if (awaited_server_ >= 0) return {awaited_server_, false, false, "its part has not come"};
        if (awaited_hop_ >= 0) return {awaited_hop_, false, false, "its part has not come"};
        for (peer const& p : peers_)
            if (p.oldest < p.pushed || (p.push.at < submitted_ && p.lost)) return {p.rank, false, false, "it has not returned the sum"};
        for (peer const& p : peers_)
            if (p.sends > 0) return {p.rank, false, false, "it takes no data"};
        if (int const l = node_.unfinished(e); l >= 0)
            return local_blame(l, false, "it has not finished its share of the node's sum");
        return {};
    }

    /// Adds to the time that somebody was waited for.
    void charge(int rank, std::uint64_t ns) noexcept {
        if (rank >= 0) lateness_[static_cast<std::size_t>(rank)] += ns;
        waited_.add(ns);
    }

    /// Closes the account of one wait: who was waited for longest.
    void settle_account() noexcept {
        int slowest = -1;
        std::uint64_t most = 0;
        for (std::size_t r = 0; r < lateness_.size(); ++r) {
            if (lateness_[r] > most) {
                most = lateness_[r];
                slowest = static_cast<int>(r);
            }
            lateness_[r] = 0;
        }
        slowest_rank_.set(static_cast<std::uint64_t>(slowest + 1));
        slowest_ns_.set(most);
    }

    herring::counters counters() const noexcept {
        return {released(), messages_sent_.get(), messages_received_.get(), bytes_sent_.get(), bytes_received_.get(),
                waited_.get(), static_cast<int>(slowest_rank_.get()) - 1, slowest_ns_.get()};
    }

  private:
    using source = kernel::source;
    using peer = detail::peer;

    enum kind : std::uint64_t { push_in = 1, result_in, hop_in, push_out, result_out, hop_out };
    static constexpr int kind_shift = 60;
    static constexpr std::uint64_t low = (1u << 20) - 1;

    // A token says what to do with a completion: kind, peer, slot, execution's place in the ring.
    static std::uint64_t token(kind what, std::size_t peer_index, std::uint64_t slot, std::uint64_t execution) noexcept {
        return (what << kind_shift) | (peer_index << 40) | (slot << 20) | (execution & low);
    }
    static std::uint64_t tag(kind what, std::uint64_t number) noexcept { return (what << kind_shift) | number; }

    execution& at(std::uint64_t number) noexcept { return ring_[number & ring_mask_]; }
    T* element(execution const& e, std::size_t offset) const noexcept { return reinterpret_cast<T*>(e.own) + offset; }

    blame local_blame(int l, bool certain, char const* text) noexcept {
        return {map_.rank_of(my_node_, l), certain, node_.gone(l), text};
    }

    // ---- what the transport reports -------------------------------------------------------------------------------

    void on(completion const& done) noexcept {
        if (done.what == completion::lost) {
            peer& p = peers_[place(done.peer)];
            p.lost = true;
            p.why = done.why;
            return;
        }
        std::size_t const from = static_cast<std::size_t>((done.token >> 40) & low);
        std::size_t const slot = static_cast<std::size_t>((done.token >> 20) & low);
        peer& p = peers_[from];
        if (done.what == completion::received) {
            messages_received_.add(1);
            bytes_received_.add(done.bytes);
        } else {
            messages_sent_.add(1);
            bytes_sent_.add(done.bytes);
        }
        switch (static_cast<kind>(done.token >> kind_shift)) {
        case push_in: p.arrivals[slot] = done.bytes + 1; break;
        case hop_in: p.hop_arrivals[slot] = done.bytes + 1; break;
        case result_in: take_result(p, slot, done.bytes); break;
        case hop_out: --hop_unsent_[slot]; [[fallthrough]];
        case push_out:
        case result_out:
            --ring_[done.token & low & ring_mask_].open;
            --p.sends;
            break;
        }
    }

    std::size_t place(int rank) const noexcept { return static_cast<std::size_t>(index_[static_cast<std::size_t>(rank)]); }

    // ---- arriving: this rank's part of an execution is in place ----------------------------------------------------

    std::size_t arrive() noexcept {
        std::size_t progress = 0;
        while (arrived_ < submitted_) {
            execution& e = at(arrived_);
            if (e.path == route::mailbox && !into_mailbox(e)) break;
            e.open = e.path == route::two_hop ? 1 + static_cast<std::uint32_t>(peers_.size()) : 1;
            node_.arrive(arrived_, e.fingerprint);
            ++arrived_;
            ++progress;
        }
        while (gathered_ < arrived_ && node_.absent(gathered_) < 0) {
            if (int const l = node_.differs(gathered_, at(gathered_).fingerprint); l >= 0)
                return mismatch(map_.rank_of(my_node_, l), "it submitted another operation or another size at this point");
            ++gathered_;
            ++progress;
        }
        return progress;
    }

    static constexpr std::uint64_t mailbox_slots = 4;
    // Away from the page offsets of tensors: a load behind a store to the same offset of another page waits for it.
    static constexpr std::size_t mailbox_shift = 2112;
    std::byte* mailbox(std::uint64_t number) const noexcept {
        return mailboxes_ + mailbox_shift + (number % mailbox_slots) * (mailbox_bytes_ + 320);
    }

    // A slot may be written again once every local rank is done with what it held.
    bool into_mailbox(execution const& e) noexcept {
        if (mailbox_out_ - mailbox_in_ >= mailbox_slots) return false; // this rank has not read it yet
        std::uint64_t const before = mailbox_of_[mailbox_out_ % mailbox_slots];
        if (before != 0 && node_.unfinished(before - 1) >= 0) return false;
        std::memcpy(mailbox(mailbox_out_), e.own, e.elements * sizeof(T));
        mailbox_of_[mailbox_out_ % mailbox_slots] = arrived_ + 1;
        ++mailbox_out_;
        return true;
    }

    // ---- one node -------------------------------------------------------------------------------------------------

    std::size_t run_local() noexcept {
        std::size_t progress = 0;
        for (; local_at_ < gathered_; ++local_at_, ++progress) {
            execution& e = at(local_at_);
            if (e.path == route::mailbox) {
                std::byte* const box = mailbox(mailbox_in_++);
                for (int l = 0; l < local_size_; ++l) group_[static_cast<std::size_t>(l)] = {node_.peer(l, box), false};
                T* const target = element(e, 0);
                kernel::fold<Update, T>(group_, std::span<T* const>(&target, 1), e.elements, map_.size());
                --e.open;
            } else if (e.path == route::local) {
                for (std::uint32_t s = 0; s < e.shard_count; ++s) run_shard(e, e.shards[s]);
                --e.open;
            }
        }
        return progress;
    }

    void run_shard(execution const& e, shard const& s) noexcept {
        for (std::uint32_t k = static_cast<std::uint32_t>(local_); k < s.chunks; k += static_cast<std::uint32_t>(local_size_)) {
            std::size_t const from = static_cast<std::size_t>(k) * s.chunk_elements;
            chunk const c{s.offset + from, std::min(s.chunk_elements, s.elements - from)};
            kernel::fold<Update, T>(local_sources(e, c), local_targets(e, c), c.elements, map_.size());
        }
    }

    std::span<source const> local_sources(execution const& e, chunk const& c) noexcept {
        auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
        for (int l = 0; l < local_size_; ++l) group_[static_cast<std::size_t>(l)] = {node_.peer(l, own), false};
        return group_;
    }

    std::span<T* const> local_targets(execution const& e, chunk const& c) noexcept {
        auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
        for (int l = 0; l < local_size_; ++l)
            targets_[static_cast<std::size_t>(l)] = reinterpret_cast<T*>(node_.peer(l, own));
        return targets_;
    }

    // ---- two hops: as a server ------------------------------------------------------------------------------------

    // Brings a cursor to its next chunk in an execution of its route that all local ranks have arrived at; an
    // execution that it leaves has one open thing less.
    bool seek(chunk_cursor& cursor, route path) noexcept {
        while (cursor.at < gathered_) {
            execution& e = at(cursor.at);
            if (e.path == path) {
                if (cursor.stream.any() && cursor.settle(e)) return true;
                --e.open;
            }
            cursor.next_execution();
        }
        return false;
    }
    // The same for a cursor whose passing is not counted.
    bool seek_uncounted(chunk_cursor& cursor, route path) noexcept {
        for (; cursor.at < gathered_; cursor.next_execution())
            if (at(cursor.at).path == path && cursor.settle(at(cursor.at))) return true;
        return false;
    }

    std::size_t handler(int node, std::uint32_t k) const noexcept {
        return place(map_.rank_of(node, static_cast<int>(k) % map_.local_size(node)));
    }

    std::size_t serve() noexcept {
        std::size_t progress = 0;
        awaited_server_ = -1;
        while (seek(server_, route::two_hop)) {
            execution& e = at(server_.at);
            chunk const c = server_.here(e);
            if (!summed_) {
                if (!all_pushed(c)) return progress;
                fold_remote(e, c, [](peer& p) -> std::byte* { return p.slot(p.served); });
                summed_ = true;
                ++progress;
            }
            // Results go out one after the other, starting behind this rank, so that servers do not gang up on one.
            for (; answered_ < map_.nodes(); ++answered_) {
                int const n = (my_node_ + answered_) % map_.nodes();
                if (n == my_node_) continue;
                std::size_t const to = handler(n, server_.k);
                if (!answer(to, e, c)) return progress;
                ++progress;
            }
            summed_ = false;
            answered_ = 0;
            awaited_node_ = 0;
            server_.next_chunk();
        }
        return progress;
    }

    // Looks only at who was missing last time, and on from there.
    bool all_pushed(chunk const& c) noexcept {
        for (; awaited_node_ < map_.nodes(); ++awaited_node_) {
            if (awaited_node_ == my_node_) continue;
            peer& p = peers_[handler(awaited_node_, server_.k)];
            std::size_t const got = p.arrivals[p.served % window_];
            if (got == 0) {
                awaited_server_ = p.rank;
                if (p.lost) lost(p);
                return false;
            }
            if (got - 1 != c.elements * partial_bytes()) {
                mismatch(p.rank, "the size of its part differs: do all ranks call the same operations with the same sizes?");
                return false;
            }
        }
        return true;
    }

    /// Sums the parts of all nodes in their order, with the local ranks' own as one of them, into all local memories.
    template <class Slot> void fold_remote(execution const& e, chunk const& c, Slot const& slot) noexcept {
        std::size_t before = 0;
        std::size_t count = 0;
        std::uint32_t const k = current_k_or(server_.k, hop_in_.k, e.path);
        for (int n = 0; n < map_.nodes(); ++n) {
            if (n == my_node_) {
                before = count;
                continue;
            }
            remote_[count++] = {slot(peers_[handler(n, k)]), wide_};
        }
        std::span<source const> const remote(remote_.data(), count);
        kernel::fold<Update, T>(remote.first(before), local_sources(e, c), remote.subspan(before), local_targets(e, c),
                                c.elements, map_.size());
    }
    static std::uint32_t current_k_or(std::uint32_t server, std::uint32_t hop, route path) noexcept {
        return path == route::one_hop ? hop : server;
    }

    bool answer(std::size_t to, execution& e, chunk const& c) noexcept {
        peer& p = peers_[to];
        // The slot's next receive stands before the result, which is the credit for the push that will need it.
        if (!p.reposted) {
            p.arrivals[p.served % window_] = 0;
            if (!post_push_receive(to, p.served + window_)) {
                p.arrivals[p.served % window_] = c.elements * partial_bytes() + 1;
                if (p.lost) lost(p);
                return false;
            }
            p.reposted = true;
        }
        if (!transport_.post_send(p.rank, tag(result_in, p.served), bytes_of(e, c), token(result_out, to, 0, server_.at))) {
            if (p.lost) lost(p);
            return false;
        }
        ++e.open;
        ++p.sends;
        ++p.served;
        p.reposted = false;
        return true;
    }

    std::span<std::byte const> bytes_of(execution const& e, chunk const& c) const noexcept {
        return std::as_bytes(std::span(element(e, c.offset), c.elements));
    }
    std::size_t partial_bytes() const noexcept { return wide_ ? sizeof(accumulator) : sizeof(T); }

    bool post_push_receive(std::size_t from, std::uint64_t number) noexcept {
        peer& p = peers_[from];
        return transport_.post_receive(p.rank, tag(push_in, number), p.slot_bytes(number),
                                       token(push_in, from, number % window_, 0));
    }
    bool post_hop_receive(std::size_t from, std::uint64_t number) noexcept {
        peer& p = peers_[from];
        return transport_.post_receive(p.rank, tag(hop_in, number), p.hop_slot_bytes(number),
                                       token(hop_in, from, number % plan::one_hop_window(), 0));
    }

    // ---- two hops: as a contributor -------------------------------------------------------------------------------

    // One chunk a peer and turn, starting behind this rank: every server gets work at once.
    std::size_t push() noexcept {
        std::size_t progress = 0;
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = 0; i < peers_.size(); ++i) {
                std::size_t const to = first_peer_ + i < peers_.size() ? first_peer_ + i : first_peer_ + i - peers_.size();
                if (push_one(to)) {
                    more = true;
                    ++progress;
                }
            }
        }
        return progress;
    }

    bool push_one(std::size_t to) noexcept {
        peer& p = peers_[to];
        if (!seek(p.push, route::two_hop)) return false;
        if (p.pushed - p.oldest >= window_) {
            if (p.lost) lost(p);
            return false;
        }
        execution& e = at(p.push.at);
        chunk const c = p.push.here(e);
        std::size_t const slot = p.pushed % window_;
        if (!p.prepared) {
            // The result lands where it belongs. It cannot come before all of the push has been taken in.
            auto const into = std::as_writable_bytes(std::span(element(e, c.offset), c.elements));
            if (!transport_.post_receive(p.rank, tag(result_in, p.pushed), into, token(result_in, to, slot, p.push.at))) {
                if (p.lost) lost(p);
                return false;
            }
            p.flights[slot] = {c, p.push.at, false};
            ++e.open;
            if (staged_) kernel::fold_partial<Update, T>(local_sources(e, c), reinterpret_cast<accumulator*>(p.stage(slot)), c.elements);
            p.prepared = true;
        }
        std::span<std::byte const> const from =
            staged_ ? std::span<std::byte const>(p.stage(slot), c.elements * partial_bytes()) : bytes_of(e, c);
        if (!transport_.post_send(p.rank, tag(push_in, p.pushed), from, token(push_out, to, 0, p.push.at))) {
            if (p.lost) lost(p);
            return false;
        }
        ++e.open;
        ++p.sends;
        p.prepared = false;
        ++p.pushed;
        p.push.next_chunk();
        return true;
    }

    void take_result(peer& p, std::size_t slot, std::size_t bytes) noexcept {
        detail::in_flight& flight = p.flights[slot];
        execution& e = at(flight.execution);
        if (bytes != flight.what.elements * sizeof(T)) {
            mismatch(p.rank, "the size of its result differs: do all ranks call the same operations with the same sizes?");
            return;
        }
        auto* const own = reinterpret_cast<std::byte*>(element(e, flight.what.offset));
        for (int l = 0; l < local_size_; ++l)
            if (l != local_) std::memcpy(node_.peer(l, own), own, bytes);
        flight.returned = true;
        --e.open;
        while (p.oldest < p.pushed && p.flights[p.oldest % window_].returned) {
            p.flights[p.oldest % window_].returned = false;
            ++p.oldest;
        }
    }

    // ---- one hop --------------------------------------------------------------------------------------------------

    // A rank sends its n-th part only when it has summed its (n − window/2)-th. So whoever hears part n − window/2 of
    // a peer knows that the slot of part n − window is free there: see docs/design.md, "Why two half windows suffice".
    std::size_t hop_send() noexcept {
        constexpr std::uint32_t half = plan::one_hop_window() / 2;
        std::size_t progress = 0;
        while (seek_uncounted(hop_out_, route::one_hop)) {
            if (hops_sent_ - hops_folded_ >= half) return progress;
            execution& e = at(hop_out_.at);
            chunk const c = hop_out_.here(e);
            std::size_t const slot = hops_sent_ % half;
            if (staged_ && hop_to_ == 0)
                kernel::fold_partial<Update, T>(local_sources(e, c), reinterpret_cast<accumulator*>(hop_stage(slot)), c.elements);
            std::span<std::byte const> const from =
                staged_ ? std::span<std::byte const>(hop_stage(slot), c.elements * partial_bytes()) : bytes_of(e, c);
            for (; hop_to_ < map_.nodes(); ++hop_to_) {
                int const n = (my_node_ + hop_to_) % map_.nodes();
                if (n == my_node_) continue;
                std::size_t const to = handler(n, hop_out_.k);
                peer& p = peers_[to];
                ++hop_unsent_[slot];
                ++e.open;
                ++p.sends;
                if (!transport_.post_send(p.rank, tag(hop_in, p.hops_out), from, token(hop_out, to, slot, hop_out_.at))) {
                    --hop_unsent_[slot];
                    --e.open;
                    --p.sends;
                    if (p.lost) lost(p);
                    return progress;
                }
                ++p.hops_out;
                ++progress;
            }
            hop_to_ = 0;
            ++hops_sent_;
            hop_out_.next_chunk();
        }
        return progress;
    }
    std::byte* hop_stage(std::size_t slot) noexcept { return peers_[0].hop_stage(slot); }

    std::size_t hop_fold() noexcept {
        constexpr std::uint32_t half = plan::one_hop_window() / 2;
        std::size_t progress = 0;
        awaited_hop_ = -1;
        while (seek(hop_in_, route::one_hop)) {
            if (hops_folded_ >= hops_sent_ || hop_unsent_[hops_folded_ % half] > 0) return progress;
            execution& e = at(hop_in_.at);
            chunk const c = hop_in_.here(e);
            for (int n = 0; n < map_.nodes(); ++n) {
                if (n == my_node_) continue;
                peer& p = peers_[handler(n, hop_in_.k)];
                std::size_t const got = p.hop_arrivals[p.hops_in % plan::one_hop_window()];
                if (got == 0) {
                    awaited_hop_ = p.rank;
                    if (p.lost) lost(p);
                    return progress;
                }
                if (got - 1 != c.elements * partial_bytes())
                    return mismatch(p.rank, "the size of its part differs: do all ranks call the same operations with the same sizes?");
            }
            fold_remote(e, c, [](peer& p) -> std::byte* { return p.hop_slot(p.hops_in); });
            for (int n = 0; n < map_.nodes(); ++n) {
                if (n == my_node_) continue;
                std::size_t const from = handler(n, hop_in_.k);
                peer& p = peers_[from];
                p.hop_arrivals[p.hops_in % plan::one_hop_window()] = 0;
                p.hops_to_post = p.hops_in + plan::one_hop_window() + 1;
                ++p.hops_in;
            }
            repost_hops();
            ++hops_folded_;
            ++progress;
            hop_in_.next_chunk();
        }
        if (hops_owed_) repost_hops();
        return progress;
    }

    void repost_hops() noexcept {
        hops_owed_ = false;
        for (std::size_t i = 0; i < peers_.size(); ++i) {
            peer& p = peers_[i];
            for (; p.hops_posted < p.hops_to_post; ++p.hops_posted)
                if (!post_hop_receive(i, p.hops_posted)) {
                    hops_owed_ = true;
                    break;
                }
        }
    }

    // ---- the end of an execution ----------------------------------------------------------------------------------

    std::size_t finish() noexcept {
        std::size_t progress = 0;
        while (finished_ < arrived_ && at(finished_).open == 0) {
            node_.finish(finished_, at(finished_).path != route::mailbox);
            ++finished_;
            ++progress;
        }
        std::uint64_t done = released_.load(std::memory_order_relaxed);
        while (done < finished_ && (at(done).path == route::mailbox || node_.unfinished(done) < 0)) {
            trace_(trace_event::bucket_reduced, at(done).label);
            released_.store(++done, std::memory_order_release);
            ++progress;
        }
        if (progress > 0) nap_ = std::chrono::microseconds(0);
        return progress;
    }

    void lost(peer const& p) noexcept {
        if (failed_.load(std::memory_order_relaxed) || suspicion_.what != errc::ok) return;
        // The peer may have left because of a failure elsewhere, which is then the better news: whoever waits looks
        // for it first, see `suspicion`.
        suspicion_ = failure::make(p.why, rank_, p.rank, "reduce", transport_.describe(p.rank));
    }

    std::size_t mismatch(int rank, char const* text) noexcept {
        fail(failure::make(errc::mismatch, rank_, rank, "reduce", text));
        return 0;
    }

  public:
    /// A peer that is needed and lost; `what` is ok when there is none.
    failure const& suspicion() const noexcept { return suspicion_; }

  private:
    world& ranks_;
    topology const& map_;
    Transport& transport_;
    IntraNode& node_;
    Trace& trace_;
    int const rank_;
    int const my_node_;
    int const local_;
    int const local_size_;
    bool const networked_;
    bool const wide_;   // parts of a node are sent in the accumulator's type, so that they are rounded once
    bool const staged_; // parts of a node are made in staging memory; else they are sent from where they lie
    std::uint32_t const window_;
    std::size_t const mailbox_bytes_;
    std::byte* const mailboxes_;

    std::uint64_t const ring_mask_;
    std::unique_ptr<execution[]> ring_;
    std::atomic<std::uint64_t> requested_{0}; // written by the submitting thread
    std::atomic<std::uint64_t> released_{0};  // written by the polling thread
    // requested ≥ submitted ≥ arrived ≥ gathered, finished ≥ released
    std::uint64_t submitted_ = 0;
    std::uint64_t arrived_ = 0;  // this rank's data is in place
    std::uint64_t gathered_ = 0; // all local ranks' data is
    std::uint64_t finished_ = 0; // this rank's chunks are done
    std::uint64_t local_at_ = 0;
    std::uint64_t mailbox_out_ = 0;
    std::uint64_t mailbox_in_ = 0;
    std::uint64_t mailbox_of_[mailbox_slots] = {}; // execution + 1 that a slot holds

    std::vector<int> index_; // rank → place in peers_
    std::vector<peer> peers_;
    std::size_t first_peer_ = 0;

    chunk_cursor server_;
    bool summed_ = false;
    int awaited_node_ = 0;
    int answered_ = 0;
    int awaited_server_ = -1;

    chunk_cursor hop_out_;
    chunk_cursor hop_in_;
    std::uint64_t hops_sent_ = 0;
    std::uint64_t hops_folded_ = 0;
    std::uint32_t hop_unsent_[plan::one_hop_window()] = {};
    int hop_to_ = 0;
    int awaited_hop_ = -1;
    bool hops_owed_ = false;

    std::vector<source> group_;
    std::vector<source> remote_;
    std::vector<T*> targets_;
    std::vector<std::uint64_t> lateness_;
    std::chrono::nanoseconds nap_{0};

    std::atomic<bool> failed_{false};
    failure failure_{};
    failure suspicion_{};

    detail::tally messages_sent_, messages_received_, bytes_sent_, bytes_received_, waited_, slowest_rank_, slowest_ns_;
};

} // namespace herring

#endif // HERRING_ENGINE_ENGINE_HPP
