// herring: tests of ensemble/outcome.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/outcome.hpp"

#include "doctest/doctest.h"

#include <set>
#include <string>

namespace ensemble_outcome_test {

// The words of values 0 … count − 1, and none beyond.
template <class Enum> std::size_t words(int count) {
    std::set<std::string> all;
    for (int i = 0; i < count; ++i) {
        std::string const word = to_string(static_cast<Enum>(i));
        CHECK(word != "unknown");
        all.insert(word);
    }
    CHECK(std::string(to_string(static_cast<Enum>(count))) == "unknown");
    return all.size();
}

TEST_CASE("outcome: each value has a word of its own") {
    CHECK(words<herring::outcome>(herring::outcomes) == 6);
    CHECK(words<herring::miss>(herring::misses) == 10);
    CHECK(words<herring::decline>(herring::declines) == 6);
    CHECK(words<herring::detail::ensembles::row_check>(herring::detail::ensembles::row_checks) == 6);
}

TEST_CASE("outcome: what is not said is the harmless value") {
    CHECK(herring::miss{} == herring::miss::none);
    CHECK(herring::decline{} == herring::decline::unspecified);
    CHECK(herring::detail::ensembles::row_check{} == herring::detail::ensembles::row_check::good);
}

} // namespace ensemble_outcome_test
