// herring: a member's end of the control connections to all its frontends. No sink: it gives notices.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_CORE_HPP
#define HERRING_ENSEMBLE_DIALLER_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/control/failure/stall_detector.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/dial_target.hpp"
#include "herring/ensemble/dialler_notice.hpp"
#include "herring/ensemble/incarnation.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/ensemble/shape.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Each frontend is dialled, admitted at, and watched over independently of the others.
///
/// Threads:  turn() and give_memory() by one thread; drop, leave and stop by any.
class dialler_core {
  public:
    /// Errors: `bad_argument` naming an option or an address; `no_resources`.
    HERRING_SEPARABLE dialler_core(dialler_options const& options, shape const& own);
    dialler_core(dialler_core const&) = delete;
    dialler_core& operator=(dialler_core const&) = delete;

    std::uint64_t incarnation() const noexcept { return incarnation_; }
    rendezvous::event_thread& thread() noexcept { return thread_; }

    // ---- any thread -----------------------------------------------------------------------------------------

    HERRING_SEPARABLE void drop(std::size_t frontend, std::string why);
    /// False: not all frontends have let this member go in time.
    HERRING_SEPARABLE bool leave(std::chrono::milliseconds most) noexcept;
    HERRING_SEPARABLE void stop() noexcept;

    // ---- the thread -----------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: stop() was called.
    HERRING_SEPARABLE bool turn(std::vector<dialler_notice>& notices);

    /// The answer to wants_memory; −1: none.
    HERRING_SEPARABLE void give_memory(std::vector<dialler_notice>& notices, std::size_t frontend,
                                       descriptor&& memory);

  private:
    using stage = dial_target::stage;
    static constexpr unsigned index_bits = 16;

    HERRING_SEPARABLE void check_options() const;

    // ---- orders and times -----------------------------------------------------------------------------------

    HERRING_SEPARABLE bool take_orders();

    HERRING_SEPARABLE time_point detect_own_stall() noexcept;

    /// Returns for how many milliseconds the thread may sleep; −1: for ever.
    HERRING_SEPARABLE int run_due(time_point now);

    /// Signs of life, both ways. Returns when to do so again.
    HERRING_SEPARABLE time_point look_after(dial_target& t, time_point now);

    // ---- attempts -------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void begin(dial_target& t);
    HERRING_SEPARABLE void resolved(dial_target& t);
    /// A socket that connects, or is going to. −1 and errno where it cannot.
    HERRING_SEPARABLE static descriptor connecting(endpoint const& to) noexcept;
    HERRING_SEPARABLE void dial(dial_target& t);
    HERRING_SEPARABLE void unreachable(dial_target& t, int why);
    std::uint64_t next_key(dial_target const& t) noexcept { return ++serial_ << index_bits | t.index; }

    /// Whether the connection stands; 0, or why not.
    HERRING_SEPARABLE static int connect_error(int socket) noexcept;

    HERRING_SEPARABLE void close(dial_target& t) noexcept;
    /// The attempt, or the connection, has ended; there will be another.
    HERRING_SEPARABLE void fail(dial_target& t, std::string_view why);
    HERRING_SEPARABLE void tell_disconnected(dial_target& t, std::string const& words);
    HERRING_SEPARABLE void left(dial_target& t);
    HERRING_SEPARABLE void refused_for_good(dial_target& t, failure const& why);

    // ---- events ---------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_epoll(std::uint64_t key, std::uint32_t what);
    HERRING_SEPARABLE void watch_link(dial_target& t) noexcept;

    HERRING_SEPARABLE void on_readable(dial_target& t);

    HERRING_SEPARABLE void on_message(dial_target& t, incoming const& got);

    /// Proves that this member has the secret, if who asks says that it has one.
    HERRING_SEPARABLE void on_challenge(dial_target& t, std::span<std::byte const> body);

    HERRING_SEPARABLE void on_admit(dial_target& t, std::span<std::byte const> body);

    HERRING_SEPARABLE void on_refuse(dial_target& t, std::span<std::byte const> body);
    HERRING_SEPARABLE void refused(dial_target& t, ensembles::refuse const& said, bool verified);

    // ---- lanes ----------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void without_memory(dial_target& t, std::string_view why);
    HERRING_SEPARABLE void watch_lane(dial_target& t, std::uint32_t what) noexcept;
    HERRING_SEPARABLE void greet_lane(dial_target& t, herring::lane kind);
    HERRING_SEPARABLE void lane_failed(dial_target& t, std::string_view why);

    HERRING_SEPARABLE void on_lane(dial_target& t);

    dialler_options options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    std::optional<secrets> secrets_;
    rendezvous::event_thread thread_;

    monitor lock_; // of these
    std::vector<std::pair<std::size_t, std::string>> drops_;
    bool leave_ = false, all_left_ = false, stop_ = false;

    // The thread's.
    std::vector<std::unique_ptr<dial_target>> targets_;
    std::uint64_t serial_ = 0;
    stall_detector stall_{};
    std::vector<dialler_notice>* notices_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#ifndef HERRING_SEPARATE
#include "herring/ensemble/dialler_admission_impl.hpp"
#include "herring/ensemble/dialler_core_impl.hpp"
#endif

#endif // HERRING_ENSEMBLE_DIALLER_CORE_HPP
