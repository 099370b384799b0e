// herring: a call of a collective that is a free function: its forms, its checks, and its run by a reducer.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_COLLECTIVES_CALL_HPP
#define HERRING_COLLECTIVES_CALL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/range.hpp"
#include "herring/policy/policy.hpp"
#include "herring/reducer.hpp"
#include "herring/session/all_reduce_calls.hpp"
#include "herring/step/collective.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

template <bool OnDevice> struct collective_on_host {
    static constexpr bool value = true;
    static_assert(!OnDevice,
                  "[HRG-D03] reducer: its tensors lie on a device, where reduce_scatter, all_gather, "
                  "broadcast, all_moments, all_to_all, gather and scatter do not reach yet; a common slip is "
                  "one reducer for both; "
                  "construct one without "
                  "nvlink or pcie_staging for these calls");
};
/// `IsForm`: the arguments behind the reducer are those of the call.
template <bool IsForm> struct form_of_ranges {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] reduce_scatter: takes a const span of the element type, one for the results, and then a "
        "deadline, if any: milliseconds, or a time of steady_clock; common slips are a pointer with a count, "
        "a container of another type, and a plain number as a timeout; write std::span(pointer, count), "
        "std::chrono::seconds(1)");
};
template <bool IsForm> struct form_of_moved_ranges {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] all_gather: takes a const span, one of the same type for the results, and then a "
        "deadline, if any: milliseconds, or a time of steady_clock; the type is any that is trivially "
        "copyable; common slips are a pointer with a count, containers of two types, a std::vector<bool>, a "
        "type that owns memory, and a plain number as a timeout; write std::span(pointer, count), "
        "std::chrono::seconds(1)");
};
template <bool IsForm> struct form_with_root {
    static constexpr bool value = true;
    static_assert(
        IsForm,
        "[HRG-C01] broadcast: takes a span of any type that is trivially copyable, the rank of the root, and "
        "then a deadline, if any: milliseconds, or a time of steady_clock; common slips are a pointer with a "
        "count, a single value, a std::vector<bool>, a type that owns memory, no root, and a plain number as "
        "a timeout; write std::span(pointer, count), std::span(&value, 1), std::chrono::seconds(1)");
};
template <bool Named> struct collective_rule {
    static constexpr bool value = true;
    static_assert(Named, "[HRG-C03] reduce_scatter: the reducer does not name a rule, so what is left is not "
                         "said; a common slip is to leave update::sum out; name it, or update::average");
};

// The arguments behind the reducer.
template <class Element> struct takes_ranges {
    static void take(std::span<Element const>, std::span<Element>);
    static void take(std::span<Element const>, std::span<Element>, std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, time_point);
    template <bool IsForm> using sentence = form_of_ranges<IsForm>;
};
template <class Element> struct takes_moved_ranges : takes_ranges<Element> {
    template <bool IsForm> using sentence = form_of_moved_ranges<IsForm>;
};
template <class Element> struct takes_root {
    static void take(std::span<Element>, int);
    static void take(std::span<Element>, int, std::chrono::milliseconds);
    static void take(std::span<Element>, int, time_point);
    template <bool IsForm> using sentence = form_with_root<IsForm>;
};

template <class Pack> inline constexpr bool is_rejected = false;
template <class Element> inline constexpr bool is_rejected<rejected<Element>> = true;

/// A pack that was not refused: its reducer can be called.
template <class Pack>
concept accepted = !is_rejected<Pack>;

/// The arguments behind the reducer, with elements of this type.
template <template <class> class Form, class Element, class... Arguments>
concept form_of = requires(Arguments&&... arguments) {
    Form<Element>::take(static_cast<Arguments&&>(arguments)...);
};

/// The element type of a contiguous range.
template <class Range> using element_in = typename decltype(std::span(std::declval<Range&>()))::value_type;
template <class... Arguments> struct first_elements {};
template <class First, class... Others>
requires requires { typename element_in<First>; }
struct first_elements<First, Others...> {
    using type = element_in<First>;
};

/// The reducer can be called with spans, or other contiguous ranges, of a type that is not its own, whose
/// elements are moved as bytes. The type is that of the first argument.
template <template <class> class Form, class Pack, class... Arguments>
concept moves_form = accepted<Pack> && !form_of<Form, typename Pack::element, Arguments...> &&
                     std::is_trivially_copyable_v<typename first_elements<Arguments...>::type> &&
                     form_of<Form, typename first_elements<Arguments...>::type, Arguments...>;

/// The reducer can be called, and not with these arguments.
template <template <class> class Form, class Pack, class... Arguments>
concept no_form = accepted<Pack> && !form_of<Form, typename Pack::element, Arguments...>;
template <template <class> class Form, class Pack, class... Arguments>
concept no_moved_form = no_form<Form, Pack, Arguments...> && !moves_form<Form, Pack, Arguments...>;

/// Runs collectives that are free functions. One call at a time, between steps.
struct collective_call {
    using share = collective_program::share;

    template <class Pack> static std::chrono::milliseconds timeout_of(basic_reducer<Pack>& reduce) noexcept {
        return reducer_access::core(reduce).session_.default_timeout();
    }

    /// When a call without a deadline, with a timeout or with a deadline has to be over.
    template <class Pack> static time_point deadline_of(basic_reducer<Pack>& reduce) noexcept {
        return deadline_in(timeout_of(reduce));
    }
    template <class Pack>
    static time_point deadline_of(basic_reducer<Pack>&, std::chrono::milliseconds timeout) noexcept {
        return deadline_in(timeout);
    }
    template <class Pack> static time_point deadline_of(basic_reducer<Pack>&, time_point deadline) noexcept {
        return deadline;
    }
    /// The result of a call with a deadline; a failure of one without is thrown.
    template <class... Until>
    static std::conditional_t<sizeof...(Until) == 0, void, status> ended(status of) {
        if constexpr (sizeof...(Until) == 0)
            of.value();
        else
            return of;
    }

    /// `whole`: the buffer of all elements; `part`: the memory of this rank's range, for a program with
    /// owners.
    ///
    /// Errors: a misuse is thrown, a failure returned.
    template <class Pack>
    static status run(basic_reducer<Pack>& reduce, collective_program const& program,
                      std::span<std::byte const> whole, std::span<std::byte const> part,
                      time_point deadline) {
        char const* const operation = program.name;
        std::size_t const size =
            program.moved_bytes > 0 ? program.moved_bytes : sizeof(typename Pack::element);
        auto& core = reducer_access::core(reduce);
        call const here(core.calls_, operation);
        if (failure const* const why = core.session_.failed()) return status(*why);
        core.parts_->steps.check_between_steps(operation);
        std::size_t const elements = whole.size() / size;
        world& ranks = core.session_.ranks();
        if (program.has_owners())
            check_owned(core.calls_, operation, whole, part, reduce.owned(elements), size);
        else
            check_root(core.calls_, operation, program.root, ranks.topology());
        void const* const in = program.gives == share::owned ? part.data() : whole.data();
        void const* const out = program.takes == share::owned ? part.data() : whole.data();
        return core.run(program, {in, const_cast<void*>(out)}, elements, deadline);
    }

    /// The mean and the deviation of all ranks' buffers.
    ///
    /// Errors: as above.
    template <class Pack, class Element>
    static status run_moments(basic_reducer<Pack>& reduce, std::span<Element const> in,
                              std::span<Element> mean, std::span<Element> deviation, time_point deadline) {
        using update = typename rule<typename Pack::update>::type;
        constexpr char const* operation = "all_moments";
        auto& core = reducer_access::core(reduce);
        call const here(core.calls_, operation);
        if (failure const* const why = core.session_.failed()) return status(*why);
        core.parts_->steps.check_between_steps(operation);
        int const ranks = core.session_.ranks().workers();
        check_divisor(core.calls_, operation, update::name, update::divisor_of_squares(ranks), ranks);
        check_moments(core.calls_, operation, std::as_bytes(in), std::as_bytes(mean),
                      std::as_bytes(deviation), sizeof(Element));
        return core.run({.operation = number_of<Pack, moments<Pack>>(), .name = operation, .twofold = true},
                        {in.data(), mean.data(), deviation.data()}, in.size(), deadline);
    }

    template <class Pack, class Operation> static constexpr std::uint8_t number_of() noexcept {
        return session<Pack>::template number_of<Operation>();
    }
    /// The compiler's sentence about arguments that no function takes.
    template <template <class> class Form, class Pack> static inert_result refuse() {
        if constexpr (holds<collective_on_host<on_device<Pack>>> && !on_device<Pack>)
            (void)holds<typename Form<typename Pack::element>::template sentence<false>>;
        return {};
    }

    template <class Pack> static constexpr bool on_device = session<Pack>::store::on_device;
    template <class Pack> static constexpr bool rule_is_named = rule<typename Pack::update>::is_named;
    template <class Pack> using reduce_scatter = typename session<Pack>::reduce_scatter;
    template <class Pack> using moments = typename session<Pack>::moments;
    template <class Pack>
    static constexpr bool gives_deviations =
        detail::gives_deviations<typename rule<typename Pack::update>::type>;
};

/// The element type of a reducer, where it is not to be deduced: a std::vector is taken too.
template <class Pack> using element_of = typename Pack::element;

/// The result of a collective with the reducer of a refused pack: a status, if there is a deadline.
template <class... Arguments>
using inert_status = std::conditional_t<sizeof...(Arguments) == 3, status, void>;

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_COLLECTIVES_CALL_HPP
