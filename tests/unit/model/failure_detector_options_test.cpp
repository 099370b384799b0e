// herring: tests of model/failure_detector_options.hpp: what is left alone is not given.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/failure_detector_options.hpp"

#include "doctest/doctest.h"

using herring::failure_detector_options;
using std::chrono::milliseconds;

TEST_CASE("failure_detector_options: what is left alone is not given, and what is given compares") {
    constexpr failure_detector_options none;
    for (milliseconds const time :
         {none.peer_timeout, none.heartbeat, none.reply_timeout, none.verdict_timeout, none.long_wait})
        CHECK(time == herring::detail::not_given);
    constexpr failure_detector_options quick{.peer_timeout = milliseconds(500),
                                             .heartbeat = milliseconds(50)};
    CHECK(quick ==
          failure_detector_options{.peer_timeout = milliseconds(500), .heartbeat = milliseconds(50)});
    CHECK_FALSE(quick == none);
}
