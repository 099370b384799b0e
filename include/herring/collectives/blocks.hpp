// herring: calls that move a block for each pair of ranks: what all_to_all, gather and scatter share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_BLOCKS_HPP
#define HERRING_COLLECTIVES_BLOCKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/collectives/call.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/all_to_all.hpp"
#include "herring/machine/time.hpp"
#include "herring/step/block_exchange.hpp"
#include "herring/step/collective.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace HERRING_NAMESPACE::detail {

template <bool Dedicated> struct blocks_without_servers {
    static constexpr bool value = true;
    static_assert(!Dedicated,
                  "[HRG-C13] all_to_all, gather, scatter: the reducer's placement has servers, which take no "
                  "part in them; a common slip is one reducer for gradients and for blocks; construct one "
                  "without placement::dedicated or optimal for these calls, in a world without servers");
};
template <bool IsForm> struct form_of_blocks {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] all_to_all: takes a const span with a block for each rank, one of the same type for the "
        "blocks from all, or each with a span of std::size_t behind it, the elements of each block, and then "
        "a "
        "deadline, if any: milliseconds, or a time of steady_clock; common slips are a pointer with a count, "
        "containers of two types, one of a type that is not trivially copyable, counts of int, and a plain "
        "number as a timeout; write std::span(pointer, count), std::chrono::seconds(1)");
};
template <bool IsForm> struct form_of_rooted_blocks {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] gather, scatter: take a const span, one of the same type for the results, the rank of the "
        "root, and then a deadline, if any: milliseconds, or a time of steady_clock; common slips are a "
        "pointer "
        "with a count, containers of two types, one of a type that is not trivially copyable, no root, and a "
        "plain number as a timeout; write std::span(pointer, count), std::chrono::seconds(1)");
};

template <class Element> struct takes_blocks {
    static void take(std::span<Element const>, std::span<Element>);
    static void take(std::span<Element const>, std::span<Element>, std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, time_point);
    template <bool IsForm> using sentence = form_of_blocks<IsForm>;
};
template <class Element> struct takes_counted_blocks {
    using counts = std::span<std::size_t const>;
    static void take(std::span<Element const>, counts, std::span<Element>, counts);
    static void take(std::span<Element const>, counts, std::span<Element>, counts, std::chrono::milliseconds);
    static void take(std::span<Element const>, counts, std::span<Element>, counts, time_point);
};
template <class Element> struct takes_rooted_blocks {
    static void take(std::span<Element const>, std::span<Element>, int);
    static void take(std::span<Element const>, std::span<Element>, int, std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, int, time_point);
    template <bool IsForm> using sentence = form_of_rooted_blocks<IsForm>;
};

/// The reducer can be called with spans, or other contiguous ranges, of any type that is trivially copyable.
template <template <class> class Form, class Pack, class... Arguments>
concept takes_any =
    accepted<Pack> && std::is_trivially_copyable_v<typename first_elements<Arguments...>::type> &&
    form_of<Form, typename first_elements<Arguments...>::type, Arguments...>;

/// Throws when a call has another number of elements than blocks ask for, or its memory overlaps.
/// `own_place`: bytes from the start of `whole` to the place that `part` may have in it, besides memory
/// beside it.
HERRING_SEPARABLE void check_blocks(calls& checks, char const* operation, std::span<std::byte const> whole,
                                    std::span<std::byte const> part, std::size_t own_place);
/// Throws when there is not one count for each rank, or their sum is not the elements of the buffer.
HERRING_SEPARABLE void check_counts(calls& checks, std::size_t elements, std::span<std::size_t const> counts,
                                    std::size_t ranks, bool sends);
[[noreturn]] HERRING_SEPARABLE void throw_not_blocks(calls& checks, char const* operation, std::size_t in,
                                                     std::size_t out, std::size_t ranks);
/// Returns the first pair of ranks, in the order of senders, of which one sends what the other does not
/// expect: `mismatch`. `counts`: of each rank, those that it sends, and those that it expects.
HERRING_SEPARABLE status compare_counts(std::span<std::uint64_t const> counts, int rank, int ranks);

/// Runs calls that move blocks. One call at a time, between steps.
struct block_call {
    enum class kind : std::uint8_t { all_to_all = 1, gather, scatter };

    /// `check(core, sizes, ranks)`: checks the arguments and sets the sizes of blocks; returns the status of
    /// a failure, if there is one.
    template <class Pack, class Element, class Check>
    static status run(basic_reducer<Pack>& reduce, kind what, std::span<Element const> in,
                      std::span<Element> out, int root, time_point deadline, Check const& check) {
        using access = collective_call;
        (void)holds<collective_on_host<access::on_device<Pack>>>;
        (void)holds<blocks_without_servers<Pack::placement::facts.dedicated_servers>>;
        if constexpr (!access::on_device<Pack> && !Pack::placement::facts.dedicated_servers) {
            auto& core = reducer_access::core(reduce);
            char const* const operation = name_of(what);
            call const here(core.calls_, operation);
            if (failure const* const why = core.session_.failed()) return status(*why);
            core.parts_->steps.check_between_steps(operation);
            if (what != kind::all_to_all)
                check_root(core.calls_, operation, root, core.session_.ranks().topology());
            block_program program{.operation = access::number_of<Pack, operations::all_to_all>(),
                                  .name = operation,
                                  .moved_bytes = sizeof(Element),
                                  .digest = std::uint64_t{static_cast<std::uint8_t>(what)} << 52};
            program.sizes.ranks = core.session_.ranks().size();
            std::size_t const ranks = static_cast<std::size_t>(program.sizes.ranks);
            if (status checked = check(core, program.sizes, ranks); !checked.ok()) return checked;
            return core.run(program, reinterpret_cast<std::byte const*>(in.data()),
                            reinterpret_cast<std::byte*>(out.data()), deadline);
        } else {
            return {};
        }
    }

  private:
    static constexpr char const* name_of(kind what) noexcept {
        return what == kind::gather ? "gather" : what == kind::scatter ? "scatter" : "all_to_all";
    }
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/collectives/blocks_impl.hpp"
#endif

#endif // HERRING_COLLECTIVES_BLOCKS_HPP
