// herring: rank 0's door: who may join, what is said to those who may not, who is missing. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_DETAIL_CONTROL_ADMISSION_HPP
#define HERRING_DETAIL_CONTROL_ADMISSION_HPP

#include "herring/detail/control.hpp"
#include "herring/detail/control_link.hpp"
#include "herring/detail/control_wire.hpp"
#include "herring/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace herring::detail::star {

/// Why someone may not join.
struct refusal {
    errc code = errc::refused;
    std::string text{};
    bool again = false; ///< it may try until its deadline: this world may be about to make room for the next
};

/// The ranks' hellos, and those who were turned away.
class admission {
  public:
    /// `own`: rank 0's hello, which the others have to fit.
    explicit admission(hello own) : hellos_(own.size) { hellos_[0] = std::move(own); }

    std::vector<hello> const& hellos() const noexcept { return hellos_; }

    static bool speaks(head const& h) noexcept { return h.version == protocol_version; }
    static refusal other_version(head const& h) {
        return {errc::mismatch, "it speaks version " + std::to_string(h.version) +
                                    " of the protocol, rank 0 version " + std::to_string(protocol_version) +
                                    "; build every rank from one version of Herring"};
    }

    /// Whether `said` has no place in the world, and why. `complete`: all were here.
    bool refuses(hello const& said, std::vector<link*> const& places, bool complete, refusal& why) const {
        std::uint32_t const r = said.rank;
        hello const& own = hellos_[0];
        if (said.secret != own.secret) {
            why = {errc::mismatch, std::string(said.secret == 0  ? "rank 0 has a secret, it has none"
                                               : own.secret == 0 ? "it has a secret, rank 0 has none"
                                                                 : "its secret is not rank 0's") +
                                       "; set HERRING_SECRET alike on every rank"};
            return true;
        }
        if (said.size != own.size) {
            why = {errc::mismatch, "it says that the world has " + std::to_string(said.size) +
                                       " ranks, rank 0 says " + std::to_string(own.size) +
                                       "; start every rank with the same size"};
            return true;
        }
        if (r >= own.size) {
            why = {errc::refused, "rank " + std::to_string(r) + " is out of range; ranks go from 0 to " +
                                      std::to_string(own.size - 1)};
            return true;
        }
        link const* const there = places[r];
        bool const same = hellos_[r].incarnation == said.incarnation && said.incarnation != 0;
        if (r == 0 || (there != nullptr && !same)) {
            why = {errc::refused, "rank " + std::to_string(r) + " has already joined" +
                                      (r == 0 ? ": it is this one" : " from " + there->from) +
                                      "; give every process a rank of its own"};
            return true;
        }
        if (complete)
            why = {errc::refused,
                   "the world is complete and rank " + std::to_string(r) +
                       " has left it; start the whole job again",
                   true};
        return complete;
    }

    void admit(hello said) {
        std::size_t const r = said.rank;
        hellos_[r] = std::move(said);
    }

    /// A connection ended that was no rank's.
    void count_stranger() noexcept { ++strangers_; }

    /// What is sent to whom is refused; kept for the error in which joining may end.
    failure count_refusal(std::uint32_t rank, std::string const& from, refusal const& why) {
        ++refusals_;
        last_refusal_ = "rank " + std::to_string(rank) + " from " + from + ": " + why.text;
        return failure::make(why.code, static_cast<int>(rank), 0, "join", "refused by rank 0: " + why.text);
    }

    /// The ranks that are not here.
    static std::vector<int> absent(std::vector<link*> const& places) {
        std::vector<int> ranks;
        for (std::size_t r = 1; r < places.size(); ++r)
            if (places[r] == nullptr) ranks.push_back(static_cast<int>(r));
        return ranks;
    }

    /// The deadline has passed. `trouble`: what else may have kept them away.
    failure timed_out(std::vector<int> const& missing, std::string const& where,
                      std::chrono::milliseconds timeout, std::string const& trouble) const {
        std::string text = not_joined(rank_list(missing), where, timeout);
        if (refusals_ > 0) text += "; refused: " + std::to_string(refusals_) + ", last " + last_refusal_;
        if (strangers_ > 0) text += "; connections that were no rank's: " + std::to_string(strangers_);
        if (!trouble.empty()) text += "; " + trouble;
        return failure::make(errc::timeout, 0, missing.empty() ? -1 : missing[0], "join", text);
    }

    static std::string not_joined(std::string const& who, std::string const& where,
                                  std::chrono::milliseconds timeout) {
        return who + " did not join rank 0 on " + where + " within " + duration_text(timeout) +
               "; see whether they were started, and with this address";
    }

  private:
    std::vector<hello> hellos_; // rank → what it said
    long long strangers_ = 0;
    long long refusals_ = 0;
    std::string last_refusal_;
};

} // namespace herring::detail::star

#endif // HERRING_DETAIL_CONTROL_ADMISSION_HPP
