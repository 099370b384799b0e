// herring: votes of steps: all ranks get the bits that any rank's ballot has, at once or in the next step.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_VOTES_HPP
#define HERRING_STEP_VOTES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/engine/operations/vote.hpp"
#include "herring/machine/time.hpp"
#include "herring/step/collective.hpp"
#include "herring/sync/sync.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace HERRING_NAMESPACE::detail {

/// One vote a step, of which at most one travels. `Travel`: the votes of a step are needed when the next one
/// ends, and travel meanwhile, so that no rank waits for another one that is less than a step behind.
///
/// Memory:   a ballot; where votes travel, a collective of their own, for others may run meanwhile.
/// Lifetime: refers to what its collective does. A driver must not run on when it ends while votes travel.
template <class Element, class Collective, bool Travel> class votes {
  public:
    /// `parts`: what a `Collective` is constructed with.
    template <class... Parts> explicit votes(Parts&... parts) : own_(parts...) {}

    /// Casts this rank's ballot. `agreed(ballot)` gets that of all ranks, once: before this returns, or else,
    /// where they travel, in `finish`. `digest`: what else the ranks have to agree on.
    ///
    /// Cost:   one message of 64 bytes a peer.
    /// Blocks: until all ranks have cast a ballot; not where they travel.
    template <class Session, class Agreed>
    status cast(Session& session, Collective& shared, sync::ballot const& mine, std::uint64_t digest,
                time_point deadline, Agreed const& agreed) {
        std::memcpy(ballot_, &mine, sizeof mine);
        collective_program const program{
            .operation = Session::template number_of<operations::vote>(), .name = "wait", .digest = digest};
        if constexpr (Travel) {
            end_ = own_.submit(session, program, {ballot_, ballot_}, elements);
            if (end_ > 0) return {};
        }
        status ended = shared.run(session, program, {ballot_, ballot_}, elements, deadline);
        if (ended.ok()) agreed(of_all());
        return ended;
    }
    /// True if `finish` would return at once.
    template <class Session> bool are_here(Session const& session) const noexcept {
        return end_ == 0 || session.released() >= end_;
    }
    /// Ends the votes that travel, if any do.
    template <class Session, class Agreed>
    status finish(Session& session, time_point deadline, Agreed const& agreed) {
        if (end_ == 0) return {};
        status ended = session.finish(end_, deadline);
        if (ended.ok()) {
            end_ = 0;
            agreed(of_all());
        }
        return ended;
    }

  private:
    struct none {
        template <class... Parts> explicit none(Parts&...) noexcept {}
    };
    static constexpr std::size_t elements = (sizeof(sync::ballot) + sizeof(Element) - 1) / sizeof(Element);

    sync::ballot of_all() const noexcept {
        sync::ballot any;
        std::memcpy(&any, ballot_, sizeof any);
        return any;
    }

    alignas(64) Element ballot_[elements] = {}; // this rank's; then that of all
    [[no_unique_address]] std::conditional_t<Travel, Collective, none> own_;
    std::uint64_t end_ = 0; // executions with the votes that travel; 0: none do
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_VOTES_HPP
