// herring: a frontend's end of one admission: the lane of a member's replica, and the rows in it that are still read.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_LINK_HPP
#define HERRING_ENSEMBLE_LINK_HPP

#include "herring/base/config.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A lane of one of two kinds, chosen when the replica is admitted. Which one is a branch, no indirect call.
///
/// Threads:  under the frontend's lock; rows that were counted are read without it.
/// Lifetime: until the peer is lost *and* no answer holds one of its rows.
template <class Tcp, class Shared> class link {
  public:
    /// `incarnation`: of the member's process, which may be admitted several times; `serial`: of this admission.
    link(peer_index peer, std::uint64_t incarnation, std::uint64_t serial) noexcept
        : peer_(peer), incarnation_(incarnation), serial_(serial) {}

    /// Once, one of the two.
    template <class... Arguments> void open_tcp(Arguments&&... arguments) {
        tcp_.emplace(std::forward<Arguments>(arguments)...);
    }
    template <class... Arguments> void open_shared(Arguments&&... arguments) {
        shared_.emplace(std::forward<Arguments>(arguments)...);
    }

    peer_index peer() const noexcept { return peer_; }
    std::uint64_t incarnation() const noexcept { return incarnation_; }
    std::uint64_t serial() const noexcept { return serial_; }
    bool is_shared() const noexcept { return static_cast<bool>(shared_); }

    bool ask(slot_index slot, std::uint64_t id, std::uint64_t remaining_us,
             std::span<std::byte const> request) noexcept {
        return is_shared() ? shared_->ask(slot, id, remaining_us, request)
                           : tcp_->ask(slot, id, remaining_us, request);
    }
    void detach(slot_index slot) noexcept { is_shared() ? shared_->detach(slot) : tcp_->detach(slot); }
    template <class Sink> bool poll(Sink& sink) noexcept {
        return is_shared() ? shared_->poll(sink) : tcp_->poll(sink);
    }

    std::span<std::byte const> row(place_index place) const noexcept {
        return is_shared() ? shared_->row(place) : tcp_->row(place);
    }
    void release(place_index place) noexcept { is_shared() ? shared_->release(place) : tcp_->release(place); }
    /// A row that has come is held until it is given back.
    void hold() noexcept { ++held_; }
    /// It came early, and stays in its place, which no ask needs.
    void keep(place_index place) noexcept { is_shared() ? shared_->keep(place) : tcp_->keep(place); }
    void give_back(place_index place) noexcept {
        release(place);
        --held_;
    }
    bool is_held() const noexcept { return held_ != 0; }

    int descriptor() const noexcept { return is_shared() ? shared_->descriptor() : tcp_->descriptor(); }
    /// Its descriptor was found readable.
    void rung() noexcept { is_shared() ? shared_->rung() : tcp_->rung(); }
    bool wants_write() const noexcept { return is_shared() ? shared_->wants_write() : tcp_->wants_write(); }
    bool try_sleep() noexcept { return is_shared() ? shared_->try_sleep() : tcp_->try_sleep(); }
    void awake() noexcept { is_shared() ? shared_->awake() : tcp_->awake(); }
    std::string_view error() const noexcept { return is_shared() ? shared_->error() : tcp_->error(); }

    bool watched_for_write = false; ///< the wait set also waits until it can be written to
    bool draining = false;          ///< is asked no more
    bool drained = false;           ///< the door was told that it owes nothing

  private:
    peer_index peer_;
    std::uint64_t incarnation_, serial_;
    std::uint32_t held_ = 0;
    manual_lifetime<Tcp> tcp_;
    manual_lifetime<Shared> shared_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_LINK_HPP
