// herring: the concept of fusion policies: the rule that closes a bucket of tensors, which may then leave.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_FUSION_FUSION_HPP
#define HERRING_FUSION_FUSION_HPP

#include "herring/base/config.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>

namespace HERRING_NAMESPACE {

/// The open bucket after a tensor has been added to it.
struct fusion_state {
    std::size_t bucket_bytes = 0;   ///< bytes in the open bucket, including the tensor just added
    std::size_t bucket_tensors = 0; ///< tensors in it
    std::size_t next_bytes = 0;     ///< bytes of the tensor that comes next (0: none, or empty)
    int servers = 1;                ///< servers that share a bucket
    int local_ranks = 1;            ///< ranks of the largest node
};

template <class Policy>
concept fusion_named = requires {
    { Policy::name } -> std::convertible_to<char const*>;
};
template <class Policy>
concept fusion_closes = requires(fusion_state const& state) {
    { Policy::closes(state) }
    noexcept->std::same_as<bool>;
};

/// A fusion policy is one pure function over `fusion_state`, the same on every rank.
///
/// Errors: `bad_argument` from the reducer's constructor if it is not deterministic: each call is made twice and
///         compared.
template <class Policy>
concept fusion_policy =
    std::same_as<typename Policy::axis, axes::fusion> && fusion_named<Policy> && fusion_closes<Policy>;

template <class Policy> struct check<axes::fusion, Policy> {
    static constexpr int broken = first_broken({fusion_named<Policy>, fusion_closes<Policy>});
    static constexpr bool value = broken < 0;
    static_assert(broken != 0,
                  "[HRG-F01] fusion: needs 'static constexpr char const* name'; a common slip is to "
                  "leave it out; give it the name of your type");
    static_assert(broken != 1,
                  "[HRG-F03] fusion: needs 'static bool closes(fusion_state const&) noexcept'; a common "
                  "slip is to forget static or noexcept; add both");
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_FUSION_FUSION_HPP
