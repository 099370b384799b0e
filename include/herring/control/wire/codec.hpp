// herring: numbers and texts of a control message, as bytes and back. Pure; reads with bounds.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_CODEC_HPP
#define HERRING_CONTROL_WIRE_CODEC_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/little_endian.hpp"
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

/// Reads what `append` wrote: the one reader of bytes that came from outside. Past the end it returns zeros, and `ok` turns
/// false; a size that was read is held against what is left before anything is done with it.
struct reader {
    std::span<std::byte const> rest;
    bool ok = true;

    /// Everything was there, and nothing is left.
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
/// Shape:    of integers and bytes only, for which every pattern of bits is a value; what they mean is checked by the caller.
template <class Value> bool read_value(std::span<std::byte const> from, Value& to) noexcept {
    static_assert(std::is_trivially_copyable_v<Value>);
    if (from.size() != sizeof to) return false;
    std::memcpy(static_cast<void*>(&to), from.data(), sizeof to);
    return true;
}

/// A text of another process, to be shown: bytes that would move a terminal's cursor are question marks.
HERRING_SETUP inline void make_printable(std::span<char> text) noexcept {
    for (char& letter : text)
        if ((static_cast<unsigned char>(letter) < 0x20 && letter != '\n' && letter != '\t') || letter == 0x7F)
            letter = '?';
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_CODEC_HPP
