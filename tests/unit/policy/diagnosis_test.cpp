// herring: tests of policy/diagnosis.hpp: what is wrong with a pack, as a value. The sentences are in tests/must_fail.
// SPDX-License-Identifier: Apache-2.0
// Own object: it specialises templates of the library.
#include "herring/policy/diagnosis.hpp"

#include "doctest/doctest.h"

#include <string>

namespace {
struct line {
    using axis = herring::axes::transport;
};
struct second_line : line {};
struct plain {};
struct declared;
struct own_axis {
    using axis = plain;
};
struct with_virtual : line {
    virtual void call() {}
};
struct unnamed : line {
    static constexpr char const* name = "";
};
struct not_plain {
    std::string text;
};
} // namespace
template <> inline constexpr bool herring::is_element<not_plain> = true;

using herring::detail::diagnose;
using herring::detail::pack_error;

TEST_CASE("diagnosis: the element type comes first") {
    CHECK(diagnose<char, plain>().what == pack_error::element);
    CHECK(diagnose<line>().what == pack_error::element_left_out);
    CHECK(diagnose<not_plain, plain>().what == pack_error::element_unfit);
}

TEST_CASE("diagnosis: then each policy alone") {
    CHECK(diagnose<float, plain, line>().what == pack_error::not_a_policy);
    CHECK(diagnose<float, line, own_axis>().what == pack_error::unknown_axis);
    CHECK(diagnose<float, line const>().what == pack_error::cv_or_pointer);
    CHECK(diagnose<float, line*>().what == pack_error::cv_or_pointer);
    CHECK(diagnose<float, line&>().what == pack_error::cv_or_pointer);
    CHECK(diagnose<float, declared>().what == pack_error::incomplete);
    CHECK(diagnose<float, with_virtual>().what == pack_error::polymorphic);
    CHECK(diagnose<float, unnamed>().what == pack_error::nameless);
}

TEST_CASE("diagnosis: then the pack") {
    constexpr herring::detail::diagnosis twice = diagnose<float, line, second_line>();
    CHECK_FALSE(twice.sound());
    CHECK(twice.doubled == 0);
    CHECK(diagnose<float>().what == pack_error::missing_transport);
    CHECK(diagnose<float, line>().what == pack_error::no_default); // no model is included here
}

TEST_CASE("diagnosis: a policy outside a pack") {
    using herring::detail::no_pack;
    CHECK(diagnose<no_pack, line>().sound());
    CHECK(diagnose<no_pack, unnamed>().what == pack_error::nameless);
}
