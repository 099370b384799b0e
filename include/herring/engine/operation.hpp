// herring: what an operation is: what the bytes of a chunk are, and what is done with them. Knows no messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATION_HPP
#define HERRING_ENGINE_OPERATION_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// One node's part of a chunk, as it lies here.
struct node_part {
    int node = 0;
    std::byte const* data = nullptr;
};

/// The parts of a chunk that came from other nodes, in the order of contributors; this node's own stands between them.
struct parts_view {
    std::span<node_part const> before;
    std::span<node_part const> after;
};

/// What an engine may do with a chunk (c) of an execution (e). All functions are noexcept, and nothing is allocated.
///
/// - `part_bytes(e, c, from, to)`: bytes that node `from` sends of the chunk to node `to`; 0: an empty message, for the
///   credit. Both ends ask. `result_bytes(e, c, to)`: of what the server returns to a node.
/// - `make_part(e, c, stage)`: makes this node's part, once for all that it is sent to; in `stage`, if it needs room.
///   `part(e, c, to, stage)`: what of it goes to node `to`; it stays as it is until it is sent.
/// - `combine(e, c, parts)`: all parts are here, or there are no other nodes: the result goes where this node's ranks take
///   it. Returns what travels back, which is not written again before the execution is finished.
/// - `landing(e, c)`: where the result of a chunk arrives at this rank; `take_result(e, c)`: it has arrived.
/// - `given(e)`: what of the bucket this rank puts into its mailbox; `combine_mailboxes(e, boxes)`: makes this rank's result
///   from all local ranks' mailboxes.
/// - `lends`: what becomes of a bucket that all local ranks copied from memory of the caller's. `combine_lent(e)`: makes this
///   rank's result from where the others' copies lie, in memory of the caller's.
template <class Operation>
concept operation = requires(Operation& op, Operation const& facts, execution& e, chunk const& c,
                             parts_view const& parts, std::byte* stage, std::byte* const* boxes, int node) {
    { facts.part_bytes(e, c, node, node) }
    noexcept->std::same_as<std::size_t>;
    { facts.result_bytes(e, c, node) }
    noexcept->std::same_as<std::size_t>;
    { op.make_part(e, c, stage) }
    noexcept;
    { op.part(e, c, node, stage) }
    noexcept->std::same_as<std::span<std::byte const>>;
    { op.combine(e, c, parts) }
    noexcept->std::same_as<std::span<std::byte const>>;
    { op.landing(e, c) }
    noexcept->std::same_as<std::byte*>;
    { op.take_result(e, c) }
    noexcept;
    { facts.given(e) }
    noexcept->std::same_as<range>;
    { op.combine_mailboxes(e, boxes) }
    noexcept;
    { Operation::lends } -> std::convertible_to<lending>;
    { op.combine_lent(e) }
    noexcept;
};

namespace detail {

template <class Operation> struct held_operation { Operation itself; };

/// The operations of an engine: a list that is closed when the program is compiled. Which one an execution runs is a number;
/// calls are branches over the list.
template <class... Operations> struct operation_list : held_operation<Operations>... {
    template <class State>
    explicit operation_list(State& state) : held_operation<Operations>{Operations(state)}... {}

    /// Calls f(operation) for the one of that number.
    template <class Function> decltype(auto) with(std::uint8_t number, Function const& f) noexcept {
        return choose<Function, Operations...>(number, f);
    }
    template <class Operation> Operation& get() noexcept {
        return static_cast<held_operation<Operation>&>(*this).itself;
    }

    template <class Operation> static constexpr std::uint8_t number_of() noexcept {
        std::uint8_t number = 0;
        (void)((std::same_as<Operation, Operations> || (++number, false)) || ...);
        return number;
    }

  private:
    template <class Function, class First, class... Rest>
    HERRING_ALWAYS_INLINE decltype(auto) choose(std::uint8_t number, Function const& f) noexcept {
        if constexpr (sizeof...(Rest) > 0)
            if (number != 0) return choose<Function, Rest...>(static_cast<std::uint8_t>(number - 1), f);
        return f(get<First>());
    }
};

} // namespace detail
} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_OPERATION_HPP
