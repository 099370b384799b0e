// herring: tests of policy/diagnosis.hpp: a sound pack is passed without a sentence; tests/must_fail has the others.
// SPDX-License-Identifier: Apache-2.0
// Own object: it specialises templates of the library.
#include "herring/policy/diagnosis.hpp"

#include "doctest/doctest.h"

namespace {
struct line {
    using axis = herring::axes::transport;
};
struct own_trace {
    using axis = herring::axes::trace;
};
} // namespace
template <> struct herring::check<herring::axes::trace, own_trace> {
    [[maybe_unused]] static constexpr bool value = true;
};

TEST_CASE(
    "sentences: a policy alone is sound, and its axis is known where the header of the axis is included") {
    using herring::detail::no_pack;
    CHECK(herring::holds<herring::detail::pack_sentences<no_pack, line>>);
    CHECK(herring::detail::pack_sentences<no_pack, own_trace>::value);
    CHECK(herring::holds<herring::detail::with_axis_header<own_trace>>);
}
