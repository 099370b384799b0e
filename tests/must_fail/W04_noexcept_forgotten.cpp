// herring: must not compile: a codec whose bound may throw.
// SPDX-License-Identifier: Apache-2.0
#include "herring/wire/wire.hpp"

struct own {
    using axis = herring::axes::wire;
    static constexpr char const* name = "own";
    static constexpr herring::wire_facts facts{};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
#ifndef HERRING_TWIN
    template <class T> static constexpr std::size_t bytes(std::size_t elements) { return elements; }
#else
    template <class T> static constexpr std::size_t bytes(std::size_t elements) noexcept { return elements; }
#endif
    template <class T>
    static void encode(std::span<herring::accumulator<T> const>, std::span<std::byte>) noexcept {}
    template <class T>
    static void decode(std::span<std::byte const>, std::span<herring::accumulator<T>>) noexcept {}
};

inline constexpr bool mine = herring::check<herring::axes::wire, own>::value;
