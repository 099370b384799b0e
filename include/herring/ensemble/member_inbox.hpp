// herring: what the thread of a member's control connections has for the member: new links, ends of links, refusals.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_INBOX_HPP
#define HERRING_ENSEMBLE_MEMBER_INBOX_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/lane_ends.hpp"
#include "herring/ensemble/member_link.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/net/poller.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

/// How a member stands with one of its frontends.
struct frontend_status {
    enum class state : std::uint8_t {
        connecting, ///< not there, or not there any more: it is tried again and again
        connected,
        refused ///< for good; `why` says it
    };
    std::string address{}; ///< as in the member's options
    state now = state::connecting;
    std::string why{};       ///< why it is not connected, as far as is known
    bool shared = false;     ///< connected through memory of one machine
    std::uint64_t times = 0; ///< that it was connected
};

/// "connecting", "connected", "refused".
constexpr char const* to_string(frontend_status::state s) noexcept {
    switch (s) {
    case frontend_status::state::connecting:
        return "connecting";
    case frontend_status::state::connected:
        return "connected";
    case frontend_status::state::refused:
        return "refused";
    }
    return "unknown";
}

namespace detail::ensembles {

/// The sink of a `dialler`. `Lane` is made of `(lane_ends, admission const&, Lane::memory)`; its `memory` of `(admission const&)`,
/// for a local frontend, and has `descriptor offer()`.
///
/// Threads: the dialler's thread calls the functions of a sink, the member's thread the others, any thread `status`.
template <class Lane> class member_inbox {
  public:
    using link = member_link<Lane>;

    HERRING_SETUP member_inbox(std::vector<std::string> const& frontends, std::size_t row_bytes, poller& bell)
        : bell_(bell), row_bytes_(row_bytes), boxes_(frontends.size()) {
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
            b.is_down = true; // of what was before
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
    /// −1: there is no such memory here, so the lane is tcp.
    HERRING_SETUP descriptor local_memory(std::size_t frontend, admission const& facts) noexcept {
        try {
            boxes_[frontend].memory = typename Lane::memory(facts);
            return boxes_[frontend].memory.offer();
        } catch (std::exception const&) {
            boxes_[frontend].memory = {};
            return descriptor();
        }
    }

    /// Calls `changed(frontend, link or null, broken)`: what was open there has ended; a new link takes its place, or it could
    /// not be made, as `broken` says.
    ///
    /// Cost:  one load, where there is no news.
    template <class Changed> void take(Changed&& changed) noexcept {
        if (!news_.load(std::memory_order_relaxed)) [[likely]]
            return;
        take_all(changed);
    }
    bool has_news() const noexcept { return news_.load(std::memory_order_seq_cst); }

    /// Whether `link` of this frontend is the newest, and not known to have ended.
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
        typename Lane::memory memory{}; // of the dialler's thread
    };

    void tell() noexcept {
        news_.store(true);
        bell_.wake();
    }
    template <class Changed> HERRING_SETUP void take_all(Changed& changed) noexcept {
        news_.store(false); // before the look: what comes now is seen, or told again
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

    poller& bell_;
    std::size_t const row_bytes_;
    mutable monitor lock_;
    std::vector<box> boxes_;
    std::atomic<bool> news_{false};
    std::atomic<std::size_t> refused_{0};
};

} // namespace detail::ensembles

} // namespace HERRING_NAMESPACE

#endif // HERRING_ENSEMBLE_MEMBER_INBOX_HPP
