// herring: a connection at a frontend's door: a stranger, a member on its way in, or one that is in.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_GUEST_HPP
#define HERRING_ENSEMBLE_GUEST_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/machine/time.hpp"

#include <cstdint>
#include <string>

namespace HERRING_NAMESPACE::detail::ensembles {

struct guest {
    enum class stage {
        stranger,
        challenged,
        lane_proving,
        admitted, ///< and its lane is awaited
        up,
        ending ///< was told why; stays open until the other end has read it
    };

    std::uint64_t key = 0; ///< its number among all that ever came, and its place: `guest_list`
    control_link link{};
    stage at = stage::stranger;
    bool watches_write = false;
    bool gone = false;
    bool draining = false;
    std::string from{};
    time_point until = time_point::max(); ///< is closed then
    time_point heard{}, beat_at = time_point::max();
    byte_buffer said{}, challenge{}; ///< bodies: a lane's hello; the challenge that was sent
    peer_index peer = 0;
    std::uint64_t incarnation = 0;
    std::uint32_t credits = 0;
    std::uint64_t ticket = 0; ///< of the admission; a lane's: which it claims
    secret_key lane_key{};
    std::string who{};

    bool proven() const noexcept { return at == stage::admitted || at == stage::up; }
    /// How much speaks for its being a member, while it has not proved it. A member speaks at once, so who has not is the least
    /// likely to be one.
    int likelihood() const noexcept {
        return at == stage::stranger ? 0 : at == stage::ending ? 1 : at == stage::challenged ? 2 : 3;
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_GUEST_HPP
