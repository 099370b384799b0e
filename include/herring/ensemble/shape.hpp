// herring: the shape that both ends of an ensemble agree on, and the sentence where they differ. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SHAPE_HPP
#define HERRING_ENSEMBLE_SHAPE_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/admission_refusal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The facts that a frontend and its members agree on. Compared at admission; a difference is final.
///
/// Shape:    texts of at most `most_name` bytes, `policies` of `most_policies`.
struct shape {
    static constexpr std::size_t most_name = 128, most_policies = 1024;

    std::string ensemble{};          ///< name of the ensemble
    std::string policies{};          ///< the names in the pack
    std::string type{};              ///< of an element
    std::uint64_t elements = 0;      ///< of a row
    std::uint64_t row_bytes = 0;     ///< of an encoded row
    std::uint64_t request_bytes = 0; ///< of the largest request
    std::string model_version{};     ///< the program's; empty at both ends: not used

    friend bool operator==(shape const&, shape const&) = default;
};

/// Returns the piece of a long text that an error shows: around the first difference.
HERRING_SETUP inline std::string_view where_different(std::string_view shown,
                                                      std::string_view other) noexcept {
    constexpr std::size_t most = 120, before = 20;
    if (shown.size() <= most) return shown;
    std::size_t same = 0;
    while (same < std::min(shown.size(), other.size()) && shown[same] == other[same]) ++same;
    std::size_t const from = std::min(same > before ? same - before : 0, shown.size() - most);
    return shown.substr(from, most);
}

/// The first difference between a member's shape and the frontend's.
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

#endif // HERRING_ENSEMBLE_SHAPE_HPP
