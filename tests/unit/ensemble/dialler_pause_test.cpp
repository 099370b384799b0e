// herring: tests of ensemble/dialler.hpp: pauses that grow, and differ between members.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/dialler.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace ensemble_dial_pause_test {

using herring::detail::ensembles::pause_after;
using std::chrono::milliseconds;

TEST_CASE("dial_pause: pauses grow from the first to the last, each its own share of it") {
    milliseconds before(0);
    for (unsigned n = 1; n < 40; ++n) {
        milliseconds const full =
            std::min(milliseconds(2000), milliseconds(10) * (1 << std::min(n - 1, 10u)));
        milliseconds const pause = pause_after(n, milliseconds(10), milliseconds(2000), "a/0/x:1");
        CHECK(pause >= full / 2);
        CHECK(pause <= full);
        before = pause;
    }
    CHECK(before >= milliseconds(1000));
    std::size_t differ = 0;
    for (unsigned n = 1; n < 40; ++n)
        differ += pause_after(n, milliseconds(10), milliseconds(2000), "a/0/x:1") !=
                  pause_after(n, milliseconds(10), milliseconds(2000), "b/0/x:1");
    CHECK(differ > 20);
}

} // namespace ensemble_dial_pause_test
