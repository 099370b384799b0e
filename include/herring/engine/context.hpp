// herring: an engine's core and its operations: what its routes share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_CONTEXT_HPP
#define HERRING_ENGINE_CONTEXT_HPP

#include "herring/base/config.hpp"
#include "herring/engine/core.hpp"
#include "herring/engine/operation.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Shared by the routes of one engine. Asks the operation of an execution: branches over the list.
template <class Transport, class IntraNode, operation... Operations>
struct engine_context : engine_core<Transport, IntraNode> {
    using core = engine_core<Transport, IntraNode>;

    HERRING_SETUP engine_context(failure_sink sink, int rank, topology const& map, plan const& from,
                                 Transport& messages, IntraNode& local_ranks, std::span<int const> with,
                                 std::size_t executions, std::span<std::byte> staging)
        : core(sink, rank, map, from, messages, local_ranks, with, executions, staging),
          operations(static_cast<engine_state&>(*this)) {}

    std::size_t part_bytes(execution const& e, chunk const& c, int from, int to) noexcept {
        return operations.with(e.operation, [&](auto& op) { return op.part_bytes(e, c, from, to); });
    }
    std::size_t result_bytes(execution const& e, chunk const& c, int to) noexcept {
        return operations.with(e.operation, [&](auto& op) { return op.result_bytes(e, c, to); });
    }
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        operations.with(e.operation, [&](auto& op) { op.make_part(e, c, stage); });
    }
    std::span<std::byte const> part(execution const& e, chunk const& c, int to, std::byte* stage) noexcept {
        return operations.with(e.operation, [&](auto& op) { return op.part(e, c, to, stage); });
    }
    std::span<std::byte> landing(execution const& e, chunk const& c) noexcept {
        return operations.with(e.operation, [&](auto& op) {
            return std::span<std::byte>(op.landing(e, c), op.result_bytes(e, c, this->who.node));
        });
    }
    void take_result(execution const& e, chunk const& c) noexcept {
        operations.with(e.operation, [&](auto& op) { op.take_result(e, c); });
    }
    /// All parts of a chunk are here; `data(peer)` is where that of a peer's node lies. Returns what travels back.
    template <class Data>
    std::span<std::byte const> combine(execution const& e, chunk const& c, Data const& data) noexcept {
        std::size_t count = 0, before = 0;
        for (int const n : this->who.contributors()) {
            if (n == this->who.node)
                before = count;
            else
                this->node_parts[count++] = {n, data(this->peers[this->who.handler(n, c)])};
        }
        std::span<node_part const> const parts(this->node_parts.data(), count);
        return combine(e, c, parts_view{parts.first(before), parts.subspan(before)});
    }
    std::span<std::byte const> combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        return operations.with(e.operation, [&](auto& op) { return op.combine(e, c, parts); });
    }

    operation_list<Operations...> operations;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_CONTEXT_HPP
