// herring: what a member's control connections tell the member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_NOTICE_HPP
#define HERRING_ENSEMBLE_DIALLER_NOTICE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/lane_ends.hpp"

#include <cstddef>
#include <string>

namespace HERRING_NAMESPACE::detail::ensembles {

/// For the sink: what has happened.
struct dialler_notice {
    enum class what { connected, disconnected, refused, wants_memory } kind = what::disconnected;
    std::size_t frontend = 0;
    admission facts{};
    lane_ends ends{};
    std::string text{};
    failure why{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIALLER_NOTICE_HPP
