// herring: tests of mpi/calls.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/mpi/calls.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring::detail;

TEST_CASE("calls: each has a name, by rule and type") {
    CHECK(std::string(mpi_call_name(mpi_rule::sum, mpi_number_of<int>())) == "sum of int");
    CHECK(std::string(mpi_call_name(mpi_rule::min, mpi_number_of<long>())) == "min of long");
    CHECK(std::string(mpi_call_name(mpi_rule::max, mpi_number_of<long long>())) == "max of long long");
    CHECK(std::string(mpi_call_name(mpi_rule::sum, mpi_number_of<float>())) == "sum of float");
    CHECK(std::string(mpi_call_name(mpi_rule::min, mpi_number_of<double>())) == "min of double");
}
