// herring: the concept of an operation: the bytes of a chunk, and the work on them. Knows no messages.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_OPERATION_HPP
#define HERRING_ENGINE_OPERATION_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/model/part_format.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE {

namespace detail {
struct engine_state;
}

/// One node's part of a chunk, as it lies here.
struct node_part {
    int node = 0;
    std::byte const* data = nullptr;
};

/// The parts of a chunk that came from other nodes, in the order of contributors; this node's own stands
/// between them. Or the sums of all racks, this one's too, on one side.
struct parts_view {
    std::span<node_part const> before;
    std::span<node_part const> after;
    bool of_racks = false; ///< sums of racks, in accumulators
};

/// The messages of an operation for a chunk (c) of an execution (e), whatever the type of elements.
/// Both ends of a message ask for its format and its elements, so their bytes agree (`traffic_core`):
///
/// - `format(e, node)`: the format of the parts that a node sends. Results travel as the execution stores its
///   elements.
/// - `sends(e, c, from, to)`: the elements that node `from` sends of the chunk to node `to`; 0: an empty
///   message, for the credit. `returns(e, c, to)`: true if the server returns the chunk to a node; else that
///   message is empty.
/// - `part(e, c, what, stage)`: where these elements of this node's part lie, in the format; they stay as
///   they are until they are sent.
/// - `result(e, c)`: what was combined and travels back; not written again before the execution is finished.
///   A traffic that returns a part of the chunk to each node has `returned(e, c, to)`, that part, and
///   `result_to(e, c, to)`, its bytes, in place of the whole.
/// - `landing(e, c)`: where a result that is returned arrives at this rank; `take_result(e, c)`: it, or the
///   empty message, has arrived.
/// - `given(e)`: what of the bucket this rank puts into its mailbox.
/// - `lends`: how local ranks combine a bucket that all of them copied from their callers' memory.
template <class Traffic>
concept operation_traffic = std::constructible_from<Traffic, detail::engine_state&> &&
    requires(Traffic const& of, execution const& e, chunk const& c, range const& what, std::byte* stage,
             int node) {
    { of.format(e, node) }
    noexcept->std::same_as<part_format>;
    { of.sends(e, c, node, node) }
    noexcept->std::same_as<range>;
    { of.returns(e, c, node) }
    noexcept->std::same_as<bool>;
    { of.part(e, c, what, stage) }
    noexcept->std::convertible_to<std::byte const*>;
    { of.result(e, c) }
    noexcept->std::convertible_to<std::byte const*>;
    { of.landing(e, c) }
    noexcept->std::same_as<std::byte*>;
    { of.take_result(e, c) }
    noexcept;
    { of.given(e) }
    noexcept->std::same_as<range>;
    { Traffic::lends } -> std::convertible_to<lending>;
};

namespace detail {
/// Traffic whose servers return other bytes than the chunk's: `returned` and `result_to`.
template <class Traffic>
concept returns_other_ranges = requires(Traffic of, execution const& e, chunk const& c) {
    of.returned(e, c, 0);
    of.result_to(e, c, 0);
};
} // namespace detail

/// The work of an engine on chunks: an operation's traffic, and the functions that compute. All are noexcept,
/// and nothing is allocated. Knows no messages.
///
/// - `make_part(e, c, stage)`: makes this node's part, once for all that it is sent to; in `stage`, if it
///   needs room.
/// - `combine(e, c, parts)`: all parts are here, or there are no other nodes: the result goes where this
///   node's ranks take it.
/// - `sum_rack(e, c, parts, sums)`, of operations that may take two levels and send parts: sums the parts of
///   the nodes of this rack, in accumulators.
/// - `combine_mailboxes(e, boxes)`: makes this rank's result from all local ranks' mailboxes.
/// - `combine_lent(e)`: computes it from the other ranks' copies, into the caller's memory.
template <class Operation>
concept operation = operation_traffic<typename Operation::traffic> &&
    std::constructible_from<Operation, detail::engine_state&, typename Operation::traffic&> &&
    requires(Operation& op, execution const& e, chunk const& c, parts_view const& parts, std::byte* stage,
             std::byte* const* boxes) {
    { op.make_part(e, c, stage) }
    noexcept;
    { op.combine(e, c, parts) }
    noexcept;
    { op.combine_mailboxes(e, boxes) }
    noexcept;
    { op.combine_lent(e) }
    noexcept;
};

namespace detail {

/// The work that a route wants done before it goes on. The engine does it at once: operations alone depend on
/// the type of elements, so that routes do not. Each function sets all that its kind of work reads: one
/// object is used again.
struct wanted_work {
    enum class kind : std::uint8_t { none, make_part, sum_rack, combine, combine_mailboxes, combine_lent };
    kind what = kind::none;
    std::uint64_t number = 0; ///< execution
    chunk of{};
    parts_view parts{};                ///< combine, sum_rack
    std::byte* stage = nullptr;        ///< make_part, sum_rack
    std::byte* const* boxes = nullptr; ///< combine_mailboxes

    bool any() const noexcept { return what != kind::none; }

    void make_part_of(std::uint64_t execution, chunk const& c, std::byte* into) noexcept {
        what = kind::make_part;
        number = execution;
        of = c;
        stage = into;
    }
    void sum_rack_of(std::uint64_t execution, chunk const& c, parts_view const& all,
                     std::byte* into) noexcept {
        combine_parts(execution, c, all);
        what = kind::sum_rack;
        stage = into;
    }
    void combine_parts(std::uint64_t execution, chunk const& c, parts_view const& all) noexcept {
        what = kind::combine;
        number = execution;
        of = c;
        parts = all;
    }
    void combine_all_lent(std::uint64_t execution) noexcept {
        what = kind::combine_lent;
        number = execution;
    }
    void combine_all(std::uint64_t execution, std::byte* const* mailboxes) noexcept {
        what = kind::combine_mailboxes;
        number = execution;
        boxes = mailboxes;
    }
};

template <std::size_t Place, class Held> struct held_at { Held itself; };

/// One object of each type, asked by number: branches over the list, which is closed when the program is
/// compiled.
template <class Places, class... Held> class numbered_list;
template <std::size_t... Places, class... Held>
class numbered_list<std::index_sequence<Places...>, Held...> : held_at<Places, Held>... {
  public:
    template <class... Arguments>
    explicit numbered_list(Arguments&... arguments) : held_at<Places, Held>{Held(arguments...)}... {}
    /// Each from the object of `of` at its place too.
    template <class First, class Other>
    numbered_list(std::in_place_t, First& first, Other& of)
        : held_at<Places, Held>{Held(first, of.template at<Places>())}... {}

    template <std::size_t Place> auto& at() noexcept { return at_place<Place>(*this); }

    /// Calls f(object) for the one of that number.
    template <class Function>
    HERRING_ALWAYS_INLINE decltype(auto) with(std::uint8_t number, Function const& f) noexcept {
        return choose<0>(number, f);
    }

  private:
    template <std::size_t Place, class Here> static Here& at_place(held_at<Place, Here>& here) noexcept {
        return here.itself;
    }
    template <std::size_t Place, class Function>
    HERRING_ALWAYS_INLINE decltype(auto) choose(std::uint8_t number, Function const& f) noexcept {
        if constexpr (Place + 1 < sizeof...(Held))
            if (number != Place) return choose<Place + 1>(number, f);
        return f(at<Place>());
    }
};
template <class... Held> using list_of = numbered_list<std::index_sequence_for<Held...>, Held...>;

} // namespace detail
} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_OPERATION_HPP
