// herring: tests of wire/wire.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/wire.hpp"

#include <type_traits>

#include "doctest/doctest.h"

namespace entry_test {

static_assert(sizeof(herring::entry) == 8 && std::is_trivially_copyable_v<herring::entry>);
static_assert(herring::entry{3, 0.5f} == herring::entry{3, 0.5f} &&
              herring::entry{3, 0.5f} != herring::entry{4, 0.5f});

} // namespace entry_test
