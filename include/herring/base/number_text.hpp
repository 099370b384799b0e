// herring: numbers with fractions as programs read them: the same text in every locale.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_NUMBER_TEXT_HPP
#define HERRING_BASE_NUMBER_TEXT_HPP

#include "herring/base/config.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace HERRING_NAMESPACE::detail {

// Not printf, which writes a decimal comma where the program has set such a locale.

/// The shortest text that reads back as `value`; "0" for one that is not finite.
HERRING_SETUP inline std::string number_text(double value) {
    char room[32]; // 24 are the most
    return {room, std::to_chars(room, room + sizeof room, std::isfinite(value) ? value : 0.0).ptr};
}
/// The same with so many digits at most, 17 or less.
HERRING_SETUP inline std::string number_text(double value, int digits) {
    char room[32];
    return {room, std::to_chars(room, room + sizeof room, std::isfinite(value) ? value : 0.0,
                                std::chars_format::general, digits)
                      .ptr};
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_NUMBER_TEXT_HPP
