// herring: the name of a policy, for messages and for comparing policies between ranks.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_POLICY_NAME_HPP
#define HERRING_POLICY_POLICY_NAME_HPP

#include "herring/base/config.hpp"
#include "herring/policy/pack.hpp"

#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE {

namespace detail {

// The compiler's spelling of a type, e.g. "my_models::fast_tcp".
template <class Spelled> constexpr std::string_view spelling() noexcept {
    std::string_view const all = __PRETTY_FUNCTION__;
    std::string_view const mark = "Spelled = ";
    std::size_t const from = all.find(mark) + mark.size();
    std::size_t const semicolon = all.find(';', from);
    return all.substr(from, (semicolon < all.size() ? semicolon : all.rfind(']')) - from);
}

} // namespace detail

/// The name of a policy in messages: its `static constexpr` member `name`, or else the compiler's spelling of its type.
///
/// Ranks compare names: a policy template with value parameters leaves `name` out or includes the values in it.
template <class Policy> constexpr std::string_view policy_name() noexcept {
    if constexpr (requires { std::string_view(Policy::name); })
        return Policy::name;
    else
        return detail::spelling<Policy>();
}

/// An entry of the list by which ranks compare their policies.
struct policy_fact {
    std::string_view axis, name;
    bool must_agree = false;
};

/// `all`: the entries of a canonical pack, in its order.
template <class Pack> struct policy_facts;
template <class Element, class... Policy> struct policy_facts<policies<Element, Policy...>> {
    static constexpr policy_fact all[sizeof...(Policy)] = {
        {Policy::axis::name, policy_name<Policy>(), Policy::axis::must_agree}...};
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_POLICY_NAME_HPP
