// herring: the route of a small bucket over several nodes: everyone sends to everyone and combines for itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_ONE_HOP_HPP
#define HERRING_ENGINE_ROUTES_ONE_HOP_HPP

#include "herring/base/config.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Every node sends its part of a chunk to every other node; each combines all parts in the order of the nodes.
///
/// Each pair sends one message each way for each chunk, which is empty where the operation has nothing to send. A rank sends
/// its n-th part only when it has combined its (n − window/2)-th. So whoever has part n − window/2 of a peer knows that the
/// slot of part n − window is free there: docs/design.md, "Why two half windows suffice".
///
/// Cost:   (n−1) times the bucket out and in, one message a chunk and peer, one way: half the time of two hops.
/// Memory: window · (n−1) slots.
template <class Core> class one_hop_route {
  public:
    explicit one_hop_route(Core& core) noexcept
        : shared_(core), sending_(core.who.own_chunks(), server_id{}),
          combining_(core.who.own_chunks(), server_id{}) {}

    /// Posts the receives of the first window; what is refused now is posted by `step`.
    void open() noexcept { post_receives(); }

    /// What is pending for an execution of this route besides messages: the cursors that have to pass.
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
                wanted.make_part_of(sending_.at, c, shared_.part_stage(slot));
                return progress;
            }
            for (; to_ < shared_.who.contributors().size(); ++to_) {
                int const n = shared_.who.contributor_behind(to_);
                if (n == shared_.who.node) continue;
                std::size_t const to = shared_.who.handler(n, c);
                exchange_window& window = shared_.peers[to].parts;
                ++shared_.unsent[slot];
                if (!shared_.send(to, message::part, window.next_out(),
                                  shared_.part(e, c, n, shared_.part_stage(slot)), slot, sending_.at)) {
                    --shared_.unsent[slot];
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
        shared_.parts_in.missing = -1;
        while (shared_.next_chunk(combining_, route::one_hop)) {
            if (std::exchange(combining_now_, false)) { // it was wanted, and is done
                for (int const n : shared_.who.contributors())
                    if (n != shared_.who.node)
                        shared_
                            .peers[shared_.who.handler(n, combining_.here(shared_.ledger.at(combining_.at)))]
                            .parts.combined();
                post_receives();
                shared_.ledger.handled(combining_.at);
                ++combined_;
                ++progress;
                combining_.next_chunk();
                continue;
            }
            // The result goes where the part lies: the part must be out first.
            if (combined_ >= sent_ || shared_.unsent[combined_ % stages] > 0) return progress;
            execution const& e = shared_.ledger.at(combining_.at);
            chunk const c = combining_.here(e);
            for (int const n : shared_.who.contributors()) {
                if (n == shared_.who.node) continue;
                peer& p = shared_.peers[shared_.who.handler(n, c)];
                arrival const& got = p.parts.arrived();
                if (!got.here) {
                    shared_.parts_in.missing = p.rank;
                    shared_.parts_in.missing_in = combining_.at;
                    shared_.require_peer(p);
                    return progress;
                }
                if (!shared_.matches(p.rank, got, e, shared_.part_bytes(e, c, n, shared_.who.node)))
                    return progress;
            }
            combining_now_ = true;
            shared_.want_combined(wanted, combining_.at, c, [&](int n) {
                peer& p = shared_.peers[shared_.who.handler(n, c)];
                return p.part_slot(p.parts.next_in());
            });
            return progress;
        }
        find_stale();
        return progress;
    }

    // A part may lie here for an execution that took another route on this rank.
    void find_stale() noexcept {
        if (looked_at_ == combining_.at && !shared_.parts_in.news) return;
        looked_at_ = combining_.at;
        shared_.parts_in.news = false;
        for (peer& p : shared_.peers)
            if (shared_.is_stale(p, p.parts.arrived(), looked_at_)) return;
    }

    // Every slot whose part was combined takes another one.
    std::size_t post_receives() noexcept {
        std::size_t progress = 0;
        receives_owed_ = false;
        for (std::size_t i = 0; i < shared_.peers.size(); ++i) {
            peer& p = shared_.peers[i];
            for (; p.parts.owes_receive(); p.parts.posted(), ++progress) {
                std::uint64_t const number = p.parts.to_post();
                if (!shared_.receive(i, message::part, number, p.part_slot_bytes(number),
                                     exchange_window::slot_of(number))) {
                    receives_owed_ = true;
                    break;
                }
            }
        }
        return progress;
    }

    Core& shared_;
    chunk_cursor sending_;
    chunk_cursor combining_;
    std::uint64_t sent_ = 0;     // parts that are posted to all
    std::uint64_t combined_ = 0; // parts that are combined
    std::size_t to_ = 0;         // nodes that the next part is posted to, counted from this one
    bool part_made_ = false;     // of the chunk under the first cursor
    bool combining_now_ = false; // the chunk under the second
    bool receives_owed_ = false; // a receive could not be posted yet
    std::uint64_t looked_at_ =
        0; // where the combination was when parts that nobody will combine were looked for
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_ONE_HOP_HPP
