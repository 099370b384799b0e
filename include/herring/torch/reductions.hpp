// herring: reductions of one element type by any rule, and movements of bytes, for a backend of PyTorch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_REDUCTIONS_HPP
#define HERRING_TORCH_REDUCTIONS_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/reducer.hpp"
#include "herring/update/any.hpp"
#include "herring/update/rules.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

// Headers that the library may not have yet. Where they are, the part marked «stopgap» below goes.
#define HERRING_TORCH_ALL_TO_ALL "herring/collectives/all_to_all.hpp"
#define HERRING_TORCH_GATHER "herring/collectives/gather.hpp"
#define HERRING_TORCH_SCATTER "herring/collectives/scatter.hpp"
#if __has_include(HERRING_TORCH_ALL_TO_ALL)
#include HERRING_TORCH_ALL_TO_ALL
#include HERRING_TORCH_GATHER
#include HERRING_TORCH_SCATTER
#endif

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

#if __has_include(HERRING_TORCH_ALL_TO_ALL)
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
#else // stopgap
/// A byte as an element.
struct octet {
    std::byte value;
    friend constexpr bool operator<(octet a, octet b) noexcept { return a.value < b.value; }
    friend constexpr bool operator>(octet a, octet b) noexcept { return a.value > b.value; }
};

} // namespace HERRING_NAMESPACE::torch_calls

namespace HERRING_NAMESPACE {
template <> inline constexpr bool is_element<torch_calls::octet> = true;
} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::torch_calls {

/// Moves bytes between ranks. Constructed collectively, by the first call.
template <class... Policies> class movements {
    using reducer_type = reducer<octet, Policies..., update::max>;
    std::optional<reducer_type> move_;
    std::vector<std::byte> scratch_;

    reducer_type& of(world& ranks) {
        if (!move_) move_.emplace(ranks);
        return *move_;
    }
    static std::span<octet const> octets(void const* at, std::size_t n) {
        return {static_cast<octet const*>(at), n};
    }
    static std::span<octet> octets(void* at, std::size_t n) { return {static_cast<octet*>(at), n}; }

  public:
    template <class Reduce>
    status broadcast(Reduce&, world& ranks, void* inout, std::size_t bytes, int root, time_point deadline) {
        return herring::broadcast(of(ranks), octets(inout, bytes), root, deadline);
    }
    template <class Reduce>
    status all_gather(Reduce&, world& ranks, void const* in, std::size_t bytes, void* out,
                      time_point deadline) {
        return herring::all_gather(of(ranks), octets(in, bytes),
                                   octets(out, bytes * static_cast<std::size_t>(ranks.size())), deadline);
    }
    template <class Reduce>
    status gather(Reduce& by, world& ranks, void const* in, std::size_t bytes, void* out, int root,
                  time_point deadline) {
        if (ranks.rank() != root) {
            scratch_.resize(bytes * static_cast<std::size_t>(ranks.size()));
            out = scratch_.data();
        }
        return all_gather(by, ranks, in, bytes, out, deadline);
    }
    template <class Reduce>
    status scatter(Reduce& by, world& ranks, void const* in, std::size_t bytes, void* out, int root,
                   time_point deadline) {
        std::size_t const whole = bytes * static_cast<std::size_t>(ranks.size());
        scratch_.resize(whole);
        if (ranks.rank() == root && whole > 0) std::memcpy(scratch_.data(), in, whole);
        status ended = broadcast(by, ranks, scratch_.data(), whole, root, deadline);
        if (ended.ok() && bytes > 0)
            std::memcpy(out, scratch_.data() + bytes * static_cast<std::size_t>(ranks.rank()), bytes);
        return ended;
    }
    template <class Reduce>
    status all_to_all(Reduce& by, world& ranks, void const* in, void* out, std::size_t n,
                      std::size_t const* sends, std::size_t const* receives, time_point deadline) {
        std::vector<std::size_t> const equal(static_cast<std::size_t>(ranks.size()), n);
        if (sends == nullptr) sends = receives = equal.data();
        auto const size = static_cast<std::size_t>(ranks.size()),
                   self = static_cast<std::size_t>(ranks.rank());
        std::vector<std::size_t> all(size * size);
        status ended = all_gather(by, ranks, sends, size * sizeof(std::size_t), all.data(), deadline);
        if (!ended.ok()) return ended;
        std::size_t most = 0;
        for (std::size_t r = 0; r < size; ++r) {
            if (all[r * size + self] != receives[r])
                return status(failure::make(
                    errc::mismatch, ranks.rank(), static_cast<int>(r), "all_to_all",
                    {"it sends ", all[r * size + self], " bytes to this rank, which expects ", receives[r]}));
            std::size_t sum = 0;
            for (std::size_t to = 0; to < size; ++to) sum += all[r * size + to];
            most = most < sum ? sum : most;
        }
        std::vector<std::byte> mine(most);
        scratch_.resize(most * size);
        std::size_t sum = 0;
        for (std::size_t to = 0; to < size; ++to) sum += sends[to];
        if (sum > 0) std::memcpy(mine.data(), in, sum);
        ended = all_gather(by, ranks, mine.data(), most, scratch_.data(), deadline);
        if (!ended.ok()) return ended;
        auto* to = static_cast<std::byte*>(out);
        for (std::size_t r = 0; r < size; ++r) {
            std::size_t before = 0;
            for (std::size_t i = 0; i < self; ++i) before += all[r * size + i];
            if (receives[r] > 0) std::memcpy(to, scratch_.data() + r * most + before, receives[r]);
            to += receives[r];
        }
        return ended;
    }
};

} // namespace HERRING_NAMESPACE::torch_calls
#endif

#endif // HERRING_TORCH_REDUCTIONS_HPP
