// herring: tests of wire/wire.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/wire.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>
#include <type_traits>

namespace wire_test {

struct nothing { // keeps no bytes
    using axis = herring::axes::wire;
    static constexpr char const* name = "nothing";
    static constexpr herring::wire_facts facts{};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    template <class> static constexpr std::size_t bytes(std::size_t) noexcept { return 0; }
    template <class> static void encode(std::span<float const>, std::span<std::byte>) noexcept {}
    template <class> static void decode(std::span<std::byte const>, std::span<float>) noexcept {}
};
struct may_throw : nothing {
    template <class> static void decode(std::span<std::byte const>, std::span<float>) {}
};
struct of_entries : nothing {
    static constexpr herring::wire_facts facts{.entries = true};
};
struct counts : of_entries {
    static constexpr std::size_t count(std::size_t elements) noexcept { return elements / 2; }
};
static_assert(herring::wire_policy<nothing> && herring::wire_supports<nothing, float>);
static_assert(!herring::wire_supports<nothing, double> && !herring::wire_with_lanes<nothing, float>);
static_assert(!herring::wire_policy<may_throw> && !herring::wire_policy<of_entries> &&
              herring::wire_policy<counts>);
static_assert(!herring::wire_policy<int>);

} // namespace wire_test

namespace entry_test {

static_assert(sizeof(herring::entry) == 8 && std::is_trivially_copyable_v<herring::entry>);
static_assert(herring::entry{3, 0.5f} == herring::entry{3, 0.5f} &&
              herring::entry{3, 0.5f} != herring::entry{4, 0.5f});

} // namespace entry_test
