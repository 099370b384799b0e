// herring: `reduce_scatter(reduce, in, mine)`: combines the ranks' buffers; each rank gets its range.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_REDUCE_SCATTER_HPP
#define HERRING_COLLECTIVES_REDUCE_SCATTER_HPP

#include "herring/base/config.hpp"
#include "herring/collectives/call.hpp"
#include "herring/machine/time.hpp"
#include "herring/session/rule_of_call.hpp"

#include <chrono>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

namespace detail {

// The arguments behind the reducer.
template <class Element, class Rules> struct scatter_forms;
template <class Element, class... Rule> struct scatter_forms<Element, rule_arguments<Rule...>> {
    static void take(std::span<Element const>, std::span<Element>, Rule...);
    static void take(std::span<Element const>, std::span<Element>, Rule..., std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, Rule..., time_point);
};
template <class Element, class Rules, class... Arguments>
concept scatter_form = requires(Arguments&&... arguments) {
    scatter_forms<Element, Rules>::take(static_cast<Arguments&&>(arguments)...);
};
template <class Pack, class... Arguments>
concept no_scatter_form =
    accepted<Pack> && !scatter_form<typename Pack::element, rules_of<Pack>, Arguments...>;

template <class Pack>
status scatter_reduced(basic_reducer<Pack>& reduce, std::span<element_of<Pack> const> in,
                       std::span<element_of<Pack>> mine, std::uint8_t rule, time_point deadline) {
    using access = collective_call;
    (void)holds<collective_on_host<access::on_device<Pack>>>;
    (void)holds<collective_rule<access::rule_is_named<Pack>>>;
    return access::run(reduce,
                       {.operation = access::number_of<Pack, access::reduce_scatter<Pack>>(),
                        .name = "reduce_scatter",
                        .takes = access::share::owned,
                        .rule = rule},
                       std::as_bytes(in), std::as_bytes(mine), deadline);
}

} // namespace detail

/// Combines a buffer of n elements over all ranks by the reducer's rule; each rank gets its own range of the
/// result. Collective: the same n on every rank, between steps. The pack has to name the rule ([HRG-C03]).
///
/// Shape:    `in`: n elements; `mine`: reduce.owned(n).elements.
/// Result:   the bits that all_reduce has there.
/// Cost:     over N nodes (N−1)/N of the buffer out and in: half of all_reduce's. Small ones: one message to
///           every other node, one way. On one node a rank copies in what others own, and reads what it owns.
/// Blocks:   until this rank has its range, and so all ranks have called: at most `world::default_timeout()`.
/// Lifetime: until it has returned. `mine` may be where it belongs in `in`, and must not overlap it
///           otherwise. After an error its content is undefined.
/// Errors:   as `reducer::all_reduce`; `bad_argument`, of a range of another size, or one that overlaps the
///           buffer elsewhere; `bad_state`, in the middle of a step; `mismatch`, of sizes that differ between
///           ranks.
template <detail::has_one_rule Pack>
void reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                    std::span<detail::element_of<Pack>> mine) {
    reduce_scatter(reduce, in, mine, detail::collective_call::timeout_of(reduce)).value();
}
/// The same with a timeout from now on: a failure is returned, a misuse thrown. A passed deadline ends the
/// world.
template <detail::has_one_rule Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, std::chrono::milliseconds timeout) {
    return reduce_scatter(reduce, in, mine, detail::deadline_in(timeout));
}
/// The same with a time at which the deadline passes.
template <detail::has_one_rule Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, time_point deadline) {
    return detail::scatter_reduced(reduce, in, mine, 0, deadline);
}

/// The same with `update::any`, by the rule that the call names: `reduce_scatter(reduce, in, mine,
/// update::min{})`.
///
/// Errors: also `mismatch`, of rules that differ between ranks.
template <class Pack>
void reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                    std::span<detail::element_of<Pack>> mine, detail::rule_of<Pack> by) {
    reduce_scatter(reduce, in, mine, by, detail::collective_call::timeout_of(reduce)).value();
}
template <class Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, detail::rule_of<Pack> by,
                      std::chrono::milliseconds timeout) {
    return reduce_scatter(reduce, in, mine, by, detail::deadline_in(timeout));
}
template <class Pack>
status reduce_scatter(basic_reducer<Pack>& reduce, std::span<detail::element_of<Pack> const> in,
                      std::span<detail::element_of<Pack>> mine, detail::rule_of<Pack> by,
                      time_point deadline) {
    return detail::scatter_reduced(reduce, in, mine, by.number(), deadline);
}

/// Any other call is one sentence of the compiler, [HRG-C01] or, of its rule, [HRG-C10] to [HRG-C12]. The
/// reducer of a refused pack takes all.
template <class Pack, class... Arguments>
requires detail::no_scatter_form<Pack, Arguments...> detail::inert_result reduce_scatter(basic_reducer<Pack>&,
                                                                                         Arguments&&...) {
    constexpr bool complete =
        detail::scatter_form<typename Pack::element, detail::rule_arguments<>, Arguments...>;
    constexpr auto slip = detail::find_rule_slip<detail::rules_of<Pack>, complete, Arguments...>::value;
    (void)holds<detail::rule_of_call<slip>>;
    if constexpr (slip == detail::rule_slip::none)
        return detail::collective_call::refuse<detail::takes_ranges, Pack>();
    return {};
}
template <class Element, class... Arguments>
detail::inert_result reduce_scatter(basic_reducer<rejected<Element>>&, Arguments&&...) {
    return {};
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_COLLECTIVES_REDUCE_SCATTER_HPP
