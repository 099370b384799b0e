// herring: windows of a pair of ranks: numbers of messages, slots, credits; the order of pushes. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_WINDOW_HPP
#define HERRING_ENGINE_WINDOW_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/messages.hpp"
#include "herring/model/roles.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Two hops, at a contributor: pushes to one server that have not been answered by their results.
///
/// Pushes are numbered 0, 1, 2, …; push n uses slot n mod size. Results may return in any order within the
/// window. A push may be posted when push n − size has been answered: the answer is the credit.
class push_window {
  public:
    push_window() = default;
    explicit push_window(std::uint32_t size) : flights_(size) {}

    bool has_credit() const noexcept { return next_ - oldest_ < flights_.size(); }
    std::uint64_t next() const noexcept { return next_; }
    std::size_t slot() const noexcept { return next_ % flights_.size(); }

    /// True if the receive of the next push's result is posted, and its part is computed but not sent.
    bool is_prepared() const noexcept { return prepared_; }
    void prepare(chunk const& what, std::uint64_t execution) noexcept {
        flights_[slot()] = {what, execution, false};
        prepared_ = true;
    }
    void sent() noexcept {
        prepared_ = false;
        ++next_;
    }

    /// A push that is in flight.
    struct flight {
        chunk what;
        std::uint64_t execution = 0;
        bool answered = false;
    };
    flight const& in_slot(std::size_t slot) const noexcept { return flights_[slot]; }

    void answered(std::size_t slot) noexcept {
        flights_[slot].answered = true;
        for (; oldest_ < next_ && flights_[oldest_ % flights_.size()].answered; ++oldest_)
            flights_[oldest_ % flights_.size()].answered = false;
    }

    bool any_unanswered() const noexcept { return oldest_ < next_; }
    flight const& oldest_unanswered() const noexcept { return flights_[oldest_ % flights_.size()]; }

  private:
    fixed_array<flight> flights_;
    std::uint64_t next_ = 0;
    std::uint64_t oldest_ = 0; // the first that has not been answered
    bool prepared_ = false;
};

/// Two hops, at a server: pushes of one contributor, in the order of their numbers.
///
/// Before push n is answered, the receive of push n + size is posted into the slot that it leaves: no push
/// comes before its receive.
class serve_window {
  public:
    serve_window() = default;
    explicit serve_window(std::uint32_t size) : arrivals_(size) {}

    std::size_t size() const noexcept { return arrivals_.size(); }
    std::uint64_t next() const noexcept { return next_; } ///< push to be served
    arrival const& arrived() const noexcept { return arrived(next_); }
    arrival const& arrived(std::uint64_t number) const noexcept {
        return arrivals_[number % arrivals_.size()];
    }
    void arrives(std::size_t slot, arrival const& what) noexcept { arrivals_[slot] = what; }

    /// Receives: those of the first window, then one before each answer.
    std::uint64_t to_post() const noexcept { return posted_; }
    void posted() noexcept { ++posted_; }

    void vacate() noexcept { arrivals_[next_ % arrivals_.size()].here = false; }
    void answered() noexcept { ++next_; }

  private:
    fixed_array<arrival> arrivals_;
    std::uint64_t next_ = 0;
    std::uint64_t posted_ = 0;
};

/// One hop, both ways of a pair: part n uses slot n mod size. A rank sends part n only when it has combined
/// its part n − size/2, so that two half windows suffice (docs/design/engine.md).
class exchange_window {
  public:
    static constexpr std::uint32_t size = plan::one_hop_window();
    static constexpr std::size_t slot_of(std::uint64_t number) noexcept { return number % size; }

    std::uint64_t next_out() const noexcept { return out_; }
    void sent() noexcept { ++out_; }

    std::uint64_t next_in() const noexcept { return in_; } ///< part to be combined
    arrival const& arrived() const noexcept { return arrivals_[slot_of(in_)]; }
    void arrives(std::size_t slot, arrival const& what) noexcept { arrivals_[slot] = what; }
    void combined() noexcept {
        arrivals_[slot_of(in_)].here = false;
        ++in_;
    }

    /// Receives that may be posted: every slot that holds no part.
    bool owes_receive() const noexcept { return posted_ < in_ + size; }
    std::uint64_t to_post() const noexcept { return posted_; }
    void posted() noexcept { ++posted_; }

  private:
    arrival arrivals_[size] = {};
    std::uint64_t out_ = 0;
    std::uint64_t in_ = 0;
    std::uint64_t posted_ = 0;
};

/// Slots of one size in the staging memory.
struct slot_row {
    std::byte* first;
    std::size_t bytes; ///< of a slot

    /// From the front of what is left.
    static slot_row taken_from(std::span<std::byte>& staging, std::size_t count, std::size_t bytes) noexcept {
        slot_row const taken{staging.data(), bytes};
        staging = staging.subspan(count * bytes);
        return taken;
    }
    HERRING_ALWAYS_INLINE std::span<std::byte> at(std::size_t slot) const noexcept {
        return {first + slot * bytes, bytes};
    }
};

/// A peer whose message a route waits for.
struct awaited_peer {
    bool any = false;
    std::size_t place = 0; ///< among the peers
    std::uint64_t execution = 0;
};

/// Peers that have something to do: each at most once, in the order in which they came.
///
/// Memory: 9 bytes a peer.
class peer_queue {
  public:
    explicit peer_queue(std::size_t peers) : ring_(peers), listed_(peers) {}

    std::size_t room() const noexcept { return ring_.size(); }
    std::size_t size() const noexcept { return size_; }
    std::size_t front() const noexcept { return ring_[first_]; }
    /// Puts a peer behind the others, unless it is in the queue.
    HERRING_ALWAYS_INLINE void add(std::size_t peer) noexcept {
        if (listed_[peer]) return;
        listed_[peer] = true;
        ring_[behind(size_++)] = peer;
    }
    void drop_front() noexcept {
        listed_[front()] = false;
        first_ = behind(1);
        --size_;
    }
    /// The first peer becomes the last one.
    void rotate() noexcept {
        std::size_t const peer = front();
        first_ = behind(1);
        ring_[behind(size_ - 1)] = peer;
    }

  private:
    std::size_t behind(std::size_t steps) const noexcept {
        return first_ + steps < ring_.size() ? first_ + steps : first_ + steps - ring_.size();
    }

    fixed_array<std::size_t> ring_;
    fixed_array<bool> listed_; // peer → it is in the queue
    std::size_t first_ = 0, size_ = 0;
};

/// Decides when a route looks for messages that no execution will take, and whose: those of all peers when
/// its cursor has moved, else those of peers of which something has come since.
class stale_watch {
  public:
    explicit stale_watch(std::size_t peers) : news_(peers) {}

    /// Something has come of a peer.
    HERRING_ALWAYS_INLINE void came(std::size_t from) noexcept { news_.add(from); }
    /// Calls `is_stale(peer)` for each that is due, until it returns true. `at`: execution under the cursor.
    template <class IsStale>
    HERRING_ALWAYS_INLINE void look(std::uint64_t at, IsStale const& is_stale) noexcept {
        if (at != looked_at_)
            for (std::size_t i = 0; i < news_.room(); ++i) news_.add(i);
        looked_at_ = at;
        for (; news_.size() > 0; news_.drop_front())
            if (is_stale(news_.front())) return;
    }

  private:
    peer_queue news_;
    std::uint64_t looked_at_ = 0;
};

/// The place of a server's chunks in the order of all pushes: chunk k of a server's c in a bucket of m
/// elements, with b elements in the buckets before, stands at b + k·⌊m/c⌋. So the chunks behind a place are
/// the same part of each server's share.
///
/// Servers differ in shares, not in windows: a rank that pushes wherever it has credit pushes as much to a
/// small share as to a large one, has soon done with the small ones, and leaves the rest of the time to the
/// large ones' networks alone.
///
/// Shape:  a place follows from the plan and the calls, so all contributors have the same, whatever their
///         local ranks are.
/// Cost:   O(shards) an execution, then O(1). A value of 32 bytes.
class push_order {
  public:
    /// Returns the place of the chunk under a cursor. `before`: elements of all networked executions before
    /// that of the cursor.
    std::uint64_t place(chunk_cursor const& at, execution const& e, std::uint64_t before) noexcept {
        if (at.at != execution_) {
            execution_ = at.at;
            shard_ = chunks_ = 0;
            std::uint64_t all = 0;
            for (std::uint32_t s = 0; s < e.shard_count; ++s)
                if (e.shards[s].server == at.server) all += e.shards[s].chunks;
            step_ = all > 0 ? e.elements / all : 0;
        }
        for (; shard_ < at.shard; ++shard_)
            if (e.shards[shard_].server == at.server) chunks_ += e.shards[shard_].chunks;
        return before + step_ * (chunks_ + at.number(e.shards[at.shard]));
    }
    /// Elements of the order from one chunk of the execution to the next one that this rank pushes.
    std::uint64_t stride(chunk_stream const& of) const noexcept { return step_ * of.stride; }

  private:
    std::uint64_t execution_ = ~std::uint64_t{0};
    std::uint64_t step_ = 0;   // elements of the bucket for each chunk of the server
    std::uint32_t shard_ = 0;  // under the cursor, last time
    std::uint32_t chunks_ = 0; // of the server, in the shards before
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_WINDOW_HPP
