// herring: every wire policy passes the suite of its axis; a wrong one does not.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/wire_suite.hpp"

#include "doctest/doctest.h"

#include "herring/wire/codecs.hpp"

using namespace herring::conformance;
namespace wire = herring::wire;

namespace {
// Truncates, and says nothing of it.
struct truncates : wire::bf16 {
    static constexpr char const* name = "truncates";
    static constexpr herring::wire_facts facts{.exact = true};
};
struct writes_beyond : wire::bf16 {
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        wire::bf16::encode<T>(numbers, out);
        out.data()[out.size()] = std::byte{1};
    }
};
struct writes_before : wire::bf16 {
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        wire::bf16::encode<T>(numbers, out);
        out.data()[-1] = std::byte{1};
    }
};
struct leaves_a_byte : wire::bf16 {
    template <class T> static constexpr std::size_t bytes(std::size_t n) noexcept {
        return wire::bf16::bytes<T>(n) + 1;
    }
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        wire::bf16::encode<T>(numbers, out.first(out.size() - 1));
    }
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        wire::bf16::decode<T>(bytes.first(bytes.size() - 1), numbers);
    }
};
struct decodes_beyond : wire::bf16 {
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        wire::bf16::decode<T>(bytes, numbers);
        numbers.data()[numbers.size()] = 0;
    }
};
struct reads_beyond : wire::as_is {
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        wire::as_is::decode<T>(bytes, numbers);
        if (numbers.size() == 17) numbers[0] = static_cast<float>(bytes.data()[bytes.size()]);
    }
};
// Adds the number of elements that it is called with.
struct depends_on_place : wire::as_is {
    static constexpr herring::wire_facts facts{.group = 8};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    template <class T> static void encode(std::span<float const> numbers, std::span<std::byte> out) noexcept {
        wire::as_is::encode<T>(numbers, out);
        if (numbers.size() > 8) out[32] ^= std::byte{1};
    }
};
struct loses_zero : wire::as_is {
    static constexpr herring::wire_facts facts{};
    template <class T> static constexpr bool supports = std::is_same_v<T, float>;
    template <class T>
    static void decode(std::span<std::byte const> bytes, std::span<float> numbers) noexcept {
        wire::as_is::decode<T>(bytes, numbers);
        for (float& x : numbers) x += x == 0 ? 1e-9f : 0;
    }
};
bool finds(findings const& all, std::string const& test) {
    return std::any_of(all.begin(), all.end(), [&](finding const& f) { return f.test == test; });
}
} // namespace

TEST_CASE("wire: as_is") { CHECK(text(wire_suite<wire::as_is>()) == ""); }
TEST_CASE("wire: bf16") { CHECK(text(wire_suite<wire::bf16>({.relative = 0x1p-8})) == ""); }
TEST_CASE("wire: fp16") {
    CHECK(text(wire_suite<wire::fp16>({.relative = 0x1p-11, .absolute = 0x1p-25})) == "");
}

TEST_CASE("wire: what is wrong is found") {
    CHECK(finds(wire_suite<truncates>(), "exact"));
    CHECK(finds(wire_suite<writes_beyond>({.relative = 0x1p-8}), "bounds"));
    CHECK(finds(wire_suite<writes_before>({.relative = 0x1p-8}), "bounds"));
    CHECK(finds(wire_suite<leaves_a_byte>({.relative = 0x1p-8}), "bytes"));
    CHECK(finds(wire_suite<decodes_beyond>({.relative = 0x1p-8}), "bounds"));
    CHECK(finds(wire_suite<reads_beyond>({.absolute = 1000}), "junk"));
    CHECK(finds(wire_suite<depends_on_place>({.relative = 1}), "groups"));
    CHECK(finds(wire_suite<loses_zero>({.relative = 1e-6, .absolute = 1}), "zero"));
}
