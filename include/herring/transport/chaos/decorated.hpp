// herring: needs and name of a transport that is decorated.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHAOS_DECORATED_HPP
#define HERRING_TRANSPORT_CHAOS_DECORATED_HPP

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

/// "chaos<tcp>"
template <class Inner>
inline constexpr auto chaos_name = [] {
    constexpr std::string_view inner = Inner::name;
    std::array<char, inner.size() + 8> result{'c', 'h', 'a', 'o', 's', '<'};
    for (std::size_t i = 0; i < inner.size(); ++i) result[6 + i] = inner[i];
    result[6 + inner.size()] = '>';
    return result;
}();

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHAOS_DECORATED_HPP
