// herring: a member's links: one a frontend, taken in turn; and those that are closed while a job still has bytes of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_LINKS_HPP
#define HERRING_ENSEMBLE_MEMBER_LINKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/member_link.hpp"
#include "herring/net/poller.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// `jobs`: how many closed links there can be, for each has a job at least.
///
/// Threads:  the member's.
/// Lifetime: no longer than the bell.
template <class Link> class member_links {
  public:
    HERRING_SETUP member_links(std::size_t frontends, std::size_t jobs, poller& bell)
        : bell_(bell), open_(frontends) {
        closed_.reserve(jobs);
    }
    member_links(member_links const&) = delete;
    member_links& operator=(member_links const&) = delete;

    std::size_t size() const noexcept { return open_.size(); }
    /// nullptr: there is none.
    Link* operator[](std::size_t frontend) const noexcept { return open_[frontend].get(); }
    template <class Look> void for_each(Look&& look) noexcept {
        for (auto& each : open_)
            if (each) look(*each);
    }

    /// In the place of an earlier one, which is closed. False: there is no room to sleep on its socket.
    HERRING_SETUP bool put(std::unique_ptr<Link>&& fresh) noexcept {
        if (!bell_.watch(fresh->lane.descriptor(), 0, EPOLLIN)) return false;
        open_[fresh->frontend] = std::move(fresh);
        return true;
    }
    /// Returns how many requests waited there. It stays until `bury` if jobs have bytes of it.
    HERRING_SETUP std::size_t close(std::size_t frontend) noexcept {
        std::unique_ptr<Link> gone = std::move(open_[frontend]);
        if (gone == nullptr) return 0;
        bell_.forget(gone->lane.descriptor());
        gone->is_open = false;
        std::size_t const waited = gone->waiting();
        if (gone->jobs != 0) closed_.push_back(std::move(gone));
        return waited;
    }
    /// A closed link whose last job has ended.
    HERRING_SETUP void bury(Link const& dead) noexcept {
        std::erase_if(closed_, [&](auto const& each) { return each.get() == &dead; });
    }

    /// The next frontend's link at which requests wait. nullptr: none do.
    Link* with_requests() noexcept {
        for (std::size_t i = 0; i < open_.size(); ++i) {
            std::size_t const at = turn_ + i < open_.size() ? turn_ + i : turn_ + i - open_.size();
            if (open_[at] && open_[at]->waiting() != 0) return open_[at].get();
        }
        return nullptr;
    }
    /// One of its requests was taken: it is another one's turn.
    void taken_from(Link const& from) noexcept {
        turn_ = from.frontend + 1 < open_.size() ? from.frontend + 1 : 0;
    }

    /// Before the member sleeps: asks the lanes to ring. False: one has something already.
    bool try_sleep() noexcept {
        bool quiet = true;
        for_each([&](Link& each) {
            if (bool const full = each.lane.wants_write(); full != each.watched_for_write) {
                each.watched_for_write = full;
                bell_.rewatch(each.lane.descriptor(), 0, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
            }
            quiet = each.lane.try_sleep() && quiet;
        });
        return quiet;
    }
    void awake() noexcept {
        for_each([](Link& each) { each.lane.awake(); });
    }

  private:
    poller& bell_;
    fixed_array<std::unique_ptr<Link>> open_;   // one a frontend, or none
    std::vector<std::unique_ptr<Link>> closed_; // that jobs have bytes of
    std::size_t turn_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_LINKS_HPP
