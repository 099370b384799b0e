// herring: a member's end of the control connections: dials frontends and watches over the connections.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DIALLER_HPP
#define HERRING_ENSEMBLE_DIALLER_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/admission_roster.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/event_thread.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/life_signs.hpp"

#include <algorithm>
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

/// Decides when a member believes a refusal without proof: anyone can send one, but a member whose secret is
/// wrong hears nothing else. A refusal is believed when it has come three times, over two seconds.
class unverified_refusal {
  public:
    /// Counts a refusal. True if it is to be believed.
    HERRING_SETUP bool count(std::string const& words, time_point now) {
        if (words != words_) {
            words_ = words;
            times_ = 0;
            first_ = now;
        }
        return ++times_ >= least && now - first_ >= period;
    }

  private:
    static constexpr int least = 3;
    static constexpr std::chrono::seconds period{2};

    std::string words_{};
    int times_ = 0;
    time_point first_{};
};

/// Returns the pause after the `failures`-th attempt in a row that failed: twice as long each time, `last` at
/// most, times ½ to 1 by a hash of `salt`, so that members that lost one frontend do not come back all at
/// once.
HERRING_SETUP inline std::chrono::milliseconds pause_after(unsigned failures, std::chrono::milliseconds first,
                                                           std::chrono::milliseconds last,
                                                           std::string_view salt) noexcept {
    std::chrono::milliseconds pause = first;
    for (unsigned i = 1; i < failures && pause < last; ++i) pause *= 2;
    pause = std::min(pause, last);
    std::uint64_t const hash = hash_of(salt.data(), salt.size()) ^ failures * 0x9E3779B97F4A7C15u;
    auto const share = static_cast<long long>((hash * 0xD6E8FEB86659FD93u) >> 54); // 0 to 1023
    return pause / 2 + std::chrono::milliseconds((pause.count() - pause.count() / 2) * share / 1024);
}

/// A frontend as its member dials it, or is connected to it.
struct dial_target {
    enum class stage {
        pausing,
        resolving,
        dialling,
        applied,
        greeted,       ///< has sent its hello
        lane_dialling, ///< by tcp; from here to `up` the frontend has admitted this member
        lane_greeted,
        lane_proved, ///< waits for the frontend's proof
        up,
        over ///< refused for good, or left
    };

    std::size_t index = 0;
    std::string name{}, host{};
    std::uint16_t port = 0;
    stage at = stage::pausing;
    time_point retry_at{};
    unsigned failures = 0;
    std::optional<name_lookup> lookup{};
    fixed_array<endpoint> addresses{};
    std::size_t next_address = 0; ///< of `addresses`, for the next attempt
    endpoint where{};
    control_link link{}, lane{};
    std::uint64_t link_key = 0, lane_key_of_epoll = 0;
    bool watches_write = false;
    time_point until = time_point::max(), local_until = time_point::max();
    time_point heard{}, beat_at = time_point::max(), up_since{};
    byte_buffer challenge{}, lane_hello{};
    wire::dialler_handshake handshake{};
    admit admitted{};
    secret_key lane_key{};
    wire::proof lane_proof_due{};
    descriptor memory{};
    bool is_connected = false, was_admitted = false, leaving = false;
    std::string last_text{};
    unverified_refusal unverified{};

    bool has_control() const noexcept { return at >= stage::lane_dialling && at <= stage::up; }
};

/// The functions of a `dialler_sink` by address, so that the dialler is compiled once, whatever its sink is.
struct dialler_calls {
    void* sink;
    void (*connected)(void* sink, std::size_t frontend, admission const& facts, lane_ends&& ends);
    void (*disconnected)(void* sink, std::size_t frontend, std::string_view why);
    void (*refused)(void* sink, std::size_t frontend, failure const& why);
    descriptor (*local_memory)(void* sink, std::size_t frontend, admission const& facts);

    template <dialler_sink Sink> HERRING_SETUP static dialler_calls of(Sink& sink) noexcept {
        return {&sink,
                [](void* to, std::size_t frontend, admission const& facts, lane_ends&& ends) {
                    static_cast<Sink*>(to)->connected(frontend, facts, std::move(ends));
                },
                [](void* to, std::size_t frontend, std::string_view why) {
                    static_cast<Sink*>(to)->disconnected(frontend, why);
                },
                [](void* to, std::size_t frontend, failure const& why) {
                    static_cast<Sink*>(to)->refused(frontend, why);
                },
                [](void* to, std::size_t frontend, admission const& facts) {
                    return static_cast<Sink*>(to)->local_memory(frontend, facts);
                }};
    }
};

/// Dials each frontend, is admitted, and watches over the connection, independently of the others.
///
/// Threads:  `turn` by one thread, which calls the sink without a lock held; `drop`, `leave` and `stop` by
///           any.
class dialler_core {
  public:
    /// Errors: `bad_argument` naming an option or an address; `no_resources`.
    HERRING_SEPARABLE dialler_core(dialler_options const& options, shape const& own,
                                   dialler_calls const& sink);
    dialler_core(dialler_core const&) = delete;
    dialler_core& operator=(dialler_core const&) = delete;

    std::uint64_t incarnation() const noexcept { return incarnation_; }
    event_thread& thread() noexcept { return thread_; }

    // ---- any thread ---------------------------------------------------------------------------------------

    /// The lane to this frontend is broken: it is dialled again. `disconnected` follows.
    HERRING_SEPARABLE void drop(std::size_t frontend, std::string why);
    /// Tells all frontends that this member leaves, and waits until each has let it go: the frontend asks
    /// nothing more, and has what it was owed. It is not dialled again. Not from the sink's functions.
    ///
    /// Blocks:  for `most` at most; false: not all frontends have.
    HERRING_SEPARABLE bool leave(std::chrono::milliseconds most) noexcept;
    HERRING_SEPARABLE void request_stop() noexcept;

    // ---- the thread ---------------------------------------------------------------------------------------

    /// Does what is due, or else sleeps until something is, and does that. False: `request_stop` was called.
    HERRING_SEPARABLE bool turn();

  private:
    using stage = dial_target::stage;
    static constexpr unsigned index_bits = 16;

    HERRING_SEPARABLE void check_options() const;

    // ---- orders and times ---------------------------------------------------------------------------------

    HERRING_SEPARABLE bool take_orders();
    HERRING_SEPARABLE time_point detect_own_stall() noexcept;
    /// Returns the milliseconds that the thread may sleep; −1: for ever.
    HERRING_SEPARABLE int run_due(time_point now);
    /// Sends heartbeats and looks for those of the frontend. Returns when to do so again.
    HERRING_SEPARABLE time_point look_after(dial_target& t, time_point now);

    // ---- attempts -----------------------------------------------------------------------------------------

    HERRING_SEPARABLE void begin(dial_target& t);
    HERRING_SEPARABLE void resolved(dial_target& t);
    HERRING_SEPARABLE void dial(dial_target& t);
    HERRING_SEPARABLE void unreachable(dial_target& t, int why);
    std::uint64_t next_key(dial_target const& t) noexcept { return ++serial_ << index_bits | t.index; }
    HERRING_SEPARABLE void close(dial_target& t) noexcept;
    /// Ends the attempt or the connection, and arranges for the next one.
    HERRING_SEPARABLE void fail(dial_target& t, std::string_view why);
    HERRING_SEPARABLE void tell_disconnected(dial_target& t, std::string const& words);
    HERRING_SEPARABLE void left(dial_target& t);
    HERRING_SEPARABLE void refused_for_good(dial_target& t, failure const& why);

    // ---- events -------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void on_epoll(std::uint64_t key, std::uint32_t what);
    HERRING_SEPARABLE void watch_link(dial_target& t) noexcept;
    HERRING_SEPARABLE void on_readable(dial_target& t);
    HERRING_SEPARABLE void on_message(dial_target& t, incoming const& got);
    /// Proves that this member has the secret, if the frontend says that it has one.
    HERRING_SEPARABLE void on_challenge(dial_target& t, std::span<std::byte const> body);
    HERRING_SEPARABLE void on_admit(dial_target& t, std::span<std::byte const> body);
    HERRING_SEPARABLE void on_refuse(dial_target& t, std::span<std::byte const> body);
    HERRING_SEPARABLE void refused(dial_target& t, ensembles::refuse const& said, bool verified);

    // ---- lanes --------------------------------------------------------------------------------------------

    HERRING_SEPARABLE void with_memory(dial_target& t, descriptor&& memory);
    HERRING_SEPARABLE void without_memory(dial_target& t, std::string_view why);
    HERRING_SEPARABLE void watch_lane(dial_target& t, std::uint32_t what) noexcept;
    HERRING_SEPARABLE void greet_lane(dial_target& t, herring::lane kind);
    HERRING_SEPARABLE void lane_failed(dial_target& t, std::string_view why);
    HERRING_SEPARABLE void on_lane(dial_target& t);

    dialler_options options_;
    shape const shape_;
    std::string const boot_ = boot_id();
    std::uint64_t const incarnation_ = new_incarnation();
    dialler_calls const sink_;
    std::optional<secrets> secrets_;
    event_thread thread_;

    monitor lock_; // guards the next four
    std::vector<std::pair<std::size_t, std::string>> drops_;
    bool leave_ = false, all_left_ = false, stop_ = false;

    // Used by the thread alone.
    std::vector<std::unique_ptr<dial_target>> targets_;
    std::uint64_t serial_ = 0;
    stall_detector stall_{};
    bool told_ = false; // the sink was called in this turn, which then does not sleep
};

/// A dialler with its thread: dials every frontend, again and again unless it was refused for good, and tells
/// `Sink` where it is connected.
///
/// Threads:  one of its own, which calls the sink; `turn` is not for its users. `stop` and the destructor not
///           from the sink's functions.
/// Lifetime: `sink` outlives it.
/// Errors:   `bad_argument` naming an option, an address or a name; `no_resources`.
template <dialler_sink Sink> class dialler : public dialler_core {
  public:
    HERRING_SETUP dialler(dialler_options const& options, shape const& own, Sink& sink)
        : dialler_core(options, own, dialler_calls::of(sink)) {
        auto const body = +[](void* self) -> void* {
            while (static_cast<dialler*>(self)->turn()) {
            }
            return nullptr;
        };
        thread().start(body, this, -1, "ensemble");
    }
    ~dialler() { stop(); }

    /// Ends the thread; the sink is called no more, and the frontends see closed connections.
    HERRING_SETUP void stop() noexcept {
        request_stop();
        thread().join();
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#ifndef HERRING_SEPARATE
#include "herring/ensemble/dialler_admission_impl.hpp"
#include "herring/ensemble/dialler_impl.hpp"
#endif

#endif // HERRING_ENSEMBLE_DIALLER_HPP
