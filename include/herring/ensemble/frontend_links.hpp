// herring: all links of a frontend: those in use, by peer; those that broke; those that are gone but for a row that is still read.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_LINKS_HPP
#define HERRING_ENSEMBLE_FRONTEND_LINKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/wait_set.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// One link a peer at most, and its descriptor in the wait set.
///
/// Threads:  one at a time: under the frontend's lock.
/// Lifetime: no longer than the wait set.
template <class Link> class frontend_links {
  public:
    HERRING_SETUP frontend_links(std::size_t peers, wait_set& ready) : ready_(ready), links_(peers) {
        shared_.reserve(peers);
        broken_.reserve(peers);
        retired_.reserve(4 * peers);
    }
    frontend_links(frontend_links const&) = delete;
    frontend_links& operator=(frontend_links const&) = delete;
    ~frontend_links() {
        for (Link* const each : links_) delete each;
        for (Link* const each : retired_) delete each;
    }

    std::size_t size() const noexcept { return links_.size(); }
    /// nullptr: there is none.
    Link* operator[](std::size_t peer) const noexcept { return links_[peer]; }
    fixed_array<Link*> const& all() const noexcept { return links_; }
    /// Through shared memory: these are polled in turns, for no descriptor tells of them.
    std::vector<Link*> const& shared() const noexcept { return shared_; }
    bool any_sockets() const noexcept { return sockets_ > 0; }

    /// Of this process of the member.
    Link* current(peer_index peer, std::uint64_t incarnation) const noexcept {
        Link* const l = peer < links_.size() ? links_[peer] : nullptr;
        return l != nullptr && l->incarnation() == incarnation ? l : nullptr;
    }
    /// Of this admission, also if it is retired: a row in a lane that broke is not in the next one of the same process.
    Link* of_admission(peer_index peer, std::uint64_t serial) const noexcept {
        if (Link* const l = links_[peer]; l != nullptr && l->serial() == serial) return l;
        for (Link* const l : retired_)
            if (l->serial() == serial) return l;
        return nullptr;
    }

    /// Retires the peer's last one. False: there is no room to watch it.
    HERRING_SETUP bool put(std::unique_ptr<Link>& fresh) noexcept {
        peer_index const peer = fresh->peer();
        if (!ready_.watch(fresh->descriptor(), peer)) return false;
        if (links_[peer] != nullptr) retire(peer);
        links_[peer] = fresh.release();
        if (links_[peer]->is_shared())
            shared_.push_back(links_[peer]);
        else
            ++sockets_;
        return true;
    }
    /// The link stays as long as one of its rows is held.
    HERRING_SETUP void retire(peer_index peer) noexcept {
        Link* const l = std::exchange(links_[peer], nullptr);
        ready_.forget(l->descriptor());
        if (l->is_shared())
            shared_.erase(std::find(shared_.begin(), shared_.end(), l));
        else
            --sockets_;
        std::erase(broken_, peer); // whoever comes next has not broken
        retired_.push_back(l);
    }
    /// By the door's thread: nothing is unmapped or closed while a request waits for it.
    HERRING_SETUP void sweep() noexcept {
        for (std::size_t i = 0; i < retired_.size();)
            if (retired_[i]->is_held()) {
                ++i;
            } else {
                delete retired_[i];
                retired_[i] = retired_.back();
                retired_.pop_back();
            }
    }

    void broken(peer_index peer) noexcept { broken_.push_back(peer); }
    /// One that broke and is in use still. nullptr: none.
    Link* next_broken() noexcept {
        while (!broken_.empty()) {
            peer_index const peer = broken_.back();
            broken_.pop_back();
            if (Link* const l = links_[peer]) return l;
        }
        return nullptr;
    }

    void watch_writes(Link& l) noexcept {
        if (l.wants_write() == l.watched_for_write) return;
        l.watched_for_write = !l.watched_for_write;
        ready_.rewatch(l.descriptor(), l.peer(), l.watched_for_write);
    }
    /// Tells all lanes that this end sleeps. False: one has something, and none was told.
    bool announce_sleep() noexcept {
        for (Link* const l : shared_)
            if (!l->try_sleep()) {
                awake();
                return false;
            }
        return true;
    }
    void awake() noexcept {
        for (Link* const l : shared_) l->awake();
    }

  private:
    wait_set& ready_;
    fixed_array<Link*> links_; // by peer
    std::vector<Link*> shared_, retired_;
    std::vector<peer_index> broken_;
    std::size_t sockets_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_LINKS_HPP
