// herring: a frontend's end of the control connections: admits members, watches over them, lets them go.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ACCEPTOR_HPP
#define HERRING_ENSEMBLE_ACCEPTOR_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/acceptor_sockets.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/admission_roster.hpp"
#include "herring/ensemble/change.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/event_thread.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/life_signs.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The functions of an `acceptor_sink` by address, so that the acceptor is compiled once, whatever its sink
/// is.
struct acceptor_calls {
    void* sink;
    void (*admitted)(void* sink, peer_index, std::uint64_t incarnation, std::uint32_t credits, lane_ends&&);
    void (*draining)(void* sink, peer_index, std::uint64_t incarnation);
    void (*lost)(void* sink, peer_index, std::uint64_t incarnation, std::string_view why);
    void (*refused)(void* sink, admission_refusal, std::string_view text);
    void (*nudged)(void* sink); ///< does nothing for a sink without `nudged`

    template <acceptor_sink Sink> HERRING_SETUP static acceptor_calls of(Sink& sink) noexcept {
        return {&sink,
                [](void* to, peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                   lane_ends&& ends) {
                    static_cast<Sink*>(to)->admitted(peer, incarnation, credits, std::move(ends));
                },
                [](void* to, peer_index peer, std::uint64_t incarnation) {
                    static_cast<Sink*>(to)->draining(peer, incarnation);
                },
                [](void* to, peer_index peer, std::uint64_t incarnation, std::string_view why) {
                    static_cast<Sink*>(to)->lost(peer, incarnation, why);
                },
                [](void* to, admission_refusal reason, std::string_view text) {
                    static_cast<Sink*>(to)->refused(reason, text);
                },
                [](void* to) {
                    if constexpr (requires { static_cast<Sink*>(to)->nudged(); })
                        static_cast<Sink*>(to)->nudged();
                }};
    }
};

/// Every accepted connection is a `peer_connection`: unknown at first, then challenged, then a member's
/// control connection that waits for its lane, at last one that is up. The connection of a lane is one until
/// it is proven; then its socket goes to the sink.
///
/// Memory:  2.5 KiB for each connection that has proved nothing, of which there are `pending` at most, for
///          `handshake_time` at most.
/// Threads: `turn` by one thread, which calls the sink without a lock held; `drained`, `drop`, `add_member`,
///          `counters`, `nudge` and `stop` by any.
class acceptor_core {
  public:
    /// Errors: `bad_argument` naming an option; `unreachable` for an address that cannot be listened on;
    ///         `no_resources`.
    HERRING_SEPARABLE acceptor_core(acceptor_options const& options, shape const& own,
                                    std::vector<std::string>&& names, acceptor_calls const& sink);
    acceptor_core(acceptor_core const&) = delete;
    acceptor_core& operator=(acceptor_core const&) = delete;

    /// Offers `memory` (−1: there is none) to members of this machine, and a unix socket that they dial.
    /// Before the thread starts.
    ///
    /// Errors: `unsupported` where lanes are `shared` and cannot be.
    HERRING_SEPARABLE void share(int memory);

    /// "host:port" of the first address that is listened on.
    std::string const& address() const noexcept { return listeners_.address(); }
    event_thread& thread() noexcept { return thread_; }

    // ---- any thread ---------------------------------------------------------------------------------------

    /// Errors: `bad_argument` for a name that is there, or cannot be one.
    HERRING_SEPARABLE void add_member(std::string name);
    /// A draining peer owes nothing any more: it is let go. `lost` follows.
    void drained(peer_index peer, std::uint64_t incarnation) { order({peer, incarnation, true, {}}); }
    /// The peer's lane is broken: it is disconnected, and comes again. `lost` follows.
    void drop(peer_index peer, std::uint64_t incarnation, std::string why) {
        order({peer, incarnation, false, std::move(why)});
    }
    HERRING_SEPARABLE acceptor_counters counters() noexcept;
    /// Ends the current turn of the thread.
    void nudge() noexcept { thread_.wake(); }
    HERRING_SEPARABLE void stop() noexcept;

    // ---- the thread ---------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: `stop` was called, and the
    /// members have been told.
    HERRING_SEPARABLE bool turn();

    /// Calls `sink.nudged()`, where the sink has that. By the thread.
    void call_nudged() const { sink_.nudged(sink_.sink); }

  private:
    using stage = peer_connection::stage;
    struct order_of_sink {
        peer_index peer;
        std::uint64_t incarnation;
        bool drained; // else dropped
        std::string why;
    };
    /// Refusals of members that are reported at once, of each reason; for unknown peers one.
    static constexpr int notice_burst = 8;

    // ---- set-up -------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void check_options() const;

    // ---- orders -------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void order(order_of_sink&& what);
    HERRING_SEPARABLE bool take_orders();
    HERRING_SEPARABLE void goodbye_to_all();

    // ---- times --------------------------------------------------------------------------------------------

    /// Returns now. If the thread slept or worked much longer than intended, no peer is blamed for the
    /// silence meanwhile.
    HERRING_SEPARABLE time_point detect_own_stall() noexcept;
    /// Returns the milliseconds that the thread may sleep; −1: for ever.
    HERRING_SEPARABLE int run_due(time_point now);
    /// Sends heartbeats and looks for those of the peer. Returns when to do so again.
    HERRING_SEPARABLE time_point look_after(peer_connection& p, time_point now);
    HERRING_SEPARABLE void on_expired(peer_connection& p);

    // ---- connections --------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_epoll(std::uint64_t key, std::uint32_t what);
    HERRING_SEPARABLE void accept(int listener, bool local);
    /// Makes room among those that have proved nothing.
    HERRING_SEPARABLE bool make_room();
    HERRING_SEPARABLE void unidentified(peer_connection& p);
    template <class Change> HERRING_SETUP void count(Change&& change) noexcept {
        monitor::guard const held(lock_);
        change(counters_);
    }

    // ---- messages -----------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_readable(peer_connection& p);
    HERRING_SEPARABLE void on_closed(peer_connection& p);
    HERRING_SEPARABLE void on_wrong(peer_connection& p, std::string_view what);
    HERRING_SEPARABLE void on_message(peer_connection& p, incoming& got);
    HERRING_SEPARABLE void challenge(peer_connection& p);
    HERRING_SEPARABLE void on_hello(peer_connection& p, std::span<std::byte const> body);
    HERRING_SEPARABLE void admit_it(peer_connection& p, std::optional<wire::handshake> const& proven,
                                    bool by_memory);
    /// `proven`: the member has proved itself, and gets a proof that the refusal is the frontend's; else
    /// nullptr.
    HERRING_SEPARABLE void refuse(peer_connection& p, ensembles::refuse const& why,
                                  wire::handshake const* proven);
    /// Counts a refusal. True if it is also reported: `notice_burst` at once of each reason, so that
    /// connecting fast does not flood the sink, and unknown peers do not keep back the refusals of members.
    HERRING_SEPARABLE bool count_refused(admission_refusal reason, bool proven) noexcept;
    HERRING_SEPARABLE void tell_refused(admission_refusal reason, std::string_view words);
    /// Sends the last message; the connection stays open until the other end has read it.
    HERRING_SEPARABLE void end(peer_connection& p, message last, std::span<std::byte const> body);
    HERRING_SEPARABLE void replace(peer_connection& older, std::uint64_t newer);
    HERRING_SEPARABLE void let_go(peer_connection& p, std::string_view told, std::string_view why);
    HERRING_SEPARABLE void lost(peer_connection& p, std::string_view why);
    /// Frees the peer's place. True if it was up, so that the sink has to be told of the loss.
    HERRING_SEPARABLE bool leave_seat(peer_connection& p) noexcept;
    HERRING_SEPARABLE void tell_lost(peer_connection const& p, std::string_view why);
    HERRING_SEPARABLE void on_leave(peer_connection& p);

    // ---- lanes --------------------------------------------------------------------------------------------

    /// Returns the admission of this ticket that waits for its lane; nullptr: there is none.
    HERRING_SEPARABLE peer_connection* admission_of(std::uint64_t ticket) noexcept;
    HERRING_SEPARABLE void on_lane_hello(peer_connection& p, std::span<std::byte const> body);
    HERRING_SEPARABLE void on_lane_proof(peer_connection& p, incoming& got);

    acceptor_options options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    acceptor_calls const sink_;
    std::optional<secrets> secrets_;
    wire::salt salt_{};
    int memory_ = -1;
    event_thread thread_;
    acceptor_listeners listeners_{thread_};

    monitor lock_; // guards roster_, counters_, orders_, stop_
    admission_roster roster_;
    acceptor_counters counters_{};
    std::vector<order_of_sink> orders_;
    bool stop_ = false;

    // Used by the thread alone.
    peer_connections connections_{thread_};
    std::vector<peer_connection*> seats_; // by peer: its control connection, from its admission on
    notice_rate refusals_of_members_[admission_refusals]{}, refusals_of_unknown_[admission_refusals]{};
    stall_detector stall_{};
    bool told_ = false; // the sink was called in this turn, which then does not sleep
};

/// An acceptor with its thread: listens for members, admits them, and tells its sink which come, leave and
/// are lost.
///
/// Threads:  one of its own, which calls the sink; `turn`, `share` and `stop` are not for its users.
/// Lifetime: `sink` outlives it. The destructor tells the members, and calls the sink no more; not from the
///           sink's functions.
/// Errors:   `bad_argument` naming an option or a name; `unreachable` for an address that cannot be listened
///           on; `no_resources`.
class acceptor : public acceptor_core {
  public:
    template <acceptor_sink Sink>
    HERRING_SETUP acceptor(acceptor_options const& options, shape const& own,
                           std::vector<std::string> members, Sink& sink)
        : acceptor_core(options, own, std::move(members), acceptor_calls::of(sink)) {
        share(sink.local_memory());
        auto const body = +[](void* self) -> void* {
            auto& me = *static_cast<acceptor*>(self);
            while (me.turn()) me.call_nudged();
            return nullptr;
        };
        thread().start(body, this, -1, "ensemble");
    }
    ~acceptor() {
        stop();
        thread().join();
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#ifndef HERRING_SEPARATE
#include "herring/ensemble/acceptor_admission_impl.hpp"
#include "herring/ensemble/acceptor_impl.hpp"
#endif

#endif // HERRING_ENSEMBLE_ACCEPTOR_HPP
