// herring: failures as a value (`failure`, `status`) and as the one exception (`error`).
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_ERROR_HPP
#define HERRING_BASE_ERROR_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"

#include <cstddef>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>

// In `herring` itself, not in the namespace of the translation unit's flags (base/target.hpp): these types
// cross translation units, and `catch (herring::error const&)` must catch what code with other flags threw.
// Functions of more than a few instructions are inlined, or are templates over those flags, which linkers
// keep apart.
namespace herring {

/// The kind of a failure; docs/errors.md has the cause and the cure of each.
enum class errc : int {
    ok = 0,
    timeout,      ///< a deadline passed; the failure names the rank that was missing
    peer_lost,    ///< a rank died, or its connection broke
    peer_failed,  ///< a rank announced an error of its own
    mismatch,     ///< ranks differ in layout, type, policies, version, size or call order
    refused,      ///< this rank or a peer was turned away at join (duplicate, out of range, wrong job)
    protocol,     ///< a peer sent what no healthy peer sends
    bad_argument, ///< index, span, layout or option out of bounds
    bad_state,    ///< the call does not fit the step: twice ready, not ready, used after a failure
    unreachable,  ///< an address or an interface that does not resolve, bind or answer
    no_resources, ///< memory, shared memory, ports, descriptors
    unsupported,  ///< the machine, kernel or library cannot do what the policy needs
    corrupted,    ///< a message arrived changed, or a checkpoint differs from what was saved
    device,       ///< an accelerator or a NIC reported an error
    internal      ///< a defect in Herring
};

/// Returns the text of an error code, e.g. "timeout".
constexpr char const* to_string(errc c) noexcept {
    switch (c) {
    case errc::ok:
        return "ok";
    case errc::timeout:
        return "timeout";
    case errc::peer_lost:
        return "peer lost";
    case errc::peer_failed:
        return "peer failed";
    case errc::mismatch:
        return "mismatch";
    case errc::refused:
        return "refused";
    case errc::protocol:
        return "protocol violation";
    case errc::bad_argument:
        return "bad argument";
    case errc::bad_state:
        return "bad state";
    case errc::unreachable:
        return "unreachable";
    case errc::no_resources:
        return "no resources";
    case errc::unsupported:
        return "unsupported";
    case errc::corrupted:
        return "corrupted";
    case errc::device:
        return "device error";
    case errc::internal:
        return "internal error";
    }
    return "unknown";
}

/// One failure as plain bytes, which may be copied between processes and in signal handlers.
///
/// Shape:    texts longer than their fields are cut.
/// Lifetime: trivially copyable; owns nothing.
struct failure {
    // Inlined: code of all flags shares this type, so no function of it may be merged by the linker.
    HERRING_ALWAYS_INLINE constexpr failure() noexcept {}

    errc what = errc::ok;
    int reporter = -1;       ///< rank of the world that found the failure; -1: not known
    int peer = -1;           ///< rank that is missing, differs or misbehaved; -1: none
    char operation[48] = {}; ///< the call, e.g. "all_reduce", "join"
    char text[416] = {};     ///< what happened and what to do about it

    template <class Target = detail::target>
    HERRING_SETUP static failure make(errc what, int reporter, int peer, std::string_view operation,
                                      std::string_view text) noexcept {
        failure result;
        result.what = what;
        result.reporter = reporter;
        result.peer = peer;
        copy(result.operation, operation);
        copy(result.text, text);
        return result;
    }
    /// The text in pieces: `{"it sent ", n, " bytes"}`.
    template <class Target = detail::target>
    HERRING_SETUP static failure make(errc what, int reporter, int peer, std::string_view operation,
                                      std::initializer_list<detail::text_part> text) noexcept {
        failure result = make(what, reporter, peer, operation, std::string_view());
        std::size_t used = 0;
        char digits[24];
        for (detail::text_part const& p : text)
            for (char const c : detail::as_text(p, digits))
                if (used < sizeof result.text - 1) result.text[used++] = c;
        return result;
    }

    /// Returns "herring: rank 2: all_reduce: peer lost (rank 3): its connection closed; ...".
    template <class Target = detail::target> HERRING_SETUP std::string message() const {
        std::string out = "herring: ";
        if (reporter >= 0) detail::append(out, {"rank ", reporter, ": "});
        if (operation[0] != 0) detail::append(out, {operation, ": "});
        detail::append(out, {to_string(what)});
        if (peer >= 0) detail::append(out, {" (rank ", peer, ")"});
        if (text[0] != 0) detail::append(out, {": ", text});
        return out;
    }

  private:
    template <std::size_t Size> static void copy(char (&to)[Size], std::string_view from) noexcept {
        std::size_t const size = from.size() < Size - 1 ? from.size() : Size - 1;
        for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
        to[size] = 0;
    }
};

/// The exception that set-up and `wait()` throw; has the failure and its message.
class error : public std::exception {
  public:
    template <class Target = detail::target>
    HERRING_SETUP explicit error(failure const& why) : failure_(why), message_(why.message()) {}
    template <class Target = detail::target>
    HERRING_SETUP error(errc what, int reporter, int peer, std::string_view operation, std::string_view text)
        : error(failure::make(what, reporter, peer, operation, text)) {}
    /// The text in pieces: `{"there is no tensor ", i}`.
    template <class Target = detail::target>
    HERRING_SETUP error(errc what, int reporter, int peer, std::string_view operation,
                        std::initializer_list<detail::text_part> text)
        : error(failure::make(what, reporter, peer, operation, text)) {}

    HERRING_ALWAYS_INLINE error(error const&) = default;
    HERRING_ALWAYS_INLINE error& operator=(error const&) = default;

    errc code() const noexcept { return failure_.what; }
    int reported_by() const noexcept { return failure_.reporter; }
    int peer() const noexcept { return failure_.peer; }
    char const* operation() const noexcept { return failure_.operation; }
    failure const& why() const noexcept { return failure_; }
    char const* what() const noexcept override { return message_.c_str(); }

  private:
    failure failure_;
    std::string message_;
};

namespace detail {
inline constexpr failure no_failure{};
}

/// The outcome of an operation with an explicit deadline: the facts of an `error`, without a throw.
///
/// Cost: an ok status is one word; the bytes of a failure are neither set nor copied.
class [[nodiscard]] status {
  public:
    HERRING_ALWAYS_INLINE status() noexcept {}
    HERRING_ALWAYS_INLINE explicit status(failure const& why) noexcept { set(why); }
    HERRING_ALWAYS_INLINE status(status const& other) noexcept { set(other.why()); }
    HERRING_ALWAYS_INLINE status& operator=(status const& other) noexcept {
        set(other.why());
        return *this;
    }

    bool ok() const noexcept { return code_ == errc::ok; }
    explicit operator bool() const noexcept { return ok(); }
    errc code() const noexcept { return code_; }
    int peer() const noexcept { return why().peer; }
    failure const& why() const noexcept { return ok() ? detail::no_failure : failure_; }
    template <class Target = detail::target> std::string message() const {
        return ok() ? std::string("ok") : failure_.message();
    }

    /// Throws `error` unless ok.
    template <class Target = detail::target> void value() const {
        if (!ok()) [[unlikely]]
            throw error(failure_);
    }

  private:
    HERRING_ALWAYS_INLINE void set(failure const& why) noexcept {
        code_ = why.what;
        if (!ok()) [[unlikely]]
            ::new (static_cast<void*>(&failure_)) failure(why);
    }

    errc code_ = errc::ok;
    union {
        failure failure_; // constructed unless ok
    };
};

} // namespace herring

#endif // HERRING_BASE_ERROR_HPP
