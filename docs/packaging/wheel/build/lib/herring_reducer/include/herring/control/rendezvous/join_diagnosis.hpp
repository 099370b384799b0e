// herring: why a rank has not joined: its observations at rank 0's address. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_JOIN_DIAGNOSIS_HPP
#define HERRING_CONTROL_RENDEZVOUS_JOIN_DIAGNOSIS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/rendezvous/registration.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/machine/time.hpp"

#include <chrono>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail::rendezvous {

/// The observations of a rank that joins, at rank 0's address, and the failure that follows from them.
class join_diagnosis {
  public:
    /// `where`: rank 0's address, as text. `timeout`: of the join.
    join_diagnosis(int rank, std::string const& where, std::chrono::milliseconds timeout)
        : rank_(rank), where_(where), timeout_(timeout) {}

    /// Notes that the process there has sent `bytes`, which rank 0 would not.
    HERRING_SETUP void foreign(std::span<std::byte const> bytes) {
        foreign_.clear();
        for (std::byte const b : bytes) {
            char const letter = static_cast<char>(b);
            if (letter < ' ' || letter > '~' || foreign_.size() == 60) break;
            foreign_ += letter;
        }
        foreign_ =
            foreign_.empty() ? std::string("bytes that are no control message") : text({"'", foreign_, "'"});
    }
    /// Notes that the process there has not proved that it has the secret.
    void unproven() noexcept { unproven_ = true; }
    /// The ranks that rank 0 waits for, by its own account.
    waiting_for& missing() noexcept { return missing_; }

    /// Notes a refusal by a process that has not proved to be rank 0. Any process could send that, so it ends
    /// nothing; but a rank whose secret is wrong hears nothing else. True, so that it is quoted: the refusal
    /// came three times, over two seconds.
    HERRING_SETUP bool believes(failure const& said, time_point now) {
        failure const quoted =
            failure::make(said.what, rank_, 0, "join",
                          {"what answers on ", where_, " says, unverified: ", std::string_view(said.text)});
        if (std::strcmp(quoted.text, unverified_.text) != 0) {
            unverified_ = quoted;
            times_said_ = 0;
            first_said_ = now;
        }
        return ++times_said_ >= least_unverified && now - first_said_ >= unverified_time;
    }
    /// The last refusal without a proof.
    failure const& unverified() const noexcept { return unverified_; }

    /// Returns the failure of a passed deadline. `greeted`: a process accepts connections there. `trouble`:
    /// another possible reason.
    HERRING_SETUP failure timed_out(bool greeted, std::string const& trouble) const {
        if (!greeted && unverified_.what != errc::ok) return unverified_;
        return greeted && !missing_.who.empty()
                   ? failure::make(errc::timeout, rank_, missing_.rank, "join",
                                   registration::not_joined(missing_.who, where_, timeout_))
                   : failure::make(errc::timeout, rank_, 0, "join", no_answer(greeted, trouble));
    }

  private:
    static constexpr int least_unverified = 3;
    static constexpr std::chrono::seconds unverified_time{2};

    HERRING_SETUP std::string no_answer(bool greeted, std::string const& trouble) const {
        if (!foreign_.empty())
            return text({"what answers on ", where_, " is not Herring: it sent ", foreign_,
                         "; another program has that port: choose another one, the same on every rank"});
        if (unproven_)
            return text(
                {"what answers on ", where_,
                 " has not proved that it has this rank's secret, so it is not this job's rank 0; see which "
                 "program has that port (ss -ltnp on its machine), and that the secret is rank 0's"});
        if (greeted)
            return text({"what listens on ", where_, " takes connections and does not answer within ",
                         duration_text(timeout_),
                         "; see which program has that port (ss -ltnp on its machine): if it is rank 0, it "
                         "is stopped"});
        return text({"no answer from rank 0 on ", where_, " within ", duration_text(timeout_),
                     trouble.empty() ? "" : " (last: ", trouble, trouble.empty() ? "" : ")",
                     "; see whether rank 0 runs, whether the address is one of its machine and whether a "
                     "firewall is between"});
    }

    int rank_;
    std::string where_;
    std::chrono::milliseconds timeout_;
    std::string foreign_;
    bool unproven_ = false;
    waiting_for missing_;
    failure unverified_{};
    int times_said_ = 0;
    time_point first_said_{};
};

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_JOIN_DIAGNOSIS_HPP
