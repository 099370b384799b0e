// herring: the operation of all_to_all, gather and scatter: every rank has a block for every other rank.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_ALL_TO_ALL_HPP
#define HERRING_ENGINE_OPERATIONS_ALL_TO_ALL_HPP

#include "herring/base/config.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"
#include "herring/model/part_format.hpp"
#include "herring/model/range.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The bytes of the block of each pair of ranks in one call.
struct block_sizes {
    std::size_t each = 0;
    int from = -1;                      ///< the rank whose blocks alone have bytes; −1: those of all ranks
    int to = -1;                        ///< the same of the blocks to one rank
    std::size_t const* table = nullptr; ///< rank · ranks + rank → bytes, in place of `each`
    int ranks = 0;

    std::size_t of(int sender, int receiver) const noexcept {
        if (table != nullptr)
            return table[static_cast<std::size_t>(sender) * static_cast<std::size_t>(ranks) +
                         static_cast<std::size_t>(receiver)];
        return (from < 0 || sender == from) && (to < 0 || receiver == to) ? each : 0;
    }
};

/// A bucket of blocks: the same slice of the block of each pair of ranks. A rank's block for itself is no
/// part of it.
///
/// Shape: the bucket has one range for each receiving rank, as long as the longest slice for it,
///        `begins[rank]` to `begins[rank + 1]`: a shard. A sending rank's slice begins where that range does.
///        `of_senders`: the same of sending ranks.
/// Units: bytes.
struct block_piece {
    block_sizes const* sizes = nullptr;
    std::size_t before = 0;              ///< of each block, before this slice
    std::size_t most = 0;                ///< of the longest slice
    std::size_t const* begins = nullptr; ///< rank → its range of the bucket; and the end of the last
    std::size_t sent = 0;                ///< of all blocks of this rank's, from the start of its memory
    bool of_senders = false;             ///< ranges are of the sending ranks, which serve them

    // In memory of the caller: where blocks lie. nullptr: in a slot, each range of the bucket in its place.
    std::size_t const* sent_at = nullptr;     ///< rank → the block to it
    std::size_t const* received_at = nullptr; ///< rank → the block from it
    std::size_t const* boxed_at = nullptr;    ///< local rank → in its mailbox, the block to this rank
    std::size_t results = 0;                  ///< in a slot: where results begin, a row of `most` a sender

    std::size_t bytes(int sender, int receiver) const noexcept {
        std::size_t const all = sender == receiver ? 0 : sizes->of(sender, receiver);
        return all > before ? std::min(all - before, most) : 0;
    }
    /// Where the result from a sender lies in a slot.
    std::size_t row(int sender) const noexcept {
        return results + (sizes->from < 0 ? static_cast<std::size_t>(sender) * most : 0);
    }
};

/// Messages of blocks. By two hops shards belong to the receiving ranks: a push carries the slices of a
/// node's ranks for one of them, sender by sender; results are empty, for the credit. Or shards belong to the
/// sending ranks: pushes are empty, for the credit, and each node's result is the slice for its rank, which
/// lands where it belongs. By one hop every node has one rank, and sends each other one its slice.
class all_to_all_traffic {
  public:
    static constexpr lending lends = lending::swap_or_read;

    explicit all_to_all_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const& e, int) const noexcept { return {e.element_bytes}; }
    range sends(execution const& e, chunk const& c, int from, int to) const noexcept {
        range all{c.offset, 0};
        if (e.part.blocks->of_senders) return all;
        for_each(e, c, from, to, [&](int, int receiver, std::size_t skip, std::size_t bytes) {
            if (all.elements == 0) all.offset = e.part.blocks->begins[receiver] + skip;
            all.elements += bytes;
        });
        return all;
    }
    bool returns(execution const& e, chunk const& c, int to) const noexcept {
        return e.part.blocks->of_senders && returned(e, c, to).elements > 0;
    }
    std::byte const* part(execution const& e, chunk const&, range const& what,
                          std::byte* stage) const noexcept {
        if (state_.who.local_size > 1) return stage;
        int const receiver = owner(e, what.offset);
        return source(e, state_.who.local, receiver, what.offset - e.part.blocks->begins[receiver]);
    }
    std::byte const* result(execution const&, chunk const&) const noexcept { return nullptr; } // each its own
    std::span<std::byte const> result_to(execution const& e, chunk const& c, int to) const noexcept {
        range const what = returned(e, c, to);
        return {source(e, state_.who.local, state_.who.map.rank_of(to, 0), what.offset), what.elements};
    }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return place(e, state_.who.local, owner(e, c.offset), returned(e, c, state_.who.node).offset);
    }
    void take_result(execution const&, chunk const&) const noexcept {}
    range given(execution const& e) const noexcept { return {0, e.part.blocks->sent}; }

    /// The rank whose range of the bucket has this element.
    int owner(execution const& e, std::size_t offset) const noexcept {
        std::size_t const* const begins = e.part.blocks->begins;
        return static_cast<int>(std::upper_bound(begins, begins + state_.who.map.size(), offset) - begins -
                                1);
    }
    /// Returns the bytes that a chunk of a sender's range has for the one rank of a node, from the start of
    /// the slice.
    range returned(execution const& e, chunk const& c, int to) const noexcept {
        int const sender = owner(e, c.offset);
        block_piece const& piece = *e.part.blocks;
        std::size_t const begin = c.offset - piece.begins[sender],
                          all = piece.bytes(sender, state_.who.map.rank_of(to, 0));
        return {begin, all > begin ? std::min(all - begin, c.elements) : 0};
    }
    /// Calls with(sender, receiver, bytes before it in the slice, bytes) for what a chunk has of the slices
    /// from the ranks of one node to those of another.
    template <class With>
    void for_each(execution const& e, chunk const& c, int from, int to, With const& with) const noexcept {
        block_piece const& piece = *e.part.blocks;
        for (int const receiver : state_.who.map.members(to)) {
            std::size_t const begin = piece.begins[receiver];
            if (intersection({begin, piece.begins[receiver + 1] - begin}, c.range()).elements == 0) continue;
            for (int const sender : state_.who.map.members(from))
                if (range const what = intersection({begin, piece.bytes(sender, receiver)}, c.range());
                    what.elements > 0)
                    with(sender, receiver, what.offset - begin, what.elements);
        }
    }
    /// Where the block of a local rank to a receiver lies, behind `skip` bytes of its slice.
    std::byte* source(execution const& e, int local, int receiver, std::size_t skip) const noexcept {
        block_piece const& piece = *e.part.blocks;
        if (piece.sent_at != nullptr) return e.own + piece.sent_at[receiver] + skip;
        return state_.given_by(e, local, piece.begins[receiver] + skip);
    }
    /// Where a local rank gets the block of a sender.
    std::byte* place(execution const& e, int local, int sender, std::size_t skip) const noexcept {
        block_piece const& piece = *e.part.blocks;
        if (piece.received_at != nullptr) return e.out + piece.received_at[sender] + skip;
        return state_.given_by(e, local, piece.row(sender) + skip);
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Moves the block of each pair of ranks. The execution has the sizes and places of blocks (`blocks`).
/// Depends on no element type.
class all_to_all {
  public:
    using traffic = detail::all_to_all_traffic;

    all_to_all(detail::engine_state& state, traffic& of) noexcept : state_(state), traffic_(of) {}

    /// Puts the slices of a node's ranks for the owner of the chunk one behind the other.
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (state_.who.local_size == 1) return;
        traffic_.for_each(
            e, c, state_.who.node, state_.who.map.node(traffic_.owner(e, c.offset)),
            [&](int sender, int receiver, std::size_t skip, std::size_t bytes) {
                std::memcpy(stage, traffic_.source(e, state_.who.map.local_rank(sender), receiver, skip),
                            bytes);
                stage += bytes;
            });
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (e.part.blocks->of_senders) return;
        int const here = state_.who.node;
        traffic_.for_each(
            e, c, here, here, [&](int sender, int receiver, std::size_t skip, std::size_t bytes) {
                std::memcpy(traffic_.place(e, state_.who.map.local_rank(receiver), sender, skip),
                            traffic_.source(e, state_.who.map.local_rank(sender), receiver, skip), bytes);
            });
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side) {
                std::byte const* from = p.data;
                traffic_.for_each(
                    e, c, p.node, here, [&](int sender, int receiver, std::size_t skip, std::size_t bytes) {
                        std::memcpy(traffic_.place(e, state_.who.map.local_rank(receiver), sender, skip),
                                    from, bytes);
                        from += bytes;
                    });
            }
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        block_piece const& piece = *e.part.blocks;
        for (int l = 0; l < state_.who.local_size; ++l) {
            int const sender = state_.who.rank_of(l);
            if (std::size_t const bytes = piece.bytes(sender, state_.who.rank); bytes > 0)
                std::memcpy(e.out + piece.received_at[sender], boxes[l] + piece.boxed_at[l], bytes);
        }
    }
    /// The last lent parts are the blocks from the local ranks, in their order.
    void combine_lent(execution const& e) noexcept {
        lent_part const* const from =
            e.lent + (e.lent_parts - static_cast<std::uint32_t>(state_.who.local_size));
        for (int l = 0; l < state_.who.local_size; ++l)
            if (from[l].elements > 0)
                state_.fetch(from[l].to, state_.given_by(e, l, from[l].offset), from[l].elements,
                             from[l].landing, e.next);
    }

  private:
    using block_piece = detail::block_piece;

    detail::engine_state& state_;
    traffic& traffic_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_ALL_TO_ALL_HPP
