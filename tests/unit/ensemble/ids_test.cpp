// herring: tests of ensemble/ids.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/ids.hpp"

#include "doctest/doctest.h"

#include <type_traits>

namespace ensemble_ids_test {

TEST_CASE("ensemble ids: 32 bits, as frames and shared memory carry them") {
    CHECK(std::is_same_v<herring::detail::ensembles::peer_index, std::uint32_t>);
    CHECK(std::is_same_v<herring::detail::ensembles::slot_index, std::uint32_t>);
    CHECK(std::is_same_v<herring::detail::ensembles::place_index, std::uint32_t>);
}

} // namespace ensemble_ids_test
