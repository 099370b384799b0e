// herring: the rule that a call names, where a reducer has update::any; and the sentences about it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_RULE_OF_CALL_HPP
#define HERRING_SESSION_RULE_OF_CALL_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/reducible.hpp"
#include "herring/update/update.hpp"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// The argument by which a call names its rule: one with `update::any`; else none, for there is no choice.
template <class... Rule> struct rule_arguments {
    /// Returns `execution::rule`.
    static constexpr std::uint8_t number(Rule... by) noexcept {
        return (std::uint8_t{0} + ... + by.number());
    }
};
template <class Update> struct rule_arguments_for { using type = rule_arguments<>; };
template <lists_rules Update> struct rule_arguments_for<Update> {
    using type = rule_arguments<typename Update::rule>;
};

template <class Pack>
using rules_of = typename rule_arguments_for<typename rule<typename Pack::update>::type>::type;
/// The pack's reducer has a rule for all of its calls.
template <class Pack>
concept has_one_rule = std::same_as<rules_of<Pack>, rule_arguments<>>;
/// The argument of a call that names a rule.
template <class Pack> using rule_of = typename Pack::update::rule;

enum class rule_slip { none, left_out, not_listed, one_rule };

/// The slip of a call with these arguments, which no function takes. `Complete`: but for a rule it is a form.
template <class Rules, bool Complete, class... Arguments> struct find_rule_slip;
template <bool Complete, class... Arguments> struct find_rule_slip<rule_arguments<>, Complete, Arguments...> {
    static constexpr rule_slip value =
        (update_policy<std::remove_cvref_t<Arguments>> || ...) ? rule_slip::one_rule : rule_slip::none;
};
template <class Rule, bool Complete, class... Arguments>
struct find_rule_slip<rule_arguments<Rule>, Complete, Arguments...> {
    template <class Argument>
    static constexpr bool outside = update_policy<Argument> && !std::convertible_to<Argument, Rule>;
    static constexpr rule_slip value = Complete ? rule_slip::left_out
                                       : (outside<std::remove_cvref_t<Arguments>> || ...)
                                           ? rule_slip::not_listed
                                           : rule_slip::none;
};

template <rule_slip Slip> struct rule_of_call {
    static constexpr bool value = true;
    static_assert(
        Slip != rule_slip::left_out,
        "[HRG-C10] all_reduce, reduce_scatter: the reducer has a list of rules, update::any, and this "
        "call names none; a common slip is a call that was written for a reducer with one rule; "
        "add the rule before the deadline, as in all_reduce(span, herring::update::sum{})");
    static_assert(
        Slip != rule_slip::not_listed,
        "[HRG-C11] all_reduce, reduce_scatter: the rule of this call is not in the reducer's list; a "
        "common slip is a call that came later than the list; add the rule to update::any<...>");
    static_assert(
        Slip != rule_slip::one_rule,
        "[HRG-C12] all_reduce, reduce_scatter: this call names a rule, and the reducer has one rule, "
        "which it does not choose; a common slip is the operation that a call of MPI has; leave "
        "the rule out, or name herring::update::any<...> in reducer<...>");
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_RULE_OF_CALL_HPP
