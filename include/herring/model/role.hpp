// herring: the role of a rank: a worker has tensors, a server combines what workers push.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_ROLE_HPP
#define HERRING_MODEL_ROLE_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// What a rank of a world is for. By HERRING_ROLE, `join_options::role` or `launch_options::roles`; workers where nothing says so.
enum class role : std::uint8_t {
    worker, ///< has tensors, and constructs reducers
    server  ///< has none, and calls `herring::serve`
};

/// The highest rate of a network that a rank may declare, in Mbit/s.
inline constexpr int most_rate = 1'000'000'000;

constexpr char const* to_string(role of) noexcept { return of == role::server ? "server" : "worker"; }

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_ROLE_HPP
