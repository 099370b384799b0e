// herring: the operation of norms where servers are nodes of their own: rows of numbers to the workers, and their sums to the servers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATIONS_NORMS_HPP
#define HERRING_ENGINE_OPERATIONS_NORMS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/state.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// A chunk with an owner is of the row of that rank, which serves it: pushes are empty, for the credit, and results are numbers.
/// One without is of the sums: pushes are numbers, and results are empty. Bytes are as they lie in memory, whatever the elements are.
class norms_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit norms_traffic(engine_state& state) noexcept : state_(state) {}

    std::size_t part_bytes(execution const&, chunk const& c, int, int) const noexcept {
        return is_of_row(c) ? 0 : bytes(c);
    }
    std::size_t result_bytes(execution const&, chunk const& c, int) const noexcept {
        return is_of_row(c) ? bytes(c) : 0;
    }
    std::span<std::byte const> part(execution const& e, chunk const& c, int, std::byte*) const noexcept {
        if (is_of_row(c)) return {};
        return {own(e, c), bytes(c)};
    }
    std::span<std::byte const> result(execution const& e, chunk const& c) const noexcept {
        if (!is_of_row(c)) return {};
        return {own(e, c), bytes(c)};
    }
    std::byte* landing(execution const& e, chunk const& c) const noexcept {
        return is_of_row(c) ? own(e, c) : nullptr;
    }
    void take_result(execution const& e, chunk const& c) const noexcept {
        if (is_of_row(c)) state_.spread(e, c);
    }
    range given(execution const&) const noexcept { return {}; } // takes two hops

    static bool is_of_row(chunk const& c) noexcept { return c.owner >= 0; }
    std::size_t bytes(chunk const& c) const noexcept { return c.elements * state_.element_bytes; }
    /// Where this rank has it.
    std::byte* own(execution const& e, chunk const& c) const noexcept {
        return state_.given_by(e, state_.who.local, c.offset);
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// Between the two phases of a step: each rank that combines chunks has a row of numbers, which all workers get; workers add the rows
/// up, in one order, and servers of their own get the sums, from all of them. Numbers are doubles.
class norms {
  public:
    using traffic = detail::norms_traffic;

    norms(detail::engine_state& state, traffic& of) noexcept : state_(state), traffic_(of) {}

    void make_part(execution const&, chunk const&, std::byte*) noexcept {}
    void combine(execution const& e, chunk const& c, parts_view const& parts) noexcept {
        if (traffic::is_of_row(c)) return state_.spread(e, c);
        node_part const* first = nullptr;
        for (auto const& side : {parts.before, parts.after})
            for (node_part const& p : side) {
                if (first == nullptr) first = &p;
                if (differ(p.data, first->data, traffic_.bytes(c))) return refuse(p, *first);
            }
        std::memcpy(traffic_.own(e, c), first->data, traffic_.bytes(c));
    }
    void combine_mailboxes(execution const&, std::byte* const*) noexcept {} // takes two hops
    void combine_lent(execution const&) noexcept {}

  private:
    // What is no number may have any bits.
    static bool differ(std::byte const* a, std::byte const* b, std::size_t bytes) noexcept {
        auto const is_no_number = [](std::uint64_t bits) {
            return bits << 1 > std::uint64_t{0x7ff0'0000'0000'0000} << 1;
        };
        for (std::size_t at = 0; at < bytes; at += sizeof(double)) {
            std::uint64_t of_a, of_b;
            std::memcpy(&of_a, a + at, sizeof of_a);
            std::memcpy(&of_b, b + at, sizeof of_b);
            if (of_a != of_b && !(is_no_number(of_a) && is_no_number(of_b))) return true;
        }
        return false;
    }
    [[gnu::noinline, gnu::cold]] void refuse(node_part const& other, node_part const& first) noexcept {
        state_.failures.fail(
            failure::make(errc::mismatch, state_.who.rank, state_.who.map.rank_of(other.node, 0), "wait",
                          {"it has added up other norms of the gradients than rank ",
                           state_.who.map.rank_of(first.node, 0),
                           ", from the same numbers; see that every rank runs the same build"}),
            true);
    }

    detail::engine_state& state_;
    traffic& traffic_;
};

} // namespace HERRING_NAMESPACE::operations

#endif // HERRING_ENGINE_OPERATIONS_NORMS_HPP
