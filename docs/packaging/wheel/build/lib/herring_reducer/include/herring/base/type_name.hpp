// herring: the name of a type in messages: a name of its own, else the compiler's spelling.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_TYPE_NAME_HPP
#define HERRING_BASE_TYPE_NAME_HPP

#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace HERRING_NAMESPACE {
namespace detail {

#define HERRING_QUOTED_(text) #text
#define HERRING_QUOTED(text) HERRING_QUOTED_(text)
inline constexpr std::string_view target_name = HERRING_QUOTED(HERRING_TARGET) "::";
#undef HERRING_QUOTED
#undef HERRING_QUOTED_

// The compiler's spelling of a type, with the inline namespace:
// "my_models::fast<herring::v0_1_avx2_fma::update::sum>".
template <class Spelled> constexpr std::string_view compilers_spelling() noexcept {
    std::string_view const all = __PRETTY_FUNCTION__;
    std::string_view const mark = "Spelled = ";
    std::size_t const from = all.find(mark) + mark.size();
    std::size_t const semicolon = all.find(';', from);
    return all.substr(from, (semicolon < all.size() ? semicolon : all.rfind(']')) - from);
}

// Copies a spelling to `out` without the inline namespace, and returns its length.
constexpr std::size_t spell_without_target(std::string_view spelled, char* out) noexcept {
    std::size_t n = 0;
    for (std::size_t i = 0; i < spelled.size();) {
        out[n++] = spelled[i++];
        if (spelled.substr(0, i).ends_with("herring::") && spelled.substr(i).starts_with(target_name))
            i += target_name.size();
    }
    return n;
}

template <class Spelled> struct spelled_name {
    static constexpr std::string_view from = compilers_spelling<Spelled>();
    struct text {
        std::array<char, from.size()> characters{};
        std::size_t size = spell_without_target(from, characters.data());
    };
    static constexpr text value{};
};

// The spelling of a type that ranks compare and checkpoints hold: the same whatever version and flags a rank
// was compiled with.
template <class Spelled> constexpr std::string_view spelling() noexcept {
    return {spelled_name<Spelled>::value.characters.data(), spelled_name<Spelled>::value.size};
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

#endif // HERRING_BASE_TYPE_NAME_HPP
