// herring: the calls of a reducer for buffers outside its layout: `all_reduce` in its forms.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_ALL_REDUCE_CALLS_HPP
#define HERRING_SESSION_ALL_REDUCE_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/device_span.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/time.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/reducer_core.hpp"
#include "herring/session/reducible.hpp"
#include "herring/session/rule_of_call.hpp"
#include "herring/session/session.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/collective.hpp"
#include "herring/step/inert.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

// The ways to call `all_reduce`: of memory of the host, of one value, and of memory of a device in a stream.
template <class Element, class Stream, class Rules> struct call_forms;
template <class Element, class Stream, class... Rule>
struct call_forms<Element, Stream, rule_arguments<Rule...>> {
    static void take(std::span<Element>, Rule...);
    static void take(std::span<Element>, Rule..., std::chrono::milliseconds);
    static void take(std::span<Element>, Rule..., time_point);
    static void take(std::span<Element const>, std::span<Element>, Rule...);
    static void take(std::span<Element const>, std::span<Element>, Rule..., std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, Rule..., time_point);
    template <class Value>
    requires(std::is_same_v<Element, std::remove_cvref_t<Value>>) //
        static void take(Value&&, Rule...);
    static void take(Element&, Rule..., std::chrono::milliseconds);
    static void take(Element&, Rule..., time_point);
    static void take(device_span<Element>, Stream, Rule...);
    static void take(device_span<Element>, Stream, Rule..., std::chrono::milliseconds);
    static void take(device_span<Element>, Stream, Rule..., time_point);
};
template <class Element, class Stream, class Rules, class... Arguments>
concept call_form = requires(Arguments&&... arguments) {
    call_forms<Element, Stream, Rules>::take(static_cast<Arguments&&>(arguments)...);
};

/// Takes the calls of `all_reduce` that a reducer does not take, to say why in one sentence. A base of few
/// parameters, for compilers spell them all out beside the sentence.
template <class Element, class Stream, bool RuleIsNamed, class Rules> struct refused_calls {
    template <class... Arguments>
    requires(!RuleIsNamed || !call_form<Element, Stream, Rules, Arguments...>) //
        inert_result all_reduce(Arguments&&...) {
        constexpr bool complete = call_form<Element, Stream, rule_arguments<>, Arguments...>;
        constexpr rule_slip slip = find_rule_slip<Rules, complete, Arguments...>::value;
        (void)holds<rule_of_call<slip>>;
        static_assert(
            RuleIsNamed || slip != rule_slip::none,
            "[HRG-C02] all_reduce: name the rule, for example herring::update::sum (MPI_SUM); the default, "
            "average, holds for tensors made ready only; a common slip is to replace MPI_Allreduce and leave "
            "the rule out; add it to reducer<...>");
        static_assert(
            !RuleIsNamed || slip != rule_slip::none,
            "[HRG-C01] all_reduce: takes a span of the element type in place, or a const one and one for "
            "the results, or one value, then the rule, with update::any, and then a deadline, if any: "
            "milliseconds, or a time of steady_clock; common slips are a pointer with a count, a container "
            "of another type, and a const one in place; write std::span(pointer, count)");
        return {};
    }
};

template <class Pack>
using refused_calls_of = refused_calls<typename Pack::element, typename session<Pack>::store::stream,
                                       rule<typename Pack::update>::is_named, rules_of<Pack>>;

/// A base of `basic_reducer<Pack>`. With `update::any` a call names its rule behind the buffers: `Rule` is
/// `any<...>::rule`. Else there is no `Rule`.
template <class Pack, class Rules = rules_of<Pack>> class all_reduce_calls;
template <class Pack, class... Rule>
class all_reduce_calls<Pack, rule_arguments<Rule...>> : refused_calls_of<Pack> {
    using element = typename Pack::element;
    using stream = typename session<Pack>::store::stream;
    using pointer = typename session<Pack>::store::pointer;
    static constexpr bool on_device = session<Pack>::store::on_device;
    static constexpr bool rule_is_named = rule<typename Pack::update>::is_named;

  public:
    /// Reduces a buffer outside the layout, in place. Collective, and the same size on every rank. The pack
    /// has to name the rule: `update::sum`, `average`, ... ([HRG-C02]). With `update::any` a call names it
    /// too, behind the buffers: `all_reduce(x, update::max{})`, `all_reduce(x, update::max{}, 5s)`
    /// ([HRG-C10]).
    ///
    /// Shape:    n elements in, n out; with n = 0, on all ranks, nothing is done.
    /// Cost:     without a shared node, and a transport that needs no registration, no copy; else one copy in
    ///           and one out through bounce buffers that stay in cache; on one node of two ranks one copy in.
    /// Blocks:   until done, at most `world::default_timeout()`.
    /// Lifetime: until it has returned, with a result or an error; after an error the buffer's content is
    ///           undefined.
    /// Errors:   as `wait`; `bad_state` in the middle of a step.
    void all_reduce(std::span<element> inout, Rule... by) requires(rule_is_named) {
        all_reduce(inout, by..., core().session_.default_timeout()).value();
    }
    /// The same with a deadline, a time or from now on; a failure is returned. A passed deadline ends the
    /// world.
    status all_reduce(std::span<element> inout, Rule... by,
                      std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(inout, by..., deadline_in(timeout));
    }
    status all_reduce(std::span<element> inout, Rule... by, time_point deadline) requires(rule_is_named) {
        return all_reduce(std::span<element const>(inout), inout, by..., deadline);
    }
    /// The same from one buffer into another; `in` is only read. They may be one, and must not overlap
    /// otherwise.
    ///
    /// Cost:   as in place.
    /// Errors: also `bad_argument`, of sizes that differ or buffers that overlap.
    void all_reduce(std::span<element const> in, std::span<element> out, Rule... by) requires(rule_is_named) {
        all_reduce(in, out, by..., core().session_.default_timeout()).value();
    }
    status all_reduce(std::span<element const> in, std::span<element> out, Rule... by,
                      std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(in, out, by..., deadline_in(timeout));
    }
    status all_reduce(std::span<element const> in, std::span<element> out, Rule... by,
                      time_point deadline) requires(rule_is_named) {
        (void)holds<only_on_host<on_device>>;
        auto& of = core();
        call const here(of.calls_, "all_reduce");
        if (failure const* const why = of.session_.failed()) return status(*why);
        of.parts_->steps.check_between_steps("all_reduce");
        check_apart(of.calls_, "all_reduce", std::as_bytes(in), std::as_bytes(out), sizeof(element));
        if (out.empty()) return {};
        return of.run(program(by...), {in.data(), out.data()}, out.size(), deadline);
    }

    /// The same for one value, which is returned.
    ///
    /// Errors: as of a buffer.
    [[nodiscard("the result is returned, the argument left as it is")]] element
    all_reduce(element value, Rule... by) requires(rule_is_named) {
        all_reduce(std::span(&value, 1), by...);
        return value;
    }
    /// With a deadline the value is reduced in place, and a failure returned.
    status all_reduce(element& inout, Rule... by, std::chrono::milliseconds timeout) requires(rule_is_named) {
        return all_reduce(std::span(&inout, 1), by..., timeout);
    }
    status all_reduce(element& inout, Rule... by, time_point deadline) requires(rule_is_named) {
        return all_reduce(std::span(&inout, 1), by..., deadline);
    }

    /// Device memory, reduced in place. Its values are there when the present work in the stream is done, and
    /// work that is put into the stream from now on finds the results. The host waits for the other ranks.
    ///
    /// Shape:    as above.
    /// Cost:     none on the device beyond a step's in place, whatever the layout: in pieces, a quarter of
    ///           the buffer each, within bounds that `to_string(plan())` prints. With `nvlink`, memory that
    ///           other ranks of the node do not reach (cudaMallocAsync, VMM, managed), or that is not aligned
    ///           to 16 bytes, is copied to bounce slots and back.
    /// Blocks:   at most `world::default_timeout()`.
    /// Lifetime: the buffer, until what is put into the stream then is done; after an error, until the
    ///           reducer is destroyed, and where a line on stderr says then that memory is left, until the
    ///           process ends. With `nvlink` other processes of the node open its allocation and keep it
    ///           open: see `forget`.
    void all_reduce(device_span<element> inout, stream in, Rule... by) requires(rule_is_named&& on_device) {
        all_reduce(inout, in, by..., core().session_.default_timeout()).value();
    }
    status all_reduce(device_span<element> inout, stream in, Rule... by,
                      std::chrono::milliseconds timeout) requires(rule_is_named&& on_device) {
        return all_reduce(inout, in, by..., deadline_in(timeout));
    }
    status all_reduce(device_span<element> inout, stream in, Rule... by,
                      time_point deadline) requires(rule_is_named&& on_device) {
        auto& of = core();
        call const here(of.calls_, "all_reduce");
        if (failure const* const why = of.session_.failed()) return status(*why);
        of.parts_->steps.check_between_steps("all_reduce");
        if (inout.empty()) return {};
        of.parts_->steps.order_after(reinterpret_cast<pointer>(inout.data()), in, "all_reduce");
        return of.run(program(by...), {inout.data(), inout.data()}, inout.size(), deadline);
    }

    /// Collective: when it returns, no other process has the allocation that this memory lies in open for
    /// this reducer, and freeing it gives its memory back. Without it that comes when they make room for
    /// others, or the reducers end.
    ///
    /// Shape:  each rank gives its own; any part of the allocation does. Memory that never was in a call is
    ///         left as it is.
    /// Blocks: until the device is done with the calls before, at most half of `world::default_timeout()`.
    /// Errors: `timeout` on every rank where a device is not, and it can be repeated; `bad_argument` for
    ///         memory of the host.
    void forget(device_span<element> memory) requires(on_device) {
        auto& of = core();
        call const here(of.calls_, "forget");
        if (failure const* const why = of.session_.failed()) throw error(*why);
        of.parts_->steps.check_between_steps("forget");
        of.parts_->steps.forget(reinterpret_cast<pointer>(memory.data()));
    }

    /// Any other call is one sentence of the compiler, [HRG-C01].
    using refused_calls_of<Pack>::all_reduce;

  private:
    static collective_program program(Rule... by) noexcept {
        return {.rule = rule_arguments<Rule...>::number(by...)};
    }
    reducer_core<Pack>& core() noexcept {
        return reducer_access::core(static_cast<basic_reducer<Pack>&>(*this));
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_ALL_REDUCE_CALLS_HPP
