// herring: the route of a small bucket over several nodes: everyone sends to everyone and sums for itself.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ONE_HOP_ROUTE_HPP
#define HERRING_ENGINE_ONE_HOP_ROUTE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/context.hpp"

#include <cstddef>
#include <cstdint>

namespace HERRING_NAMESPACE::detail {

/// Every node sends its part of a chunk to every other node; each sums all parts in the order of the nodes.
///
/// A rank sends its n-th part only when it has summed its (n − window/2)-th. So whoever has part n − window/2 of a
/// peer knows that the slot of part n − window is free there: docs/design.md, "Why two half windows suffice".
///
/// Cost:   (n−1) times the bucket out and in, one message a chunk and peer, one way: half the time of two hops.
/// Memory: window · (n−1) slots.
template <class Context> class one_hop_route {
  public:
    explicit one_hop_route(Context& context) noexcept
        : shared_(context), sending_(context.own_chunks(), -1), summing_(context.own_chunks(), -1) {}

    /// Posts the receives of the first window; what is refused now is posted by `step`.
    void open() noexcept { repost(); }

    static constexpr std::uint32_t cursors() noexcept { return 1; }

    std::size_t step() noexcept { return send() + sum() + (owing_ ? repost() : 0); }

  private:
    static constexpr std::uint32_t window = plan::one_hop_window();
    static constexpr std::uint32_t half = plan::one_hop_stages();

    std::size_t send() noexcept {
        std::size_t progress = 0;
        while (shared_.seek(sending_, route::one_hop, [](execution&) {}) && sent_ - summed_ < half) {
            execution& e = shared_.at(sending_.at);
            chunk const c = sending_.here(e);
            std::size_t const slot = sent_ % half;
            if (to_ == 0) shared_.make_part(e, c, shared_.hop_stage(slot));
            for (; to_ < shared_.map.nodes(); ++to_) {
                int const n = (shared_.my_node + to_) % shared_.map.nodes();
                if (n == shared_.my_node) continue;
                std::size_t const to = shared_.handler(n, sending_.k);
                peer& p = shared_.peers[to];
                ++shared_.unsent[slot];
                if (!shared_.send(to, message::hop, p.hops_out, shared_.part(e, c, shared_.hop_stage(slot)),
                                  slot, sending_.at)) {
                    --shared_.unsent[slot];
                    return progress;
                }
                ++p.hops_out;
                ++progress;
            }
            to_ = 0;
            ++sent_;
            sending_.next_chunk();
        }
        return progress;
    }

    std::size_t sum() noexcept {
        std::size_t progress = 0;
        shared_.parts_in.missing = -1;
        while (shared_.seek(summing_, route::one_hop)) {
            // The sum goes where the part lies: the part must be out first.
            if (summed_ >= sent_ || shared_.unsent[summed_ % half] > 0) return progress;
            execution& e = shared_.at(summing_.at);
            chunk const c = summing_.here(e);
            for (int n = 0; n < shared_.map.nodes(); ++n) {
                if (n == shared_.my_node) continue;
                peer& p = shared_.peers[shared_.handler(n, summing_.k)];
                arrival const& got = p.hop_arrivals[p.hops_in % window];
                if (!got.here) {
                    shared_.parts_in.missing = p.rank;
                    shared_.parts_in.missing_in = summing_.at;
                    shared_.need(p);
                    return progress;
                }
                if (!shared_.fits(p.rank, got, e, c.elements * shared_.partial_bytes)) return progress;
            }
            shared_.fold_all(e, c, summing_.k, [](peer& p) { return p.hop_slot(p.hops_in); });
            for (int n = 0; n < shared_.map.nodes(); ++n) {
                if (n == shared_.my_node) continue;
                peer& p = shared_.peers[shared_.handler(n, summing_.k)];
                p.hop_arrivals[p.hops_in % window].here = false;
                ++p.hops_in;
            }
            owing_ = true;
            repost();
            ++summed_;
            ++progress;
            summing_.next_chunk();
        }
        find_passed();
        return progress;
    }

    // A part may lie here for an execution that took another route on this rank.
    void find_passed() noexcept {
        if (looked_ == summing_.at && !shared_.parts_in.news) return;
        looked_ = summing_.at;
        shared_.parts_in.news = false;
        for (peer& p : shared_.peers)
            if (shared_.passed(p, p.hop_arrivals[p.hops_in % window], looked_)) return;
    }

    // Every slot that was summed is posted again.
    std::size_t repost() noexcept {
        std::size_t progress = 0;
        owing_ = false;
        for (std::size_t i = 0; i < shared_.peers.size(); ++i) {
            peer& p = shared_.peers[i];
            for (; p.hops_posted < p.hops_in + window; ++progress)
                if (!expect(i, p.hops_posted)) {
                    owing_ = true;
                    break;
                }
        }
        return progress;
    }

    bool expect(std::size_t from, std::uint64_t number) noexcept {
        peer& p = shared_.peers[from];
        if (!shared_.receive(from, message::hop, number, p.hop_slot_bytes(number), number % window))
            return false;
        p.hops_posted = number + 1;
        return true;
    }

    Context& shared_;
    chunk_cursor sending_;
    chunk_cursor summing_;
    std::uint64_t sent_ = 0;   // parts that are posted to all
    std::uint64_t summed_ = 0; // parts that are summed
    int to_ = 0;               // nodes that the next part is posted to, counted from this one
    bool owing_ = false;       // a receive could not be posted yet
    std::uint64_t looked_ = 0; // where the sum was when parts that nobody will sum were looked for
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ONE_HOP_ROUTE_HPP
