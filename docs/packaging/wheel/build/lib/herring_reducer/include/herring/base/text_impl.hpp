// herring: messages put together from pieces: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_TEXT_IMPL_HPP
#define HERRING_BASE_TEXT_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE std::string_view as_text(text_part const& p, char (&digits)[24]) noexcept {
    bool const negative = p.from == text_part::negative;
    if (p.from != text_part::number && !negative) return {p.from, p.size};
    char* const end = digits + sizeof digits;
    char* first = end;
    for (std::size_t left = negative ? 0 - p.size : p.size; left != 0 || first == end; left /= 10)
        *--first = static_cast<char>('0' + left % 10);
    if (negative) *--first = '-';
    return {first, static_cast<std::size_t>(end - first)};
}

HERRING_SEPARABLE void append(std::string& to, std::initializer_list<text_part> pieces) {
    char digits[24];
    for (text_part const& p : pieces) to += as_text(p, digits);
}

HERRING_SEPARABLE std::string text(std::initializer_list<text_part> pieces) {
    std::string joined;
    append(joined, pieces);
    return joined;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_TEXT_IMPL_HPP
