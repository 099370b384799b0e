// herring: bytes from and to hexadecimal digits, for the tests of crypto/.
// SPDX-License-Identifier: Apache-2.0
#ifndef UNIT_CRYPTO_HEX_HPP
#define UNIT_CRYPTO_HEX_HPP

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

inline std::string hex(std::span<std::byte const> bytes) {
    std::string text;
    for (std::byte const b : bytes)
        for (unsigned const digit : {static_cast<unsigned>(b) / 16, static_cast<unsigned>(b) % 16})
            text += "0123456789abcdef"[digit];
    return text;
}

inline std::vector<std::byte> from_hex(std::string_view text) {
    std::vector<std::byte> bytes;
    auto const digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
    for (std::size_t i = 0; i + 1 < text.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(digit(text[i]) * 16 + digit(text[i + 1])));
    return bytes;
}

/// first, first + 1, ...
inline std::vector<std::byte> counted(unsigned first, std::size_t size) {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::byte>(first + i));
    return bytes;
}

#endif // UNIT_CRYPTO_HEX_HPP
