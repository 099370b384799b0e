// herring: tests of control/variables.hpp: variables by name, and numbers that are refused by name.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/variables.hpp"

#include "doctest/doctest.h"

#include <cstdlib>
#include <string>

using herring::detail::variables;

TEST_CASE("variables: the entry of exactly that name, up to its end; the first one counts") {
    char const* const entries[] = {"HERRING_RANKS=9", "HERRING", "EMPTY=",         "=",
                                   "HERRING_RANK=3",  "A_B=x=y", "HERRING_RANK=4", nullptr};
    variables const from(entries);
    CHECK(from.text("HERRING_RANK") == "3");
    CHECK(from.text("HERRING_RANKS") == "9");
    CHECK(from.text("A_B") == "x=y");
    for (char const* none : {"HERRING", "HERRING_", "EMPTY", "RANK"}) {
        CAPTURE(none);
        CHECK_FALSE(from.has(none));
        CHECK(from.text(none).empty());
    }
    CHECK(from.has("A_B"));
}

TEST_CASE("variables: there may be none at all") {
    char const* const entries[] = {nullptr};
    CHECK_FALSE(variables(entries).has("PATH"));
    CHECK_FALSE(variables(nullptr).has("PATH"));
}

TEST_CASE("variables: those of the process, as they are now") {
    CHECK(::setenv("HERRING_TEST_OF_VARIABLES", "1", 1) == 0);
    CHECK(variables::of_process().text("HERRING_TEST_OF_VARIABLES") == "1");
    CHECK(::setenv("HERRING_TEST_OF_VARIABLES", "a longer one", 1) == 0);
    CHECK(variables::of_process().text("HERRING_TEST_OF_VARIABLES") == "a longer one");
    CHECK(::unsetenv("HERRING_TEST_OF_VARIABLES") == 0);
    CHECK_FALSE(variables::of_process().has("HERRING_TEST_OF_VARIABLES"));
}

TEST_CASE("variables: what is not a number of the range is an error that names the variable, its value and "
          "the range") {
    char const* const entries[] = {"SIZE=12", "WORD=many", "MUCH=1000", nullptr};
    variables const from(entries);
    CHECK(from.number("SIZE", 1, 12) == 12);
    for (char const* name : {"WORD", "MUCH", "NONE"}) {
        try {
            (void)from.number(name, 0, 999);
            FAIL("it is taken: " << name);
        } catch (herring::error const& why) {
            CHECK(why.code() == herring::errc::bad_argument);
            std::string const said = std::string(name) + " is '" + std::string(from.text(name)) +
                                     "', which is not a number from 0 to 999";
            CHECK(std::string(why.what()).find(said) != std::string::npos);
        }
    }
}
