// herring: the environment variables of a process, or those that a test gives.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_VARIABLES_HPP
#define HERRING_CONTROL_VARIABLES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"

#include <initializer_list>
#include <string_view>

#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

[[noreturn]] HERRING_SETUP inline void bad_setting(std::initializer_list<text_part> text,
                                                   std::string_view operation = "join") {
    throw error(errc::bad_argument, -1, -1, operation, text);
}

/// A decimal number from `least` to `most`; -1 when it is not one.
constexpr long long number_in(std::string_view text, long long least, long long most) noexcept {
    if (text.empty() || text.size() > 18) return -1;
    long long value = 0;
    for (char const c : text) {
        if (c < '0' || c > '9') return -1;
        value = value * 10 + (c - '0');
    }
    return value < least || value > most ? -1 : value;
}

/// Variables by name, in the form of `environ`.
///
/// Lifetime: refers to the entries; those of the process stay until it changes the variable.
class variables {
  public:
    /// `entries`: "NAME=value" each, behind them a nullptr.
    explicit variables(char const* const* entries) noexcept : entries_(entries) {}
    static variables of_process() noexcept { return variables(::environ); }

    /// Empty: it is not set, or empty.
    std::string_view text(std::string_view name) const noexcept { return find(name); }
    /// Also where it is empty.
    bool is_set(std::string_view name) const noexcept { return find(name).data() != nullptr; }
    bool has(std::string_view name) const noexcept { return !text(name).empty(); }
    /// Calls `name(std::string_view)` for each.
    template <class Name> HERRING_SETUP void each(Name const& name) const {
        for (char const* const* at = entries_; at != nullptr && *at != nullptr; ++at)
            name(std::string_view(*at).substr(0, std::string_view(*at).find('=')));
    }
    /// Errors: `bad_argument` naming the variable and its value.
    HERRING_SETUP int number(std::string_view name, long long least, long long most) const {
        long long const value = number_in(text(name), least, most);
        if (value < 0)
            bad_setting({name, " is '", text(name), "', which is not a number from ", least, " to ", most});
        return static_cast<int>(value);
    }

  private:
    /// Without a pointer where it is not set.
    HERRING_SETUP std::string_view find(std::string_view name) const noexcept {
        if (entries_ == nullptr) return {}; // after clearenv()
        for (char const* const* at = entries_; *at != nullptr; ++at) {
            std::string_view const entry(*at);
            if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name))
                return entry.substr(name.size() + 1);
        }
        return {};
    }

    char const* const* entries_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_VARIABLES_HPP
