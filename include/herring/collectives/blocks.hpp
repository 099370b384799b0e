// herring: calls that move a block for each pair of ranks: what all_to_all, gather and scatter share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_BLOCKS_HPP
#define HERRING_COLLECTIVES_BLOCKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/collectives/call.hpp"
#include "herring/engine/operations/all_gather.hpp"
#include "herring/engine/operations/all_to_all.hpp"
#include "herring/engine/operations/broadcast.hpp"
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
        "[HRG-C01] gather, scatter: take a const span, one of the same type for the results, a span of "
        "std::size_t, the elements of each block, if they differ, the rank of the root, and then a deadline, "
        "if any: milliseconds, or a time of steady_clock; common slips are a "
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
template <class Element> struct takes_counted_rooted_blocks {
    using counts = std::span<std::size_t const>;
    static void take(std::span<Element const>, std::span<Element>, counts, int);
    static void take(std::span<Element const>, std::span<Element>, counts, int, std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, counts, int, time_point);
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
/// `name`: of the counts, as the call has them.
HERRING_SEPARABLE void check_counts(calls& checks, char const* operation, char const* name,
                                    std::size_t elements, std::span<std::size_t const> counts,
                                    std::size_t ranks);
[[noreturn]] HERRING_SEPARABLE void throw_not_blocks(calls& checks, char const* operation, std::size_t in,
                                                     std::size_t out, std::size_t ranks);
/// Returns the first pair of ranks, in the order of senders, of which one sends what the other does not
/// expect: `mismatch`. `counts`: of each rank, those that it sends, and those that it expects.
HERRING_SEPARABLE status compare_counts(std::span<std::uint64_t const> counts, int rank, int ranks,
                                        char const* operation);

/// Runs calls that move blocks. One call at a time, between steps. Functions of a pack return `auto`, so that
/// they are instantiated with their callers, and clang's errors lead to the line of the user.
struct block_call {
    enum class kind : std::uint8_t { all_to_all = 1, gather, scatter };

    /// `check(core, sizes, ranks)`: checks the arguments and sets the sizes of blocks; returns the status of
    /// a failure, if there is one.
    template <class Pack, class Element, class Check>
    static auto run(basic_reducer<Pack>& reduce, kind what, std::span<Element const> in,
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
                                  .served_by = what == kind::gather
                                                   ? access::number_of<Pack, operations::all_gather>()
                                                   : access::number_of<Pack, operations::broadcast>(),
                                  .name = operation,
                                  .moved_bytes = sizeof(Element),
                                  .digest = digest_of(what)};
            program.sizes.ranks = core.session_.ranks().size();
            std::size_t const ranks = static_cast<std::size_t>(program.sizes.ranks);
            if (status checked = check(core, program.sizes, ranks); !checked.ok()) return checked;
            return core.run(program, reinterpret_cast<std::byte const*>(in.data()),
                            reinterpret_cast<std::byte*>(out.data()), deadline);
        } else {
            return status();
        }
    }

    /// Runs a call of blocks of given sizes: the ranks tell each other their counts. `gather` has counts of
    /// what the root receives, `scatter` of what the root sends: only the root's are looked at.
    template <class Pack, class Element>
    static auto run_counted(basic_reducer<Pack>& reduce, kind what, std::span<Element const> in,
                            std::span<std::size_t const> send_counts, std::span<Element> out,
                            std::span<std::size_t const> receive_counts, int root, time_point deadline) {
        std::vector<std::size_t> table; // until the call has returned
        return run<Pack, Element>(
            reduce, what, in, out, root, deadline, [&](auto& core, block_sizes& sizes, std::size_t ranks) {
                char const* const operation = name_of(what);
                int const rank = core.session_.ranks().rank();
                bool const each = what == kind::all_to_all, here = each || rank == root;
                bool const sends = here && what != kind::gather, receives = here && what != kind::scatter;
                if (sends)
                    check_counts(core.calls_, operation, each ? "send_counts" : "counts", in.size(),
                                 send_counts, ranks);
                if (receives)
                    check_counts(core.calls_, operation, each ? "receive_counts" : "counts", out.size(),
                                 receive_counts, ranks);
                std::vector<std::uint64_t> mine(2 * ranks), all(2 * ranks * ranks);
                table.resize(ranks * ranks);
                std::size_t before = 0; // in bytes, the root's block
                for (std::size_t r = 0; r < ranks; ++r) {
                    bool const of_root = !each && static_cast<int>(r) == root;
                    mine[r] = sends ? send_counts[r] : of_root && what == kind::gather ? in.size() : 0;
                    mine[ranks + r] = receives                           ? receive_counts[r]
                                      : of_root && what == kind::scatter ? out.size()
                                                                         : 0;
                    if (static_cast<int>(r) < root)
                        before += (sends ? mine[r] : mine[ranks + r]) * sizeof(Element);
                }
                if (each)
                    check_blocks(core.calls_, operation, std::as_bytes(in), std::as_bytes(out),
                                 in.size_bytes());
                else if (here && sends)
                    check_blocks(core.calls_, operation, std::as_bytes(in), std::as_bytes(out), before);
                else if (here)
                    check_blocks(core.calls_, operation, std::as_bytes(out), std::as_bytes(in), before);
                status ended = core.run(
                    collective_program{.operation =
                                           collective_call::number_of<Pack, operations::all_gather>(),
                                       .name = operation,
                                       .gives = collective_program::share::owned,
                                       .moved_bytes = sizeof(std::uint64_t),
                                       .digest = digest_of(what)}, // not a call of all_gather
                    {mine.data(), all.data()}, all.size(), deadline);
                if (ended.ok()) ended = compare_counts(all, rank, sizes.ranks, operation);
                if (!ended.ok()) return ended;
                for (std::size_t from = 0; from < ranks; ++from)
                    for (std::size_t to = 0; to < ranks; ++to)
                        table[from * ranks + to] = all[2 * ranks * from + to] * sizeof(Element);
                sizes.table = table.data();
                return ended;
            });
    }

  private:
    static constexpr std::uint64_t digest_of(kind what) noexcept {
        return std::uint64_t{static_cast<std::uint8_t>(what)} << 52;
    }
    static constexpr char const* name_of(kind what) noexcept {
        return what == kind::gather ? "gather" : what == kind::scatter ? "scatter" : "all_to_all";
    }
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/collectives/blocks_impl.hpp"
#endif

#endif // HERRING_COLLECTIVES_BLOCKS_HPP
