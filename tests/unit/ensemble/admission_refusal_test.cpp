// herring: tests of ensemble/admission.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/admission.hpp"

#include "doctest/doctest.h"

#include <set>
#include <string>

namespace ensemble_admission_refusal_test {

TEST_CASE("admission_refusal: each has words of its own, and there are no more") {
    std::set<std::string> all;
    for (int i = 0; i < herring::admission_refusals; ++i)
        all.insert(to_string(static_cast<herring::admission_refusal>(i)));
    CHECK(all.size() == static_cast<std::size_t>(herring::admission_refusals));
    CHECK(all.count("unknown") == 0);
    CHECK(std::string(to_string(static_cast<herring::admission_refusal>(herring::admission_refusals))) ==
          "unknown");
}

} // namespace ensemble_admission_refusal_test
