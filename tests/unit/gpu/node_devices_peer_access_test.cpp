// herring: devices that do not reach each other: the error names both ranks, both devices, and the way out.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/node_devices.hpp"

#include "herring/control/control.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring;

namespace {

bool has(std::string const& text, char const* what) { return text.find(what) != std::string::npos; }

// As each of the pair, and a rank beside them, is told it.
template <class Check> void as_told(failure const& why, Check&& check) {
    for (int const rank : {5, 12, 3}) {
        std::string const text = error(detail::as_seen_by(why, rank)).what();
        CAPTURE(text);
        CHECK(has(text, ("herring: rank " + std::to_string(rank) + ": construction: unsupported").c_str()));
        check(text);
    }
}

} // namespace

TEST_CASE("reach: a pair that does not reach each other, by rank, number and name") {
    failure const why = gpu::peer_access_error({5, 0, "0000:1B:00.0"}, {12, 7, "0000:DB:00.0"});
    CHECK(why.what == errc::unsupported);
    CHECK(why.reporter == 5);
    CHECK(why.peer == 12);
    as_told(why, [](std::string const& text) {
        CHECK(has(text, "device 0 (0000:1B:00.0) of rank 5 cannot reach device 7 (0000:DB:00.0) of rank 12"));
        CHECK(has(text, "use intra_node::pcie_staging"));
        CHECK_FALSE(has(text, "CUDA_VISIBLE_DEVICES"));
    });
}

TEST_CASE("reach: a device that the process does not see has no number there") {
    failure const why = gpu::peer_access_error({5, 0, "0000:1B:00.0"}, {12, -1, "0000:DB:00.0"});
    CHECK(why.peer == 12);
    as_told(why, [](std::string const& text) {
        CHECK(has(text, "rank 5, with device 0 (0000:1B:00.0), does not see the device of rank 12 "
                        "(0000:DB:00.0)"));
        CHECK(has(text, "widen CUDA_VISIBLE_DEVICES"));
        CHECK(has(text, "use intra_node::pcie_staging"));
        CHECK_FALSE(has(text, "-1"));
    });
}
