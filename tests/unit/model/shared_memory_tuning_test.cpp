// herring: tests of model/tunings.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/model/tunings.hpp"

#include "doctest/doctest.h"

using tuning = herring::intra_node::shared_memory_tuning;

TEST_CASE("shared_memory_tuning: the defaults, and values that are compared") {
    constexpr tuning usual;
    CHECK(usual.local_chunk_bytes >= 4096);
    CHECK(usual.mailbox_bytes < usual.local_chunk_bytes);
    static_assert(usual == tuning{} && !(usual == tuning{.mailbox_bytes = 0}));
}
