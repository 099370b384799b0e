// herring: messages put together from pieces, and the names of types in them.
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

namespace HERRING_NAMESPACE {
namespace detail {

// The compiler's spelling of a type, e.g. "my_models::fast_tcp".
template <class Spelled> constexpr std::string_view spelling() noexcept {
    std::string_view const all = __PRETTY_FUNCTION__;
    std::string_view const mark = "Spelled = ";
    std::size_t const from = all.find(mark) + mark.size();
    std::size_t const semicolon = all.find(';', from);
    return all.substr(from, (semicolon < all.size() ? semicolon : all.rfind(']')) - from);
}

} // namespace detail

/// The name of a policy in messages: its `static constexpr` member `name`, else the compiler's spelling of
/// its type.
///
/// Ranks compare names: a policy template with value parameters has no `name`, or one with the values in it.
template <class Policy> constexpr std::string_view policy_name() noexcept {
    if constexpr (requires { std::string_view(Policy::name); })
        return Policy::name;
    else
        return detail::spelling<Policy>();
}

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/base/text_impl.hpp"
#endif

#endif // HERRING_BASE_TEXT_HPP
