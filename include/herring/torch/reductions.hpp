// herring: reductions of one element type by any rule, and movements of bytes, for a backend of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_REDUCTIONS_HPP
#define HERRING_TORCH_REDUCTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/all_to_all.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/gather.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/collectives/scatter.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/reducer.hpp"
#include "herring/update/any.hpp"
#include "herring/update/rules.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>

namespace HERRING_NAMESPACE::torch_calls {

template <class Element>
using rules_of =
    std::conditional_t<std::is_integral_v<Element>,
                       std::tuple<update::sum, update::product, update::min, update::max>,
                       std::tuple<update::sum, update::average, update::product, update::min, update::max>>;

/// Reduces elements of one type, by the rule that a call names. Constructed collectively, by the first call.
template <class Element, class Rules, class... Policies> class reductions;
template <class Element, class... Rules, class... Policies>
class reductions<Element, std::tuple<Rules...>, Policies...> {
    using reducer_type = reducer<Element, Policies..., update::any<Rules...>>;
    std::optional<reducer_type> reduce_;

  public:
    reducer_type& of(world& ranks) {
        if (!reduce_) reduce_.emplace(ranks);
        return *reduce_;
    }
    template <class Rule>
    status all_reduce(world& ranks, Rule by, std::span<Element const> in, std::span<Element> out,
                      time_point deadline) {
        return of(ranks).all_reduce(in, out, by, deadline);
    }
    template <class Rule>
    status reduce_scatter(world& ranks, Rule by, std::span<Element const> in, std::span<Element> mine,
                          time_point deadline) {
        return herring::reduce_scatter(of(ranks), in, mine, by, deadline);
    }
};

/// Moves bytes between ranks by a reducer, whatever its elements: it has the connections and the memory.
template <class... Policies> class movements {
    static auto bytes(void const* at, std::size_t n) {
        return std::span(static_cast<std::byte const*>(at), n);
    }
    static auto bytes(void* at, std::size_t n) { return std::span(static_cast<std::byte*>(at), n); }
    static std::size_t times(world& ranks, std::size_t n) {
        return n * static_cast<std::size_t>(ranks.size());
    }
    static std::span<std::size_t const> of_ranks(world& ranks, std::size_t const* counts) {
        return {counts, static_cast<std::size_t>(ranks.size())};
    }
    static std::size_t sum(std::span<std::size_t const> counts) {
        std::size_t total = 0;
        for (std::size_t const n : counts) total += n;
        return total;
    }

  public:
    template <class Reduce>
    status broadcast(Reduce& by, world&, void* inout, std::size_t n, int root, time_point deadline) {
        return herring::broadcast(by, bytes(inout, n), root, deadline);
    }
    template <class Reduce>
    status all_gather(Reduce& by, world& ranks, void const* in, std::size_t n, void* out,
                      time_point deadline) {
        return herring::all_gather(by, bytes(in, n), bytes(out, times(ranks, n)), deadline);
    }
    template <class Reduce>
    status gather(Reduce& by, world& ranks, void const* in, std::size_t n, void* out, int root,
                  time_point deadline) {
        return herring::gather(by, bytes(in, n), bytes(out, ranks.rank() == root ? times(ranks, n) : 0), root,
                               deadline);
    }
    template <class Reduce>
    status scatter(Reduce& by, world& ranks, void const* in, std::size_t n, void* out, int root,
                   time_point deadline) {
        return herring::scatter(by, bytes(in, ranks.rank() == root ? times(ranks, n) : 0), bytes(out, n),
                                root, deadline);
    }
    /// `sends`: nullptr where each block has `n` bytes.
    template <class Reduce>
    status all_to_all(Reduce& by, world& ranks, void const* in, void* out, std::size_t n,
                      std::size_t const* sends, std::size_t const* receives, time_point deadline) {
        if (sends == nullptr)
            return herring::all_to_all(by, bytes(in, times(ranks, n)), bytes(out, times(ranks, n)), deadline);
        auto const to = of_ranks(ranks, sends), from = of_ranks(ranks, receives);
        return herring::all_to_all(by, bytes(in, sum(to)), to, bytes(out, sum(from)), from, deadline);
    }
};

} // namespace HERRING_NAMESPACE::torch_calls

#endif // HERRING_TORCH_REDUCTIONS_HPP
