// herring: tests of base/type_name.hpp: what messages call a type.
// SPDX-License-Identifier: Apache-2.0
#include "herring/base/type_name.hpp"

#include "doctest/doctest.h"

#include "herring/update/rules.hpp"

#include <string>
#include <string_view>

namespace {
struct line {
    static constexpr char const* name = "line";
};
template <int> struct numbered {
    static constexpr int name = 0; // no text: the compiler's spelling is used
};
template <class> struct of {};
} // namespace

TEST_CASE("policy_name: the name that is given, else the compiler's spelling with its values") {
    CHECK(herring::policy_name<line>() == "line");
    CHECK(herring::policy_name<numbered<7>>().find("numbered<7>") != std::string_view::npos);
    CHECK(herring::policy_name<numbered<7>>() != herring::policy_name<numbered<8>>());
}

// Ranks that were compiled with other flags, and checkpoints of another version, have the same name.
TEST_CASE("policy_name: a spelling has no inline namespace of Herring's") {
    CHECK(herring::policy_name<of<herring::update::sum>>().ends_with("of<herring::update::sum>"));
}

TEST_CASE("spell_without_target: takes the inline namespace out wherever it stands, and nothing else") {
    auto const inner = [](std::string_view text) {
        std::string const target(herring::detail::target_name);
        std::string full;
        for (char const c : text) full += c == '#' ? target : std::string(1, c);
        std::string out(full.size(), '\0');
        out.resize(herring::detail::spell_without_target(full, out.data()));
        return out;
    };
    CHECK(inner("a<herring::#b, herring::#c<int>>") == "a<herring::b, herring::c<int>>");
    CHECK(inner("herring::b::#") == "herring::b::" + std::string(herring::detail::target_name));
    CHECK(inner("plain<int>") == "plain<int>");
}
