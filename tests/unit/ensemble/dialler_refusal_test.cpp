// herring: tests of ensemble/dialler.hpp: how often, and for how long, a member hears the same before it believes it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dialler.hpp"

#include "doctest/doctest.h"

#include <chrono>

namespace ensemble_unverified_refusal_test {

using herring::detail::ensembles::unverified_refusal;
using std::chrono::milliseconds;

TEST_CASE("unverified_refusal: three times, over two seconds, the same words") {
    herring::time_point const now{};
    unverified_refusal often, rarely, changing;
    for (int i = 0; i < 100; ++i) CHECK_FALSE(often.count("no", now + milliseconds(i)));
    CHECK(often.count("no", now + milliseconds(2000)));
    CHECK_FALSE(rarely.count("no", now));
    CHECK_FALSE(rarely.count("no", now + milliseconds(5000))); // twice
    CHECK(rarely.count("no", now + milliseconds(5001)));
    CHECK_FALSE(changing.count("no", now));
    CHECK_FALSE(changing.count("no", now + milliseconds(1500)));
    CHECK_FALSE(changing.count("not you", now + milliseconds(3000)));
    CHECK_FALSE(changing.count("no", now + milliseconds(4500)));
}

} // namespace ensemble_unverified_refusal_test
