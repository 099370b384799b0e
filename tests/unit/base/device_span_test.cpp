// herring: device_span names memory and does not touch it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/device_span.hpp"

#include "doctest/doctest.h"

#include <type_traits>

TEST_CASE("device_span: pointer, size, part") {
    float some[10] = {};
    herring::device_span<float> const all(some, 10);
    CHECK(all.data() == some);
    CHECK(all.size() == 10);
    CHECK(all.size_bytes() == 40);
    CHECK_FALSE(all.empty());
    CHECK(herring::device_span<float>().empty());
    CHECK(all.subspan(3, 4).data() == some + 3);
    CHECK(all.subspan(3, 4).size() == 4);
    static_assert(std::is_trivially_copyable_v<herring::device_span<float>>);
}
