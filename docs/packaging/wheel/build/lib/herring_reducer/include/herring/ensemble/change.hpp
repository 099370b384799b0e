// herring: changes of members that a frontend reports to its program: the handler's call, and its rate.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CHANGE_HPP
#define HERRING_ENSEMBLE_CHANGE_HPP

#include "herring/base/config.hpp"
#include "herring/base/shared_handler.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/machine/time.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include <pthread.h>

namespace HERRING_NAMESPACE {

/// A change of a replica of a member.
enum class change_kind : std::uint8_t {
    joined,    ///< admitted for the first time
    returned,  ///< admitted again, after it was lost or had left
    slow,      ///< on probation: late several times in a row
    recovered, ///< off probation: in time several times in a row
    leaving,   ///< asked no more; requests that it was asked still count
    lost,      ///< gone: it left, died, or was silent for too long
    refused    ///< a process was turned away, or a newer one replaced it; admitted members are as before
};
inline constexpr int change_kinds = 7;

/// Returns the name of an enumerator.
constexpr char const* to_string(change_kind kind) noexcept {
    constexpr char const* names[] = {"joined", "returned", "slow", "recovered", "leaving", "lost", "refused"};
    static_assert(std::size(names) == change_kinds);
    auto const i = static_cast<std::size_t>(kind);
    return i < std::size(names) ? names[i] : "unknown";
}

/// A change of a member, the argument of `frontend_options::on_change`.
///
/// Lifetime: the texts live during the call of the handler.
struct change {
    /// `member` of a refused process: its name proves nothing.
    static constexpr std::size_t no_member = ~std::size_t{0};

    change_kind what = change_kind::joined;
    std::size_t member = 0;                             ///< index in the roster; no_member: `refused`
    std::uint32_t replica = 0;                          ///< of that member
    std::string_view name{};                            ///< of that member; empty: `refused`
    std::string_view why{};                             ///< details of `lost` and `refused`; else empty
    std::size_t admitted = 0;                           ///< members that are admitted now
    admission_refusal reason = admission_refusal::none; ///< of `refused`
};

namespace detail::ensembles {

/// Empty, or a function object that takes a `change const&`.
using change_handler = shared_handler<change>;

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail::ensembles {

/// Calls the program's handler of changes, and knows the thread that is in it.
///
/// Threads: `tell`: one thread; the rest: any.
class change_teller {
  public:
    explicit change_teller(change_handler handler) noexcept : handler_(std::move(handler)) {}

    /// True if there is a handler.
    explicit operator bool() const noexcept { return static_cast<bool>(handler_); }
    /// True if this thread is in the handler.
    bool is_in_handler() const noexcept {
        return handling_.load(std::memory_order_acquire) && ::pthread_equal(thread_, ::pthread_self());
    }
    HERRING_SETUP void tell(change const& what) {
        thread_ = ::pthread_self();
        handling_.store(true, std::memory_order_release);
        handler_(what);
        handling_.store(false, std::memory_order_release);
    }

  private:
    change_handler handler_;
    std::atomic<bool> handling_{false};
    pthread_t thread_{};
};

/// A limit of reports that unknown peers can cause: `burst` at once, then one each `gap`.
///
/// Threads: one at a time.
class notice_rate {
  public:
    static constexpr std::chrono::seconds gap{1};

    /// True if a report is allowed now; it then counts.
    bool take(int burst, time_point now) noexcept {
        if (time_point const earliest = now - (burst - 1) * gap; next_ < earliest) next_ = earliest;
        if (next_ > now) return false;
        next_ += gap;
        return true;
    }

  private:
    time_point next_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CHANGE_HPP
