// herring: needs and name of a transport that is decorated.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_DECORATED_HPP
#define HERRING_TRANSPORT_DECORATED_HPP

#include "herring/base/config.hpp"
#include "herring/policy.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// The needs of the decorated transport, and one more.
template <class Inner, class Need> struct needs_and { using type = needs<Need>; };
template <class Need, class Of> struct appended;
template <class Need, class... Those> struct appended<Need, needs<Those...>> {
    using type = needs<Those..., Need>;
};
template <class Inner, class Need>
requires requires { typename Inner::needs; }
struct needs_and<Inner, Need> : appended<Need, typename Inner::needs> {};

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

#endif // HERRING_TRANSPORT_DECORATED_HPP
