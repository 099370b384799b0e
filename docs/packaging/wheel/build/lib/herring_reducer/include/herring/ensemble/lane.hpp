// herring: the lane of a frontend and a member: its kinds, its descriptors, the choice between the two.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_LANE_HPP
#define HERRING_ENSEMBLE_LANE_HPP

#include "herring/base/config.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace HERRING_NAMESPACE {

/// The way of requests and rows between a frontend and a member. Both ends choose; `any` agrees with each
/// choice.
enum class lane : std::uint8_t {
    any,   ///< shared memory on one machine, else tcp
    tcp,   ///< a connection
    shared ///< shared memory; a member of another machine is refused
};

/// "any", "tcp", "shared".
constexpr char const* to_string(lane l) noexcept {
    constexpr char const* names[] = {"any", "tcp", "shared"};
    auto const i = static_cast<std::size_t>(l);
    return i < std::size(names) ? names[i] : "unknown";
}

namespace detail::ensembles {

/// Descriptors of a proven lane: either `socket`, or `wake_up` and `memory`; all non-blocking, closed on
/// exec.
///
/// Nothing has been read beyond the proof: what the other end has sent since waits in the socket. Size and
/// seals of `memory` are unchecked.
/// Lifetime: owns each descriptor that is not −1; moves. A new owner sets it to −1 (`std::exchange`).
struct lane_ends {
    int socket = -1;  ///< a tcp connection
    int wake_up = -1; ///< a connected unix socket (seqpacket) of the same machine and user
    int memory = -1;  ///< the other end's memfd

    lane_ends() = default;
    lane_ends(lane_ends&& other) noexcept
        : socket(std::exchange(other.socket, -1)), wake_up(std::exchange(other.wake_up, -1)),
          memory(std::exchange(other.memory, -1)) {}
    lane_ends& operator=(lane_ends&& other) noexcept {
        std::swap(socket, other.socket);
        std::swap(wake_up, other.wake_up);
        std::swap(memory, other.memory);
        return *this;
    }
    ~lane_ends() {
        for (int const each : {socket, wake_up, memory})
            if (each >= 0) ::close(each);
    }

    bool is_shared() const noexcept { return wake_up >= 0; }
};

/// A lane of one of two kinds, chosen when the replica is admitted. The choice is a branch, no indirect call.
/// The functions are those of `tcp_lane_frontend` and `shared_lane_frontend`, or of `tcp_lane_member` and
/// `shared_lane_member`.
template <class Tcp, class Shared> class either_lane {
  public:
    /// Called once, one of the two.
    template <class... Arguments> void open_tcp(Arguments&&... arguments) {
        tcp_.emplace(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments> void open_shared(Arguments&&... arguments) {
        shared_.emplace(std::forward<Arguments>(arguments)...);
    }
    bool is_shared() const noexcept { return static_cast<bool>(shared_); }

    template <class Sink> bool poll(Sink& sink) noexcept {
        return is_shared() ? shared_->poll(sink) : tcp_->poll(sink);
    }
    auto row(place_index place) noexcept { return is_shared() ? shared_->row(place) : tcp_->row(place); }
    auto row(place_index place) const noexcept {
        return is_shared() ? shared_->row(place) : tcp_->row(place);
    }
    int descriptor() const noexcept { return is_shared() ? shared_->descriptor() : tcp_->descriptor(); }
    bool wants_write() const noexcept { return is_shared() ? shared_->wants_write() : tcp_->wants_write(); }
    bool try_sleep() noexcept { return is_shared() ? shared_->try_sleep() : tcp_->try_sleep(); }
    void awake() noexcept { is_shared() ? shared_->awake() : tcp_->awake(); }
    std::string_view error() const noexcept { return is_shared() ? shared_->error() : tcp_->error(); }

    // ---- a frontend's end ---------------------------------------------------------------------------------

    bool ask(slot_index slot, std::uint64_t id, std::uint64_t remaining_us,
             std::span<std::byte const> request) noexcept {
        return is_shared() ? shared_->ask(slot, id, remaining_us, request)
                           : tcp_->ask(slot, id, remaining_us, request);
    }
    void detach(slot_index slot) noexcept { is_shared() ? shared_->detach(slot) : tcp_->detach(slot); }
    void release(place_index place) noexcept { is_shared() ? shared_->release(place) : tcp_->release(place); }
    void keep(place_index place) noexcept { is_shared() ? shared_->keep(place) : tcp_->keep(place); }
    void rung() noexcept { is_shared() ? shared_->rung() : tcp_->rung(); }

    // ---- a member's end -----------------------------------------------------------------------------------

    bool take(place_index& place) noexcept { return is_shared() ? shared_->take(place) : tcp_->take(place); }
    bool holds(place_index place) const noexcept {
        return is_shared() ? shared_->holds(place) : tcp_->holds(place);
    }
    bool send(std::uint64_t id, place_index place, std::size_t bytes) noexcept {
        return is_shared() ? shared_->send(id, place, bytes) : tcp_->send(id, place, bytes);
    }
    template <class Reason> bool decline(std::uint64_t id, place_index place, Reason why) noexcept {
        return is_shared() ? shared_->decline(id, place, why) : tcp_->decline(id, place, why);
    }

  private:
    manual_lifetime<Tcp> tcp_;
    manual_lifetime<Shared> shared_;
};

/// A frontend's end of one admission: the lane of a member's replica, and how many of its rows are still
/// read.
///
/// Threads:  under the frontend's lock; rows that are held are read without it.
/// Lifetime: until the peer is lost *and* no answer holds one of its rows.
template <class Tcp, class Shared> class link : public either_lane<Tcp, Shared> {
  public:
    /// `incarnation`: of the member's process, which may be admitted several times; `serial`: of this
    /// admission.
    link(peer_index peer, std::uint64_t incarnation, std::uint64_t serial) noexcept
        : peer_(peer), incarnation_(incarnation), serial_(serial) {}

    peer_index peer() const noexcept { return peer_; }
    std::uint64_t incarnation() const noexcept { return incarnation_; }
    std::uint64_t serial() const noexcept { return serial_; }

    /// Holds a row that has come until it is given back.
    void hold() noexcept { ++held_; }
    void give_back(place_index place) noexcept {
        this->release(place);
        --held_;
    }
    bool is_held() const noexcept { return held_ != 0; }

    bool watched_for_write = false; ///< the wait set also waits until the lane can be written to
    bool draining = false;          ///< is asked no more
    bool drained = false;           ///< the acceptor was told that it owes nothing

  private:
    peer_index peer_;
    std::uint64_t incarnation_, serial_;
    std::uint32_t held_ = 0;
};

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_LANE_HPP
