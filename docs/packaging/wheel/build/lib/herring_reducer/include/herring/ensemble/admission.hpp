// herring: what a frontend and its members have to agree on, and why a frontend does not take a member.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ADMISSION_HPP
#define HERRING_ENSEMBLE_ADMISSION_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE {

/// Reason why a frontend does not admit a member. All but `none` are final for the member's process and this
/// frontend.
enum class admission_refusal : std::uint8_t {
    none,
    other_version, ///< the protocol's
    secret,        ///< the member did not prove that it has the secret, or one end has none
    ensemble,      ///< its name
    type,          ///< of elements
    policies,      ///< names of the pack
    elements,      ///< of a row
    row_bytes,     ///< of an encoded row
    request_bytes, ///< the largest request
    model_version, ///< the program's
    member,        ///< the name is not in the roster
    replica,       ///< the number is not below the frontend's number of replicas
    lane,          ///< the two have no lane in common
    replaced       ///< a newer process has its name and number
};
inline constexpr int admission_refusals = 14;

/// "none", "version", "secret", "ensemble", "type", "policies", "elements", "row bytes", "request bytes",
/// "model version", "member", "replica", "lane", "replaced".
constexpr char const* to_string(admission_refusal r) noexcept {
    constexpr char const* names[] = {"none",     "version",  "secret",    "ensemble",      "type",
                                     "policies", "elements", "row bytes", "request bytes", "model version",
                                     "member",   "replica",  "lane",      "replaced"};
    static_assert(std::size(names) == admission_refusals);
    auto const i = static_cast<std::size_t>(r);
    return i < std::size(names) ? names[i] : "unknown";
}

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// Values on which a frontend and its members have to agree. Compared at admission; a difference is final.
///
/// Shape:    texts of at most `most_name` bytes, `policies` of `most_policies`.
struct shape {
    static constexpr std::size_t most_name = 128, most_policies = 1024;

    std::string ensemble{};          ///< its name
    std::string policies{};          ///< the names in the pack
    std::string type{};              ///< of an element
    std::uint64_t elements = 0;      ///< of a row
    std::uint64_t row_bytes = 0;     ///< of an encoded row
    std::uint64_t request_bytes = 0; ///< of a request, at most
    std::string model_version{};     ///< the program's; empty at both ends: not used

    friend bool operator==(shape const&, shape const&) = default;
};

/// Returns the piece of a text that an error can show: where two long texts differ.
HERRING_SETUP inline std::string_view where_different(std::string_view shown,
                                                      std::string_view other) noexcept {
    constexpr std::size_t most = 120, before = 20;
    if (shown.size() <= most) return shown;
    std::size_t same = 0;
    while (same < std::min(shown.size(), other.size()) && shown[same] == other[same]) ++same;
    std::size_t const from = std::min(same > before ? same - before : 0, shown.size() - most);
    return shown.substr(from, most);
}

/// First difference between a member's shape and the frontend's.
struct shape_difference {
    admission_refusal what = admission_refusal::none;
    std::string text{}; ///< names both values
};

HERRING_SETUP inline shape_difference difference(shape const& of_member, shape const& of_frontend) {
    auto const of = [](admission_refusal what, std::string_view noun, text_part const& a, text_part const& b,
                       std::string_view fix) {
        return shape_difference{
            what, text({noun, " is '", a, "' at the member, '", b, "' at the frontend; ", fix})};
    };
    auto const texts = [&](admission_refusal what, std::string_view noun, std::string const& a,
                           std::string const& b, std::string_view fix) {
        return of(what, noun, where_different(a, b), where_different(b, a), fix);
    };
    using what = admission_refusal;
    if (of_member.ensemble != of_frontend.ensemble)
        return texts(what::ensemble, "the ensemble", of_member.ensemble, of_frontend.ensemble,
                     "see which frontend the member's address leads to");
    if (of_member.type != of_frontend.type)
        return texts(what::type, "the element type", of_member.type, of_frontend.type,
                     "build both for one type of elements");
    if (of_member.policies != of_frontend.policies)
        return texts(what::policies, "the pack of policies", of_member.policies, of_frontend.policies,
                     "build both with the same policies");
    if (of_member.elements != of_frontend.elements)
        return of(what::elements, "the number of elements in a row", of_member.elements, of_frontend.elements,
                  "give both the same");
    if (of_member.row_bytes != of_frontend.row_bytes)
        return of(what::row_bytes, "the size of an encoded row", of_member.row_bytes, of_frontend.row_bytes,
                  "build both from one version of Herring");
    if (of_member.request_bytes != of_frontend.request_bytes)
        return of(what::request_bytes, "the largest request in bytes", of_member.request_bytes,
                  of_frontend.request_bytes, "give both the same");
    if (of_member.model_version != of_frontend.model_version)
        return texts(what::model_version, "the model's version", of_member.model_version,
                     of_frontend.model_version, "give both the same, or neither one");
    return {};
}

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ADMISSION_HPP
