// herring: the needs of a transport that is decorated.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_DECORATED_HPP
#define HERRING_TRANSPORT_DECORATED_HPP

#include "herring/base/config.hpp"
#include "herring/policy/composed_name.hpp"
#include "herring/policy/policy.hpp"

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

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_DECORATED_HPP
