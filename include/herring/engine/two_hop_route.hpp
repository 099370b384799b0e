// herring: the route of a large bucket over several nodes: push to the chunk's server, sum there, return.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_TWO_HOP_ROUTE_HPP
#define HERRING_ENGINE_TWO_HOP_ROUTE_HPP

#include "herring/base/config.hpp"
#include "herring/engine/context.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// As a contributor this rank pushes its node's part of a chunk to the rank that serves it, at most `window` chunks a
/// peer ahead of the results. As a server it keeps one slot for each contributor and chunk, sums all in the order of
/// the nodes once the last is there, in place, and returns the result: which is the credit for the next push.
///
/// Cost:   2(n−1)/n of the bucket out and in, for each of n nodes; two messages a chunk and peer.
/// Memory: window · (n−1) slots.
/// Source: Herring, SC'20; k-way sums in rank order for the same bits in every run.
template <class Context> class two_hop_route {
  public:
    explicit two_hop_route(Context& context) noexcept
        : shared_(context), serving_(context.own_chunks(), context.my_node) {
        while (first_ < context.peers.size() && context.peers[first_].rank < context.rank) ++first_;
        if (first_ == context.peers.size()) first_ = 0;
    }

    /// Posts the receives of the first window; what is refused now is posted by `step`.
    void open() noexcept { owing_ = !open_window(); }

    /// Things that an execution has to wait for here, besides messages: every cursor has to pass.
    std::uint32_t cursors() const noexcept { return 1 + static_cast<std::uint32_t>(shared_.peers.size()); }

    std::size_t step() noexcept {
        if (owing_) owing_ = !open_window();
        return serve() + push();
    }

  private:
    std::size_t serve() noexcept {
        std::size_t progress = 0;
        shared_.pushes_in.missing = -1;
        while (shared_.seek(serving_, route::two_hop)) {
            execution& e = shared_.at(serving_.at);
            chunk const c = serving_.here(e);
            if (!summed_) {
                if (!complete(e, c)) return progress;
                shared_.fold_all(e, c, serving_.k, [](peer& p) { return p.slot(p.served); });
                summed_ = true;
                ++progress;
            }
            // Results leave one after the other from behind this rank on, so that servers do not gang up on one.
            for (; answered_ < shared_.map.nodes(); ++answered_) {
                int const to = (shared_.my_node + answered_) % shared_.map.nodes();
                if (to == shared_.my_node) continue;
                if (!answer(shared_.handler(to, serving_.k), e, c)) return progress;
                ++progress;
            }
            summed_ = false;
            answered_ = 0;
            looked_at_ = 0;
            serving_.next_chunk();
        }
        find_passed();
        return progress;
    }

    // A push may lie here for an execution that took another route on this rank.
    void find_passed() noexcept {
        if (searched_ == serving_.at && !shared_.pushes_in.news) return;
        searched_ = serving_.at;
        shared_.pushes_in.news = false;
        for (peer& p : shared_.peers)
            if (shared_.passed(p, p.arrivals[p.served % shared_.window], searched_)) return;
    }

    // Whether all parts of the chunk are here; looks only from whom was missing last time on.
    bool complete(execution const& e, chunk const& c) noexcept {
        for (; looked_at_ < shared_.map.nodes(); ++looked_at_) {
            if (looked_at_ == shared_.my_node) continue;
            peer& p = shared_.peers[shared_.handler(looked_at_, serving_.k)];
            arrival const& got = p.arrivals[p.served % shared_.window];
            if (!got.here) {
                shared_.pushes_in.missing = p.rank;
                shared_.pushes_in.missing_in = serving_.at;
                shared_.need(p);
                return false;
            }
            if (!shared_.fits(p.rank, got, e, c.elements * shared_.partial_bytes)) return false;
        }
        return true;
    }

    bool answer(std::size_t to, execution const& e, chunk const& c) noexcept {
        peer& p = shared_.peers[to];
        // First the receive for the push that this result allows.
        if (!p.reposted) {
            p.arrivals[p.served % shared_.window].here = false;
            if (!expect(to, p.served + shared_.window)) {
                shared_.need(p);
                return false;
            }
            p.reposted = true;
        }
        if (!shared_.send(to, message::result, p.served, shared_.bytes(e, c), 0, serving_.at)) return false;
        ++p.served;
        p.reposted = false;
        return true;
    }

    bool open_window() noexcept {
        for (std::size_t i = 0; i < shared_.peers.size(); ++i)
            for (std::uint32_t& opened = shared_.peers[i].opened; opened < shared_.window; ++opened)
                if (!expect(i, opened)) return false;
        return true;
    }

    bool expect(std::size_t from, std::uint64_t number) noexcept {
        peer& p = shared_.peers[from];
        return shared_.receive(from, message::push, number, p.slot_bytes(number), number % shared_.window);
    }

    // One chunk a peer and turn, from behind this rank on: every server gets work at once, and none all of it.
    std::size_t push() noexcept {
        std::size_t const count = shared_.peers.size();
        std::size_t progress = 0;
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = 0; i < count; ++i) {
                std::size_t const to = first_ + i < count ? first_ + i : first_ + i - count;
                if (!push_one(to)) continue;
                more = true;
                ++progress;
            }
        }
        return progress;
    }

    bool push_one(std::size_t to) noexcept {
        peer& p = shared_.peers[to];
        if (!shared_.seek(p.push, route::two_hop)) return false;
        if (p.pushed - p.oldest >= shared_.window) {
            shared_.need(p);
            return false;
        }
        execution& e = shared_.at(p.push.at);
        chunk const c = p.push.here(e);
        std::size_t const slot = p.pushed % shared_.window;
        if (!p.prepared) {
            // The result lands where it belongs: it cannot come before all of the push has been taken in.
            std::span<std::byte> into = shared_.bytes(e, c);
            if constexpr (Context::parts_on_device) into = shared_.node.on_device(into);
            if (!shared_.receive(to, message::result, p.pushed, into, slot)) {
                shared_.need(p);
                return false;
            }
            p.flights[slot] = {c, p.push.at, false};
            ++e.open;
            shared_.make_part(e, c, p.stage(slot));
            p.prepared = true;
        }
        std::span<std::byte const> from = shared_.part(e, c, p.stage(slot));
        if constexpr (Context::parts_on_device) from = shared_.node.on_device(from);
        if (!shared_.send(to, message::push, p.pushed, from, slot, p.push.at)) return false;
        p.prepared = false;
        ++p.pushed;
        p.push.next_chunk();
        return true;
    }

    Context& shared_;
    std::size_t first_ = 0; // the peer to begin with
    chunk_cursor serving_;
    bool summed_ = false;        // the chunk under the cursor
    int answered_ = 0;           // nodes, counted from this one
    int looked_at_ = 0;          // nodes whose part is here
    bool owing_ = false;         // receives of the first window could not be posted yet
    std::uint64_t searched_ = 0; // where the service was when pushes that nobody will sum were looked for
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_TWO_HOP_ROUTE_HPP
