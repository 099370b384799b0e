// herring: the operation of all-moments: every rank contributes the bucket, and gets mean and deviation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_MOMENTS_HPP
#define HERRING_ENGINE_OPERATIONS_MOMENTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/moments.hpp"
#include "herring/model/element.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Messages of all-moments. A part has the whole chunk: of a node with one rank its contribution; of several
/// ranks their sum, and behind it the sum of their squared distances from their mean. Results of the first
/// shards are means. The second shards, `part.second.begin` behind them, return deviations; their pushes are
/// empty, for the credit.
class moments_traffic {
  public:
    static constexpr lending lends = lending::swap;

    explicit moments_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const&, int node) const noexcept {
        part_format const of_sum = state_.summed_by(node);
        return {of_sum.bytes(state_.who.map.local_size(node) > 1 ? 2 : 1), of_sum.kind};
    }
    range sends(execution const& e, chunk const& c, int, int) const noexcept {
        return is_second(e, c) ? range{} : c.range();
    }
    bool returns(execution const&, chunk const&, int) const noexcept { return true; }
    std::byte const* part(execution const& e, chunk const& c, range const&, std::byte* stage) const noexcept {
        return state_.who.local_size > 1 ? stage : state_.part(e, c, c.offset, stage);
    }
    std::byte const* result(execution const& e, chunk const& c) const noexcept { return landing(e, c); }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return result_of(e, state_.who.local, c);
    }
    void take_result(execution const& e, chunk const& c) const noexcept {
        for (int l = 0; l < state_.who.local_size; ++l)
            state_.copy(result_of(e, l, c), result_of(e, state_.who.local, c), e.bytes(c.elements));
    }
    range given(execution const& e) const noexcept { return {0, e.elements}; }

    /// True for a chunk of deviations.
    static bool is_second(execution const& e, chunk const& c) noexcept {
        return c.offset >= e.part.second.begin;
    }
    /// The place of local rank l for the deviation of element `offset`.
    std::byte* deviation_of(execution const& e, int l, std::size_t offset) const noexcept {
        if (e.out != nullptr) return e.part.second.out + e.bytes(offset);
        return state_.given_by(e, l, e.part.second.begin + offset);
    }

  private:
    std::byte* result_of(execution const& e, int l, chunk const& c) const noexcept {
        return is_second(e, c) ? deviation_of(e, l, c.offset - e.part.second.begin)
                               : state_.result_of(e, l, c.offset);
    }

    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// All ranks contribute. The rank that combines a chunk has all contributions, or sums of nodes, and computes
/// both results together. By two hops deviations are returned behind the means. The execution has
/// `part.second`.
template <class Element, class Update> class moments {
  public:
    using traffic = detail::moments_traffic;

    moments(detail::engine_state& state, traffic& of)
        : state_(state), traffic_(of), group_(static_cast<std::size_t>(state.who.local_size)),
          others_(static_cast<std::size_t>(state.who.nodes())),
          means_(static_cast<std::size_t>(state.who.local_size)),
          deviations_(static_cast<std::size_t>(state.who.local_size)),
          racks_(state.who.map.racks() > 1 ? static_cast<std::size_t>(state.who.map.racks()) : 0),
          tiles_(2 * racks_.size() * tile) {}

    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (traffic::is_second(e, c) || !state_.is_staged()) return;
        auto* const sums = reinterpret_cast<accumulator*>(stage);
        if (state_.who.local_size > 1)
            kernel::moments_partial<Element>(local_sources(e, c.offset), sums, sums + c.elements, c.elements);
        else
            kernel::fold_partial<herring::update::sum, Element>(local_sources(e, c.offset), sums, c.elements);
    }
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (traffic::is_second(e, c)) return; // computed with the means
        std::size_t const step = racks_.empty() ? c.elements : tile;
        for (std::size_t at = 0; at < c.elements; at += step) {
            std::size_t const elements = std::min(step, c.elements - at), offset = c.offset + at;
            std::size_t count = 0;
            for (auto const& side : {parts.before, parts.after})
                for (node_part const& p : side) others_[count++] = term_of(p, c.elements, at);
            std::span<kernel::moments_term const> const all(others_.data(), count);
            auto before = all.first(parts.before.size()), after = all.subspan(parts.before.size());
            std::span<kernel::source const> group = local_sources(e, offset);
            if (!racks_.empty()) before = by_racks(parts, all, group, elements), group = {}, after = {};
            for (std::size_t l = 0; l < means_.size(); ++l) {
                means_[l] = element_at(state_.result_of(e, static_cast<int>(l), offset));
                deviations_[l] = element_at(traffic_.deviation_of(e, static_cast<int>(l), offset));
            }
            make(before, group, after, {means_.data(), means_.size()},
                 {deviations_.data(), deviations_.size()}, elements, state_.ranks_in(e));
        }
    }
    void combine_mailboxes(execution const& e, std::byte* const* boxes) noexcept {
        for (std::size_t l = 0; l < group_.size(); ++l) group_[l] = {boxes[l]};
        int const own = state_.who.local;
        make_alone(element_at(state_.result_of(e, own, 0)), element_at(traffic_.deviation_of(e, own, 0)),
                   e.elements);
    }
    /// On a node of two ranks: combines the other rank's copy with this rank's memory into this rank's
    /// memory, and writes the next piece over that copy. Part 0 has the contribution and takes the means,
    /// part 1 takes the deviations.
    void combine_lent(execution const& e) noexcept {
        int const other = 1 - state_.who.local;
        lent_part const &part = e.lent[0], &second = e.lent[1];
        std::byte* const copy = state_.given_by(e, other, part.offset);
        std::size_t const bytes = part.elements * sizeof(Element);
        for (std::size_t at = 0; at < bytes; at += tile_bytes) {
            std::size_t const here = std::min(tile_bytes, bytes - at);
            // A line modified in another core's cache arrives with that cache's latency: prefetch all lines
            // of the next tile.
            std::size_t const ahead = std::min(bytes, at + 2 * tile_bytes);
            for (std::size_t line = at + tile_bytes; line < ahead; line += 64)
                __builtin_prefetch(copy + line);
            group_[static_cast<std::size_t>(state_.who.local)] = {part.from + at};
            group_[static_cast<std::size_t>(other)] = {copy + at};
            make_alone(element_at(part.to + at), element_at(second.to + at), here / sizeof(Element));
            if (at < e.next.size())
                std::memcpy(copy + at, e.next.data() + at, std::min(here, e.next.size() - at));
        }
    }

  private:
    using accumulator = herring::accumulator<Element>;
    static constexpr std::size_t tile = 512;        // elements of racks' terms at a time
    static constexpr std::size_t tile_bytes = 4096; // a multiple of the size of every element, and of a block

    static Element* element_at(std::byte* place) noexcept { return reinterpret_cast<Element*>(place); }

    std::span<kernel::source const> local_sources(execution const& e, std::size_t offset) noexcept {
        if (!state_.who.contributes) return {};
        for (std::size_t l = 0; l < group_.size(); ++l)
            group_[l] = {state_.given_by(e, static_cast<int>(l), offset)};
        return {group_.data(), group_.size()};
    }
    // Returns the term of the elements from `begin` on; the part has `elements`.
    kernel::moments_term term_of(node_part const& p, std::size_t elements, std::size_t begin) const noexcept {
        int const ranks = state_.who.map.local_size(p.node);
        kernel::source const sum{p.data + state_.sum_parts.bytes(begin), state_.summed_by(p.node).kind};
        if (ranks == 1) return {.first = sum};
        return {sum, p.data + state_.sum_parts.bytes(elements + begin), ranks};
    }
    // The terms of racks, of the terms of their nodes; one contribution, or one node, alone stays as it is.
    std::span<kernel::moments_term const> by_racks(parts_view const& parts,
                                                   std::span<kernel::moments_term const> all,
                                                   std::span<kernel::source const> group,
                                                   std::size_t elements) noexcept {
        std::size_t terms = 0;
        state_.for_each_rack(
            parts, !group.empty(), [&](std::size_t first, std::size_t own, std::size_t end, bool is_own) {
                std::span<kernel::source const> const here =
                    is_own ? group : std::span<kernel::source const>();
                accumulator *const sums = tiles_.data() + 2 * terms * tile, *const squares = sums + tile;
                kernel::moments_term& term = racks_[terms++];
                int ranks = static_cast<int>(here.size());
                for (std::size_t i = first; i < end; ++i) ranks += all[i].ranks;
                if (end - first + here.size() == 1) {
                    term = is_own ? kernel::moments_term{.first = group[0]} : all[first];
                    return;
                }
                if (first == end)
                    kernel::moments_partial<Element>(here, sums, squares, elements);
                else
                    kernel::moments_partial<Element>(all.subspan(first, own - first), here,
                                                     all.subspan(own, end - own), ranks, sums, squares,
                                                     elements);
                term = {{sums, part_kind::accumulator}, squares, ranks};
            });
        return {racks_.data(), terms};
    }

    void make(std::span<kernel::moments_term const> before, std::span<kernel::source const> group,
              std::span<kernel::moments_term const> after, std::span<Element* const> means,
              std::span<Element* const> deviations, std::size_t count, int ranks) noexcept {
        kernel::moments<Element>(before, group, after, means, deviations, count, ranks,
                                 Update::divisor_of_squares(ranks));
    }
    // Computes the results of the group, which has all ranks, for this rank.
    void make_alone(Element* mean, Element* deviation, std::size_t count) noexcept {
        make({}, {group_.data(), group_.size()}, {}, {&mean, 1}, {&deviation, 1}, count,
             state_.who.local_size);
    }

    detail::engine_state& state_;
    traffic& traffic_;
    detail::fixed_array<kernel::source> group_;
    detail::fixed_array<kernel::moments_term> others_;
    detail::fixed_array<Element*> means_, deviations_;
    detail::fixed_array<kernel::moments_term> racks_;
    detail::fixed_array<accumulator> tiles_; // rack → sums, and squares, of a tile
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_MOMENTS_HPP
