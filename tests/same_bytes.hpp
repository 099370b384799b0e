// herring: compares spans by their bytes: NaN equals itself, 0 and -0 differ, and it is fast where nothing is optimised.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_SAME_BYTES_HPP
#define HERRING_TESTS_SAME_BYTES_HPP

#include <cstring>
#include <span>

template <class First, class Second> bool same_bytes(First const& first, Second const& second) noexcept {
    auto const a = std::as_bytes(std::span(first)), b = std::as_bytes(std::span(second));
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

#endif
