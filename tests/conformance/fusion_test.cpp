// herring: every fusion policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/fusion_suite.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"

using namespace herring::conformance;
namespace fusion = herring::fusion;

namespace {
struct every_third { // of all that it was ever asked about
    using axis = herring::axes::fusion;
    static constexpr char const* name = "every_third";
    static inline int asked = 0;
    static bool closes(herring::fusion_state const&) noexcept { return ++asked % 3 == 0; }
};
struct before_a_large_one {
    using axis = herring::axes::fusion;
    static constexpr char const* name = "before_a_large_one";
    static constexpr bool closes(herring::fusion_state const& state) noexcept {
        return state.next_bytes > state.bucket_bytes;
    }
};
} // namespace

TEST_CASE("fusion: balanced_buffer") {
    CHECK(text(fusion_suite<fusion::balanced_buffer<>>()) == "");
    CHECK(text(fusion_suite<fusion::balanced_buffer<4096, 64>>()) == "");
    CHECK(text(fusion_suite<fusion::balanced_buffer<1>>()) == "");
}
TEST_CASE("fusion: per_tensor") { CHECK(text(fusion_suite<fusion::per_tensor>()) == ""); }
TEST_CASE("fusion: whole_model") { CHECK(text(fusion_suite<fusion::whole_model>()) == ""); }
TEST_CASE("fusion: one that looks ahead") { CHECK(text(fusion_suite<before_a_large_one>()) == ""); }

TEST_CASE("fusion: what is wrong is found") {
    findings const found = fusion_suite<every_third>();
    REQUIRE_FALSE(found.empty());
    CHECK(found.front().test == "pure");
}
