// herring: messages put together from pieces.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_TEXT_HPP
#define HERRING_BASE_TEXT_HPP

#include "herring/base/config.hpp"

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// A piece of a message: a text or a whole number.
///
/// Lifetime: refers to the text; ends with the expression that it stands in.
struct text_part {
    static constexpr char number[] = "", negative[] = "-";

    char const* from; ///< the text, or `number`, or `negative`
    std::size_t size; ///< the size of the text, or the number

    text_part(char const* text) noexcept : text_part(std::string_view(text)) {}
    text_part(std::string const& text) noexcept : from(text.data()), size(text.size()) {}
    text_part(std::string_view text) noexcept : from(text.data()), size(text.size()) {}
    template <std::integral Number>
    text_part(Number value) noexcept : from(number), size(static_cast<std::size_t>(value)) {
        if constexpr (std::signed_integral<Number>)
            if (value < 0) from = negative;
    }
};

/// Returns a text_part as text. `digits`: room for the digits of a number.
HERRING_SEPARABLE std::string_view as_text(text_part const& p, char (&digits)[24]) noexcept;

/// Appends the pieces. One function out of line: chains of operator+ at every error cost compile time.
HERRING_SEPARABLE void append(std::string& to, std::initializer_list<text_part> pieces);

/// Joins the pieces: text({"tensor ", i, " of ", name}).
HERRING_SEPARABLE std::string text(std::initializer_list<text_part> pieces);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/base/text_impl.hpp"
#endif

#endif // HERRING_BASE_TEXT_HPP
