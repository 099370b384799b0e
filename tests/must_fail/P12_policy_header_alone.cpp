// herring: must not compile: a policy that is checked where its axis is not known.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy.hpp"
#ifdef HERRING_TWIN
#include "herring/waiting/waiting.hpp"
#endif
#include <cstdint>

namespace HERRING_NAMESPACE {
enum class wait_action : std::uint8_t;
}
struct hurry {
    using axis = herring::axes::waiting;
    static herring::wait_action next(std::uint32_t, std::int64_t, bool) noexcept { return {}; }
};
static_assert(herring::checked_policy<hurry>);
