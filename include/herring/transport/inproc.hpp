// herring: messages between threads of one process; the reference model of the transport concept.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_INPROC_HPP
#define HERRING_TRANSPORT_INPROC_HPP

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
#include <vector>

namespace HERRING_NAMESPACE::transport {

/// Carries messages between ranks that are threads of one process (`launch_threads`).
///
/// A send meets its receive when the second of the two is posted; that thread copies the bytes, and both sides find
/// a completion at their next poll. One hub holds everything, behind one lock: the shortest thing that is right.
///
/// Cost:     one copy a message, one lock a call.
/// Lifetime: the destructor withdraws what is still posted; its peers then get `lost`.
/// Errors:   `unsupported` at construction when a peer runs in another process, naming it.
class inproc {
  public:
    using axis = axes::transport;
    static constexpr char const* name = "inproc";
    static constexpr std::size_t max_message = static_cast<std::size_t>(-1); // a message is never cut
    static constexpr int tag_bits = 64;
    static constexpr bool keeps_order = true;       // two messages with one tag are matched in the order sent
    static constexpr bool registers_memory = false; // any memory of the process will do
    static constexpr bool device_memory = false;    // the copy is a memcpy
    static constexpr exchange_tuning tuning{
        .chunk_bytes = 64 << 10, .window_bytes = 256 << 10, .one_hop_bytes = 16 << 10};

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
        // Rank 0 makes the hub; it goes when every rank has let go of it.
        hub_ = rank_ == 0 ? made_hub(ranks) : nullptr;
        try {
            auto const hubs = ranks.all_gather(std::as_bytes(std::span(&hub_, 1)), needs.timeout);
            if (rank_ != 0) hub_ = known_hub(read<hub*>(hubs, 0), ranks);
            enter(needs);
            ranks.barrier(needs.timeout); // nobody sends to, or leaves, who has not entered
        } catch (...) {
            leave();
            throw;
        }
    }
    inproc(inproc const&) = delete;
    inproc& operator=(inproc const&) = delete;

    ~inproc() { leave(); }

    /// A send waits in the peer's box until its receive is posted. False: more is posted than was announced, and there is
    /// no memory for it now.
    bool post_send(int peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        std::lock_guard const lock(hub_->guard);
        box& theirs = hub_->boxes[static_cast<std::size_t>(peer)];
        auto const match =
            std::find_if(theirs.receives.begin(), theirs.receives.end(),
                         [&](receive const& r) { return r.from_rank == rank_ && matching(r.tag, tag); });
        if (match == theirs.receives.end()) {
            return add(theirs.arrivals, {rank_, tag, from, token});
        } else {
            deliver(theirs, *match, {rank_, tag, from, token});
            theirs.receives.erase(match);
        }
        return true;
    }

    /// False: as above.
    bool post_receive(int peer, std::uint64_t tag, std::span<std::byte> into, std::uint64_t token) noexcept {
        std::lock_guard const lock(hub_->guard);
        box& mine = hub_->boxes[static_cast<std::size_t>(rank_)];
        auto const match = std::find_if(mine.arrivals.begin(), mine.arrivals.end(), [&](arrival const& a) {
            return a.from_rank == peer && matching(a.tag, tag);
        });
        if (match == mine.arrivals.end()) {
            return add(mine.receives, {peer, tag, into, token});
        } else {
            deliver(mine, {peer, tag, into, token}, *match);
            mine.arrivals.erase(match);
        }
        return true;
    }

    /// Reports what is done since the last call.
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        if (hub_ == nullptr) return 0;
        {
            std::lock_guard const lock(hub_->guard);
            taken_.swap(hub_->boxes[static_cast<std::size_t>(rank_)].done);
        }
        // Outside the lock: the functor may post.
        std::size_t const count = taken_.size();
        for (completion const& done : taken_) on_completion(done);
        taken_.clear();
        return count;
    }

    /// Sleeps until something is done, `wake` is called, or `until`.
    void wait(time_point until) noexcept {
        if (hub_ == nullptr) return;
        std::unique_lock lock(hub_->guard);
        box& mine = hub_->boxes[static_cast<std::size_t>(rank_)];
        mine.changed.wait_until(lock, until, [&] { return !mine.done.empty() || mine.woken; });
        mine.woken = false;
    }

    void wake() noexcept {
        if (hub_ == nullptr) return;
        std::lock_guard const lock(hub_->guard);
        hub_->boxes[static_cast<std::size_t>(rank_)].woken = true;
        hub_->boxes[static_cast<std::size_t>(rank_)].changed.notify_all();
    }

    /// Withdraws what this rank has posted: its memory may go.
    void abandon() noexcept {
        if (hub_ == nullptr) return;
        std::lock_guard const lock(hub_->guard);
        withdraw();
    }

    void register_memory(std::span<std::byte>) noexcept {}
    char const* describe(int) const noexcept { return "its end of inproc was destroyed"; }

  private:
    struct receive {
        int from_rank;
        std::uint64_t tag;
        std::span<std::byte> into;
        std::uint64_t token;
    };
    struct arrival {
        int from_rank;
        std::uint64_t tag;
        std::span<std::byte const> from; // still in the sender's memory
        std::uint64_t token;             // the sender's
    };
    struct box { // one a rank
        std::vector<receive> receives;
        std::vector<arrival> arrivals;
        std::vector<completion> done;
        std::condition_variable changed;
        bool open = false;
        bool woken = false;
    };
    struct hub {
        explicit hub(world const& ranks)
            : job(ranks.job()), boxes(static_cast<std::size_t>(ranks.size())), members(ranks.size()) {}
        std::uint64_t const job;
        std::mutex guard;
        std::vector<box> boxes;
        int members; // ranks that have not left yet
    };

    // A process id alone may be that of another process, on another machine or in another container.
    struct process {
        long id;
        std::uint64_t token;
        friend bool operator==(process const&, process const&) = default;
    };
    static process this_process() noexcept {
        static std::uint64_t const token = detail::random_bits();
        return {static_cast<long>(::getpid()), token};
    }
    static hub* made_hub(world const& ranks) {
        auto* const made = new hub(ranks);
        std::lock_guard const lock(hubs_guard_);
        hubs_.push_back(made);
        return made;
    }
    /// What another rank says is looked up, never followed.
    static hub* known_hub(hub* told, world const& ranks) {
        std::lock_guard const lock(hubs_guard_);
        auto const found = std::find(hubs_.begin(), hubs_.end(), told);
        if (found == hubs_.end() || told->job != ranks.job() ||
            told->boxes.size() != static_cast<std::size_t>(ranks.size()))
            throw error(
                errc::protocol, ranks.rank(), 0, "inproc",
                "it names a hub that this world does not have; see that every rank runs the same build");
        return told;
    }
    template <class Value> static Value read(gather_result const& all, int rank) noexcept {
        Value theirs{};
        auto const bytes = all[static_cast<std::size_t>(rank)];
        std::memcpy(&theirs, bytes.data(),
                    std::min(bytes.size(), sizeof theirs)); // NOLINT: the pointer itself travels
        return theirs;
    }

    void enter(transport_needs const& needs) {
        std::lock_guard const lock(hub_->guard);
        box& mine = hub_->boxes[static_cast<std::size_t>(rank_)];
        mine.open = true;
        // Capacity for all that may be posted: from here on, the expected path does not allocate.
        mine.receives.reserve(peers_.size() * needs.receives_per_peer);
        mine.arrivals.reserve(peers_.size() * needs.sends_per_peer);
        mine.done.reserve(peers_.size() * (needs.receives_per_peer + needs.sends_per_peer + 1));
        taken_.reserve(mine.done.capacity());
    }

    void leave() noexcept {
        if (hub_ == nullptr) return;
        bool last = false;
        {
            std::lock_guard const lock(hub_->guard);
            box& mine = hub_->boxes[static_cast<std::size_t>(rank_)];
            mine.open = false;
            mine.arrivals.clear();
            withdraw();
            for (int const peer : peers_) {
                box& theirs = hub_->boxes[static_cast<std::size_t>(peer)];
                if (theirs.open) finish(theirs, {0, 0, rank_, completion::lost, errc::peer_lost});
            }
            last = --hub_->members == 0;
        }
        if (!last) return;
        {
            std::lock_guard const lock(hubs_guard_);
            std::erase(hubs_, hub_);
        }
        delete hub_;
    }

    // With the lock held. What was posted points into memory that may now go.
    void withdraw() noexcept {
        hub_->boxes[static_cast<std::size_t>(rank_)].receives.clear();
        for (int const peer : peers_)
            std::erase_if(hub_->boxes[static_cast<std::size_t>(peer)].arrivals,
                          [&](arrival const& a) { return a.from_rank == rank_; });
    }

    // Capacity for what was announced is there: only more than that allocates.
    template <class Post> static bool add(std::vector<Post>& to, Post const& what) noexcept {
        try {
            to.push_back(what);
            return true;
        } catch (std::bad_alloc const&) {
            return false;
        }
    }

    static bool matching(std::uint64_t a, std::uint64_t b) noexcept { return ((a ^ b) & ~carried_bits) == 0; }

    static void finish(box& of, completion const& done) noexcept {
        of.done.push_back(done);
        of.changed.notify_all();
    }

    /// Copies one message and tells both sides. A message that does not fit is a defect of the caller: the receive
    /// ends with the message's true size, so that the engine sees the mismatch, and nothing is written past the end.
    void deliver(box& receiver, receive const& to, arrival const& what) noexcept {
        std::size_t const bytes = std::min(what.from.size(), to.into.size());
        if (bytes > 0) std::memcpy(to.into.data(), what.from.data(), bytes);
        finish(receiver,
               {to.token, what.from.size(), what.from_rank, completion::received, errc::ok, what.tag});
        int const receiver_rank = static_cast<int>(&receiver - hub_->boxes.data());
        finish(hub_->boxes[static_cast<std::size_t>(what.from_rank)],
               {what.token, what.from.size(), receiver_rank, completion::sent, errc::ok});
    }

    int rank_;
    std::vector<int> peers_;
    static inline std::mutex hubs_guard_;
    static inline std::vector<hub*> hubs_; // of this process, all worlds
    hub* hub_ = nullptr;
    std::vector<completion> taken_;
};
static_assert(transport_policy<inproc>);

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_INPROC_HPP
