// herring: the route of a tiny bucket over many nodes: rounds that forward all parts so far.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_DISSEMINATION_HPP
#define HERRING_ENGINE_ROUTES_DISSEMINATION_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/window.hpp"
#include "herring/plan/plan.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

template <class Core> class dissemination_route;

/// The memory of dissemination: buffers for the parts of all nodes, and the messages that have arrived.
///
/// Memory: window · nodes parts of the largest bucket that takes this route.
struct dissemination_windows {
    template <class Core> using route_type = dissemination_route<Core>;
    static constexpr route path = route::dissemination;
    static constexpr std::uint64_t kinds = kind_bit(message::dissemination);
    static constexpr std::uint32_t window = plan::dissemination_window();

    HERRING_SEPARABLE dissemination_windows(engine_state& state, plan const& from,
                                            std::span<std::byte>& staging);

    HERRING_ALWAYS_INLINE void received(token const& about, arrival const& what) noexcept {
        arrivals[about.slot] = what;
        stale.came(0);
    }
    HERRING_ALWAYS_INLINE void sent(token const& about) noexcept { --unsent[about.slot]; }
    awaited_peer const* only_awaited() const noexcept { return missing.any ? &missing : nullptr; }
    template <class Ask> HERRING_ALWAYS_INLINE void awaited(Ask const& ask) const noexcept {
        if (missing.any) ask(missing.place, missing.execution, "its part has not come");
    }

    std::uint32_t const rounds;    ///< of a chunk; 0: no bucket takes this route
    slot_row buffers;              ///< of one chunk each
    fixed_array<arrival> arrivals; ///< buffer · rounds + round → the message that has arrived
    /// Stage · (nodes + 1) + place → bytes of the parts before that place; the last entry has the bytes of
    /// all parts.
    fixed_array<std::size_t> begins;
    std::uint32_t unsent[window] = {}; ///< buffer → messages that are sent from it
    awaited_peer missing{};            ///< the peer whose message the oldest chunk waits for
    stale_watch stale{1};              ///< of the messages of all rounds, as those of one peer
};

/// Before round r a rank has the parts of 2^r nodes: its own node and the nodes behind it. It sends them to
/// the node 2^r before it, and gets as many from the node 2^r behind it. After ⌈log2 nodes⌉ rounds it has all
/// parts, and combines them in the order of the nodes. If the number of nodes is a power of two, nodes whose
/// numbers differ in bit r exchange in pairs instead, so that a transport's acknowledgements travel with the
/// messages of the other direction. Requires the same number of ranks on all nodes (ranks with the same local
/// number exchange), and an operation that sends the same part to every other node; parts of different nodes
/// may differ in size.
///
/// A rank begins its n-th chunk only when it has combined its (n − window/2)-th chunk, for which it needs all
/// parts. So when a rank sends a message of chunk n, all ranks have combined chunk n − window, and its buffer
/// is free, as by one hop.
///
/// Cost:   ⌈log2 nodes⌉ messages out and in, where one hop has nodes − 1; the same bytes; as many times the
///         latency.
/// Source: Bruck et al., IEEE TPDS 1997.
template <class Core> class dissemination_route {
  public:
    explicit dissemination_route(Core& core) noexcept
        : shared_(core), windows_(core), beginning_(core.who.own_chunks(), server_id{}),
          combining_(core.who.own_chunks(), server_id{}),
          nodes_(static_cast<std::uint32_t>(core.who.nodes())), pairs_(std::has_single_bit(nodes_)),
          rounds_(windows_.rounds), slot_bytes_(windows_.buffers.bytes / nodes_) {}

    /// Posts the receives of the first window; `step` posts those that the transport refuses now.
    void open() noexcept { post_receives(); }

    /// Cursors that have to pass before an execution of this route is complete, besides its messages.
    static constexpr std::uint32_t cursors() noexcept { return 2; }

    std::size_t step(wanted_work& wanted) noexcept {
        std::size_t progress = receives_owed_ ? post_receives() : 0;
        progress += begin(wanted);
        if (wanted.any() || shared_.failures.is_failing()) return progress;
        progress += pass_on();
        return shared_.failures.is_failing() ? progress : progress + combine(wanted);
    }

  private:
    static constexpr std::uint32_t window = dissemination_windows::window;
    static constexpr std::uint32_t stages = plan::dissemination_stages();

    // A chunk whose parts are in flight.
    struct flight {
        std::uint64_t execution = 0;
        std::uint32_t sent = 0;   // rounds
        std::uint32_t packed = 0; // rounds whose parts lie behind the others
    };

    flight& at(std::uint64_t number) noexcept { return flights_[number % stages]; }
    std::byte* buffer(std::uint64_t number) const noexcept {
        return windows_.buffers.at(number % window).data();
    }
    arrival& arrived(std::uint64_t number, std::uint32_t round) noexcept {
        return windows_.arrivals[number % window * rounds_ + round];
    }
    // Bytes of a chunk's parts before each place, and of all parts.
    std::size_t* begins(std::uint64_t number) noexcept {
        return &windows_.begins[number % stages * (nodes_ + 1)];
    }
    // Number of parts in a message of this round.
    std::uint32_t count(std::uint32_t round) const noexcept {
        std::uint32_t const distance = 1u << round;
        return distance < nodes_ - distance ? distance : nodes_ - distance;
    }
    // The place of node n's part in a buffer; this node's part is first. The place is the distance behind
    // this node or, where nodes exchange in pairs, the bits in which the numbers differ. Either way the parts
    // of the sender of round r have the same order on both ranks, and follow from place 2^r on.
    std::uint32_t place_of(int node) const noexcept {
        auto const own = static_cast<std::uint32_t>(shared_.who.node),
                   other = static_cast<std::uint32_t>(node);
        return pairs_ ? other ^ own : (other + nodes_ - own) % nodes_;
    }
    int node_at(std::uint32_t place) const noexcept {
        auto const own = static_cast<std::uint32_t>(shared_.who.node);
        return static_cast<int>(pairs_ ? own ^ place : (own + place) % nodes_);
    }
    std::size_t peer_at(std::uint32_t place) const noexcept {
        return shared_.who.peer_of(shared_.who.map.rank_of(node_at(place), shared_.who.local));
    }
    std::size_t sender_in(std::uint32_t round) const noexcept { return peer_at(1u << round); }
    std::size_t receiver_in(std::uint32_t round) const noexcept {
        std::uint32_t const distance = 1u << round;
        return peer_at(pairs_ ? distance : nodes_ - distance);
    }

    // This rank's part of the next chunks comes first in its buffers.
    std::size_t begin(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        // Other ranks may go on with a later chunk as soon as they have this part: first the receives for
        // that chunk.
        while (!receives_owed_ && shared_.next_chunk(beginning_, route::dissemination) &&
               begun_ - combined_ < stages) {
            execution const& e = shared_.ledger.at(beginning_.at);
            chunk const c = beginning_.here(e);
            if (!std::exchange(part_made_, true)) {
                wanted.make_part_of(beginning_.at, c, buffer(begun_));
                return progress;
            }
            part_made_ = false;
            std::span<std::byte const> const part = shared_.part(e, c, shared_.who.node, buffer(begun_));
            if (part.data() != buffer(begun_) && !part.empty())
                std::memcpy(buffer(begun_), part.data(), part.size());
            std::size_t* const begin_of = begins(begun_);
            for (std::uint32_t place = 0; place < nodes_; ++place)
                begin_of[place + 1] =
                    begin_of[place] + shared_.part_bytes(e, c, node_at(place), shared_.who.node);
            at(begun_) = flight{beginning_.at, 0, 0};
            ++begun_;
            ++progress;
            beginning_.next_chunk();
        }
        return progress;
    }

    std::size_t pass_on() noexcept {
        std::size_t progress = 0;
        windows_.missing.any = false;
        for (std::uint64_t n = combined_; n < begun_; ++n) {
            flight& f = at(n);
            for (;;) {
                if (f.sent < rounds_ && f.sent <= f.packed) {
                    if (!send(n, f)) return progress;
                } else if (f.packed < rounds_ && arrived(n, f.packed).here) {
                    if (!pack(n, f)) return progress;
                } else {
                    break;
                }
                ++progress;
            }
            if (f.packed < rounds_ && !windows_.missing.any) {
                windows_.missing = {true, sender_in(f.packed), f.execution};
                shared_.require_peer(shared_.peers[windows_.missing.place]);
            }
        }
        find_stale();
        return progress;
    }

    bool send(std::uint64_t number, flight& f) noexcept {
        std::size_t const slot = number % window;
        ++windows_.unsent[slot];
        if (!shared_.send(receiver_in(f.sent), message::dissemination, number * rounds_ + f.sent,
                          {buffer(number), begins(number)[count(f.sent)]}, slot, f.execution)) {
            --windows_.unsent[slot];
            return false;
        }
        ++f.sent;
        return true;
    }

    // Moves the received parts of a round behind the parts that are here. False: they belong to another
    // operation, which ends the engine before any of them is forwarded.
    bool pack(std::uint64_t number, flight& f) noexcept {
        arrival& got = arrived(number, f.packed);
        std::size_t const distance = std::size_t{1} << f.packed, begin = begins(number)[distance],
                          bytes = begins(number)[distance + count(f.packed)] - begin;
        if (!shared_.matches(shared_.peers[sender_in(f.packed)].rank, got, shared_.ledger.at(f.execution),
                             bytes))
            return false;
        std::memmove(buffer(number) + begin, buffer(number) + distance * slot_bytes_, bytes);
        got.here = false;
        ++f.packed;
        return true;
    }

    std::size_t combine(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        while (shared_.next_chunk(combining_, route::dissemination)) {
            if (combined_ >= begun_) return progress;
            flight const& f = at(combined_);
            // The buffer is reused after this: first all messages that are sent from it must have left.
            if (f.packed < rounds_ || f.sent < rounds_ || windows_.unsent[combined_ % window] > 0)
                return progress;
            if (!std::exchange(combining_now_, true)) {
                shared_.want_combined(
                    wanted, combining_.at, combining_.here(shared_.ledger.at(combining_.at)),
                    [&](int n) { return buffer(combined_) + begins(combined_)[place_of(n)]; });
                return progress;
            }
            combining_now_ = false; // the wanted work is done
            ++combined_;
            post_receives();
            shared_.ledger.handled(combining_.at);
            ++progress;
            combining_.next_chunk();
        }
        return progress;
    }

    // A message may lie here for an execution that took another route on this rank.
    void find_stale() noexcept {
        windows_.stale.look(beginning_.at, [this](std::size_t) noexcept {
            if (begun_ - combined_ == stages)
                return false; // the message may be of a chunk that has not begun
            for (std::uint32_t r = 0; r < rounds_; ++r)
                if (shared_.is_stale(shared_.peers[sender_in(r)].rank, arrived(begun_, r), beginning_.at))
                    return true;
            return false;
        });
    }

    // Posts receives for later chunks into buffers that were combined. The parts of each round have a
    // separate place.
    std::size_t post_receives() noexcept {
        std::size_t progress = 0;
        receives_owed_ = false;
        for (; rounds_ > 0 && posted_ < (combined_ + window) * rounds_; ++posted_, ++progress) {
            std::uint64_t const number = posted_ / rounds_;
            auto const round = static_cast<std::uint32_t>(posted_ % rounds_);
            if (!shared_.receive(
                    sender_in(round), message::dissemination, posted_,
                    {buffer(number) + (std::size_t{1} << round) * slot_bytes_, count(round) * slot_bytes_},
                    number % window * rounds_ + round)) {
                receives_owed_ = true;
                break;
            }
        }
        return progress;
    }

    Core& shared_;
    dissemination_windows& windows_;
    chunk_cursor beginning_;
    chunk_cursor combining_;
    std::uint32_t const nodes_;
    bool const pairs_;             // a power of two: in each round two nodes send to each other
    std::uint32_t const rounds_;   // of a chunk; 0: no bucket takes this route
    std::size_t const slot_bytes_; // of a part
    flight flights_[stages];
    std::uint64_t begun_ = 0;    // chunks
    std::uint64_t combined_ = 0; // chunks
    std::uint64_t posted_ = 0;   // receives, of all rounds
    bool part_made_ = false;     // of the chunk under the first cursor
    bool combining_now_ = false; // the chunk under the second cursor
    bool receives_owed_ = false; // a receive could not be posted yet
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/routes/dissemination_impl.hpp"
#endif

#endif // HERRING_ENGINE_ROUTES_DISSEMINATION_HPP
