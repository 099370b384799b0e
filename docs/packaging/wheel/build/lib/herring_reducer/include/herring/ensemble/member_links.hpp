// herring: a member's connections: the inbox that its dialler fills, the links, and the jobs in hand.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_LINKS_HPP
#define HERRING_ENSEMBLE_MEMBER_LINKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/ensemble/places.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/net/poller.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A request that waits for the program.
struct waiting_request {
    std::uint64_t id = 0;
    std::int64_t deadline = 0; ///< of this end's monotonic clock
    std::span<std::byte const> bytes{};
    place_index place = 0;
};

/// A member's connection to one frontend: its lane, and the requests that wait.
///
/// Lifetime: until it is closed *and* no job has bytes of it.
/// Threads:  the member's.
template <class Lane> class member_link {
  public:
    /// Errors: those of the lane's constructor.
    template <class... Arguments>
    HERRING_SETUP member_link(std::size_t of, std::uint32_t credits, Arguments&&... of_lane)
        : lane(std::forward<Arguments>(of_lane)...), frontend(of), queue_(credits) {}

    /// Appends a request. The queue has room for every place of the lane.
    bool push(waiting_request const& request) noexcept {
        if (count_ == queue_.size()) return false;
        queue_[(first_ + count_++) % queue_.size()] = request;
        return true;
    }
    /// Takes the oldest request. False if none waits.
    bool pop(waiting_request& request) noexcept {
        if (count_ == 0) return false;
        request = queue_[first_];
        first_ = (first_ + 1) % queue_.size();
        --count_;
        return true;
    }
    std::size_t waiting() const noexcept { return count_; }

    Lane lane;
    std::size_t frontend;   ///< its place in the options
    std::uint32_t jobs = 0; ///< held by the program
    bool is_open = true;
    bool watched_for_write = false; ///< the member also waits until the lane can be written to

  private:
    fixed_array<waiting_request> queue_;
    std::size_t first_ = 0, count_ = 0;
};

/// The links of a member: one for each frontend, and closed ones whose bytes jobs still have. `jobs`: most
/// closed links, because each has a job at least.
///
/// Threads:  the member's.
/// Lifetime: the poller outlives it.
template <class Link> class member_links {
  public:
    HERRING_SETUP member_links(std::size_t frontends, std::size_t jobs, poller& set)
        : poller_(set), open_(frontends) {
        closed_.reserve(jobs);
    }
    member_links(member_links const&) = delete;
    member_links& operator=(member_links const&) = delete;

    std::size_t size() const noexcept { return open_.size(); }
    /// Returns the link to a frontend; nullptr: there is none.
    Link* operator[](std::size_t frontend) const noexcept { return open_[frontend].get(); }
    template <class Look> void for_each(Look&& look) noexcept {
        for (auto& each : open_)
            if (each) look(*each);
    }

    /// Puts a link in the place of an earlier one, which is closed. False if its socket cannot be watched.
    HERRING_SETUP bool put(std::unique_ptr<Link>&& fresh) noexcept {
        if (!poller_.watch(fresh->lane.descriptor(), 0, EPOLLIN)) return false;
        open_[fresh->frontend] = std::move(fresh);
        return true;
    }
    /// Closes a link, and returns the number of requests that waited. The link stays until `bury` if jobs
    /// have bytes of it.
    HERRING_SETUP std::size_t close(std::size_t frontend) noexcept {
        std::unique_ptr<Link> gone = std::move(open_[frontend]);
        if (gone == nullptr) return 0;
        poller_.forget(gone->lane.descriptor());
        gone->is_open = false;
        std::size_t const waited = gone->waiting();
        if (gone->jobs != 0) closed_.push_back(std::move(gone));
        return waited;
    }
    /// Destroys a closed link whose last job has ended.
    HERRING_SETUP void bury(Link const& dead) noexcept {
        std::erase_if(closed_, [&](auto const& each) { return each.get() == &dead; });
    }

    /// Returns the next frontend's link with waiting requests; nullptr: there is none.
    Link* with_requests() noexcept {
        for (std::size_t i = 0; i < open_.size(); ++i) {
            std::size_t const at = turn_ + i < open_.size() ? turn_ + i : turn_ + i - open_.size();
            if (open_[at] && open_[at]->waiting() != 0) return open_[at].get();
        }
        return nullptr;
    }
    /// Gives the next turn to another frontend, after a request of `from` was taken.
    void taken_from(Link const& from) noexcept {
        turn_ = from.frontend + 1 < open_.size() ? from.frontend + 1 : 0;
    }

    /// Asks the lanes for wake-ups, before the member sleeps. False if one has something already.
    bool try_sleep() noexcept {
        bool quiet = true;
        for_each([&](Link& each) {
            if (bool const full = each.lane.wants_write(); full != each.watched_for_write) {
                each.watched_for_write = full;
                poller_.rewatch(each.lane.descriptor(), 0, full ? EPOLLIN | EPOLLOUT : EPOLLIN);
            }
            quiet = each.lane.try_sleep() && quiet;
        });
        return quiet;
    }
    void awake() noexcept {
        for_each([](Link& each) { each.lane.awake(); });
    }

  private:
    poller& poller_;
    fixed_array<std::unique_ptr<Link>> open_;   // by frontend; may be null
    std::vector<std::unique_ptr<Link>> closed_; // jobs have their bytes
    std::size_t turn_ = 0;
};

/// Requests that the program holds, `concurrency` at most, and their rows.
///
/// Memory:  (concurrency + 1) · elements · sizeof(Element).
/// Threads: the member's.
template <class Element, class Link> class member_jobs {
  public:
    enum class row_state : std::uint8_t { open, encoded, bad };
    struct held {
        waiting_request request{};
        Link* from = nullptr;
        row_state row = row_state::open;
    };

    HERRING_SETUP member_jobs(std::size_t elements, std::size_t concurrency)
        : elements_(elements), slots_(concurrency), free_(0, concurrency),
          rows_(concurrency + 1, elements * sizeof(Element)) {}

    std::size_t size() const noexcept { return slots_.size(); }
    bool any_free() const noexcept { return free_.count() != 0; }

    /// Puts a request into a free slot, which there is, until `give`.
    place_index take(waiting_request const& request, Link& from) noexcept {
        place_index slot = 0;
        (void)free_.take(slot);
        slots_[slot] = {request, &from};
        ++from.jobs;
        return slot;
    }
    /// Frees the slot, and returns the link of its job.
    Link& give(place_index slot) noexcept {
        Link& from = *slots_[slot].from;
        slots_[slot].from = nullptr;
        free_.give(slot);
        --from.jobs;
        return from;
    }

    held& operator[](place_index slot) noexcept { return slots_[slot]; }
    held const& operator[](place_index slot) const noexcept { return slots_[slot]; }
    /// Memory where the program writes its row.
    std::span<Element> row(place_index slot) const noexcept {
        return {reinterpret_cast<Element*>(rows_[slot].data()), elements_};
    }
    /// Memory for a row without a job.
    std::span<Element> spare_row() const noexcept { return row(static_cast<place_index>(slots_.size())); }

  private:
    std::size_t elements_;
    fixed_array<held> slots_;
    free_places free_;
    place_memory rows_;
};

/// The sink of a `dialler`: keeps new and lost connections until the member's thread takes them. `Lane` is
/// constructed from `(lane_ends, admission const&, Lane::memory)`; its `memory`, for a frontend of this
/// machine, from `(admission const&)`, and has `descriptor offer()`.
///
/// Threads: the dialler's thread calls the functions of a sink, the member's thread the others, any thread
///          `status`.
template <class Lane> class member_inbox {
  public:
    using link = member_link<Lane>;

    HERRING_SETUP member_inbox(std::vector<std::string> const& frontends, std::size_t row_bytes, poller& set)
        : poller_(set), row_bytes_(row_bytes), boxes_(frontends.size()) {
        for (std::size_t i = 0; i < boxes_.size(); ++i) boxes_[i].status.address = frontends[i];
    }
    member_inbox(member_inbox const&) = delete;
    member_inbox& operator=(member_inbox const&) = delete;

    HERRING_SETUP void connected(std::size_t frontend, admission const& facts, lane_ends&& ends) noexcept {
        box& b = boxes_[frontend];
        std::string broken;
        std::unique_ptr<link> made;
        bool const shared = ends.is_shared();
        try {
            if (facts.row_bytes != row_bytes_) // a place of a lane has room for a row
                throw error(errc::protocol, -1, -1, "member",
                            {"it takes rows of ", facts.row_bytes, " bytes where those of this member have ",
                             row_bytes_});
            made =
                std::make_unique<link>(frontend, facts.credits, std::move(ends), facts, std::move(b.memory));
        } catch (error const& why) {
            broken = why.why().text;
        } catch (std::exception const& why) {
            broken = why.what();
        }
        b.memory = {};
        {
            monitor::guard const held(lock_);
            b.is_down = true; // the link before, if any
            b.fresh = std::move(made);
            b.broken = std::move(broken);
            b.status.now = frontend_status::state::connected;
            b.status.shared = shared;
            b.status.why.clear();
            ++b.status.times;
        }
        tell();
    }
    HERRING_SETUP void disconnected(std::size_t frontend, std::string_view why) noexcept {
        std::unique_ptr<link> gone; // destroyed without the lock
        {
            monitor::guard const held(lock_);
            box& b = boxes_[frontend];
            gone = std::move(b.fresh);
            b.broken.clear();
            b.is_down = true;
            b.status.now = frontend_status::state::connecting;
            b.status.why = why;
        }
        tell();
    }
    HERRING_SETUP void refused(std::size_t frontend, failure const& final) noexcept {
        disconnected(frontend, final.text);
        {
            monitor::guard const held(lock_);
            boxes_[frontend].status.now = frontend_status::state::refused;
            ++refused_;
        }
        tell();
    }
    /// Returns −1 if there is no such memory here: then the lane is tcp.
    HERRING_SETUP descriptor local_memory(std::size_t frontend, admission const& facts) noexcept {
        try {
            boxes_[frontend].memory = typename Lane::memory(facts);
            return boxes_[frontend].memory.offer();
        } catch (std::exception const&) {
            boxes_[frontend].memory = {};
            return descriptor();
        }
    }

    /// Calls `changed(frontend, link or null, broken)` for each frontend whose link has ended; a new link
    /// takes its place, or could not be constructed, as `broken` says.
    ///
    /// Cost:  one load, where there is no news.
    template <class Changed> void take(Changed&& changed) noexcept {
        if (!news_.load(std::memory_order_relaxed)) [[likely]]
            return;
        take_all(changed);
    }
    bool has_news() const noexcept { return news_.load(std::memory_order_seq_cst); }

    /// True if the link of this frontend is the newest, and not known to have ended.
    bool is_current(std::size_t frontend) const noexcept {
        monitor::guard const held(lock_);
        return !boxes_[frontend].is_down;
    }
    bool all_refused() const noexcept { return refused_.load(std::memory_order_relaxed) == boxes_.size(); }

    HERRING_SETUP std::vector<frontend_status> status() const {
        monitor::guard const held(lock_);
        std::vector<frontend_status> all;
        all.reserve(boxes_.size());
        for (box const& b : boxes_) all.push_back(b.status);
        return all;
    }

  private:
    struct box {
        std::unique_ptr<link> fresh{};
        std::string broken{};
        bool is_down = false;
        frontend_status status{};
        typename Lane::memory memory{}; // used by the dialler's thread
    };

    void tell() noexcept {
        news_.store(true);
        poller_.wake();
    }
    template <class Changed> HERRING_SETUP void take_all(Changed& changed) noexcept {
        news_.store(false); // before the look: news that comes now is seen, or reported again
        for (std::size_t i = 0; i < boxes_.size(); ++i) {
            std::unique_ptr<link> fresh;
            std::string broken;
            {
                monitor::guard const held(lock_);
                box& b = boxes_[i];
                if (!b.is_down) continue;
                b.is_down = false;
                fresh = std::move(b.fresh);
                broken = std::move(b.broken);
                b.broken.clear();
            }
            changed(i, std::move(fresh), std::string_view(broken));
        }
    }

    poller& poller_;
    std::size_t const row_bytes_;
    mutable monitor lock_;
    std::vector<box> boxes_;
    std::atomic<bool> news_{false};
    std::atomic<std::size_t> refused_{0};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_LINKS_HPP
