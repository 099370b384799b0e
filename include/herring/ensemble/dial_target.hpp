// herring: a frontend that a member dials: how far it has come with it, and what it was told.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIAL_TARGET_HPP
#define HERRING_ENSEMBLE_DIAL_TARGET_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/ensemble/unverified_refusal.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A frontend, as its member tries for it, or has it.
struct dial_target {
    enum class stage {
        pausing,
        resolving,
        dialling,
        knocked,
        greeted, ///< has sent its hello
        wants_memory,
        lane_dialling, ///< by tcp
        lane_greeted,
        lane_proved, ///< waits for the frontend's proof
        up,
        over ///< refused for good, or left
    };

    std::size_t index = 0;
    std::string name{}, host{};
    std::uint16_t port = 0;
    stage at = stage::pausing;
    time_point retry_at{};
    unsigned failures = 0;
    std::optional<name_lookup> lookup{};
    fixed_array<endpoint> addresses{};
    std::size_t next_address = 0; ///< to be tried
    endpoint where{};
    control_link link{}, lane{};
    std::uint64_t link_key = 0, lane_key_of_epoll = 0;
    bool watches_write = false;
    time_point until = time_point::max(), local_until = time_point::max();
    time_point heard{}, beat_at = time_point::max(), up_since{};
    byte_buffer challenge{}, lane_said{};
    std::optional<admission_handshake> seen{};
    admit told{};
    secret_key lane_key{};
    wire::proof lane_proof_due{};
    descriptor memory{};
    bool told_connected = false, was_admitted = false, leaving = false;
    std::string last_text{};
    unverified_refusal unverified{};

    bool has_control() const noexcept { return at >= stage::wants_memory && at <= stage::up; }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DIAL_TARGET_HPP
