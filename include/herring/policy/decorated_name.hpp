// herring: the name of a policy that decorates another.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_DECORATED_NAME_HPP
#define HERRING_POLICY_DECORATED_NAME_HPP

#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// "chaos<tcp>", of a decorator that has `word`.
template <class Decorator, class Inner>
inline constexpr auto decorated_name = [] {
    constexpr std::string_view word = Decorator::word, inner = Inner::name;
    std::array<char, word.size() + inner.size() + 3> result{};
    std::size_t at = 0;
    for (char const c : word) result[at++] = c;
    result[at++] = '<';
    for (char const c : inner) result[at++] = c;
    result[at] = '>';
    return result;
}();

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_POLICY_DECORATED_NAME_HPP
