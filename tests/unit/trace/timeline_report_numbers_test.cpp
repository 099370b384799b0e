// herring: tests of trace/timeline_report.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_report.hpp"

#include "doctest/doctest.h"

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

using herring::detail::number_text;

TEST_CASE("number_text: the shortest text that reads back") {
    CHECK(number_text(0) == "0");
    CHECK(number_text(0.1) == "0.1");
    CHECK(number_text(-2.5e-7) == "-2.5e-07");
    CHECK(number_text(123456789) == "123456789");
    double const most = std::numeric_limits<double>::max();
    for (double const value : {1.0 / 3, 5e-324, most, -most, std::nextafter(1.0, 2.0)})
        CHECK(std::strtod(number_text(value).c_str(), nullptr) == value);
}

TEST_CASE("number_text: with so many digits at most") {
    CHECK(number_text(2.5000000000000004e-7, 9) == "2.5e-07");
    CHECK(number_text(1.0 / 3, 3) == "0.333");
    CHECK(number_text(1e300, 9) == "1e+300");
    CHECK(number_text(-1.2345678901234567e-300, 17).size() == 24);
}

TEST_CASE("number_text: what is not finite is 0") {
    CHECK(number_text(std::nan("")) == "0");
    CHECK(number_text(std::numeric_limits<double>::infinity()) == "0");
}

TEST_CASE("number_text: the same in a locale with a decimal comma") {
    std::string const before = std::setlocale(LC_NUMERIC, nullptr);
    for (char const* const name : {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8"})
        if (std::setlocale(LC_NUMERIC, name) != nullptr) break;
    if (*std::localeconv()->decimal_point != ',') MESSAGE("this machine has no locale with a decimal comma");
    CHECK(number_text(2.5) == "2.5");
    std::setlocale(LC_NUMERIC, before.c_str());
}
