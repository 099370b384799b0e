// herring: the members of a frontend: roster, admissions, losses, and the program's handler of changes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_MEMBERS_HPP
#define HERRING_ENSEMBLE_FRONTEND_MEMBERS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/change.hpp"
#include "herring/ensemble/frontend_driver.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/options.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The members of a frontend; the sink of its acceptor.
///
/// Threads:  `admitted`, `draining`, `lost`, `nudged` and `refused`: the acceptor's thread; `add`: any. These
///           take the engine's lock; all others require it.
/// Lifetime: no longer than the engine and the options.
template <class Lanes, class Engine> class frontend_members {
  public:
    using link_type = typename Engine::link_type;
    using least_members = std::size_t (*)(std::size_t roster) noexcept;

    /// `least`: returns k where the options have none.
    HERRING_SETUP frontend_members(Engine& engine, frontend_options const& options, std::size_t row_bytes,
                                   least_members least)
        : engine_(engine), options_(options), row_bytes_(row_bytes), least_(least),
          teller_(options.on_change), seen_(engine.links.size()) {
        names_.reserve(options_.most_members);
        names_.assign(options_.members.begin(), options_.members.end());
        count();
    }
    frontend_members(frontend_members const&) = delete;
    frontend_members& operator=(frontend_members const&) = delete;

    bool is_in_handler() const noexcept { return teller_.is_in_handler(); }

    // ---- with the lock

    std::size_t size() const noexcept { return names_.size(); }
    /// The names of the roster. They do not move while the frontend lives.
    std::vector<std::string> const& names() const noexcept { return names_; }
    /// The k of a request that gives none.
    std::size_t k() const noexcept { return k_; }
    struct replica_state {
        bool admitted = false, draining = false, slow = false, shared = false;
    };
    template <class Give> void each_replica(Give&& give) const {
        for (std::size_t p = 0; p < names_.size() * options_.replicas; ++p) {
            link_type const* const l = engine_.links[p];
            std::size_t const member = p / options_.replicas;
            give(member, static_cast<std::uint32_t>(p % options_.replicas), std::string_view(names_[member]),
                 replica_state{.admitted = l != nullptr,
                               .draining = l != nullptr && l->draining,
                               .slow = engine_.table.on_probation(member),
                               .shared = l != nullptr && l->is_shared()});
        }
    }

    // ---- without the lock

    /// Adds a member at the end of the roster.
    ///
    /// Errors: `bad_argument` for a name that is in the roster, or beyond `most_members`.
    HERRING_SETUP void add(std::string const& name) {
        option_check const check{"frontend"};
        check.name("a member's name", name);
        {
            guard const held(engine_.lock);
            for (std::size_t m = 0; m < names_.size(); ++m)
                if (names_[m] == name) check.refuse({"the roster has '", name, "' already, as member ", m});
            if (names_.size() == options_.most_members)
                check.refuse({"the roster has ", names_.size(),
                              " members, which is most_members; give the frontend a larger one"});
            names_.push_back(name);
            engine_.table.add_member();
            count();
            engine_.table.set_k(k_);
        }
    }

    HERRING_SETUP void admitted(peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                                lane_ends&& ends) noexcept {
        auto fresh = std::make_unique<link_type>(peer, incarnation, ++serials_);
        std::string fault;
        try {
            Lanes::open(*fresh, std::move(ends), engine_.requests, peer, credits, options_.request_bytes,
                        row_bytes_);
        } catch (error const& e) {
            fault = e.why().text;
            if (fault.empty()) fault = to_string(e.code());
        }
        change_kind what = change_kind::joined;
        decltype(engine_.control) control = nullptr;
        {
            guard const held(engine_.lock);
            control = engine_.control; // lives until this thread has ended
            engine_.links.sweep();
            if (fault.empty() && !engine_.links.put(fresh)) fault = "no room to watch its lane";
            if (fault.empty()) {
                if (seen_[peer]) what = change_kind::returned;
                seen_[peer] = true;
                engine_.table.admitted(peer, engine_.links[peer]->serial(), Engine::now_ns());
                if (engine_.sleeping) engine_.ready.wake(); // the new lane has to know that this end sleeps
                if (!engine_.driving) engine_.settle();
                engine_.changed();
            }
        }
        if (!fault.empty()) {
            if (control != nullptr) control->drop(peer, incarnation, std::move(fault));
            return;
        }
        tell(what, peer, {});
    }
    HERRING_SETUP void draining(peer_index peer, std::uint64_t incarnation) noexcept {
        {
            guard const held(engine_.lock);
            link_type* const l = engine_.links.current(peer, incarnation);
            if (l == nullptr) return;
            l->draining = true;
            engine_.table.draining(peer);
            engine_.changed();
            engine_.let_go(*l);
        }
        tell(change_kind::leaving, peer, {});
    }
    HERRING_SETUP void lost(peer_index peer, std::uint64_t incarnation, std::string_view why) noexcept {
        {
            guard const held(engine_.lock);
            if (engine_.links.current(peer, incarnation) != nullptr) {
                engine_.table.lost(peer, Engine::now_ns());
                engine_.links.retire(peer);
                engine_.changed();
            }
            engine_.links.sweep();
        }
        tell(change_kind::lost, peer, why);
    }
    int local_memory() const noexcept { return engine_.requests.descriptor(); }
    HERRING_SETUP void nudged() noexcept {
        if (!engine_.has_verdict.exchange(false, std::memory_order_acq_rel)) return;
        member_set slow, recovered;
        {
            guard const held(engine_.lock);
            std::swap(slow, engine_.slow_since);
            std::swap(recovered, engine_.fast_since);
        }
        auto const tell_of = [&](change_kind what) {
            return [this, what](std::size_t m) {
                tell(what, static_cast<peer_index>(m * options_.replicas), {});
            };
        };
        slow.for_each(tell_of(change_kind::slow));
        recovered.for_each(tell_of(change_kind::recovered));
    }
    HERRING_SETUP void refused(admission_refusal reason, std::string_view why) noexcept {
        change c{.what = change_kind::refused, .member = change::no_member, .why = why, .reason = reason};
        {
            guard const held(engine_.lock);
            engine_.links.sweep();
            c.admitted = engine_.table.admitted_members();
        }
        if (teller_) teller_.tell(c);
    }

  private:
    using guard = frontend_lock::guard;

    // Sets k. The policy is called through a pointer, never by a request.
    HERRING_SETUP void count() noexcept { k_ = options_.k > 0 ? options_.k : least_(names_.size()); }
    HERRING_SETUP void tell(change_kind what, peer_index peer, std::string_view why) noexcept {
        std::size_t const member = peer / options_.replicas;
        if (!teller_) return;
        change c{.what = what,
                 .member = member,
                 .replica = static_cast<std::uint32_t>(peer % options_.replicas),
                 .why = why};
        {
            guard const held(engine_.lock);
            if (member >= names_.size()) return;
            c.name = names_[member]; // does not move: the vector has reserved its room
            c.admitted = engine_.table.admitted_members();
        }
        teller_.tell(c);
    }

    Engine& engine_;
    frontend_options const& options_;
    std::size_t row_bytes_;
    least_members least_;
    std::size_t k_ = 0;
    change_teller teller_;
    fixed_array<bool> seen_; // peers that were admitted before
    std::vector<std::string> names_;
    std::uint64_t serials_ = 0; // number of the last admission
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_MEMBERS_HPP
