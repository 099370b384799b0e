// herring: the connections at a frontend's door, by the keys under which its thread watches them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_GUEST_LIST_HPP
#define HERRING_ENSEMBLE_GUEST_LIST_HPP

#include "herring/base/config.hpp"
#include "herring/control/rendezvous/event_thread.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/guest.hpp"
#include "herring/machine/time.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <sys/epoll.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A guest stays where it is until `reap`, also when it is closed: whoever deals with it can look at it afterwards.
///
/// Threads:  that of the door.
/// Lifetime: no longer than the thread's set.
class guest_list {
  public:
    explicit guest_list(rendezvous::event_thread& thread) noexcept : thread_(thread) {}
    guest_list(guest_list const&) = delete;
    guest_list& operator=(guest_list const&) = delete;

    /// A stranger, watched until it speaks; its key is 2^20 at least.
    HERRING_SETUP guest& add(control_link&& link, time_point now, time_point until) {
        std::size_t place = 0;
        while (place < guests_.size() && guests_[place]) ++place;
        if (place == guests_.size()) guests_.emplace_back();
        guests_[place] = std::make_unique<guest>();
        guest& g = *guests_[place];
        g.key = ++serial_ << place_bits | place;
        g.link = std::move(link);
        g.heard = now;
        g.until = until;
        thread_.watch(g.link.socket(), g.key, EPOLLIN);
        return g;
    }
    /// nullptr: it is gone.
    HERRING_SETUP guest* find(std::uint64_t key) const noexcept {
        std::size_t const place = key & ((std::uint64_t{1} << place_bits) - 1);
        guest* const g = place < guests_.size() ? guests_[place].get() : nullptr;
        return g != nullptr && g->key == key && !g->gone ? g : nullptr;
    }

    /// Calls `look(guest)` for each that is not gone, also for those that come meanwhile.
    template <class Look> HERRING_SETUP void for_each(Look&& look) const {
        for (std::size_t i = 0; i < guests_.size(); ++i)
            if (guests_[i] && !guests_[i]->gone) look(*guests_[i]);
    }
    HERRING_SETUP std::size_t unproven() const {
        std::size_t count = 0;
        for_each([&](guest const& g) { count += !g.proven(); });
        return count;
    }
    /// Of those that have proved nothing the one that is least likely to be a member, and of these the oldest. nullptr: none.
    HERRING_SETUP guest* least_likely() const {
        guest* found = nullptr;
        for_each([&](guest& g) {
            if (g.proven()) return;
            if (found == nullptr || g.likelihood() < found->likelihood() ||
                (g.likelihood() == found->likelihood() && g.key >> place_bits < found->key >> place_bits))
                found = &g;
        });
        return found;
    }

    /// After each message to it: what waits for the socket is sent when there is room.
    HERRING_SETUP void watch(guest& g) noexcept {
        if (g.gone || g.link.wants_write() == g.watches_write) return;
        g.watches_write = g.link.wants_write();
        thread_.rewatch(g.link.socket(), g.key, g.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
    void close(guest& g) noexcept {
        g.link.close();
        g.gone = true;
        any_gone_ = true;
    }
    HERRING_SETUP void reap() noexcept {
        if (!std::exchange(any_gone_, false)) return;
        for (auto& g : guests_)
            if (g && g->gone) g.reset();
    }

  private:
    static constexpr unsigned place_bits = 20;

    rendezvous::event_thread& thread_;
    std::vector<std::unique_ptr<guest>> guests_;
    std::uint64_t serial_ = 0; // above 0 from the first guest on
    bool any_gone_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_GUEST_LIST_HPP
