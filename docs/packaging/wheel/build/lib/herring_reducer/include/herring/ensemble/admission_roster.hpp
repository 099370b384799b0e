// herring: the names of an ensemble's members, and which process has the place of each replica.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ADMISSION_ROSTER_HPP
#define HERRING_ENSEMBLE_ADMISSION_ROSTER_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/identity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <time.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Returns the incarnation of this process at an ensemble, a number larger than those drawn before, on any
/// machine, before a boot or after it: microseconds of the time of day in the upper 52 bits, random bits
/// below. Milliseconds would be too coarse: a process may join, answer and be replaced within one.
///
/// It orders processes and nothing else: no deadline depends on it. Where the time of day was set back, a
/// newer process may have a smaller number: it waits until the older has gone (`admission_roster`).
HERRING_SETUP inline std::uint64_t new_incarnation() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    auto const us =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000;
    constexpr unsigned random_width = 12;
    return us << random_width | random_bits() >> (64 - random_width);
}

/// The names of an ensemble's members, and the process that has the place of each replica.
///
/// If two processes have one name and replica number, the one with the larger incarnation has the place. The
/// smaller is refused while the larger is here, and always after it was replaced; else it is admitted,
/// because the time of day may be set back.
class admission_roster {
  public:
    /// Errors: `bad_argument` for names that are empty, too long, not printable or not unique, and for too
    ///         many.
    HERRING_SETUP admission_roster(std::vector<std::string> names, std::uint32_t replicas)
        : replicas_(replicas) {
        if (replicas < 1 || replicas > most_replicas)
            refuse_setting({"replicas is ", replicas, "; give 1 to ", most_replicas});
        for (std::string& name : names) add(std::move(name));
    }

    /// Errors: as above.
    HERRING_SETUP void add(std::string name) {
        check_name("a member", name);
        if (std::find(names_.begin(), names_.end(), name) != names_.end())
            refuse_setting({"the roster has '", name, "' twice; give every member a name of its own"});
        if (names_.size() == member_set::capacity)
            refuse_setting({"the roster has more than ", member_set::capacity, " members"});
        names_.push_back(std::move(name));
        places_.resize(names_.size() * replicas_);
    }

    /// Errors: `bad_argument` for a name that is empty, longer than 128 bytes or not printable. `whose`: for
    ///         the text.
    HERRING_SETUP static void check_name(std::string_view whose, std::string const& name) {
        std::string shown = name;
        wire::make_printable(shown);
        if (name.empty()) refuse_setting({"the name of ", whose, " is empty"});
        if (name.size() > most_name || shown != name || name.find('\n') != std::string::npos)
            refuse_setting({"the name of ", whose, ", '", std::string_view(shown).substr(0, most_name),
                            "', is no line of 1 to ", most_name, " bytes of UTF-8"});
    }
    [[noreturn]] HERRING_SETUP static void refuse_setting(std::initializer_list<text_part> words) {
        throw error(errc::bad_argument, -1, -1, "ensemble", words);
    }

    std::vector<std::string> const& names() const noexcept { return names_; }
    std::uint32_t replicas() const noexcept { return replicas_; }
    std::size_t peers() const noexcept { return places_.size(); }

    /// "member 'a'" or "member 'a', replica 1".
    HERRING_SETUP static std::string who(std::string_view name, std::uint32_t replica) {
        return replica == 0 ? text({"member '", name, "'"})
                            : text({"member '", name, "', replica ", replica});
    }

    struct decision {
        admission_refusal reason = admission_refusal::none;
        std::string text{};
        peer_index peer = 0;
        bool takes_over = false; ///< the process that has the place is older
    };
    /// Decides on a member that has proved itself. `offers_memory`: the frontend can share memory with
    /// members of its machine.
    HERRING_SETUP decision decide(hello const& said, shape const& own, herring::lane lanes,
                                  bool offers_memory, bool same_machine) const {
        using reason = admission_refusal;
        std::string const whom = who(said.name, said.replica);
        auto const refused = [&](reason why, std::initializer_list<text_part> words) {
            decision made{why, text({whom, ": ", text(words)}), 0, false};
            wire::make_printable(made.text); // a cut text may begin within a character
            return made;
        };
        if (shape_difference const found = difference(said.shape, own); found.what != reason::none)
            return refused(found.what, {found.text});
        std::size_t member = 0;
        while (member < names_.size() && names_[member] != said.name) ++member;
        if (member == names_.size())
            return refused(reason::member, {"the roster of ensemble '", own.ensemble, "' has no '", said.name,
                                            "'; it has ", listed()});
        if (said.replica >= replicas_)
            return refused(reason::replica,
                           {"its replica number is ", said.replica, ", and the frontend has ", replicas_,
                            " of each member, numbered from 0"});
        bool const by_memory = offers_memory && same_machine;
        bool const wants_memory = said.lanes == herring::lane::shared || lanes == herring::lane::shared;
        bool const wants_tcp = said.lanes == herring::lane::tcp || lanes == herring::lane::tcp;
        if (wants_memory && (wants_tcp || !by_memory))
            return refused(reason::lane, {"its lanes are '", to_string(said.lanes), "', the frontend's '",
                                          to_string(lanes), "'",
                                          wants_tcp       ? ""
                                          : !same_machine ? ", and they are on different machines"
                                                          : ", and the frontend has no memory to share",
                                          "; let one of them be 'any' and give a lane that both have"});
        auto const peer = static_cast<peer_index>(member * replicas_ + said.replica);
        place const& at = places_[peer];
        bool const older = at.here && said.incarnation < at.incarnation;
        if (older || at.has_replaced(said.incarnation))
            return refused(reason::replaced,
                           {"a newer process has its place (incarnation ", at.incarnation, ", its own is ",
                            said.incarnation, "); let one process of this name run"});
        return {reason::none, {}, peer, at.here && said.incarnation != at.incarnation};
    }

    /// Gives the place to the process, after a decision without a reason.
    HERRING_SETUP void take(peer_index peer, std::uint64_t incarnation) noexcept {
        place& at = places_[peer];
        if (at.here && at.incarnation != incarnation)
            at.replaced[at.replacements++ % place::most] = at.incarnation;
        at.incarnation = incarnation;
        at.here = true;
    }
    HERRING_SETUP void gone(peer_index peer, std::uint64_t incarnation) noexcept {
        if (places_[peer].incarnation == incarnation) places_[peer].here = false;
    }

  private:
    struct place {
        static constexpr std::size_t most = 4;
        std::uint64_t incarnation = 0; // of the last process
        bool here = false;
        std::uint64_t replaced[most] = {}; // the last processes that were replaced
        std::size_t replacements = 0;

        bool has_replaced(std::uint64_t other) const noexcept {
            return std::find(replaced, replaced + most, other) != replaced + most;
        }
    };

    HERRING_SETUP std::string listed() const {
        std::string all;
        for (std::size_t i = 0; i < names_.size(); ++i) {
            if (i == 6) return all += ", ...";
            append(all, {i == 0 ? "'" : ", '", std::string_view(names_[i]).substr(0, 24), "'"});
        }
        return all.empty() ? "no members" : all;
    }

    std::uint32_t replicas_;
    std::vector<std::string> names_{};
    std::vector<place> places_{}; // by peer
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ADMISSION_ROSTER_HPP
