// herring: why a frontend does not take a member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ADMISSION_REFUSAL_HPP
#define HERRING_ENSEMBLE_ADMISSION_REFUSAL_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

/// Why a frontend does not take a member. All but `none` are final for that member's process and this frontend.
enum class admission_refusal : std::uint8_t {
    none,
    other_version, ///< another version of the protocol
    secret,        ///< it did not prove that it has the secret, or one of the two has none
    ensemble,      ///< another ensemble's name
    type,          ///< of elements
    policies,      ///< another pack
    elements,      ///< of a row
    row_bytes,     ///< of an encoded row
    request_bytes, ///< the largest request
    model_version, ///< the program's
    member,        ///< its name is not in the roster
    replica,       ///< its number is not below the frontend's number of replicas
    lane,          ///< the two have no lane in common
    replaced       ///< a newer process has its name and number
};
inline constexpr int admission_refusals = 14;

/// "none", "version", "secret", "ensemble", "type", "policies", "elements", "row bytes", "request bytes", "model version",
/// "member", "replica", "lane", "replaced".
constexpr char const* to_string(admission_refusal r) noexcept {
    switch (r) {
    case admission_refusal::none:
        return "none";
    case admission_refusal::other_version:
        return "version";
    case admission_refusal::secret:
        return "secret";
    case admission_refusal::ensemble:
        return "ensemble";
    case admission_refusal::type:
        return "type";
    case admission_refusal::policies:
        return "policies";
    case admission_refusal::elements:
        return "elements";
    case admission_refusal::row_bytes:
        return "row bytes";
    case admission_refusal::request_bytes:
        return "request bytes";
    case admission_refusal::model_version:
        return "model version";
    case admission_refusal::member:
        return "member";
    case admission_refusal::replica:
        return "replica";
    case admission_refusal::lane:
        return "lane";
    case admission_refusal::replaced:
        return "replaced";
    }
    return "unknown";
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_ADMISSION_REFUSAL_HPP
