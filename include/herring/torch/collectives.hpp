// herring: the calls of a backend of PyTorch, over the reducers of a policy pack; knows no torch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_COLLECTIVES_HPP
#define HERRING_TORCH_COLLECTIVES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/type_name.hpp"
#include "herring/base/version.hpp"
#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/all_to_all.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/gather.hpp"
#include "herring/collectives/reduce_scatter.hpp"
#include "herring/collectives/scatter.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/element.hpp"
#include "herring/reducer.hpp"
#include "herring/torch/calls.hpp"
#include "herring/torch/table.hpp"
#include "herring/update/any.hpp"
#include "herring/update/rules.hpp"

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::torch_calls {

/// The element types of `herring::torch::type`, in its order.
using elements = std::tuple<float, double, bfloat16, float16, std::int32_t, std::int64_t, std::int16_t,
                            std::int8_t, std::uint8_t, bool>;
static_assert(std::tuple_size_v<elements> == types);

template <class Element> struct rules_for {
    using type = update::any<update::sum, update::average, update::product, update::min, update::max>;
};
template <std::integral Element> struct rules_for<Element> {
    using type = update::any<update::sum, update::product, update::min, update::max>;
};
template <> struct rules_for<bool> { using type = update::any<update::logical_or, update::logical_and>; };
template <class Element> using rules_of = typename rules_for<Element>::type;

template <class Element> constexpr bool has_rule(rule by) noexcept {
    return by != rule::average || !std::is_integral_v<Element>;
}
/// A bit for each rule that an element type has.
template <class Element> constexpr std::uint8_t bits_of_rules() noexcept {
    unsigned bits = 0;
    for (unsigned by = 0; by < rules; ++by) bits |= unsigned{has_rule<Element>(rule(by))} << by;
    return static_cast<std::uint8_t>(bits);
}

/// A rank's part of a group: a world, and a reducer for each element type that has been in a call. Calls of a
/// group come in the same order on all ranks, so that the first call of a type constructs its reducer.
///
/// Cost: a reducer's memory and connections for each type in use.
template <class... Policies> class group_of {
  public:
    explicit group_of(world joined) : ranks_(std::move(joined)) {}

    static group_of& from(herring::torch::group* of) noexcept { return *reinterpret_cast<group_of*>(of); }
    herring::torch::group* handle() noexcept { return reinterpret_cast<herring::torch::group*>(this); }
    world& ranks() noexcept { return ranks_; }

    /// Constructs the reducer of a type by the first call: collective.
    template <std::size_t Type> auto& reducer() {
        auto& found = std::get<Type>(reducers_);
        if (!found) found.emplace(ranks_);
        return *found;
    }
    /// The reducer that carries bytes: that of float, which is constructed by the first call of either.
    auto& carrier() { return reducer<0>(); }

  private:
    template <class List> struct reducers_for;
    template <class... Element> struct reducers_for<std::tuple<Element...>> {
        using type = std::tuple<std::optional<herring::reducer<Element, Policies..., rules_of<Element>>>...>;
    };

    world ranks_; // destroyed last
    typename reducers_for<elements>::type reducers_;
};

/// The functions of `herring::torch::table` for a pack.
template <class... Policies> struct calls_of {
    using group = herring::torch::group;
    using group_type = group_of<Policies...>;

    static group* open(int rank, int size, herring::torch::gather_function const& through,
                       std::int64_t timeout_ms, outcome& result) noexcept {
        group* opened = nullptr;
        store_outcome(result, rank, "join", [&] {
            opened = (new group_type(join_through(through, rank, size, timeout_ms)))->handle();
            return status();
        });
        return opened;
    }
    static void close(group* of) noexcept { delete &group_type::from(of); }
    static void fail(group* of, std::int32_t code, int peer, char const* operation,
                     char const* text) noexcept {
        world& ranks = group_type::from(of).ranks();
        ranks.fail(failure::make(static_cast<errc>(code), ranks.rank(), peer, operation, text));
    }
    static bool failed(group* of, outcome& result) noexcept {
        failure const* const why = group_type::from(of).ranks().failed();
        if (why != nullptr) set(result, *why);
        return why != nullptr;
    }

    template <class Run>
    static void run(group* of, call const& with, outcome& result, char const* operation, Run&& run) noexcept {
        group_type& self = group_type::from(of);
        store_outcome(result, self.ranks().rank(), operation, [&] {
            if (failure const* const why = self.ranks().failed()) return status(*why);
            return run(self, self.ranks(), detail::deadline_in(std::chrono::milliseconds(with.timeout_ms)));
        });
    }
    /// Calls `run` with the rule that the call names. Its type has it: the table's `by_type` says so. For
    /// bool the sum and the maximum are a logical or, product and minimum a logical and.
    template <class Element, class Run> static status by_rule(rule by, Run&& run) {
        if constexpr (std::is_same_v<Element, bool>) {
            if (by == rule::product || by == rule::min) return run(update::logical_and{});
            return run(update::logical_or{});
        } else {
            return by_rule_of_numbers<Element>(by, run);
        }
    }
    template <class Element, class Run> static status by_rule_of_numbers(rule by, Run const& run) {
        switch (by) {
        case rule::average:
            if constexpr (has_rule<Element>(rule::average)) return run(update::average{});
            break;
        case rule::product:
            return run(update::product{});
        case rule::min:
            return run(update::min{});
        case rule::max:
            return run(update::max{});
        case rule::sum:
            break;
        }
        return run(update::sum{});
    }

    template <std::size_t Type> using element_at = std::tuple_element_t<Type, elements>;

    template <class Element> static auto in(call const& with, std::size_t count) {
        return std::span(static_cast<Element const*>(with.in), count);
    }
    template <class Element> static auto out(call const& with, std::size_t count) {
        return std::span(static_cast<Element*>(with.out), count);
    }
    static std::size_t size(world& ranks) noexcept { return static_cast<std::size_t>(ranks.size()); }

    template <std::size_t Type>
    static void all_reduce(group* of, call const& with, outcome& result) noexcept {
        using element = element_at<Type>;
        run(of, with, result, "all_reduce", [&](group_type& self, world&, time_point deadline) {
            return by_rule<element>(with.by, [&](auto by) {
                return self.template reducer<Type>().all_reduce(in<element>(with, with.count),
                                                                out<element>(with, with.count), by, deadline);
            });
        });
    }
    template <std::size_t Type>
    static void reduce_scatter(group* of, call const& with, outcome& result) noexcept {
        using element = element_at<Type>;
        run(of, with, result, "reduce_scatter", [&](group_type& self, world& ranks, time_point deadline) {
            return by_rule<element>(with.by, [&](auto by) {
                return herring::reduce_scatter(self.template reducer<Type>(), in<element>(with, with.count),
                                               out<element>(with, with.count / size(ranks)), by, deadline);
            });
        });
    }
    static void broadcast(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "broadcast", [&](group_type& self, world&, time_point deadline) {
            return herring::broadcast(self.carrier(), out<std::byte>(with, with.count), with.root, deadline);
        });
    }
    static void all_gather(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "all_gather", [&](group_type& self, world& ranks, time_point deadline) {
            return herring::all_gather(self.carrier(), in<std::byte>(with, with.count),
                                       out<std::byte>(with, with.count * size(ranks)), deadline);
        });
    }
    static void gather(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "gather", [&](group_type& self, world& ranks, time_point deadline) {
            std::size_t const all = ranks.rank() == with.root ? with.count * size(ranks) : 0;
            return herring::gather(self.carrier(), in<std::byte>(with, with.count), out<std::byte>(with, all),
                                   with.root, deadline);
        });
    }
    static void scatter(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "scatter", [&](group_type& self, world& ranks, time_point deadline) {
            std::size_t const all = ranks.rank() == with.root ? with.count * size(ranks) : 0;
            return herring::scatter(self.carrier(), in<std::byte>(with, all),
                                    out<std::byte>(with, with.count), with.root, deadline);
        });
    }
    static void all_to_all(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "all_to_all", [&](group_type& self, world& ranks, time_point deadline) {
            if (with.sends == nullptr) {
                std::size_t const all = with.count * size(ranks);
                return herring::all_to_all(self.carrier(), in<std::byte>(with, all),
                                           out<std::byte>(with, all), deadline);
            }
            std::span const to(with.sends, size(ranks)), from(with.receives, size(ranks));
            auto const sum = [](auto counts) {
                return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
            };
            return herring::all_to_all(self.carrier(), in<std::byte>(with, sum(to)), to,
                                       out<std::byte>(with, sum(from)), from, deadline);
        });
    }
    static void barrier(group* of, call const& with, outcome& result) noexcept {
        run(of, with, result, "barrier", [&](group_type&, world& ranks, time_point) {
            ranks.barrier(std::chrono::milliseconds(with.timeout_ms));
            return status();
        });
    }
};

/// The names of policies, with commas between them.
template <class... Policies>
inline constexpr auto names_of = [] {
    std::array<char, 1 + (std::size_t{0} + ... + (policy_name<Policies>().size() + 2))> text{};
    std::size_t at = 0;
    auto const put = [&](std::string_view part) {
        for (char const c : part) text[at++] = c;
    };
    ((put(at > 0 ? ", " : ""), put(policy_name<Policies>())), ...);
    return text;
}();

template <class... Policies>
inline constexpr herring::torch::table calls_table = []<std::size_t... Type>(std::index_sequence<Type...>) {
    using calls = calls_of<Policies...>;
    return herring::torch::table{
        .abi = herring::torch::abi,
        .size = sizeof(herring::torch::table),
        .version = HERRING_VERSION_STRING,
        .policies = names_of<Policies...>.data(),
        .target = detail::target_name.data(),
        .by_type = {bits_of_rules<std::tuple_element_t<Type, elements>>()...},
        .open = calls::open,
        .close = calls::close,
        .fail = calls::fail,
        .failed = calls::failed,
        .all_reduce = {calls::template all_reduce<Type>...},
        .reduce_scatter = {calls::template reduce_scatter<Type>...},
        .broadcast = calls::broadcast,
        .all_gather = calls::all_gather,
        .gather = calls::gather,
        .scatter = calls::scatter,
        .all_to_all = calls::all_to_all,
        .barrier = calls::barrier,
    };
}
(std::make_index_sequence<types>());

} // namespace HERRING_NAMESPACE::torch_calls

namespace herring::torch {
template <class... Policies> table const& table_of() noexcept {
    return herring::torch_calls::calls_table<Policies...>;
}
} // namespace herring::torch

/// Exports the table of a pack from a shared library, as `herring_torch_table`: in one source file, at its
/// end.
///
/// Example: HERRING_TORCH_COLLECTIVES(herring::transport::tcp, herring::intra_node::shared_memory)
#define HERRING_TORCH_COLLECTIVES(...)                                                                       \
    extern "C" [[gnu::visibility("default")]] herring::torch::table const* herring_torch_table() {           \
        return &herring::torch::table_of<__VA_ARGS__>();                                                     \
    }

#endif // HERRING_TORCH_COLLECTIVES_HPP
