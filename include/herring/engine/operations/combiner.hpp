// herring: combines the contributions to a chunk: in the order of the ranks of a node, then of the nodes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_COMBINER_HPP
#define HERRING_ENGINE_OPERATIONS_COMBINER_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/model/element.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The origin of a number that is not finite. `known` without a node: all contributions are finite, and their
/// sum is not.
struct contribution_origin {
    bool known = false;
    int node = -1, rank = -1; ///< rank −1: one of the node's ranks, whose sum has the number
};

/// The common part of the operations that sum: finds the operands, and calls the kernel.
///
/// Memory: operands of one call of the kernel: O(ranks of a node + nodes); a tile for each of several racks.
template <class Element, class Update> class combiner {
  public:
    using accumulator = herring::accumulator<Element>;
    using source = kernel::source;

    explicit combiner(engine_state& state)
        : state_(state), group_(static_cast<std::size_t>(state.who.local_size)),
          remote_(static_cast<std::size_t>(state.who.nodes())),
          targets_(static_cast<std::size_t>(state.who.local_size)),
          racks_(state.who.map.racks() > 1 ? static_cast<std::size_t>(state.who.map.racks()) : 0),
          tiles_(racks_.size() * tile * sizeof(accumulator)) {}

    /// Sums the local ranks' parts of a chunk into `stage`, if the node's part is a sum.
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (state_.is_staged() && e.device_sum == nullptr)
            kernel::fold_partial<Update, Element>(local_sources(e, c.offset),
                                                  reinterpret_cast<accumulator*>(stage), c.elements, e.rule);
    }
    /// Sums the parts of this rack's nodes, the local ranks' contributions among them, in accumulators.
    void sum_rack(execution const& e, chunk const& c, parts_view const& parts, std::byte* sums) noexcept {
        operands const of = operands_of(e, c.range(), parts, c.offset);
        kernel::fold_partial<Update, Element>(of.before, of.group, of.after,
                                              reinterpret_cast<accumulator*>(sums), c.elements, e.rule);
    }
    /// Operands of the kernel; valid until the next call.
    struct operands {
        std::span<source const> before, group, after;
    };
    /// Operands for a range: the parts of all nodes, the local ranks' contributions among them. The parts
    /// begin at element `begin` of the bucket.
    HERRING_ALWAYS_INLINE operands operands_of(execution const& e, range const& what, parts_view const& parts,
                                               std::size_t begin) noexcept {
        std::size_t count = 0;
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side) {
                part_format const of = parts.of_racks
                                           ? part_format{sizeof(accumulator), part_kind::accumulator}
                                           : state_.summed_by(p.node);
                remote_[count++] = {p.data + of.bytes(what.offset - begin), of.kind};
            }
        std::span<source const> const all(remote_.data(), count);
        if (parts.of_racks) return {all, {}, {}};
        return {all.first(parts.before.size()), local_sources(e, what.offset),
                all.subspan(parts.before.size())};
    }
    /// The memory at `place_of(l)` of each local rank l, as operands.
    template <class PlaceOf>
    HERRING_ALWAYS_INLINE std::span<source const> local_sources_at(PlaceOf const& place_of) noexcept {
        for (int l = 0; l < state_.who.local_size; ++l) group_[static_cast<std::size_t>(l)] = {place_of(l)};
        return {group_.data(), group_.size()};
    }

    /// Calls with(operands, range) for the parts of a range, in order, with what the kernel folds: the
    /// operands `from(range)`, or where there are several racks the sum of each. The parts are those of
    /// `operands_of`.
    template <class From, class With>
    HERRING_ALWAYS_INLINE void for_each_tile(execution const& e, range const& what, parts_view const& parts,
                                             From const& from, With const& with) noexcept {
        if (racks_.empty() || parts.of_racks) return with(from(what), what);
        for (std::size_t at = 0; at < what.elements; at += tile) {
            range const here{what.offset + at, std::min(tile, what.elements - at)};
            with(by_racks(e, from(here), parts, here.elements), here);
        }
    }

    /// Combines a range of the parts of all nodes, the local ranks' contributions among them, into every
    /// target: `targets(offset)`. The parts begin at element `begin` of the bucket.
    template <class Targets>
    HERRING_ALWAYS_INLINE void combine(execution const& e, range const& what, parts_view const& parts,
                                       std::size_t begin, Targets const& targets) noexcept {
        for_each_tile(
            e, what, parts, [&](range const& here) { return operands_of(e, here, parts, begin); },
            [&](operands const& from, range const& here) {
                kernel::fold<Update, Element>(from.before, from.group, from.after, targets(here.offset),
                                              here.elements, state_.ranks_in(e), e.rule);
            });
    }
    void combine(execution const& e, range const& what, parts_view const& parts, std::size_t begin,
                 std::byte* target) noexcept {
        Element* to = nullptr;
        combine(e, what, parts, begin, [&](std::size_t offset) {
            to = element_at(target) + (offset - what.offset);
            return std::span<Element* const>(&to, 1);
        });
    }

    /// Combines the memory at `place_of(l)` of each local rank l, for this rank alone.
    template <class PlaceOf>
    void combine_local(execution const& e, PlaceOf const& place_of, std::byte* target,
                       std::size_t count) noexcept {
        Element* const to = element_at(target);
        kernel::fold<Update, Element>(local_sources_at(place_of), std::span<Element* const>(&to, 1), count,
                                      state_.who.local_size, e.rule);
    }

    /// On a node of two ranks: combines the other rank's copy of a part with this rank's memory into this
    /// rank's memory, and writes `next` over that copy.
    void combine_with(execution const& e, int other, lent_part const& part, std::byte* copy,
                      std::span<std::byte const> next) noexcept {
        source const own{part.from}, theirs{copy};
        source const sources[] = {other == 1 ? own : theirs, other == 1 ? theirs : own};
        kernel::fold_exchanging<Update, Element>(
            sources, element_at(part.to), part.elements, state_.who.local_size, element_at(copy),
            {reinterpret_cast<Element const*>(next.data()), next.size() / sizeof(Element)}, e.rule);
    }

    /// The results of this node's ranks for a chunk; of this rank alone if devices spread results, or the
    /// node only serves.
    std::span<Element* const> local_targets(execution const& e, std::size_t offset) noexcept {
        std::size_t count = 0;
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l == state_.who.local || (e.device_sum == nullptr && state_.who.contributes))
                targets_[count++] = element_at(state_.result_of(e, l, offset));
        return {targets_.data(), count};
    }

    /// Returns the rank, or node, whose contribution makes element `at` of the sum of these operands not
    /// finite.
    [[gnu::noinline, gnu::cold]] contribution_origin origin_of(operands const& from, parts_view const& parts,
                                                               std::size_t at) const noexcept {
        auto const is_wrong = [at](source const& one) {
            accumulator const x = kernel::detail::load_element<Update, Element>(one, at);
            return !(x - x == accumulator{});
        };
        topology const& map = state_.who.map;
        for (std::size_t i = 0; i < from.before.size() + from.after.size(); ++i) {
            bool const is_before = i < from.before.size();
            std::size_t const of_side = is_before ? i : i - from.before.size();
            if (!is_wrong((is_before ? from.before : from.after)[of_side])) continue;
            node_part const& part = (is_before ? parts.before : parts.after)[of_side];
            if (parts.of_racks) return {}; // of any of its nodes
            int const node = part.node;
            return {true, node, map.local_size(node) == 1 ? map.rank_of(node, 0) : -1};
        }
        for (std::size_t l = 0; l < from.group.size(); ++l)
            if (is_wrong(from.group[l])) {
                bool const each = from.group.size() == static_cast<std::size_t>(state_.who.local_size);
                return {true, state_.who.node, each ? map.rank_of(state_.who.node, static_cast<int>(l)) : -1};
            }
        return {true};
    }

    static Element* element_at(std::byte* place) noexcept { return reinterpret_cast<Element*>(place); }

  private:
    static constexpr std::size_t tile = std::max<std::size_t>(2048 / sizeof(accumulator), 1);

    /// The sums of racks in place of their nodes' parts; one operand alone stays as it is.
    [[gnu::noinline]] operands by_racks(execution const& e, operands const& of, parts_view const& parts,
                                        std::size_t elements) noexcept {
        std::span<source const> const all(remote_.data(), of.before.size() + of.after.size());
        std::size_t sums = 0;
        state_.for_each_rack(
            parts, !of.group.empty(), [&](std::size_t first, std::size_t own, std::size_t end, bool is_own) {
                std::span<source const> const group = is_own ? of.group : std::span<source const>();
                source& sum = racks_[sums];
                if (end - first + group.size() == 1) {
                    sum = is_own ? group[0] : all[first];
                } else {
                    auto* const to = reinterpret_cast<accumulator*>(tiles_.data()) + sums * tile;
                    kernel::fold_partial<Update, Element>(all.subspan(first, own - first), group,
                                                          all.subspan(own, end - own), to, elements, e.rule);
                    sum = {to, part_kind::accumulator};
                }
                ++sums;
            });
        return {{racks_.data(), sums}, {}, {}};
    }

    std::span<source const> local_sources(execution const& e, std::size_t offset) noexcept {
        if (!state_.who.contributes) return {};
        if (e.device_sum != nullptr) {
            group_[0] = {e.device_sum + state_.sum_parts.bytes(offset), state_.sum_parts.kind};
            return {group_.data(), 1};
        }
        for (int l = 0; l < state_.who.local_size; ++l)
            group_[static_cast<std::size_t>(l)] = {state_.given_by(e, l, offset)};
        return {group_.data(), group_.size()};
    }

    engine_state& state_;
    fixed_array<source> group_;
    fixed_array<source> remote_;
    fixed_array<Element*> targets_;
    fixed_array<source> racks_;
    fixed_array<std::byte> tiles_; // rack → sums of a tile
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_OPERATIONS_COMBINER_HPP
