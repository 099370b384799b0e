// herring: the environment variables of a process, or those that a test gives; HERRING_SECRET is read once.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_VARIABLES_HPP
#define HERRING_CONTROL_VARIABLES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/crypto/secret_key.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include <sched.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

// The two lie in `herring` itself, not in the namespace of the translation unit's flags (base/target.hpp): a
// process has one environment. They are visible, so that all shared objects of a program share them.
namespace herring::process_wide {
[[gnu::visibility("default")]] inline constinit std::atomic<::pid_t> secret_of_start_busy{
    0}; // the process whose thread reads the variable
[[gnu::visibility("default")]] inline constinit char const* secret_of_start =
    nullptr; // a copy, in pages that core dumps leave out; under `secret_of_start_busy`
} // namespace herring::process_wide

namespace HERRING_NAMESPACE::detail {

[[noreturn]] HERRING_SETUP inline void bad_setting(std::initializer_list<text_part> text,
                                                   std::string_view operation = "join") {
    throw error(errc::bad_argument, -1, -1, operation, text);
}

/// Reads a decimal number from `least` to `most`; −1 for any other text.
constexpr long long number_in(std::string_view text, long long least, long long most) noexcept {
    if (text.empty() || text.size() > 18) return -1;
    long long value = 0;
    for (char const c : text) {
        if (c < '0' || c > '9') return -1;
        value = value * 10 + (c - '0');
    }
    return value < least || value > most ? -1 : value;
}

/// The variables by name, in the form of `environ`.
///
/// Lifetime: refers to the entries; those of the process stay until the process changes the variable.
class variables {
  public:
    /// `entries`: "NAME=value" each, behind them a nullptr.
    explicit variables(char const* const* entries) noexcept : entries_(entries) {}
    static variables of_process() noexcept { return variables(::environ); }

    /// Returns the value; empty: the variable is not set, or empty.
    std::string_view text(std::string_view name) const noexcept { return find(name); }
    /// True also for an empty value.
    bool is_set(std::string_view name) const noexcept { return find(name).data() != nullptr; }
    bool has(std::string_view name) const noexcept { return !text(name).empty(); }
    /// Calls `name(std::string_view)` for each variable.
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
    /// Returns a view without a pointer where the variable is not set.
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

/// True if the string lies in the block of variables with which the kernel started the process, which
/// /proc/PID/environ shows: between the 16 random bytes and the name of the program. A string of setenv or
/// putenv lies elsewhere, and may be a constant.
inline bool is_of_start(char const* variable) noexcept {
    auto const at = reinterpret_cast<std::uintptr_t>(variable);
    return ::getauxval(AT_RANDOM) < at && at < ::getauxval(AT_EXECFN);
}

/// Returns HERRING_SECRET. The characters with which the process was started are copied, and then overwritten
/// by zeroes: the variable is empty for children that call exec, in /proc/PID/environ and in core dumps. The
/// pointers of the environment stay as they are, so that other threads may call getenv. A second call returns
/// the copy, also in a child without exec. A value that the program has set itself stays as it is.
///
/// Threads:  any.
/// Lifetime: of the process, or the variable's.
HERRING_SETUP inline std::string_view secret_variable(variables const& from) noexcept {
    // A process that was forked off while another thread looked does not wait for its copy of the flag.
    ::pid_t const here = ::getpid();
    for (::pid_t by = 0;
         !process_wide::secret_of_start_busy.compare_exchange_weak(by, here, std::memory_order_acquire);)
        if (by == here) {
            by = 0;
            ::sched_yield();
        }
    std::string_view text = from.text("HERRING_SECRET");
    if (text.data() != nullptr && is_of_start(text.data())) {
        char const*& copy = process_wide::secret_of_start;
        if (copy == nullptr && !text.empty()) {
            void* const room =
                ::mmap(nullptr, text.size() + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (room != MAP_FAILED) {
                (void)::madvise(room, text.size() + 1, MADV_DONTDUMP);
                std::memcpy(room, text.data(), text.size());
                copy = static_cast<char const*>(room);
                erase(const_cast<char*>(text.data()), text.size());
            }
        }
        if (copy != nullptr) text = copy;
    }
    process_wide::secret_of_start_busy.store(0, std::memory_order_release);
    return text;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_VARIABLES_HPP
