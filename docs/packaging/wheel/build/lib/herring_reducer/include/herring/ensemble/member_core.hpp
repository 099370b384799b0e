// herring: a member: takes requests of several frontends in turn, hands them out as jobs, and answers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_CORE_HPP
#define HERRING_ENSEMBLE_MEMBER_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member.hpp"
#include "herring/ensemble/member_links.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/machine/forks.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/poller.hpp"
#include "herring/waiting/waiting.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sched.h>

namespace HERRING_NAMESPACE {

namespace detail::ensembles {

/// The engine of a member; `basic_member` documents its functions. `Rows`: `row_format`. `Lane`: a member's
/// end, see `member_inbox`. `Dialler<Sink>`: the control connections.
///
/// Memory:   (concurrency + 1) · elements · sizeof(Element), and what `Lane` says for each frontend.
/// Threads:  one at a time; `leave`, `stop` and `status` from any, `stop` from signal handlers too. Every
///           step is under one lock, because `leave` moves bytes beside the member's thread; a thread that
///           sleeps, or encodes, does not hold it.
/// Lifetime: outlives its jobs.
template <class Element, class Rows, class Waiting, class Lane, template <class> class Dialler>
class member_core {
  public:
    using element = Element;
    using job = ensembles::job<member_core>;
    using inbox = member_inbox<Lane>;

    /// Returns before any frontend is connected.
    ///
    /// Errors: those of the dialler; `no_resources`.
    HERRING_SETUP member_core(std::size_t elements, std::size_t concurrency, shape const& what,
                              dialler_options const& to)
        : elements_(elements), row_bytes_(Rows::row_bytes(elements)), jobs_(elements, concurrency),
          links_(to.frontends.size(), concurrency, poller_), inbox_(to.frontends, row_bytes_, poller_),
          dialler_(to, what, inbox_) {}
    member_core(member_core const&) = delete;
    member_core& operator=(member_core const&) = delete;
    /// Declines requests that wait. Jobs that the program still holds must not be used any more.
    HERRING_SETUP ~member_core() {
        links_.for_each([this](link& each) noexcept { turn_away(each); });
        dialler_.stop();
    }

    /// In a forked process calls that may throw do, and the others do nothing.
    bool forked_off() const noexcept { return !owner_.is_this(); }

    [[nodiscard]] job next(std::chrono::nanoseconds timeout = herring::never) {
        usable("next");
        {
            guard const locked(lock_);
            if (!jobs_.any_free()) [[unlikely]]
                all_are_out();
        }
        time_point const start = clock::now();
        time_point const deadline = timeout < time_point::max() - start ? start + timeout : time_point::max();
        std::uint32_t rounds = 0;
        std::chrono::nanoseconds spent{0};
        for (time_point last = start;; ++rounds) {
            time_point const now = clock::now();
            if (place_index slot = 0; step(now, slot)) return job(*this, slot);
            if (is_over() || now >= deadline) return {};
            spent += std::min<clock::duration>(now - last, longest_look);
            last = now;
            switch (Waiting{}.next(rounds, spent.count(), cores_are_shared)) {
            case wait_action::poll:
                break;
            case wait_action::pause:
                cpu_pause();
                break;
            case wait_action::yield:
                ::sched_yield();
                break;
            case wait_action::sleep:
                sleep(now, deadline);
                break;
            }
        }
    }

    [[nodiscard]] job try_next() noexcept {
        if (place_index slot = 0; step(clock::now(), slot)) return job(*this, slot);
        return {};
    }

    bool is_over() const noexcept { return is_ended() || inbox_.all_refused(); }

    int descriptor() const noexcept { return poller_.descriptor(); }
    bool arm() noexcept {
        if (forked_off()) return false;
        (void)poller_.woken();
        guard const locked(lock_);
        return is_quiet() && !is_ended();
    }

    template <class Fill> std::size_t contribute(std::uint64_t id, Fill&& fill) {
        usable("contribute");
        guard const locked(lock_);
        pump(clock::now());
        std::size_t sent = 0;
        std::span<std::byte> first{}; // the encoded row, once there is one
        for (std::size_t i = 0; i < links_.size(); ++i) {
            place_index place = 0;
            link* const each = links_[i];
            if (each == nullptr || !each->lane.take(place)) continue;
            std::span<std::byte> const to = each->lane.row(place).first(row_bytes_);
            if (first.empty()) {
                std::span<Element> const values = jobs_.spare_row();
                fill(values);
                if (Rows::encode(values, to) != row_check::good) {
                    each->lane.decline(id, place, herring::decline::unspecified);
                    ++counters_.bad_rows;
                    return 0;
                }
                first = to;
            } else {
                std::memcpy(to.data(), first.data(), row_bytes_);
            }
            if (!each->lane.send(id, place, row_bytes_)) continue;
            linger(*each);
            ++counters_.sent;
            ++sent;
        }
        return sent;
    }

    void stop() noexcept {
        if (forked_off()) return; // the poller is the parent's, too
        stopped_.store(true);
        poller_.wake();
    }

    HERRING_SETUP bool leave(std::chrono::milliseconds most) {
        usable("leave");
        leaving_.store(true);
        poller_.wake(); // the thread in `next`; no other thread consumes this wake-up
        time_point const deadline = clock::now() + most;
        while (true) {
            time_point const now = clock::now();
            {
                guard const locked(lock_);
                pump(now);
                links_.for_each([this](link& each) noexcept { turn_away(each); });
            }
            if (dialler_.leave(std::chrono::milliseconds(now < deadline ? 1 : 0))) return true;
            if (now >= deadline) return false;
        }
    }

    std::vector<frontend_status> status() const {
        usable("status");
        return inbox_.status();
    }
    job_counters counters() const noexcept {
        if (forked_off()) return counters_;
        guard const locked(lock_);
        return counters_;
    }
    std::size_t elements() const noexcept { return elements_; }

    // ---- called by a job ----------------------------------------------------------------------------------

    std::span<std::byte const> input(std::uint32_t slot) const noexcept { return jobs_[slot].request.bytes; }
    std::span<Element> row(std::uint32_t slot) const noexcept { return jobs_.row(slot); }
    std::chrono::nanoseconds remaining(std::uint32_t slot) const noexcept {
        return std::chrono::nanoseconds(
            std::max<std::int64_t>(jobs_[slot].request.deadline - count(clock::now()), 0));
    }
    std::size_t frontend(std::uint32_t slot) const noexcept { return jobs_[slot].from->frontend; }
    std::uint64_t id(std::uint32_t slot) const noexcept { return jobs_[slot].request.id; }

    bool encode(std::uint32_t slot) noexcept {
        if (forked_off()) return false;
        held& s = jobs_[slot];
        bool const good =
            Rows::encode(jobs_.row(slot), s.from->lane.row(s.request.place).first(row_bytes_)) ==
            row_check::good;
        s.row = good ? row_state::encoded : row_state::bad;
        return good;
    }
    job_end send(std::uint32_t slot) noexcept {
        if (forked_off()) return job_end::disconnected;
        guard const locked(lock_);
        held& s = jobs_[slot];
        waiting_request const& r = s.request;
        Lane& lane = s.from->lane;
        if (!s.from->is_open) return end(slot, job_end::disconnected, counters_.disconnected);
        if (count(clock::now()) >= r.deadline || !lane.holds(r.place)) {
            lane.decline(r.id, r.place, herring::decline::expired);
            return end(slot, job_end::late, counters_.late);
        }
        if (s.row == row_state::bad || (s.row == row_state::open && !encode(slot))) {
            lane.decline(r.id, r.place, herring::decline::bad_row);
            return end(slot, job_end::bad_row, counters_.bad_rows);
        }
        bool const was_stuck = lane.wants_write();
        if (!lane.send(r.id, r.place, row_bytes_))
            return end(slot, job_end::disconnected, counters_.disconnected);
        if (!was_stuck) linger(*s.from);
        return end(slot, job_end::sent, counters_.sent);
    }
    job_end decline(std::uint32_t slot, herring::decline why) noexcept {
        if (forked_off()) return job_end::disconnected;
        guard const locked(lock_);
        held& s = jobs_[slot];
        if (!s.from->is_open) return end(slot, job_end::disconnected, counters_.disconnected);
        s.from->lane.decline(s.request.id, s.request.place, why);
        return end(slot, job_end::declined, counters_.declined);
    }

  private:
    using link = typename inbox::link;
    using guard = monitor::guard;

    static constexpr std::chrono::microseconds longest_look{10}; // a longer one was spent in another thread

    using jobs = member_jobs<Element, link>;
    using held = typename jobs::held;
    using row_state = typename jobs::row_state;

    // The sink of a lane.
    struct arrivals {
        member_core& core;
        link& from;
        std::int64_t now;

        void asked(std::uint64_t id, std::uint64_t remaining_us, std::span<std::byte const> bytes,
                   place_index place) noexcept {
            ++core.counters_.asked;
            if (core.leaving_) {
                ++core.counters_.turned_away;
                from.lane.decline(id, place, herring::decline::stopping);
                return;
            }
            auto const most =
                static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max() - now) / 1000;
            auto const left = static_cast<std::int64_t>(std::min(remaining_us, most)) * 1000;
            if (!from.push({.id = id, .deadline = now + left, .bytes = bytes, .place = place}))
                from.lane.decline(id, place, herring::decline::overloaded);
        }
    };

    static std::int64_t count(time_point at) noexcept {
        return std::chrono::nanoseconds(at.time_since_epoch()).count();
    }
    bool is_ended() const noexcept {
        return stopped_.load(std::memory_order_acquire) || leaving_.load(std::memory_order_acquire) ||
               forked_off();
    }
    void usable(char const* operation) const {
        if (forked_off()) [[unlikely]]
            throw owner_.refusal(-1, operation, "member");
    }

    [[noreturn]] HERRING_SETUP void all_are_out() const {
        throw error(errc::bad_state, -1, -1, "next",
                    {"the program holds ", jobs_.size(), jobs_.size() == 1 ? " job" : " jobs",
                     ", which is its concurrency; answer or destroy one, or raise "
                     "member_options::concurrency"});
    }

    // Moves bytes of all lanes, and takes a request. False if there is none.
    bool step(time_point now, place_index& slot) noexcept {
        if (is_ended()) return false;
        guard const locked(lock_);
        pump(now);
        return !is_ended() && take(now, slot);
    }
    void pump(time_point now) noexcept {
        inbox_.take(
            [this](std::size_t frontend, std::unique_ptr<link> fresh, std::string_view broken) noexcept {
                changed(frontend, std::move(fresh), broken);
            });
        for (std::size_t i = 0; i < links_.size(); ++i) {
            if (links_[i] == nullptr) continue;
            arrivals sink{*this, *links_[i], count(now)};
            if (!links_[i]->lane.poll(sink)) [[unlikely]]
                give_up(i);
        }
    }

    // Puts the oldest request of the next frontend into a slot. False if there is none, or no slot.
    bool take(time_point now, place_index& slot) noexcept {
        if (!jobs_.any_free()) return false;
        while (link* const from = links_.with_requests()) {
            waiting_request request;
            while (from->pop(request)) {
                if (request.deadline <= count(now)) {
                    ++counters_.expired;
                    from->lane.decline(request.id, request.place, herring::decline::expired);
                    continue;
                }
                slot = jobs_.take(request, *from);
                links_.taken_from(*from);
                ++counters_.taken;
                return true;
            }
        }
        return false;
    }

    job_end end(std::uint32_t slot, job_end how, std::uint64_t& counter) noexcept {
        ++counter;
        link& from = jobs_.give(slot);
        if (from.jobs == 0 && !from.is_open) links_.bury(from);
        return how;
    }

    // Waits for a socket that does not take a row at once: later the program is busy with its next job, and
    // the row would wait.
    void linger(link& to) noexcept {
        if (!to.lane.wants_write()) [[likely]]
            return;
        time_point const until = clock::now() + std::chrono::milliseconds(1);
        do {
            pollfd writable{to.lane.descriptor(), POLLOUT, 0};
            if (::poll(&writable, 1, 1) <= 0) return;
            arrivals sink{*this, to, count(clock::now())};
            if (!to.lane.poll(sink)) return; // broken: the next poll reports it again
        } while (to.lane.wants_write() && clock::now() < until);
    }

    // Asks all lanes for wake-ups. False if there is something to do already.
    bool is_quiet() noexcept {
        bool const lanes_are = links_.try_sleep();
        return lanes_are && !inbox_.has_news() && (!jobs_.any_free() || links_.with_requests() == nullptr);
    }
    void sleep(time_point now, time_point until) noexcept {
        if ([this]() noexcept {
                guard const locked(lock_);
                return is_quiet();
            }()) {
            auto const left = std::chrono::ceil<std::chrono::milliseconds>(until - now).count();
            epoll_event found[8];
            int const got =
                poller_.wait(found, 8, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
            for (int i = 0; i < got; ++i)
                if (found[i].data.u64 == poller::wake_key) (void)poller_.woken();
        }
        guard const locked(lock_);
        links_.awake();
    }

    void turn_away(link& from) noexcept {
        for (waiting_request r; from.pop(r); ++counters_.turned_away)
            from.lane.decline(r.id, r.place, herring::decline::stopping);
    }

    HERRING_SETUP void changed(std::size_t frontend, std::unique_ptr<link> fresh,
                               std::string_view broken) noexcept {
        close(frontend);
        if (fresh != nullptr) {
            if (links_.put(std::move(fresh))) {
                ++counters_.connections;
                return;
            }
            broken = "no memory to sleep on its socket";
        }
        if (!broken.empty()) dialler_.drop(frontend, std::string(broken));
    }
    // Ends a broken lane. The dialler dials again, unless it has a newer one already.
    HERRING_SETUP void give_up(std::size_t frontend) noexcept {
        std::string why(links_[frontend]->lane.error());
        close(frontend);
        ++counters_.broken;
        if (inbox_.is_current(frontend)) dialler_.drop(frontend, std::move(why));
    }
    HERRING_SETUP void close(std::size_t frontend) noexcept {
        counters_.disconnected += links_.close(frontend);
    }

    owner_process const owner_{};
    std::size_t const elements_, row_bytes_;
    mutable monitor lock_;
    jobs jobs_;
    poller poller_{"member"};
    member_links<link> links_;
    job_counters counters_{};
    std::atomic<bool> stopped_{false};
    std::atomic<bool> leaving_{false};
    inbox inbox_;
    Dialler<inbox> dialler_; // its thread ends first
};

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_MEMBER_CORE_HPP
