// herring: the quorum of a fixed number of members.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_QUORUM_AT_LEAST_HPP
#define HERRING_QUORUM_AT_LEAST_HPP

#include "herring/base/config.hpp"
#include "herring/quorum/quorum.hpp"

#include <type_traits>

namespace HERRING_NAMESPACE::quorum {

/// `Least` members make an answer; those beyond them are waited for as long as `Tuning` says.
///
/// Shape:   `Least` rows or more at the deadline are an answer, fewer are none.
/// Cost:    at most max(grace_percent of t_k, least_grace_us) after the last of these rows; nothing once all that are waited for are in.
/// Example: `herring::quorum::at_least<3, herring::quorum_tuning{.grace_percent = 50}>`
template <std::size_t Least, quorum_tuning Tuning = quorum_tuning{}> struct at_least {
    using axis = axes::quorum;
    static constexpr quorum_tuning tuning = Tuning;

    static constexpr std::size_t least(std::size_t /*roster*/) noexcept { return Least; }
};

static_assert(quorum_policy<at_least<1>>);
static_assert(std::is_empty_v<at_least<1>>);

} // namespace HERRING_NAMESPACE::quorum

#endif // HERRING_QUORUM_AT_LEAST_HPP
