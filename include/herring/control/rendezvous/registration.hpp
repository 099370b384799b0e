// herring: the ranks that have joined, and why others may not. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_REGISTRATION_HPP
#define HERRING_CONTROL_RENDEZVOUS_REGISTRATION_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/control.hpp"
#include "herring/control/rendezvous/connection.hpp"
#include "herring/control/timeouts.hpp"
#include "herring/control/wire/messages.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// Why a rank may not join.
struct refusal {
    errc code = errc::refused;
    std::string text{};
    bool again = false; ///< it may try again: this world may be about to end, and the next to begin
};

/// The hellos of the ranks, and counts of refused and unidentified connections.
class registration {
  public:
    /// `own`: rank 0's hello, which the others have to match.
    explicit registration(hello const& own) : hellos_(own.size) { hellos_[0] = own; }

    fixed_array<hello> const& hellos() const noexcept { return hellos_; }

    HERRING_SETUP static refusal other_version(head const& h) {
        return {errc::mismatch, text({"it speaks version ", h.version, " of the protocol, rank 0 version ",
                                      protocol_version, "; build every rank from one version of Herring"})};
    }

    /// The refusal of a rank without a proof. `it_has`, `own_has`: each says that it has a secret.
    HERRING_SETUP static refusal other_secret(bool it_has, bool own_has) {
        return {errc::mismatch, text({!it_has    ? "rank 0 has a secret, it has none"
                                      : !own_has ? "it has a secret, rank 0 has none"
                                                 : "its secret is not rank 0's",
                                      "; set HERRING_SECRET or HERRING_SECRET_FILE alike on every rank"})};
    }

    /// The refusal where only one of both seals control connections.
    HERRING_SETUP static refusal other_protection(bool it_seals) {
        return {errc::mismatch,
                text({it_seals ? "its control connection is to be sealed, rank 0's are authenticated only"
                               : "its control connection is authenticated only, rank 0's are to be sealed",
                      "; give join_options::control or HERRING_CONTROL alike on every rank"})};
    }

    /// True if the rank of `said`, which has proved itself, may not join, for the reason `why`. `complete`:
    /// all ranks have joined.
    HERRING_SETUP bool refuses(hello const& said, fixed_array<connection*> const& places, bool complete,
                               refusal& why) const {
        auto const refused = [&](errc code, std::initializer_list<text_part> words, bool again = false) {
            why.code = code;
            why.text = text(words);
            why.again = again;
            return true;
        };
        std::uint32_t const r = said.rank;
        hello const& own = hellos_[0];
        if (said.size != own.size)
            return refused(errc::mismatch, {"it says that the world has ", said.size, " ranks, rank 0 says ",
                                            own.size, "; start every rank with the same size"});
        if (r >= own.size)
            return refused(errc::refused,
                           {"rank ", r, " is out of range; ranks go from 0 to ", own.size - 1});
        for (std::size_t i = 0; i < world_times::count; ++i) {
            if (said.times[i] == 0 || said.times[i] == own.times[i]) continue;
            auto const words = [&](hello const& of) {
                constexpr auto most = static_cast<std::uint64_t>(std::chrono::milliseconds(never).count());
                return timeout_text(std::chrono::milliseconds(std::min(of.times[i], most)));
            };
            char const* const variable = time_names[i].variable;
            return refused(errc::mismatch,
                           {"its ", time_names[i].option, variable == nullptr ? "" : " (",
                            variable == nullptr ? "" : variable, variable == nullptr ? "" : ")", " is ",
                            words(said), ", rank 0's is ", words(own),
                            "; set it alike on every rank, or on rank 0 alone, which tells the others"});
        }
        connection const* const there = places[r];
        bool const same = hellos_[r].incarnation == said.incarnation && said.incarnation != 0;
        if (r == 0 || (there != nullptr && !same))
            return refused(errc::refused,
                           {"rank ", r, " has already joined", r == 0 ? ": it is this one" : " from ",
                            r == 0 ? std::string_view() : std::string_view(there->from),
                            "; give every process a rank of its own"});
        return complete &&
               refused(errc::refused,
                       {"the world is complete and rank ", r, " has left it; start the whole job again"},
                       true);
    }

    void admit(hello const& said) { hellos_[said.rank] = said; }

    /// Counts an ended connection that was no rank's.
    void count_unidentified() noexcept { ++unidentified_; }

    /// Returns the failure to send to a refused rank; it is kept for the error in which joining may end.
    HERRING_SETUP failure count_refusal(std::uint32_t rank, std::string const& from, refusal const& why) {
        ++refusals_;
        last_refusal_ = text({"rank ", rank, " (", from, ") was refused: ", why.text});
        return failure::make(why.code, static_cast<int>(rank), 0, "join", {"refused by rank 0: ", why.text});
    }

    /// The ranks that have not joined.
    HERRING_SETUP static std::vector<int> absent(fixed_array<connection*> const& places) {
        std::vector<int> ranks;
        for (std::size_t r = 1; r < places.size(); ++r)
            if (places[r] == nullptr) ranks.push_back(static_cast<int>(r));
        return ranks;
    }

    /// Returns the failure of a passed deadline. `trouble`: another possible reason.
    HERRING_SETUP failure timed_out(std::vector<int> const& missing, std::string const& where,
                                    std::chrono::milliseconds timeout, std::string const& trouble) const {
        std::string words; // begins with refusals: the likely reason
        if (refusals_ > 0) append(words, {last_refusal_, "; "});
        if (refusals_ > 1) append(words, {"refused in all: ", refusals_, "; "});
        append(words, {not_joined(rank_list(missing), where, timeout)});
        if (unidentified_ > 0) append(words, {"; connections that were no rank's: ", unidentified_});
        if (!trouble.empty()) append(words, {"; ", trouble});
        return failure::make(errc::timeout, 0, missing.empty() ? -1 : missing[0], "join", words);
    }

    HERRING_SETUP static std::string not_joined(std::string const& who, std::string const& where,
                                                std::chrono::milliseconds timeout) {
        return text({who, " did not join rank 0 on ", where, " within ", duration_text(timeout),
                     "; see whether they were started, and with this address"});
    }

  private:
    fixed_array<hello> hellos_; // by rank
    long long unidentified_ = 0;
    long long refusals_ = 0;
    std::string last_refusal_;
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_REGISTRATION_HPP
