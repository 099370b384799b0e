// herring: tests of policy/resolve.hpp: policies in any order give one pack, with the defaults that are known.
// SPDX-License-Identifier: Apache-2.0
#include "herring/policy/resolve.hpp"

#include "herring/session/defaults.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/update/rules.hpp"
#include "herring/waiting/waiting.hpp"

#include "doctest/doctest.h"

#include <type_traits>

using herring::resolve_t;
using herring::transport::inproc;

TEST_CASE("resolve: a pack is one type, whatever the order, and a default may be named") {
    using a = resolve_t<float, inproc, herring::update::sum, herring::waiting::spin>;
    CHECK(std::is_same_v<a, resolve_t<float, herring::waiting::spin, inproc, herring::update::sum>>);
    CHECK(std::is_same_v<a::of<herring::axes::waiting>, herring::waiting::spin>);
    CHECK(std::is_same_v<resolve_t<float, inproc>, resolve_t<float, herring::sharding::balanced, inproc>>);
    CHECK(std::is_same_v<resolve_t<double, inproc>::trace, herring::trace::off>);
}

TEST_CASE("resolve: what replaces a refused pack has the element type where spans of it can be") {
    using herring::detail::refuse;
    CHECK(std::is_same_v<refuse<double>::type, herring::rejected<double>>);
    CHECK(std::is_same_v<refuse<float const&>::type, herring::rejected<float>>);
    CHECK(std::is_same_v<refuse<void>::type, herring::rejected<float>>);
    CHECK(std::is_same_v<refuse<herring::update::sum>::type, herring::rejected<float>>);
}
