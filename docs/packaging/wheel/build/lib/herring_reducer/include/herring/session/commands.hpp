// herring: commands of a session with dedicated servers: workers give them; they travel as executions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_COMMANDS_HPP
#define HERRING_SESSION_COMMANDS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world_state.hpp"
#include "herring/engine/command.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/operations/broadcast.hpp"
#include "herring/engine/operations/command.hpp"
#include "herring/engine/operations/norms.hpp"
#include "herring/engine/state.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/roles.hpp"
#include "herring/plan/plan.hpp"
#include "herring/session/norm_tables.hpp"
#include "herring/session/session.hpp"
#include "herring/step/bounce_buffers.hpp"
#include "herring/step/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// The memory of a rank's command, and the executions that carry commands: each has one chunk for each server
/// that is a node of its own. The first local rank of each node sends it; the ranks of a node compare their
/// calls by executions, as ever.
///
/// Lifetime: of the session; the memory is the region's, which the transport may send from.
class command_post {
  public:
    /// `memory`: of one command and its values. `call`: of the program, for errors.
    HERRING_SETUP void open(std::span<std::byte> memory, roles const& nodes, char const* call) {
        memory_ = memory;
        call_ = call;
        for (std::size_t s = 0; s < nodes.servers.size(); ++s)
            if (nodes.contributor(nodes.servers[s]).value < 0)
                shards_.push_back({.offset = s,
                                   .elements = 1,
                                   .chunk_elements = 1,
                                   .chunks = 1,
                                   .first_chunk = static_cast<std::uint32_t>(shards_.size()),
                                   .server = server_id::at(s)});
    }
    /// True if there are servers to command.
    bool any() const noexcept { return !shards_.empty(); }
    std::span<std::byte> memory() const noexcept { return memory_; }

    /// Sets the values that follow commands from now on, until they are set again.
    void set_values(std::span<std::byte const> values) noexcept {
        std::memcpy(memory_.data() + command::bytes, values.data(), values.size());
    }
    /// Writes the next command. Nothing of the session is under way.
    void write(command what) noexcept {
        what.number = count_++;
        what.write(memory_.first<command::bytes>());
    }
    execution next(std::uint8_t operation) const noexcept {
        return {.shards = shards_.data(),
                .shard_count = static_cast<std::uint32_t>(shards_.size()),
                .path = route::two_hop,
                .operation = operation,
                .own = memory_.data(),
                .elements = shards_.size(),
                .fingerprint = fingerprint,
                .label = no_bucket,
                .name = call_};
    }

    /// Sends the command that was written to all servers, as the last one: no other rank has to be in any
    /// call, and no server answers. Nothing polls the engine meanwhile.
    ///
    /// Blocks: until it is out, or `deadline`.
    template <class Core> HERRING_SETUP void send_last(Core& core, time_point deadline) noexcept {
        auto const goes_on = [&](peer const& to) { return !to.lost && clock::now() < deadline; };
        auto const wait_a_little = [&] {
            if (core.poll_transport() == 0) core.sleep_on_transport(clock::now() + shortest_sleep);
        };
        for (std::size_t i = 0; i < core.peers.size(); ++i)
            if (core.who.map.is_server(core.peers[i].rank))
                while (goes_on(core.peers[i]) && !core.send_unanswered(core, i, fingerprint, memory_))
                    wait_a_little();
        for (peer const& to : core.peers)
            while (to.sends > 0 && goes_on(to)) wait_a_little();
    }

  private:
    static constexpr std::uint32_t fingerprint = fingerprint_of(0, 0x636f'6d6d'616e'64);
    static constexpr std::chrono::milliseconds shortest_sleep{1};

    std::span<std::byte> memory_;
    char const* call_ = "";
    std::vector<shard> shards_;
    std::uint64_t count_ = 0;
};

/// The commands of a session: given by workers before each call, taken by servers.
template <class Session> class command_desk<Session, true> : command_post {
  public:
    static constexpr std::size_t bytes = command::bytes;

    /// Before the first message. `room`: bytes of a command with its values.
    HERRING_SETUP void open(Session& session, std::size_t room) {
        static_assert(bytes + 2048 <= 4096, "a command with its values fits the smallest slot");
        command_post::open({session.node().memory() + session.memory().command_offset, room},
                           session.plan().roles, session.serves() ? "serve" : "wait");
        session.running().template traffic_of<operations::command>().place(memory());
        if (session.serves()) taken(session).keep(memory(), number + std::size_t{1});
    }
    using command_post::set_values;
    /// True if there are servers to command.
    bool is_commanding() const noexcept { return any(); }

    // ---- of a worker, when nothing of the session's is under way ------------------------------------------

    /// Returns how many executions are submitted with the command.
    std::uint64_t begin_step(Session& session) noexcept {
        begin(session, {});
        return submitted_;
    }
    template <class Program>
    void begin_collective(Session& session, Program const& program, std::size_t elements) noexcept {
        command what{.what = command::kind::collective,
                     .operation = program.operation,
                     .gives = static_cast<std::uint8_t>(program.gives),
                     .takes = static_cast<std::uint8_t>(program.takes),
                     .twofold = program.twofold,
                     .rule = program.rule,
                     .root = program.root,
                     .moved_bytes = program.moved_bytes,
                     .elements = elements};
        what.set_name(program.name);
        begin(session, what);
    }
    void begin_start(Session& session, int root) noexcept {
        begin(session, {.what = command::kind::start, .root = root});
    }
    /// All ranks go on to meet in the world's collectives, so the command has come: nothing of the session is
    /// under way afterwards.
    void begin_save(Session& session) noexcept { begin_alone(session, {.what = command::kind::save}); }
    void begin_load(Session& session) noexcept { begin_alone(session, {.what = command::kind::load}); }
    /// The weights of `root`, which lie at `memory` as the plan places tensors, to those of all workers and
    /// to the servers that update them.
    status spread_weights(Session& session, int root, std::byte* memory, time_point deadline) noexcept {
        return broadcast(
            session, root,
            [&](std::size_t b) {
                return memory + session.plan().buckets[b].offset * session.plan().element_bytes;
            },
            deadline);
    }
    /// At its end: tells the servers that no call follows. Its local ranks need not be there.
    ///
    /// Blocks: until that is out, at most `longest_arrival`.
    HERRING_SETUP void leave(Session& session) noexcept {
        if (session.serves() || !any() || session.local_rank() != 0) return;
        session.stop_driver();
        write({.what = command::kind::leave});
        send_last(session.running().core(), clock::now() + longest_arrival);
    }

    // ---- of both, in a step of two phases -----------------------------------------------------------------

    norm_tables& norms() noexcept { return norms_; }
    norm_tables const& norms() const noexcept { return norms_; }
    /// The ranks' rows of `count` numbers are written; afterwards their sums are known. A worker's may be on
    /// their way to servers still.
    ///
    /// Cost: an empty message to each server and a row back; then the sums to each, ahead of what follows.
    status exchange_norms(Session& session, std::size_t count, time_point deadline) noexcept {
        constexpr std::uint8_t operation = Session::template number_of<operations::norms>();
        status const ended = session.finish(session.submit(norms_.gather(operation, count)), deadline);
        if (!ended.ok()) return ended;
        if (!session.serves()) norms_.add_up(count);
        std::uint64_t const told = session.submit(norms_.tell(operation, count));
        return session.serves() ? session.finish(told, deadline) : ended;
    }

    // ---- of a server --------------------------------------------------------------------------------------

    /// Returns when the command of all workers has come, or the session has failed.
    status await(Session& session, time_point deadline) noexcept {
        operations::command& from = taken(session);
        from.forget();
        session.submit(next(number));
        session.until_true([&] { return from.has_come(); }, deadline);
        if (failure const* const why = session.failed()) return status(*why);
        return {};
    }
    /// True if workers of this type give it, in a world of these ranks: more than `command::read` can know.
    static constexpr bool is_given(command const& asked, topology const& map) noexcept {
        using share = collective_program::share;
        auto const is_at_root = [](std::uint8_t part) {
            return part == static_cast<std::uint8_t>(share::root) ||
                   part == static_cast<std::uint8_t>(share::not_root);
        };
        if (asked.root >= 0 && map.is_server(asked.root)) return false;
        if (asked.what == command::kind::start) return asked.root >= 0;
        if (asked.what != command::kind::collective) return true;
        bool const spreads = asked.operation == Session::template number_of<operations::broadcast>();
        bool const combines =
            asked.operation == execution{}.operation ||
            asked.operation == Session::template number_of<typename Session::reduce_scatter>();
        bool const plain =
            combines || asked.operation == Session::template number_of<operations::all_gather>();
        bool twofold = false;
        if constexpr (gives_deviations<typename Session::combines>)
            twofold = asked.operation == Session::template number_of<typename Session::moments>();
        // No elements have no second results, at a place or at none.
        bool const moves =
            spreads || asked.operation == Session::template number_of<operations::all_gather>();
        bool const fits = (asked.moved_bytes == 0 || moves) &&
                          (asked.twofold == twofold || (twofold && asked.elements == 0));
        constexpr std::uint8_t rules = rule_count<typename Session::combines>();
        return (spreads || plain || twofold) && fits && asked.rule <= (combines ? rules : 0) &&
               spreads == (asked.root >= 0) && spreads == is_at_root(asked.gives) &&
               spreads == is_at_root(asked.takes);
    }
    operations::command& taken(Session& session) noexcept {
        return session.running().template get<operations::command>();
    }
    /// Its part of `spread_weights`: the weights of what it combines, to where it updates them.
    status take_weights(Session& session, int root, time_point deadline) noexcept {
        return broadcast(
            session, root, [&](std::size_t b) { return session.weights_of_bucket(b); }, deadline);
    }

  private:
    static constexpr std::uint8_t number =
        Session::template number_of<operations::command>(); // the last in the list

    void begin(Session& session, command const& what) noexcept {
        if (session.serves() || !any()) return;
        write(what); // that of the last call is out: calls end behind it
        submitted_ = session.submit(next(number));
    }
    void begin_alone(Session& session, command const& what) noexcept {
        begin(session, what);
        if (session.released() < submitted_)
            session.until(submitted_, deadline_in(session.default_timeout()));
    }

    /// Broadcasts what lies at `place_of(b)` of each bucket b, by the plan's own shards: a server gets what
    /// it combines in a step, and no more.
    template <class PlaceOf>
    static status broadcast(Session& session, int root, PlaceOf const& place_of,
                            time_point deadline) noexcept {
        plan const& of = session.plan();
        constexpr std::uint8_t operation = Session::template number_of<operations::broadcast>();
        std::uint64_t last = session.requested();
        for (std::size_t b = 0; b < of.buckets.size(); ++b) {
            bucket const& one = of.buckets[b];
            if (one.elements == 0) continue;
            std::uint64_t const label =
                std::uint64_t{operation} << 56 | static_cast<std::uint64_t>(root + 1) << 33 | b;
            execution e = execution_of(one, of.shards.data(), {.own = place_of(b)}, no_bucket,
                                       fingerprint_of(one.elements, label));
            e.operation = operation;
            e.root = root;
            e.name = "start";
            last = session.submit(e);
        }
        return session.finish(last, deadline);
    }

    std::uint64_t submitted_ = 0; // executions up to the last command
    norm_tables norms_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_COMMANDS_HPP
