// herring: numbers and texts of a message, as bytes and back. Pure; reads with bounds.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_CODEC_HPP
#define HERRING_BASE_CODEC_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/text.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace HERRING_NAMESPACE::detail::wire {

using detail::append; // of texts

/// Appends what `reader` reads, in the same order.
inline void append(byte_buffer& to, std::string_view text) { to.append(std::as_bytes(std::span(text))); }
HERRING_SETUP inline void append_number(byte_buffer& to, std::uint64_t value, std::size_t size) {
    std::byte little[8];
    put(little, value);
    to.append({little, size});
}
template <class Integer> void append(byte_buffer& to, std::uint64_t value) {
    append_number(to, value, sizeof(Integer));
}

/// Reads the values that `append` wrote: the one reader of bytes from outside. Past the end it returns zeros,
/// and `ok` turns false; a size is compared with the bytes that are left before anything is done with it.
struct reader {
    std::span<std::byte const> rest;
    bool ok = true;

    /// True if every value was there, and no byte is left.
    bool done() const noexcept { return ok && rest.empty(); }

    template <class Integer> Integer number() noexcept {
        std::byte little[8] = {};
        std::string_view const found = text(sizeof(Integer));
        if (!found.empty()) std::memcpy(little, found.data(), sizeof(Integer));
        return static_cast<Integer>(get<std::uint64_t>(little));
    }
    HERRING_SETUP void bytes(std::span<std::byte> into) noexcept {
        std::string_view const found = text(into.size());
        if (!found.empty()) std::memcpy(into.data(), found.data(), into.size());
    }
    HERRING_SETUP std::string_view text(std::size_t size) noexcept {
        if (rest.size() < size) {
            ok = false;
            rest = {};
            return {};
        }
        std::string_view const found(reinterpret_cast<char const*>(rest.data()), size);
        rest = rest.subspan(size);
        return found;
    }
};

/// Reads a value that ranks of one build exchange as it lies in memory. False: the bytes are not exactly one.
///
/// Shape:    of integers and bytes only, for which every pattern of bits is a value; the caller checks their
///           meaning.
template <class Value> bool read_value(std::span<std::byte const> from, Value& to) noexcept {
    static_assert(std::is_trivially_copyable_v<Value>);
    // NOLINTBEGIN(bugprone-sizeof-expression): ranks that are threads of one process exchange pointers
    if (from.size() != sizeof to) return false;
    std::memcpy(static_cast<void*>(&to), from.data(), sizeof to);
    // NOLINTEND(bugprone-sizeof-expression)
    return true;
}

/// Returns the bytes of the printable character that begins here; 0: none begins: the byte would move a
/// terminal's cursor, or is no UTF-8.
HERRING_SETUP inline std::size_t printable_bytes(std::span<char const> text) noexcept {
    auto const byte = [&](std::size_t i) {
        return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
    };
    unsigned const first = byte(0);
    if (first < 0x80) return first == '\n' || first == '\t' || (first >= 0x20 && first != 0x7F) ? 1 : 0;
    std::size_t const size = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    unsigned code = first & (0x7Fu >> size);
    for (std::size_t i = 1; i < size; ++i) {
        if ((byte(i) & 0xC0u) != 0x80u) return 0;
        code = code << 6 | (byte(i) & 0x3Fu);
    }
    constexpr unsigned least[] = {0, 0, 0xA0, 0x800,
                                  0x10000}; // below: control characters, or longer than necessary
    bool const surrogate = code >= 0xD800 && code < 0xE000;
    return code < least[size] || surrogate || code > 0x10FFFF ? 0 : size;
}

/// Makes a text of another process fit to be shown, in logs, too: a byte that would move a terminal's cursor,
/// or is part of no UTF-8, becomes a question mark.
HERRING_SETUP inline void make_printable(std::span<char> text) noexcept {
    for (std::size_t i = 0; i < text.size();) {
        std::size_t const size = wire::printable_bytes(text.subspan(i));
        if (size == 0) text[i] = '?';
        i += size == 0 ? 1 : size;
    }
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_BASE_CODEC_HPP
