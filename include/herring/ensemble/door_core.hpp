// herring: a frontend's end of the control connections: admits members, watches over them, lets them go. No sink: it gives notices.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DOOR_CORE_HPP
#define HERRING_ENSEMBLE_DOOR_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/control/failure/stall_detector.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/admission_refusal.hpp"
#include "herring/ensemble/change.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/door_listeners.hpp"
#include "herring/ensemble/door_notice.hpp"
#include "herring/ensemble/door_roster.hpp"
#include "herring/ensemble/guest.hpp"
#include "herring/ensemble/guest_list.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/incarnation.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/ensemble/shape.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Every connection is a guest: a stranger first, then challenged, then a member's control connection that waits for its lane, and at
/// last one that is up. A lane's connection is a guest until it is proven, and then its socket leaves in a notice.
///
/// Who has proved nothing takes one of `pending` places for at most `handshake_time`, and holds 2.5 KiB.
/// Threads:  turn() by one thread; drained, drop, add_member, counters and stop by any.
class door_core {
  public:
    /// Errors: `bad_argument` naming an option; `unreachable` for an address that cannot be listened on; `no_resources`.
    HERRING_SEPARABLE door_core(door_options const& options, shape const& own,
                                std::vector<std::string>&& names);
    door_core(door_core const&) = delete;
    door_core& operator=(door_core const&) = delete;

    /// Before the thread starts: members of this machine get `memory` (−1: there is none), and a unix socket to dial.
    ///
    /// Errors: `unsupported` where lanes are `shared` and cannot be.
    HERRING_SEPARABLE void share(int memory);

    /// "host:port" of the first address that it listens on.
    std::string const& address() const noexcept { return listeners_.address(); }
    rendezvous::event_thread& thread() noexcept { return thread_; }

    // ---- any thread -----------------------------------------------------------------------------------------

    HERRING_SEPARABLE void add_member(std::string name);
    void drained(peer_index peer, std::uint64_t incarnation) { order({peer, incarnation, true, {}}); }
    void drop(peer_index peer, std::uint64_t incarnation, std::string why) {
        order({peer, incarnation, false, std::move(why)});
    }
    HERRING_SEPARABLE door_counters counters() noexcept;
    HERRING_SEPARABLE void stop() noexcept;

    // ---- the thread -----------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: stop() was called, and the members know.
    HERRING_SEPARABLE bool turn(std::vector<door_notice>& notices);

  private:
    using stage = guest::stage;
    struct wish {
        peer_index peer;
        std::uint64_t incarnation;
        bool drained; // or dropped
        std::string why;
    };
    static constexpr int notice_burst =
        8; // notices of members that were refused, by reason; of strangers one

    // ---- set-up ---------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void check_options() const;

    // ---- orders ---------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void order(wish&& made);
    HERRING_SEPARABLE bool take_orders();
    HERRING_SEPARABLE void goodbye_to_all();

    // ---- times ----------------------------------------------------------------------------------------------

    /// A thread that slept or worked much longer than it meant to blames nobody for the silence meanwhile. Returns now.
    HERRING_SEPARABLE time_point detect_own_stall() noexcept;

    /// Returns for how many milliseconds the thread may sleep; −1: for ever.
    HERRING_SEPARABLE int run_due(time_point now);

    /// Signs of life, both ways. Returns when to do so again.
    HERRING_SEPARABLE time_point look_after(guest& g, time_point now);

    HERRING_SEPARABLE void on_expired(guest& g);

    // ---- connections ----------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_epoll(std::uint64_t key, std::uint32_t what);

    HERRING_SEPARABLE void accept(int listener, bool local);

    /// Makes room among those that have proved nothing.
    HERRING_SEPARABLE bool make_room();

    HERRING_SEPARABLE void unidentified(guest& g);
    template <class Change> HERRING_SETUP void count(Change&& change) noexcept {
        monitor::guard const held(lock_);
        change(counters_);
    }

    // ---- messages -------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_readable(guest& g);

    HERRING_SEPARABLE void on_closed(guest& g);
    HERRING_SEPARABLE void on_wrong(guest& g, std::string_view what);

    HERRING_SEPARABLE void on_message(guest& g, incoming& got);

    HERRING_SEPARABLE void challenge(guest& g);

    HERRING_SEPARABLE void on_hello(guest& g, std::span<std::byte const> body);

    HERRING_SEPARABLE void admit_it(guest& g, std::optional<admission_handshake> const& proven,
                                    bool by_memory);

    /// `proven`: then the member can tell that the refusal is the frontend's.
    HERRING_SEPARABLE void refuse(guest& g, ensembles::refuse const& why, admission_handshake const* proven);
    /// Counts it. Whether it is also told: nobody may make notices as fast as it connects, and strangers may not keep those of
    /// members back.
    HERRING_SEPARABLE bool count_refused(admission_refusal reason, bool proven) noexcept;
    HERRING_SEPARABLE void tell_refused(admission_refusal reason, std::string&& words);
    /// Its last message: it stays open until the other end has read it.
    HERRING_SEPARABLE void end(guest& g, message last, std::span<std::byte const> body);

    HERRING_SEPARABLE void replace(guest& older, std::uint64_t newer);
    HERRING_SEPARABLE void let_go(guest& g, std::string_view told, std::string_view why);
    HERRING_SEPARABLE void lost(guest& g, std::string_view why);
    HERRING_SEPARABLE void leave_seat(guest& g, std::string_view why);

    HERRING_SEPARABLE void on_leave(guest& g);

    // ---- lanes ----------------------------------------------------------------------------------------------

    /// The admission of this ticket that waits for its lane; nullptr without.
    HERRING_SEPARABLE guest* admission_of(std::uint64_t ticket) noexcept;

    HERRING_SEPARABLE void on_lane_hello(guest& g, std::span<std::byte const> body);

    HERRING_SEPARABLE void on_lane_proof(guest& g, incoming& got);

    door_options options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    std::optional<secrets> secrets_;
    std::vector<secret_key> keys_; // of the secrets, with the salt
    wire::salt salt_{};
    int memory_ = -1;
    rendezvous::event_thread thread_;
    door_listeners listeners_{thread_};

    monitor lock_; // of roster_, counters_, wishes_, stop_
    door_roster roster_;
    door_counters counters_{};
    std::vector<wish> wishes_;
    bool stop_ = false;

    // The thread's.
    guest_list guests_{thread_};
    std::vector<guest*> seats_; // by peer: its control connection, from the admission on
    notice_rate refusals_of_members_[admission_refusals]{}, refusals_of_strangers_[admission_refusals]{};
    stall_detector stall_{};
    std::vector<door_notice>* notices_ = nullptr;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#ifndef HERRING_SEPARATE
#include "herring/ensemble/door_admission_impl.hpp"
#include "herring/ensemble/door_core_impl.hpp"
#endif

#endif // HERRING_ENSEMBLE_DOOR_CORE_HPP
