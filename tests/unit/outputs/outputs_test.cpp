// herring: tests of ensemble/outputs.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/outputs.hpp"

#include "doctest/doctest.h"

namespace outputs_test {

struct own {
    using axis = herring::axes::outputs;
    static constexpr char const* name = "own";
};
static_assert(!herring::outputs_policy<own> && !herring::output_kind<own>);
static_assert(herring::output_kind<herring::outputs::variance> &&
              herring::output_kind<herring::outputs::disagreement>);

} // namespace outputs_test
