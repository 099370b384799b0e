// herring: an engine's core, and how a chunk is summed: what its routes share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_CONTEXT_HPP
#define HERRING_ENGINE_CONTEXT_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/element.hpp"
#include "herring/engine/core.hpp"
#include "herring/kernel/fold.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Shared by the routes of one engine. Knows how to sum a chunk, not when.
template <class Element, class Transport, class IntraNode, class Update>
struct engine_context : engine_core<Transport, IntraNode> {
    using core = engine_core<Transport, IntraNode>;
    using accumulator = herring::accumulator<Element>;
    using source = kernel::source;

    using core::apart, core::at, core::bytes, core::gathered, core::handler, core::local, core::local_size,
        core::map, core::my_node, core::node, core::partial_bytes, core::peers, core::staged, core::summed,
        core::wide;
    using core::sums_on_device;

    HERRING_SETUP engine_context(world& all, topology const& where, plan const& made, Transport& messages,
                                 IntraNode& local_ranks, std::span<int const> with, std::size_t executions,
                                 std::span<std::byte> staging)
        : core(all, where, made, messages, local_ranks, with, executions, staging),
          group(static_cast<std::size_t>(local_size)), remote(static_cast<std::size_t>(map.nodes())),
          targets(static_cast<std::size_t>(local_size)) {}

    Element* element(execution const& e, std::size_t offset) const noexcept {
        return reinterpret_cast<Element*>(e.own) + offset;
    }

    std::span<source const> local_sources(execution const& e, chunk const& c) noexcept {
        auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
        if constexpr (sums_on_device) {
            group[0] = {node.part(own), wide};
            return {group.data(), 1};
        } else {
            for (int l = 0; l < local_size; ++l)
                group[static_cast<std::size_t>(l)] = {own + apart(e)[l], false};
            return {group.data(), group.size()};
        }
    }
    std::span<Element* const> local_targets(execution const& e, chunk const& c) noexcept {
        if constexpr (sums_on_device) {
            targets[0] = element(e, c.offset);
            return {targets.data(), 1};
        } else {
            auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
            for (int l = 0; l < local_size; ++l)
                targets[static_cast<std::size_t>(l)] = reinterpret_cast<Element*>(own + apart(e)[l]);
            return {targets.data(), targets.size()};
        }
    }

    /// Sums the local ranks' parts into all local memories: the whole world is one node.
    void fold_local(execution const& e, chunk const& c) noexcept {
        kernel::fold<Update, Element>(local_sources(e, c), local_targets(e, c), c.elements, map.size());
    }

    /// Sums what `group` names, in its order, for this rank alone.
    void fold_group_into(std::byte* target, std::size_t count) noexcept {
        fold_group_into(reinterpret_cast<Element*>(target), count);
    }
    void fold_group_into(Element* target, std::size_t count) noexcept {
        kernel::fold<Update, Element>(std::span<source const>(group.data(), group.size()),
                                      std::span<Element* const>(&target, 1), count, map.size());
    }

    /// On a node of two ranks: sums a part and the other rank's copy of its part, which lies `distance` bytes from this rank's.
    /// Puts `next` in that copy's place.
    void fold_exchanging(execution const& e, lent_part const& part, std::ptrdiff_t distance,
                         std::span<std::byte const> next) noexcept {
        auto* const copy =
            reinterpret_cast<Element*>(reinterpret_cast<std::byte*>(element(e, part.offset)) + distance);
        source const own{part.from}, other{copy};
        source const sources[] = {local == 0 ? own : other, local == 0 ? other : own};
        kernel::fold_exchanging<Update, Element>(
            sources, reinterpret_cast<Element*>(part.to), part.elements, map.size(), copy,
            {reinterpret_cast<Element const*>(next.data()), next.size() / sizeof(Element)});
    }

    /// This node's part of a chunk as it travels: where it lies, or summed into `stage`.
    std::span<std::byte const> part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if constexpr (sums_on_device)
            return {node.part(reinterpret_cast<std::byte*>(element(e, c.offset))),
                    c.elements * partial_bytes};
        else
            return staged ? std::span<std::byte const>(stage, c.elements * partial_bytes) : bytes(e, c);
    }
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (staged && !sums_on_device)
            kernel::fold_partial<Update, Element>(local_sources(e, c), reinterpret_cast<accumulator*>(stage),
                                                  c.elements);
    }

    /// Sums the parts of all nodes in their order, the local ranks' as one of them, into all local memories.
    /// `slot(peer)` is where the part of a peer's node lies.
    template <class Slot>
    void fold_all(execution const& e, chunk const& c, std::uint32_t k, Slot const& slot) noexcept {
        std::size_t count = 0;
        for (int n = 0; n < map.nodes(); ++n)
            if (n != my_node) remote[count++] = {slot(peers[handler(n, k)]), summed(n)};
        std::span<source const> const parts(remote.data(), count);
        auto const before = static_cast<std::size_t>(my_node);
        kernel::fold<Update, Element>(parts.first(before), local_sources(e, c), parts.subspan(before),
                                      local_targets(e, c), c.elements, map.size());
    }

    /// Whether the devices have summed execution `gathered`; has them sum what all local ranks have arrived at.
    bool sum_on_device() noexcept {
        return node.template summed<Update, Element>(
            gathered, this->arrived, map.size(),
            [this](std::uint64_t e) -> execution const& { return at(e); });
    }

    // Room for one call of the kernel.
    fixed_array<source> group;
    fixed_array<source> remote;
    fixed_array<Element*> targets;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_CONTEXT_HPP
