// herring: tests of ensemble/admission.hpp: the sentence where a member and a frontend differ.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/admission.hpp"

#include "doctest/doctest.h"

#include <string>

namespace ensemble_shape_test {

using herring::admission_refusal;
using herring::detail::ensembles::difference;
using herring::detail::ensembles::shape;

shape base() {
    return {.ensemble = "speech",
            .policies = "combine::mean",
            .type = "float",
            .elements = 8,
            .row_bytes = 32,
            .request_bytes = 64,
            .model_version = "v1"};
}

template <class Change> void differs(admission_refusal what, char const* a, char const* b, Change&& change) {
    shape other = base();
    change(other);
    auto const found = difference(other, base());
    CAPTURE(found.text);
    CHECK(found.what == what);
    CHECK(found.text.find(std::string("'") + a + "' at the member") != std::string::npos);
    CHECK(found.text.find(std::string("'") + b + "' at the frontend") != std::string::npos);
    CHECK(difference(base(), other).what == what);
}

TEST_CASE("shape: equal ones have no difference, and each that differs is named with both values") {
    CHECK(difference(base(), base()).what == admission_refusal::none);
    CHECK(difference(base(), base()).text.empty());
    differs(admission_refusal::ensemble, "vision", "speech", [](shape& s) { s.ensemble = "vision"; });
    differs(admission_refusal::type, "double", "float", [](shape& s) { s.type = "double"; });
    differs(admission_refusal::policies, "combine::vote", "combine::mean",
            [](shape& s) { s.policies = "combine::vote"; });
    differs(admission_refusal::elements, "9", "8", [](shape& s) { s.elements = 9; });
    differs(admission_refusal::row_bytes, "16", "32", [](shape& s) { s.row_bytes = 16; });
    differs(admission_refusal::request_bytes, "65", "64", [](shape& s) { s.request_bytes = 65; });
    differs(admission_refusal::model_version, "", "v1", [](shape& s) { s.model_version.clear(); });
}

TEST_CASE("shape: of long texts the piece is shown where they differ") {
    shape a = base(), b = base();
    a.policies = std::string(900, 'p') + "left" + std::string(50, 'q');
    b.policies = std::string(900, 'p') + "right" + std::string(50, 'q');
    std::string const text = difference(a, b).text;
    CHECK(text.find("left") != std::string::npos);
    CHECK(text.find("right") != std::string::npos);
    CHECK(text.size() < 400);
    b.policies = std::string(900, 'p'); // the shorter one ends where they differ
    CHECK(difference(a, b).text.find("left") != std::string::npos);
}

} // namespace ensemble_shape_test
