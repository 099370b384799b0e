// herring: the operation of norms with dedicated servers: rows to the workers, sums to the servers.
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

/// Messages of norms. A chunk with an owner belongs to the row of that rank, which serves it: pushes are
/// empty, for the credit, and results are numbers. A chunk without an owner belongs to the sums: pushes are
/// numbers, results are empty. Messages are bytes as in memory, whatever the element type.
class norms_traffic {
  public:
    static constexpr lending lends = lending::none;

    explicit norms_traffic(engine_state& state) noexcept : state_(state) {}

    part_format format(execution const& e, int) const noexcept { return {e.element_bytes}; }
    range sends(execution const&, chunk const& c, int, int) const noexcept {
        return is_of_row(c) ? range{} : c.range();
    }
    bool returns(execution const&, chunk const& c, int) const noexcept { return is_of_row(c); }
    std::byte const* part(execution const& e, chunk const& c, range const&, std::byte*) const noexcept {
        return own(e, c);
    }
    std::byte const* result(execution const& e, chunk const& c) const noexcept { return own(e, c); }
    std::byte* landing(execution const& e, chunk const& c) const noexcept { return own(e, c); }
    void take_result(execution const& e, chunk const& c) const noexcept {
        if (is_of_row(c)) state_.spread(e, c);
    }
    range given(execution const&) const noexcept { return {}; } // norms take two hops

    static bool is_of_row(chunk const& c) noexcept { return c.owner >= 0; }
    /// This rank's memory of a chunk.
    std::byte* own(execution const& e, chunk const& c) const noexcept {
        return state_.given_by(e, state_.who.local, c.offset);
    }

  private:
    engine_state& state_;
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE::operations {

/// The exchange between the two phases of a step: all workers get the row of numbers of each rank that
/// combines chunks, and add the rows up in one order; dedicated servers get the sums from all workers.
/// Numbers are doubles.
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
                if (differ(p.data, first->data, e.bytes(c.elements))) return refuse(p, *first);
            }
        std::memcpy(traffic_.own(e, c), first->data, e.bytes(c.elements));
    }
    void combine_mailboxes(execution const&, std::byte* const*) noexcept {} // norms take two hops
    void combine_lent(execution const&) noexcept {}

  private:
    // NaNs are equal, whatever their bits.
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
