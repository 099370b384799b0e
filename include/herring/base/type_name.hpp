// herring: the name of a type in messages: a name of its own, else the compiler's spelling.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_TYPE_NAME_HPP
#define HERRING_BASE_TYPE_NAME_HPP

#include "herring/base/config.hpp"

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

/// The name of a policy in messages: its `static constexpr` member `name`, else the compiler's spelling of
/// its type.
///
/// Ranks compare names: a policy template with value parameters has no `name`, or one with the values in it.
template <class Policy> constexpr std::string_view policy_name() noexcept {
    if constexpr (requires { std::string_view(Policy::name); })
        return Policy::name;
    else
        return detail::spelling<Policy>();
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_BASE_TYPE_NAME_HPP
