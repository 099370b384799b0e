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

/// Reads what `append` wrote. Past the end it returns zeros, and `ok` turns false.
struct reader {
    std::span<std::byte const> rest;
    bool ok = true;

    template <class Integer> Integer number() noexcept {
        std::byte little[8] = {};
        std::string_view const found = text(sizeof(Integer));
        if (!found.empty()) std::memcpy(little, found.data(), sizeof(Integer));
        return static_cast<Integer>(get<std::uint64_t>(little));
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

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_CODEC_HPP
