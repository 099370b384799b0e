// herring: the core of a reducer and of a server: session, checks, steps, collectives; and its access.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_REDUCER_CORE_HPP
#define HERRING_SESSION_REDUCER_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/layout.hpp"
#include "herring/policy/policy.hpp"
#include "herring/session/session.hpp"
#include "herring/step/block_exchange.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/collective.hpp"
#include "herring/step/due_buckets.hpp"
#include "herring/step/session_base.hpp"
#include "herring/step/step.hpp"
#include "herring/sync/sync.hpp"

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Steps and collectives over a session, the same for all types of elements.
template <class Store, class Trace, class Sharding, class Buckets = every_bucket> struct parts {
    template <class Node>
    parts(session_base& session, Node& node, Trace& trace, calls& checks)
        : steps(session, node, trace, checks), collectives(session, steps.bounce()),
          blocks(session, steps.bounce()) {}

    step<Store, Trace, Buckets> steps;
    collective<Store, Sharding> collectives;
    block_exchange<Store> blocks;
};

/// A session, with steps and collectives over it. The last base of a reducer, so that it is destroyed first,
/// and a base of a server.
template <class Pack> struct basic_reducer_core {
    using session_type = session<Pack>;
    using buckets = std::conditional_t<skips_steps<typename Pack::sync>, due_buckets, every_bucket>;

    basic_reducer_core(world& ranks, layout&& tensors)
        : session_(ranks, std::move(tensors)), calls_(session_.ranks()) {}

    /// Runs a collective, whose arguments were checked.
    ///
    /// Errors: returned; an exception of a handler of the program is thrown.
    status run(collective_program const& program, collective_buffers const& memory, std::size_t elements,
               time_point deadline) {
        status ended = parts_->collectives.run(session_, program, memory, elements, deadline);
        session_.rethrow_of_handlers();
        return ended;
    }

    /// Runs a call that moves blocks, whose arguments were checked.
    ///
    /// Errors: as above.
    status run(block_program const& program, std::byte const* in, std::byte* out, time_point deadline) {
        int const root = std::max(program.sizes.from, program.sizes.to);
        bool const empty = parts_->blocks.begin(program) == 0;
        // Without bytes between ranks their calls are compared all the same.
        status ended = empty ? parts_->collectives.run(session_,
                                                       {.operation = program.operation,
                                                        .name = program.name,
                                                        .root = root,
                                                        .moved_bytes = program.moved_bytes,
                                                        .digest = program.digest},
                                                       {}, 0, deadline)
                             : parts_->blocks.run(session_, in, out, deadline);
        if (empty && ended.ok()) parts_->blocks.copy_own(in, out);
        session_.rethrow_of_handlers();
        return ended;
    }

    // Destroyed after the session, whose registration looks at the step's ledger.
    manual_lifetime<
        parts<typename session_type::store, typename Pack::trace, typename Pack::sharding, buckets>>
        parts_;
    session_type session_;
    calls calls_;
};

template <class Pack> using reducer_core = basic_reducer_core<stored_pack<Pack>>;

/// The one friend of a reducer: the calls that are not members of it, in headers of their own, reach its
/// parts by this.
struct reducer_access {
    template <class Pack>
    HERRING_ALWAYS_INLINE static reducer_core<Pack>& core(basic_reducer<Pack>& of) noexcept {
        return of;
    }
    /// Ends a step as `basic_reducer::wait`, with `wait` in place of a `plain_wait`.
    template <class Pack, class Wait>
    static status end_step(basic_reducer<Pack>& of, time_point deadline, Wait const& wait) {
        return of.end_step({}, deadline, wait);
    }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_REDUCER_CORE_HPP
