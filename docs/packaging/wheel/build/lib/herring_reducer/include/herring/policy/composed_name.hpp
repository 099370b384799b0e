// herring: the name of a policy that is made of others: "chaos<tcp>", "mean<probability, none>".
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_COMPOSED_NAME_HPP
#define HERRING_POLICY_COMPOSED_NAME_HPP

#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// `Head::word` and, in angle brackets, the names of the parts: an array of characters that ends with 0.
template <class Head, class... Parts>
inline constexpr auto composed_name = [] {
    constexpr std::string_view word = Head::word;
    std::array<char, word.size() + 3 + (std::size_t{0} + ... + (std::string_view(Parts::name).size() + 2))>
        result{};
    std::size_t at = 0;
    auto const put = [&](std::string_view text) {
        for (char const c : text) result[at++] = c;
    };
    put(word);
    put("<");
    [[maybe_unused]] bool first = true; // not used where there are no parts
    ((put(first ? "" : ", "), put(Parts::name), first = false), ...);
    put(">");
    return result;
}();

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_POLICY_COMPOSED_NAME_HPP
