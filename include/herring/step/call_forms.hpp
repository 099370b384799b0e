// herring: the ways to call `all_reduce`, and one sentence for each other way.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_CALL_FORMS_HPP
#define HERRING_STEP_CALL_FORMS_HPP

#include "herring/base/config.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

template <class Element> class device_span;

namespace detail {

// The ways to call `all_reduce`: of memory of the host, of one value, and of memory of a device in a stream.
template <class Element, class Stream> struct call_forms {
    static void take(std::span<Element>);
    static void take(std::span<Element>, std::chrono::milliseconds);
    static void take(std::span<Element>, time_point);
    static void take(std::span<Element const>, std::span<Element>);
    static void take(std::span<Element const>, std::span<Element>, std::chrono::milliseconds);
    static void take(std::span<Element const>, std::span<Element>, time_point);
    static void take(Element&, std::chrono::milliseconds);
    static void take(Element&, time_point);
    static void take(device_span<Element>, Stream);
    static void take(device_span<Element>, Stream, std::chrono::milliseconds);
    static void take(device_span<Element>, Stream, time_point);
};
template <class Element, class... Arguments>
concept one_value = sizeof...(Arguments) == 1 &&
                    (std::is_same_v<Element, std::remove_cvref_t<Arguments>> && ...);
template <class Element, class Stream, class... Arguments>
concept call_form = one_value<Element, Arguments...> || requires(Arguments&&... arguments) {
    call_forms<Element, Stream>::take(static_cast<Arguments&&>(arguments)...);
};

/// Returned where nothing can be: converts to whatever the caller expects.
struct inert_result {
    template <class Anything> operator Anything() const noexcept;
    bool ok() const noexcept { return false; }
    void value() const noexcept {}
};

/// Takes the calls of `all_reduce` that a reducer does not take, to say why in one sentence. A base of few
/// parameters, for compilers spell them all out beside the sentence.
template <class Element, class Stream, bool RuleIsNamed> struct refused_calls {
    template <class... Arguments>
    requires(!RuleIsNamed || !call_form<Element, Stream, Arguments...>) //
        inert_result all_reduce(Arguments&&...) {
        static_assert(
            RuleIsNamed,
            "[HRG-C02] all_reduce: name the rule, for example herring::update::sum (MPI_SUM); the default, "
            "average, holds for tensors made ready only; a common slip is to replace MPI_Allreduce and leave "
            "the rule out; add it to reducer<...>");
        static_assert(
            !RuleIsNamed || call_form<Element, Stream, Arguments...>,
            "[HRG-C01] all_reduce: takes a span of the element type in place, or a const one and one for "
            "the results, or one value, and then a deadline, if any: milliseconds, or a time of "
            "steady_clock; common slips are a pointer with a count, a container of another type, and a "
            "const one in place; write std::span(pointer, count)");
        return {};
    }
};

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_STEP_CALL_FORMS_HPP
