// herring: the names of the policies of a pack, by which ranks compare them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_POLICY_FACTS_HPP
#define HERRING_POLICY_POLICY_FACTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/type_name.hpp"
#include "herring/policy/pack.hpp"

#include <string_view>

namespace HERRING_NAMESPACE {

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

#endif // HERRING_POLICY_POLICY_FACTS_HPP
