// herring: the route of a small bucket over several nodes: every node sends its part to all, each combines.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_ONE_HOP_HPP
#define HERRING_ENGINE_ROUTES_ONE_HOP_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/window.hpp"
#include "herring/plan/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

template <class Core> class one_hop_route;

/// The memory of one hop: slots for the parts of each peer, and for this rank's part, which is made once for
/// all peers.
///
/// Memory: one-hop window · one-hop chunk for each peer; half a window more where this rank's parts are
///         staged.
struct one_hop_windows {
    template <class Core> using route_type = one_hop_route<Core>;
    static constexpr route path = route::one_hop;
    static constexpr std::uint64_t kinds = kind_bit(message::part);

    HERRING_SEPARABLE one_hop_windows(engine_state& state, plan const& from, std::span<std::byte>& staging);

    HERRING_ALWAYS_INLINE void received(token const& about, arrival const& what) noexcept {
        pairs[about.peer].arrives(about.slot, what);
        stale.came(about.peer);
    }
    HERRING_ALWAYS_INLINE void sent(token const& about) noexcept { --unsent[about.slot]; }
    template <class Ask> HERRING_ALWAYS_INLINE void awaited(Ask const& ask) const noexcept {
        if (missing.any) ask(missing.place, missing.execution, "its part has not come");
    }

    /// The slot where part `number` of a peer arrives.
    HERRING_ALWAYS_INLINE std::span<std::byte> slot(std::size_t peer, std::uint64_t number) const noexcept {
        return slot_memory.at(peer * exchange_window::size + exchange_window::slot_of(number));
    }

    fixed_array<exchange_window> pairs; ///< of this rank and each peer; none where nothing takes one hop
    slot_row slot_memory;               ///< of the parts of all peers
    slot_row stages;                    ///< of this rank's parts
    std::uint32_t unsent[plan::one_hop_stages()] = {}; ///< stage → messages that are sent from it
    awaited_peer missing{};                            ///< the peer whose part the combination waits for
    stale_watch stale;                                 ///< of the parts of peers
};

/// Every node sends its part of a chunk to every other node; each combines all parts in the order of the
/// nodes.
///
/// Each pair sends one message each way for each chunk, which is empty where the operation has nothing to
/// send. A rank sends its n-th part only when it has combined its (n − window/2)-th. So a rank that has part
/// n − window/2 of a peer knows that the slot of part n − window is free there: docs/design/engine.md, "Why
/// two half windows suffice".
///
/// Cost:   (n−1) times the bucket out and in, one message a chunk and peer, one latency: half of two hops.
template <class Core> class one_hop_route {
  public:
    explicit one_hop_route(Core& core) noexcept
        : shared_(core), windows_(core), sending_(core.who.own_chunks(), server_id{}),
          combining_(core.who.own_chunks(), server_id{}) {}

    /// Posts the receives of the first window; `step` posts those that the transport refuses now.
    void open() noexcept { post_receives(); }

    /// Cursors that have to pass before an execution of this route is complete, besides its messages.
    static constexpr std::uint32_t cursors() noexcept { return 2; }

    std::size_t step(wanted_work& wanted) noexcept {
        std::size_t progress = send(wanted);
        if (!wanted.any()) progress += combine(wanted);
        if (!wanted.any() && receives_owed_) progress += post_receives();
        return progress;
    }

  private:
    static constexpr std::uint32_t stages = plan::one_hop_stages();

    std::size_t send(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        while (shared_.next_chunk(sending_, route::one_hop) && sent_ - combined_ < stages) {
            execution const& e = shared_.ledger.at(sending_.at);
            chunk const c = sending_.here(e);
            std::size_t const slot = sent_ % stages;
            if (!std::exchange(part_made_, true)) {
                wanted.make_part_of(sending_.at, c, windows_.stages.at(slot).data());
                return progress;
            }
            for (; to_ < shared_.who.contributors().size(); ++to_) {
                int const n = shared_.who.contributor_behind(to_);
                if (n == shared_.who.node) continue;
                std::size_t const to = shared_.who.handler(n, c);
                exchange_window& window = windows_.pairs[to];
                ++windows_.unsent[slot];
                if (!shared_.send(to, message::part, window.next_out(),
                                  shared_.part(e, c, n, windows_.stages.at(slot).data()), slot,
                                  sending_.at)) {
                    --windows_.unsent[slot];
                    return progress;
                }
                window.sent();
                ++progress;
            }
            to_ = 0;
            part_made_ = false;
            ++sent_;
            sending_.next_chunk();
        }
        return progress;
    }

    std::size_t combine(wanted_work& wanted) noexcept {
        std::size_t progress = 0;
        windows_.missing.any = false;
        while (shared_.next_chunk(combining_, route::one_hop)) {
            if (std::exchange(combining_now_, false)) { // the wanted work is done
                for (int const n : shared_.who.contributors())
                    if (n != shared_.who.node)
                        windows_
                            .pairs[shared_.who.handler(n, combining_.here(shared_.ledger.at(combining_.at)))]
                            .combined();
                post_receives();
                shared_.ledger.handled(combining_.at);
                ++combined_;
                ++progress;
                complete_ = 0;
                combining_.next_chunk();
                continue;
            }
            // The result goes to the place of the part: first the part must have left.
            if (combined_ >= sent_ || windows_.unsent[combined_ % stages] > 0) return progress;
            execution const& e = shared_.ledger.at(combining_.at);
            chunk const c = combining_.here(e);
            for (; complete_ < shared_.who.contributors().size(); ++complete_) { // where it missed one before
                int const n = shared_.who.contributors()[complete_];
                if (n == shared_.who.node) continue;
                std::size_t const from = shared_.who.handler(n, c);
                arrival const& got = windows_.pairs[from].arrived();
                if (!got.here) {
                    windows_.missing = {true, from, combining_.at};
                    shared_.require_peer(shared_.peers[from]);
                    return progress;
                }
                if (!shared_.matches(shared_.peers[from].rank, got, e,
                                     shared_.part_bytes(e, c, n, shared_.who.node)))
                    return progress;
            }
            combining_now_ = true;
            shared_.want_combined(wanted, combining_.at, c, [&](int n) {
                std::size_t const from = shared_.who.handler(n, c);
                return windows_.slot(from, windows_.pairs[from].next_in()).data();
            });
            return progress;
        }
        find_stale();
        return progress;
    }

    // A part may lie here for an execution that took another route on this rank.
    void find_stale() noexcept {
        windows_.stale.look(combining_.at, [this](std::size_t i) noexcept {
            return shared_.is_stale(shared_.peers[i].rank, windows_.pairs[i].arrived(), combining_.at);
        });
    }

    // Posts receives for later parts into slots whose parts were combined.
    std::size_t post_receives() noexcept {
        std::size_t progress = 0;
        receives_owed_ = false;
        for (std::size_t i = 0; i < windows_.pairs.size(); ++i) {
            exchange_window& window = windows_.pairs[i];
            for (; window.owes_receive(); window.posted(), ++progress) {
                std::uint64_t const number = window.to_post();
                if (!shared_.receive(i, message::part, number, windows_.slot(i, number),
                                     exchange_window::slot_of(number))) {
                    receives_owed_ = true;
                    break;
                }
            }
        }
        return progress;
    }

    Core& shared_;
    one_hop_windows& windows_;
    chunk_cursor sending_;
    chunk_cursor combining_;
    std::uint64_t sent_ = 0;     // parts that are posted to all nodes
    std::uint64_t combined_ = 0; // parts that are combined
    std::size_t to_ = 0;         // nodes that the next part is posted to, counted from this node
    std::size_t complete_ = 0;   // contributors whose part of the chunk under the second cursor is here
    bool part_made_ = false;     // of the chunk under the first cursor
    bool combining_now_ = false; // the chunk under the second cursor
    bool receives_owed_ = false; // a receive could not be posted yet
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/routes/one_hop_impl.hpp"
#endif

#endif // HERRING_ENGINE_ROUTES_ONE_HOP_HPP
