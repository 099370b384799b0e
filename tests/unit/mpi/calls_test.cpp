// herring: tests of mpi/calls.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/mpi/calls.hpp"

#include "doctest/doctest.h"

#include <string>

using namespace herring::detail;

TEST_CASE("calls: each has a name, by rule and type") {
    CHECK(std::string(mpi_call_name(mpi_call_number<int>(mpi_rule::sum))) == "sum of int");
    CHECK(std::string(mpi_call_name(mpi_call_number<long>(mpi_rule::min))) == "min of long");
    CHECK(std::string(mpi_call_name(mpi_call_number<long long>(mpi_rule::max))) == "max of long long");
    CHECK(std::string(mpi_call_name(mpi_call_number<float>(mpi_rule::sum))) == "sum of float");
    CHECK(std::string(mpi_call_name(mpi_call_number<double>(mpi_rule::min))) == "min of double");
    CHECK(std::string(mpi_call_name(mpi_call_number<int>(mpi_rule::minloc))) == "minloc of int");
    CHECK(std::string(mpi_call_name(mpi_call_number<double>(mpi_rule::maxloc))) == "maxloc of double");
}
