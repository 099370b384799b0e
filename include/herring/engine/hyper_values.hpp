// herring: the hyper values that an optimizer's steps go by, for the texts of ranks that differ in them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_HYPER_VALUES_HPP
#define HERRING_ENGINE_HYPER_VALUES_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// Those of all groups: of each one its members and 1 if it is frozen; then the scale of the loss.
///
/// Lifetime: what both refer to, longer than this.
struct hyper_values {
    std::span<double const> all;            ///< empty: there is no optimizer
    std::span<char const* const> members{}; ///< names of those of one group; nullptr: one has none

    /// "hyper::rate of group 1", "the loss scale": what lies at a place of `all`.
    HERRING_SEPARABLE void name(char (&to)[64], std::size_t place) const noexcept;
    /// "0.001 0 1": as many as fit, as text. Returns its length.
    HERRING_SEPARABLE std::size_t list(char* to, std::size_t size) const noexcept;
    /// How these of `rank` differ from those that `other` has listed: "hyper::rate is 0.001 on rank 1 and 0.5 on rank 2". False: in none
    /// that is listed.
    HERRING_SEPARABLE bool compare(char (&to)[160], char const* listed, int other, int rank) const noexcept;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/hyper_values_impl.hpp"
#endif

#endif // HERRING_ENGINE_HYPER_VALUES_HPP
