// herring: what every fuzz target uses: input taken apart, properties that end the program, and how much memory was asked for.
// SPDX-License-Identifier: Apache-2.0
//
// Included once by each target, which is one file: it replaces operator new.
#ifndef HERRING_TESTS_FUZZ_FUZZ_HPP
#define HERRING_TESTS_FUZZ_FUZZ_HPP

#include "every_new.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size);

namespace fuzz {

/// Ends the program unless the property holds.
inline void require(bool holds, char const* what) {
    if (holds) return;
    std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
    std::abort();
}

/// What `operator new` was asked for since `memory::begin()`, by all threads.
namespace memory {
inline std::atomic<std::size_t> largest{0}, together{0};
inline void begin() {
    largest = 0;
    together = 0;
}
inline void note(std::size_t bytes) noexcept {
    std::size_t seen = largest.load();
    while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
    }
    together += bytes;
}
/// Nothing that came from outside made the program ask for more.
inline void require_below(std::size_t one, std::size_t all) {
    if (largest <= one && together <= all) return;
    std::fprintf(stderr, "fuzz: asked for %zu bytes at once, %zu in all\n", largest.load(), together.load());
    std::abort();
}
} // namespace memory

/// Takes an input apart; past its end there are zeros.
struct input {
    std::span<std::byte const> rest;

    input(std::uint8_t const* data, std::size_t size)
        : rest(reinterpret_cast<std::byte const*>(data), size) {}
    bool empty() const { return rest.empty(); }
    std::span<std::byte const> bytes(std::size_t most) {
        auto const found = rest.first(most < rest.size() ? most : rest.size());
        rest = rest.subspan(found.size());
        return found;
    }
    std::uint64_t number(std::size_t size) {
        std::uint64_t value = 0;
        unsigned shift = 0;
        for (std::byte const b : bytes(size)) {
            value |= std::to_integer<std::uint64_t>(b) << shift;
            shift += 8;
        }
        return value;
    }
    std::string_view text(std::size_t most) {
        auto const found = bytes(most);
        return {reinterpret_cast<char const*>(found.data()), found.size()};
    }
};

} // namespace fuzz

bool every_new::allows(std::size_t bytes) noexcept {
    fuzz::memory::note(bytes);
    return true;
}

#endif // HERRING_TESTS_FUZZ_FUZZ_HPP
