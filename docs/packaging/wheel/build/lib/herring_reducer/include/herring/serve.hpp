// herring: `serve<Reducer>(world, layout)`: a rank that has no tensors combines what workers push.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVE_HPP
#define HERRING_SERVE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/command.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/model/failure_detector_options.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/topology.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/plan/collective_division.hpp"
#include "herring/plan/memory_map.hpp"
#include "herring/policy/policy.hpp"
#include "herring/progress/progress.hpp"
#include "herring/reducer.hpp"
#include "herring/session/commands.hpp"
#include "herring/session/construction.hpp"
#include "herring/session/reducer_core.hpp"
#include "herring/session/reducible.hpp"
#include "herring/session/server_set_up.hpp"
#include "herring/session/session.hpp"
#include "herring/session/training.hpp"
#include "herring/step/calls.hpp"
#include "herring/step/collective.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE {

namespace detail {

/// The pack of a server: its one thread polls, whatever workers do.
template <class Pack> struct serving;
template <class Element, class... Policy> struct serving<policies<Element, Policy...>> {
    using type = policies<Element, std::conditional_t<std::is_same_v<typename Policy::axis, axes::progress>,
                                                      progress::caller, Policy>...>;
};

/// One server, from its construction to the end of its loop. It makes the workers' calls too, in the same
/// order and divided alike, with no tensors to give or take: steps and collectives are the classes that
/// reducers run.
///
/// Memory: as a reducer's region, of which it writes what it serves alone, so 1/S of the tensors' pages on S
///         servers; and as much for the largest buffer of a collective.
template <class Pack> class server : reducer_core<Pack> {
    using core = reducer_core<Pack>;
    using core::calls_;
    using core::parts_;
    using core::session_;
    using typename core::session_type;
    using element = typename Pack::element;
    static constexpr bool updates = session_type::updates;

  public:
    /// Collective, with the workers' constructors.
    template <class... TransportArguments>
    server(world& ranks, layout&& tensors, TransportArguments&&... arguments)
        : core(ranks, std::move(tensors)) {
        try {
            session_.connect_as(role::server, std::forward<TransportArguments>(arguments)...);
            parts_.emplace(session_, session_.node(), session_.trace(), calls_);
            if constexpr (updates) training_.begin(session_);
            session_.open(parts_->steps.ledger().ready());
        } catch (...) {
            announce_and_rethrow(ranks, "serve");
        }
    }

    herring::plan const& plan() const noexcept { return session_.plan(); }
    /// The nodes that the plan counts.
    topology const& map() const noexcept { return session_.map(); }
    std::byte const* memory() noexcept { return session_.node().memory(); }

    /// Returns when all workers have left between calls; else what ended the world.
    // A server has no deadline: a worker that waits for it in a call has one.
    status run() {
        while (true) {
            if (status ended = session_.desk().await(session_, deadline_in(never)); !ended.ok()) return ended;
            command const& next = session_.desk().taken(session_).what();
            if (next.what == command::kind::leave) return {};
            if (status ended = run(next); !ended.ok()) return ended;
            session_.rethrow_of_handlers();
        }
    }

  private:
    status run(command const& next) {
        if (!session_.desk().is_given(next, session_.ranks().topology())) {
            failure const why = failure::make(
                errc::protocol, session_.ranks().rank(), -1, "serve",
                "the workers give a command that none gives; see that every rank runs the same build");
            return session_.fail_with(&why);
        }
        switch (next.what) {
        case command::kind::step:
            return run_step();
        case command::kind::collective:
            return run_collective(next);
        case command::kind::start:
            return run_start(next.root);
        case command::kind::save:
        case command::kind::load:
            return run_checkpoint(next.what);
        case command::kind::leave:
            break;
        }
        return {};
    }

    status run_step() {
        if constexpr (updates) training_.take_values(session_, session_.desk().taken(session_).values());
        auto& steps = parts_->steps;
        for (std::size_t i = 0; i < steps.ledger().size(); ++i) steps.ready(session_, i, nullptr, {});
        status ended = steps.end(session_, {}, deadline_in(never));
        if constexpr (updates)
            if (ended.ok()) ended = training_.end_step(session_, parts_->collectives, deadline_in(never));
        return ended;
    }

    // In place it combines in memory of its own, as large as the buffer; what is bounced, in the slots.
    status run_collective(command const& asked) {
        std::size_t const elements = static_cast<std::size_t>(asked.elements),
                          size = asked.moved_bytes > 0 ? asked.moved_bytes : sizeof(element),
                          second = twofold_begin(elements, plan()),
                          bytes = (asked.twofold ? second + elements : elements) * size;
        std::byte* buffer = session_.node().memory(); // is not touched
        std::byte* second_buffer = buffer;
        if (session_.memory().path_of_buffer(elements * size) == memory_path::in_place) {
            if (bytes > buffer_.bytes().size()) {
                try {
                    buffer_ = private_memory(bytes, session_.ranks().rank());
                } catch (error const& why) {
                    return session_.fail_with(&why.why());
                }
            }
            buffer = buffer_.data();
            if (asked.twofold && elements > 0) second_buffer = buffer + second * size;
        }
        name_ = asked.name;
        return parts_->collectives.run(session_,
                                       {.operation = asked.operation,
                                        .name = name_.data(),
                                        .gives = static_cast<collective_program::share>(asked.gives),
                                        .takes = static_cast<collective_program::share>(asked.takes),
                                        .root = asked.root,
                                        .rule = asked.rule,
                                        .moved_bytes = asked.moved_bytes,
                                        .twofold = asked.twofold},
                                       {buffer, buffer, second_buffer}, elements, deadline_in(never));
    }

    // Weights land where this server updates them.
    status run_start(int root) {
        if constexpr (updates) {
            status ended = session_.desk().take_weights(session_, root, deadline_in(never));
            if (!ended.ok()) return ended;
            training_.restart(session_, session_.updated().weights().of_node);
            session_.ranks().barrier();
            return {};
        } else {
            failure const why = failure::make(errc::protocol, session_.ranks().rank(), root, "serve",
                                              "it starts weights, and the reducer has no optimizer");
            return session_.fail_with(&why);
        }
    }

    // True if weights are updated here, and the program includes herring/checkpoint.hpp.
    static constexpr bool has_checkpoints() noexcept {
        if constexpr (updates) return requires {
                sizeof(checkpointing<basic_reducer<Pack>>);
            };
        return false;
    }
    // A checkpoint that fails does so on all ranks, which may go on.
    status run_checkpoint(command::kind what) {
        if constexpr (has_checkpoints()) {
            using checkpoint = checkpointing<basic_reducer<Pack>>;
            // The world's collectives follow, and poll no transport, so this server's answer to the command
            // has to be out.
            if (status ended = session_.finish(session_.requested(), deadline_in(never)); !ended.ok())
                return ended;
            training_.take_values(session_, session_.desk().taken(session_).values());
            try {
                if (what == command::kind::save)
                    checkpoint::save_served(session_, training_);
                else
                    checkpoint::load_served(session_, training_);
            } catch (error const&) {
                if (failure const* const why = session_.failed()) return status(*why);
            }
            return {};
        } else {
            failure const why = failure::make(
                errc::protocol, session_.ranks().rank(), -1, "serve",
                "the workers save or load a checkpoint, and this server's program does not include "
                "<herring/checkpoint.hpp>");
            return session_.fail_with(&why);
        }
    }

    [[no_unique_address]] typename training_of<element, typename Pack::optimizer>::type training_;
    private_memory buffer_; // of collectives in place
    std::array<char, command::most_name> name_{};
};

template <bool HasServers> struct serves_reducer {
    static constexpr bool value = true;
    static_assert(
        HasServers,
        "[HRG-C05] serve: workers of this reducer do all of the work, and there is nothing to serve; a "
        "common "
        "slip is another pack than the workers' one; name herring::placement::dedicated, or optimal, and "
        "serve the type that the workers construct");
};

template <class Pack> struct serve_of {
    template <class... TransportArguments>
    static void run(world& ranks, layout&& tensors, serve_options const& options,
                    TransportArguments&&... arguments) {
        (void)holds<serves_reducer<Pack::placement::facts.dedicated_servers>>;
        if constexpr (Pack::placement::facts.dedicated_servers) {
            pin_server(ranks, options);
            server<typename serving<stored_pack<Pack>>::type> here(
                ranks, std::move(tensors), std::forward<TransportArguments>(arguments)...);
            if (options.report) report_server(here.plan(), here.map(), ranks.rank(), options);
            here.run().value();
        }
    }
};
template <class Element> struct serve_of<rejected<Element>> {
    template <class... Anything> static void run(Anything&&...) noexcept {}
};

template <class Reducer> struct pack_of;
template <class Pack> struct pack_of<basic_reducer<Pack>> { using type = Pack; };

} // namespace detail

/// Serves the reducers of the workers: combines what they push in steps and collectives, and updates weights,
/// until the last of them has destroyed its reducer. Collective with the workers' `Reducer(world, layout)`,
/// with the same type and layout; for a rank whose role is `server`. Arguments behind the options go to the
/// transport's constructor.
///
/// Cost:    a step: one command of 64 bytes (and the hyper values) from each node of workers, then their
///          pushes. With an optimizer in two phases also a row of norms to each node of workers, and their
///          sums back.
/// Memory:  1/S of the tensors' pages, with an optimizer 1/S of the weights and the state, on S servers;
///          staging for each worker.
/// Blocks:  until all workers have left. Without a deadline: a worker that waits for a server has one, and a
///          rank that dies is found.
/// Threads: the calling one; one core a server.
/// Errors:  `bad_state` on a worker; `bad_argument`, `mismatch` as of constructing a reducer; `mismatch`
///          naming the worker that is in another call, or has other hyper values; `peer_lost` and whatever
///          else ends the world. No server takes over from another: start again from a checkpoint.
/// Source:  Parameter Hub, SoCC'18; BytePS, OSDI'20.
/// Example: if (world.role() == herring::role::server) { herring::serve<trainer>(world, layout); return 0; }
template <class Reducer, class... TransportArguments>
void serve(world& ranks, layout tensors, serve_options const& options = {},
           TransportArguments&&... arguments) {
    detail::serve_of<typename detail::pack_of<Reducer>::type>::run(
        ranks, std::move(tensors), options, std::forward<TransportArguments>(arguments)...);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_SERVE_HPP
