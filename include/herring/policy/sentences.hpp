// herring: the sentences that the compiler prints for errors in a pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_SENTENCES_HPP
#define HERRING_POLICY_SENTENCES_HPP

#include "herring/base/config.hpp"
#include "herring/policy/check.hpp"
#include "herring/policy/diagnosis.hpp"

namespace HERRING_NAMESPACE {

namespace detail {

// Prints the sentence about the first policy whose header is left out. Only for packs with that error.
template <class Policy, class... Rest> constexpr bool header_is_included() noexcept {
    if constexpr (error_of_policy<Policy>() == pack_error::header_left_out)
        return holds<typename declared_policy<Policy>::template header<false>>;
    else
        return header_is_included<Rest...>();
}

// The sentences about the pack itself.
template <class Element, class... Policy> struct pack_sentences {
    static constexpr diagnosis found = diagnose<Element, Policy...>();
    static constexpr pack_error what = found.what;
    static constexpr bool value = [] {
        if constexpr (what == pack_error::header_left_out) // policy/names.hpp has the sentence
            return detail::header_is_included<Policy...>();
        else
            return found.sound();
    }();

    static_assert(
        what != pack_error::missing_transport,
        "[HRG-P01] transport: none is named, and it has no default; a common slip is to rely on one; add "
        "herring::transport::tcp, or herring::transport::inproc for threads of one process");
#define HERRING_AXIS(axis, agree)                                                                            \
    static_assert(found.doubled != axis_index<axes::axis>,                                                   \
                  "[HRG-P02] " #axis ": named twice, and an axis takes one policy; a "                       \
                  "common slip is to add a policy beside the one that it replaces; "                         \
                  "keep one of the two");
    HERRING_AXES(HERRING_AXIS)
#undef HERRING_AXIS
    static_assert(what != pack_error::not_a_policy,
                  "[HRG-P03] policy: this type is none, for it names no axis; a common slip is to leave out "
                  "'using axis = herring::axes::<axis>;' or 'public:'; add it to your type");
    static_assert(what != pack_error::unknown_axis,
                  "[HRG-P04] policy: the axis that this type names does not exist; a common slip is a tag of "
                  "one's own; 'axis' must be one of the types in namespace herring::axes");
    static_assert(
        what != pack_error::cv_or_pointer,
        "[HRG-P05] policy: this type is a pointer, a reference, or const; a common slip is "
        "'decltype((x))' or 'decltype(x)' of a const; give the plain type, as in 'std::remove_cvref_t<...>'");
    static_assert(
        what != pack_error::element,
        "[HRG-P06] element: tensors of this type cannot be reduced; float, double, herring::float16, "
        "herring::bfloat16 and integers of 32 and 64 bits can; a common slip is bool, char, short or const; "
        "reduce one of these, or say is_element of a struct of your own");
    static_assert(what != pack_error::element_unfit,
                  "[HRG-P14] element: a type of your own has to be trivially copyable and default "
                  "constructible, of at most 256 "
                  "bytes (above 64 a multiple of 4) and an alignment of at most 64, and neither bool, array "
                  "nor pointer; a common "
                  "slip is a std::string or std::vector in it; keep plain numbers");
    static_assert(
        what != pack_error::element_left_out,
        "[HRG-P07] element: a policy stands where the element type belongs; a common slip is to leave it "
        "out; write it first, as in herring::reducer<float, ...>");
    static_assert(
        what != pack_error::no_default,
        "[HRG-P08] policy: an axis is left out whose default is not known here; a common slip is to include "
        "herring/policy.hpp alone; include <herring/reducer.hpp>");
    static_assert(what != pack_error::incomplete,
                  "[HRG-P09] policy: this type is declared, but not defined here; a common slip is to forget "
                  "its header; include herring/<axis>/<model>.hpp, or define your type above the reducer");
    static_assert(
        what != pack_error::polymorphic,
        "[HRG-P10] policy: this type has virtual functions, and nothing that moves bytes is "
        "virtual; a common slip is a common base with a virtual destructor; make it a template or remove "
        "'virtual'");
    static_assert(
        what != pack_error::nameless,
        "[HRG-P13] policy: its name is empty, or nullptr; a common slip is to fill it in later; ranks "
        "compare names and errors print them: give it the name of your type");
};

// The sentence for a policy that is checked by itself where the header of its axis is not included.
template <class Policy> struct with_axis_header {
    static constexpr bool value = !requires {
        typename check<typename Policy::axis, Policy>::axis_header_left_out;
    };
    static_assert(value,
                  "[HRG-P12] policy: what its axis asks for is not known here; a common slip is to include "
                  "herring/policy.hpp alone; include herring/<axis>/<axis>.hpp, or <herring/herring.hpp>");
};

} // namespace detail

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_SENTENCES_HPP
