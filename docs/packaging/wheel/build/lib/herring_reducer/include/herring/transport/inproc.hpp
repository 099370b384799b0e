// herring: messages between threads of one process; the reference model of the transport concept.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_INPROC_HPP
#define HERRING_TRANSPORT_INPROC_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <unistd.h>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::transport {

/// Carries messages between ranks that are threads of one process (`launch_threads`).
///
/// The thread that posts the second of a send and its receive copies the bytes; both sides find a completion
/// at their next poll. All ranks of a world share one fabric, which has one lock and a mailbox for each rank.
///
/// Threads:  one at a time; `wake` from any.
/// Cost:     one copy a message, one lock a call; no allocation after construction for posts that were
///           announced.
/// Lifetime: the destructor withdraws every post; the peers find this rank `lost`. The last rank deletes the
///           fabric.
/// Errors:   construction: `unsupported`, naming a peer that runs in another process.
class inproc {
  public:
    using axis = axes::transport;
    static constexpr char const* name = "inproc";
    static constexpr transport_facts facts{
        .keeps_order = true,
        .abandons = true, // a peer's thread reads and writes posted memory
        .envelope_bytes = detail::most_envelope_bytes,
        .tuning = {.chunk_bytes = 64 << 10, .window_bytes = 256 << 10, .one_hop_bytes = 16 << 10}};

    /// Enters the fabric. Blocks until all ranks have entered, for `needs.timeout` at most.
    inproc(world& ranks, transport_needs const& needs)
        : rank_(ranks.rank()), peers_(needs.peers.begin(), needs.peers.end()) {
        if (peers_.empty()) return;
        process const mine = this_process();
        auto const processes = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), needs.timeout);
        for (int rank = 0; rank < ranks.size(); ++rank)
            if (!(read<process>(processes, rank) == mine))
                throw error(errc::unsupported, rank_, rank, "inproc",
                            "that rank runs in another process, and inproc joins threads of one: use "
                            "launch_threads(), "
                            "or transport::tcp between processes");
        // Rank 0 creates the fabric; the last rank that leaves deletes it.
        fabric_ = rank_ == 0 ? create_fabric(ranks) : nullptr;
        try {
            auto const fabrics = ranks.all_gather(std::as_bytes(std::span(&fabric_, 1)), needs.timeout);
            if (rank_ != 0) fabric_ = find_fabric(read<fabric*>(fabrics, 0), ranks);
            enter(needs);
            ranks.barrier(needs.timeout); // all have entered before any rank sends or leaves
        } catch (...) {
            leave();
            throw;
        }
    }
    inproc(inproc const&) = delete;
    inproc& operator=(inproc const&) = delete;

    ~inproc() { leave(); }

    /// Begins a send, which waits in the receiver's mailbox for its receive. False: more sends are posted
    /// than were announced, and there is no memory for this one now.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return post_send(to, tag, {}, from, token);
    }
    /// The same with an envelope of at most 32 bytes; a larger one is refused.
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept {
        if (envelope.size() > facts.envelope_bytes) return false;
        std::lock_guard const lock(fabric_->guard);
        mailbox& receiver = box(peers_[to.place()]);
        pending_send const send{rank_, to, tag, from, token, detail::kept_envelope(envelope)};
        auto const match =
            std::find_if(receiver.receives.begin(), receiver.receives.end(),
                         [&](pending_receive const& r) { return r.source == rank_ && matching(r.tag, tag); });
        if (match == receiver.receives.end()) return add(receiver.sends, send);
        deliver(receiver, *match, send);
        receiver.receives.erase(match);
        return true;
    }

    /// Begins a receive. False: as for `post_send`.
    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        std::lock_guard const lock(fabric_->guard);
        mailbox& mine = box(rank_);
        pending_receive const receive{peers_[from.place()], from, tag, into, token};
        auto const match = std::find_if(mine.sends.begin(), mine.sends.end(), [&](pending_send const& s) {
            return s.source == receive.source && matching(s.tag, tag);
        });
        if (match == mine.sends.end()) return add(mine.receives, receive);
        deliver(mine, receive, *match);
        mine.sends.erase(match);
        return true;
    }

    /// Reports the completions since the last call. Returns their number.
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        if (fabric_ == nullptr) return 0;
        {
            std::lock_guard const lock(fabric_->guard);
            taken_.swap(box(rank_).done);
        }
        // Outside the lock: the functor may post.
        std::size_t const count = taken_.size();
        for (report_entry& entry : taken_) {
            entry.what.envelope = entry.envelope.view();
            on_completion(std::as_const(entry.what));
        }
        taken_.clear();
        return count;
    }

    /// Sleeps until there is a completion, `wake` is called, or `until`.
    void wait(time_point until) noexcept {
        if (fabric_ == nullptr) return;
        std::unique_lock lock(fabric_->guard);
        mailbox& mine = box(rank_);
        mine.changed.wait_until(lock, until, [&] { return !mine.done.empty() || mine.woken; });
        mine.woken = false;
    }

    /// Ends `wait`, or the next `wait`, from any thread.
    void wake() noexcept {
        if (fabric_ == nullptr) return;
        std::lock_guard const lock(fabric_->guard);
        box(rank_).woken = true;
        box(rank_).changed.notify_all();
    }

    /// Withdraws the posts of this rank: their memory may be freed.
    void abandon() noexcept {
        if (fabric_ == nullptr) return;
        std::lock_guard const lock(fabric_->guard);
        withdraw();
    }

    /// Does nothing: threads of one process reach all memory.
    void register_memory(std::span<std::byte>) noexcept {}
    /// Returns the only reason for which a peer is lost.
    char const* describe(peer_id) const noexcept { return "its end of inproc was destroyed"; }

  private:
    struct pending_receive {
        int source;   // rank of the sender
        peer_id from; // the sender, as the receiver counts its peers
        std::uint64_t tag;
        std::span<std::byte> into;
        std::uint64_t token;
    };
    struct pending_send {
        int source; // rank of the sender
        peer_id to; // the receiver, as the sender counts its peers
        std::uint64_t tag;
        std::span<std::byte const> from; // in the sender's memory
        std::uint64_t token;             // the sender's
        detail::kept_envelope envelope;
    };
    struct report_entry {
        completion what;
        detail::kept_envelope envelope;
    };
    /// Posts and completions of one rank: its receives, the sends of others to it, and the report of its next
    /// poll.
    struct mailbox {
        std::vector<int> peers; // ranks, ascending
        std::vector<pending_receive> receives;
        std::vector<pending_send> sends;
        std::vector<report_entry> done;
        std::condition_variable changed;
        bool open = false;
        bool woken = false;
    };
    struct fabric {
        explicit fabric(world const& ranks)
            : job(ranks.job()), boxes(static_cast<std::size_t>(ranks.size())), members(ranks.size()) {}
        std::uint64_t const job;
        std::mutex guard;
        std::vector<mailbox> boxes; // rank → mailbox
        int members;                // ranks that have not left yet
    };
    mailbox& box(int rank) noexcept { return fabric_->boxes[static_cast<std::size_t>(rank)]; }

    // The token makes it unique: another machine or container may use the same process id.
    struct process {
        long id;
        std::uint64_t token;
        friend bool operator==(process const&, process const&) = default;
    };
    static process this_process() noexcept {
        static std::uint64_t const token = detail::random_bits();
        return {static_cast<long>(::getpid()), token};
    }
    static fabric* create_fabric(world const& ranks) {
        auto* const created = new fabric(ranks);
        std::lock_guard const lock(fabrics_guard_);
        fabrics_.push_back(created);
        return created;
    }
    /// Checks a pointer that another rank sent; dereferences it only if it is in the list of fabrics.
    static fabric* find_fabric(fabric* sent, world const& ranks) {
        std::lock_guard const lock(fabrics_guard_);
        auto const found = std::find(fabrics_.begin(), fabrics_.end(), sent);
        if (found == fabrics_.end() || sent->job != ranks.job() ||
            sent->boxes.size() != static_cast<std::size_t>(ranks.size()))
            throw error(
                errc::protocol, ranks.rank(), 0, "inproc",
                "it names a fabric that this world does not have; see that every rank runs the same build");
        return sent;
    }
    template <class Value> static Value read(gather_result const& all, int rank) noexcept {
        Value value{};
        // A value of another size stays zero, which the caller refuses.
        (void)herring::detail::wire::read_value(all[static_cast<std::size_t>(rank)], value);
        return value;
    }

    void enter(transport_needs const& needs) {
        std::lock_guard const lock(fabric_->guard);
        mailbox& mine = box(rank_);
        mine.open = true;
        mine.peers = peers_;
        // Capacity for every announced post: from here on, the expected path does not allocate.
        mine.receives.reserve(peers_.size() * needs.receives_per_peer);
        mine.sends.reserve(peers_.size() * needs.sends_per_peer);
        mine.done.reserve(peers_.size() * (needs.receives_per_peer + needs.sends_per_peer + 1));
        taken_.reserve(mine.done.capacity());
    }

    void leave() noexcept {
        if (fabric_ == nullptr) return;
        bool last = false;
        {
            std::lock_guard const lock(fabric_->guard);
            mailbox& mine = box(rank_);
            mine.open = false;
            mine.sends.clear();
            withdraw();
            for (int const peer : peers_) {
                mailbox& other = box(peer);
                auto const here = std::lower_bound(other.peers.begin(), other.peers.end(), rank_);
                peer_id const me = peer_id::at(static_cast<std::size_t>(here - other.peers.begin()));
                if (other.open) report(other, completion{0, 0, me, completion::lost, errc::peer_lost});
            }
            last = --fabric_->members == 0;
        }
        if (!last) return;
        {
            std::lock_guard const lock(fabrics_guard_);
            std::erase(fabrics_, fabric_);
        }
        delete fabric_;
    }

    // Called with the lock held. The memory of these posts may be freed afterwards.
    void withdraw() noexcept {
        box(rank_).receives.clear();
        for (int const peer : peers_)
            std::erase_if(box(peer).sends, [&](pending_send const& s) { return s.source == rank_; });
    }

    // Announced posts have capacity: only further ones allocate.
    template <class Post> static bool add(std::vector<Post>& to, Post const& what) noexcept {
        try {
            to.push_back(what);
            return true;
        } catch (std::bad_alloc const&) {
            return false;
        }
    }

    static bool matching(std::uint64_t a, std::uint64_t b) noexcept { return ((a ^ b) & ~carried_bits) == 0; }

    static void report(mailbox& of, completion const& done,
                       detail::kept_envelope const& envelope = {}) noexcept {
        of.done.push_back({done, envelope});
        of.changed.notify_all();
    }

    /// Copies one message and reports it to both sides. A message that is longer than its receive is cut; the
    /// completion has the message's size, so that the engine sees the mismatch.
    void deliver(mailbox& receiver, pending_receive const& to, pending_send const& send) noexcept {
        std::size_t const size = send.from.size();
        std::size_t const bytes = std::min(size, to.into.size());
        if (bytes > 0) std::memcpy(to.into.data(), send.from.data(), bytes);
        report(receiver, completion{to.token, size, to.from, completion::received, errc::ok, send.tag},
               send.envelope);
        report(box(send.source), completion{send.token, size, send.to, completion::sent, errc::ok});
    }

    int rank_;
    std::vector<int> peers_;
    static inline std::mutex fabrics_guard_;
    static inline std::vector<fabric*> fabrics_; // of all worlds of this process
    fabric* fabric_ = nullptr;
    std::vector<report_entry> taken_;
};
static_assert(transport_policy<inproc>);

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_INPROC_HPP
