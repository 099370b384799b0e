// herring: what an engine keeps whatever its elements are: executions, peers, messages, whom it waits for.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_CORE_HPP
#define HERRING_ENGINE_CORE_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/peer.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/plan/plan.hpp"
#include "herring/trace/trace.hpp"
#include "herring/transport/transport.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE {

/// Whom an engine waits for, and why it thinks so.
struct blame {
    int rank = -1;
    bool gone = false; ///< and it never will: it has left
    char const* text = "";
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::detail {

/// What a message carries. Part of its tag, and of the token of its completion.
enum class message : std::uint64_t { push = 1, result, hop };

/// A message's tag: its kind and its number among the pair's messages of that kind, modulo 2^28; and, carried along,
/// 20 bits of fingerprint and 12 of number of the execution that it belongs to.
constexpr std::uint64_t tag_of(message what, std::uint64_t number, std::uint32_t fingerprint = 0,
                               std::uint64_t execution = 0) noexcept {
    std::uint64_t const carried = std::uint64_t{fingerprint} << 12 | (execution & arrival::numbers);
    return (static_cast<std::uint64_t>(what) << 60) | (number & ((1u << 28) - 1)) |
           (carried << 28 & carried_bits);
}

/// What the completion of a receive says: how much, and what it belongs to.
constexpr arrival arrival_of(completion const& done) noexcept {
    auto const carried = static_cast<std::uint32_t>((done.tag & carried_bits) >> 28);
    return {done.bytes, carried >> 12, carried & arrival::numbers, true};
}

/// What the completion of a post says to its engine. At most 2^20 peers, slots, and executions at once.
struct token {
    message what;
    std::size_t peer;        ///< place in the engine's peers
    std::size_t slot;        ///< of a window
    std::uint64_t execution; ///< place in the ring

    static constexpr std::uint64_t low = (1u << 20) - 1;
    constexpr std::uint64_t packed() const noexcept {
        return (static_cast<std::uint64_t>(what) << 60) | (peer << 40) | (slot << 20) | (execution & low);
    }
    static constexpr token unpacked(std::uint64_t bits) noexcept {
        return {static_cast<message>(bits >> 60), static_cast<std::size_t>((bits >> 40) & low),
                static_cast<std::size_t>((bits >> 20) & low), bits & low};
    }
};

/// What the routes of an engine share that does not depend on the type of its elements, so that reducers of several types have
/// it once: who is who, the executions, the peers, messages and their completions, failures, and whom this rank waits for.
template <class Transport, class IntraNode> struct engine_core {
    /// Tensors lie on devices, and come to the host by the intra-node reducer.
    static constexpr bool on_device = requires { requires bool(IntraNode::device_memory); };
    /// The node's ranks are summed by their devices, which leave this rank the sums of its chunks as one part.
    static constexpr bool sums_on_device = requires { requires bool(IntraNode::sums_on_device); };

    /// What other nodes serve is sent from the device, and received there.
    static constexpr bool parts_on_device = requires {
        requires bool(IntraNode::leaves_parts) && Transport::facts.device_memory;
    };

    HERRING_SETUP engine_core(world& all, topology const& where, plan const& made, Transport& messages,
                              IntraNode& local_ranks, std::span<int const> with, std::size_t executions,
                              std::span<std::byte> staging)
        : ranks(all), map(where), transport(messages), node(local_ranks), rank(all.rank()),
          my_node(map.node(rank)), local(map.local_rank(rank)), local_size(map.local_size(my_node)),
          element_bytes(made.element_bytes), partial_bytes(made.partial_bytes),
          wide(partial_bytes != element_bytes), staged(wide || local_size > 1), window(made.window()),
          ring_mask(std::bit_ceil(executions + 1) - 1), ring(ring_mask + 1),
          index(static_cast<std::size_t>(map.size())), peers(with.size()),
          apart_(ring.size() * static_cast<std::size_t>(local_size)),
          lateness_(static_cast<std::size_t>(map.size())) {
        for (std::size_t i = 0; i < with.size(); ++i) {
            int const other = with[i];
            index[static_cast<std::size_t>(other)] = i;
            peers[i] = peer(other,
                            chunk_stream::between(local, local_size, map.local_rank(other),
                                                  map.local_size(map.node(other))),
                            map.node(other), made, staged, staging);
        }
        hop_stages_ = staging.data();
        hop_stage_size_ = made.hop_slot_elements() * made.partial_bytes;
    }
    engine_core(engine_core const&) = delete;
    engine_core& operator=(engine_core const&) = delete;

    // ---- executions and who handles their chunks ------------------------------------------------------------------

    execution& at(std::uint64_t number) noexcept { return ring[number & ring_mask]; }

    /// The chunks that this rank handles on its node.
    chunk_stream own_chunks() const noexcept {
        return {static_cast<std::uint32_t>(local), static_cast<std::uint32_t>(local_size)};
    }

    /// Place in `peers` of the rank that handles chunk k on a node.
    std::size_t handler(int of_node, std::uint32_t k) const noexcept {
        return place(map.rank_of(of_node, static_cast<int>(k) % map.local_size(of_node)));
    }
    std::size_t place(int of_rank) const noexcept { return index[static_cast<std::size_t>(of_rank)]; }
    peer_id id(peer const& p) const noexcept {
        return peer_id::at(static_cast<std::size_t>(&p - peers.data()));
    }

    /// Brings a cursor to its next chunk in an execution of its route that all local ranks have arrived at; calls
    /// `left(execution)` for each one of that route that it has no more chunks of.
    template <class Left> bool seek(chunk_cursor& cursor, route path, Left&& left) noexcept {
        for (; cursor.at < gathered; cursor.next_execution()) {
            execution& e = at(cursor.at);
            if (e.path != path) continue;
            if (cursor.stream.any() && cursor.settle(e)) return true;
            left(e);
        }
        return false;
    }
    bool seek(chunk_cursor& cursor, route path) noexcept {
        return seek(cursor, path, [](execution& e) { --e.open; });
    }

    // ---- where a chunk lies ---------------------------------------------------------------------------------------

    /// How far from this rank's memory of an execution that of each local rank is, in bytes: known once all have arrived.
    std::ptrdiff_t* apart(execution const& e) noexcept {
        return apart_.data() +
               static_cast<std::size_t>(&e - ring.data()) * static_cast<std::size_t>(local_size);
    }

    std::byte* place_of(execution const& e, std::size_t offset) const noexcept {
        return e.own + offset * element_bytes;
    }
    std::span<std::byte> bytes(execution const& e, chunk const& c) const noexcept {
        return {place_of(e, c.offset), c.elements * element_bytes};
    }

    /// Whether what a node sends are sums; else it is the contribution of its one rank, as stored.
    bool summed(int of_node) const noexcept { return wide || map.local_size(of_node) > 1; }

    /// Where a one-hop part of this node's is made: one for all peers.
    std::byte* hop_stage(std::size_t slot) const noexcept { return hop_stages_ + slot * hop_stage_size_; }

    /// Copies this rank's result of a chunk into the memories of the other local ranks.
    void spread(execution const& e, chunk const& c) noexcept {
        if (sums_on_device) return; // which spread it themselves
        std::span<std::byte> const own = bytes(e, c);
        for (int l = 0; l < local_size; ++l)
            if (l != local) std::memcpy(own.data() + apart(e)[l], own.data(), own.size());
    }

    // ---- messages -------------------------------------------------------------------------------------------------

    /// False: not now, or never because the peer is lost.
    bool send(std::size_t to, message what, std::uint64_t number, std::span<std::byte const> from,
              std::size_t slot, std::uint64_t number_of_execution) noexcept {
        peer& p = peers[to];
        execution& e = at(number_of_execution);
        // Counted first: the completion may come before the post returns.
        ++e.open;
        ++p.sends;
        if (transport.post_send(peer_id::at(to), tag_of(what, number, e.fingerprint, number_of_execution),
                                from, token{what, to, slot, number_of_execution}.packed()))
            return true;
        --e.open;
        --p.sends;
        need(p);
        return false;
    }
    /// False: not now. Whether the peer is needed for what is being done is for the caller to say (`need`): a receive
    /// may be for a message that nobody will send any more.
    bool receive(std::size_t from, message what, std::uint64_t number, std::span<std::byte> into,
                 std::size_t slot) noexcept {
        return transport.post_receive(peer_id::at(from), tag_of(what, number), into,
                                      token{what, from, slot, 0}.packed());
    }

    /// Called when nothing moves without this peer. If it is lost, that is the end, unless there is better news: the
    /// peer may have left because of a failure elsewhere, and whoever waits looks for that first.
    void need(peer const& p) noexcept {
        if (p.lost && suspicion.what == errc::ok)
            suspicion = failure::make(p.why, rank, p.rank, "reduce", transport.describe(id(p)));
    }

    /// Whether what came in belongs to this execution and has the size that is due; a misfit ends the engine.
    bool fits(int from, arrival const& got, execution const& e, std::size_t bytes_due) noexcept {
        if (got.fingerprint == e.fingerprint && got.bytes == bytes_due) return true;
        mismatch(from, e, "of another size");
        return false;
    }

    /// Whether what came in belongs to an execution before `reached`: this rank has run that one by another route, so
    /// it was another operation, or one of another size. Ends the engine then; else whoever sent it is ahead.
    bool passed(peer const& p, arrival const& got, std::uint64_t reached) noexcept {
        // Nobody is more than a ring ahead: half the numbers that a message carries tell ahead from behind.
        if (!got.here || ring_mask > arrival::numbers / 2) return false;
        if (((got.execution - reached) & arrival::numbers) <= arrival::numbers / 2) return false;
        mismatch(p.rank, at(reached > 0 ? reached - 1 : 0), "of a size that takes another route");
        return true;
    }

    /// Ends the engine: `with` is not in execution `e`, as this rank is.
    HERRING_SETUP void mismatch(int with, execution const& e, char const* how) noexcept {
        char what[64] = "an all_reduce";
        if (e.label != no_bucket) std::snprintf(what, sizeof what, "bucket %u of a step", e.label);
        char text[300];
        std::snprintf(text, sizeof text,
                      "it is in another operation, or in one %s: this rank is in %s, here with %zu elements; "
                      "let all ranks "
                      "make the same calls with the same sizes, in the same order",
                      how, what, e.elements);
        fail(failure::make(errc::mismatch, rank, with, "reduce", text), true);
    }
    void mismatch_on_node(int with_local, execution const& e) noexcept {
        mismatch(map.rank_of(my_node, with_local), e, "of another size");
    }

    /// Ends everything with this failure, here and, if `announce`, on every rank. The first one stays. The caller's
    /// thread sees it when `publish` is called, once nothing touches the caller's memory any more.
    void fail(failure const& why, bool announce) noexcept {
        if (failing) return;
        failed_with = why;
        failing = true;
        if (announce) ranks.fail(why);
    }
    HERRING_SETUP void publish() noexcept {
        if (failed.load(std::memory_order_relaxed)) return;
        if constexpr (Transport::facts.abandons) transport.abandon();
        failed.store(true, std::memory_order_release);
    }

    /// Both: nothing of this engine's is under way beside the call.
    void end(failure const& why, bool announce = true) noexcept {
        fail(why, announce);
        publish();
    }
    /// The failure that ended the engine, for any thread; or nullptr.
    failure const* failed_as() const noexcept {
        return failed.load(std::memory_order_acquire) ? &failed_with : nullptr;
    }

    // ---- what the transport reports -------------------------------------------------------------------------------

    // Out of line: else each type would have the transport's loops of its own.
    [[gnu::noinline]] std::size_t poll_transport() noexcept {
        return transport.poll([this](completion const& done) noexcept { on(done); });
    }
    void on(completion const& done) noexcept {
        if (failing) return;
        if (done.what == completion::lost) {
            peer& gone = peers[done.peer.place()];
            gone.lost = true;
            gone.why = done.why;
            return;
        }
        token const about = token::unpacked(done.token);
        peer& p = peers[about.peer];
        if (done.what == completion::received) {
            messages_received_.add(1);
            bytes_received_.add(done.bytes);
            arrival const what = arrival_of(done);
            switch (about.what) {
            case message::push:
                p.arrivals[about.slot] = what;
                pushes_in.news = true;
                break;
            case message::result:
                returned(p, about.slot, what);
                break;
            case message::hop:
                p.hop_arrivals[about.slot] = what;
                parts_in.news = true;
                break;
            }
        } else {
            messages_sent_.add(1);
            bytes_sent_.add(done.bytes);
            if (about.what == message::hop) --unsent[about.slot];
            --at(about.execution).open;
            --p.sends;
        }
    }

    // ---- whom this rank waits for ---------------------------------------------------------------------------------

    /// Whom this rank waits for right now; rank −1: nobody.
    // For the oldest execution that somebody is waited for in: who is late for a younger one may himself be held up by
    // whoever is late for the older. So a chain of «waits for» never leads to a younger execution, and has an end.
    [[gnu::noinline]] blame waiting_for() noexcept {
        std::uint64_t const first = released.load(std::memory_order_relaxed);
        blame found;
        std::uint64_t oldest = submitted;
        auto const consider = [&](int who, std::uint64_t execution, char const* text) noexcept {
            if (who < 0 || execution >= oldest) return;
            found = {who, false, text};
            oldest = execution;
        };
        auto const consider_local = [&](int l, std::uint64_t execution, char const* text) noexcept {
            if (l < 0 || execution >= oldest) return;
            found = {map.rank_of(my_node, l), node.gone(l), text};
            oldest = execution;
        };
        if (first >= submitted) return found;
        if constexpr (on_device) {
            // First of all: the others wait for it, and one of them might be named in its place.
            consider_local(local, arrived, late_device);
            if constexpr (sums_on_device)
                if (gathered < arrived && node.absent(gathered) < 0)
                    consider_local(node.behind(gathered), gathered, late_device);
        }
        if (gathered < submitted)
            consider_local(node.absent(gathered), gathered, "it has not submitted this operation");
        for (arrivals const& of : {pushes_in, parts_in})
            consider(of.missing, of.missing_in, "its part has not come");
        for (peer const& p : peers)
            if (p.oldest < p.pushed) {
                need(p);
                consider(p.rank, p.flights[p.oldest % window].execution, "it has not returned the sum");
            }
        if (found.rank >= 0 && oldest <= first) return found;
        consider_local(node.unfinished(first), first, "it has not finished its share of the node's sum");
        for (peer const& p : peers)
            if (p.sends > 0) {
                need(p);
                consider(p.rank, first, "it takes no data");
            }
        return found;
    }

    /// Adds to the time that somebody was waited for.
    void charge(int waited_for, std::uint64_t ns) noexcept {
        if (waited_for >= 0) lateness_[static_cast<std::size_t>(waited_for)] += ns;
        waited_.add(ns);
    }

    /// Closes the account of one wait: who was waited for longest.
    void settle_account() noexcept {
        auto const most = std::max_element(lateness_.begin(), lateness_.end());
        bool const any = most != lateness_.end() && *most > 0;
        slowest_ns_.set(any ? *most : 0);
        slowest_rank_.set(any ? static_cast<std::uint64_t>(most - lateness_.begin()) + 1 : 0);
        std::fill(lateness_.begin(), lateness_.end(), std::uint64_t{0});
    }

    herring::counters counters() const noexcept {
        return {.operations = released.load(std::memory_order_acquire),
                .messages_sent = messages_sent_.get(),
                .messages_received = messages_received_.get(),
                .bytes_sent = bytes_sent_.get(),
                .bytes_received = bytes_received_.get(),
                .wait_ns = waited_.get(),
                .slowest_rank = static_cast<int>(slowest_rank_.get()) - 1,
                .slowest_ns = slowest_ns_.get()};
    }

    world& ranks;
    topology const& map;
    Transport& transport;
    IntraNode& node;
    int const rank;
    int const my_node;
    int const local;
    int const local_size;
    std::size_t const element_bytes; ///< as stored
    std::size_t const partial_bytes; ///< of an element of a node's part, as it travels
    bool const wide;   ///< parts of a node travel in the accumulator's type, so that they are rounded once
    bool const staged; ///< parts of a node are made in staging memory; else they are sent from where they lie
    std::uint32_t const window;

    std::uint64_t const ring_mask;
    fixed_array<execution> ring;
    std::atomic<std::uint64_t> requested{0}; ///< executions; written by the thread that submits
    std::atomic<std::uint64_t> released{0};  ///< written by the thread that polls
    std::uint64_t submitted = 0;             ///< `requested`, as of the last poll
    std::uint64_t arrived = 0;
    std::uint64_t gathered = 0; ///< executions that all local ranks have arrived at

    fixed_array<std::size_t> index; ///< rank → place in peers; only of those that are
    fixed_array<peer> peers;

    bool failing = false; ///< `failed_with` is set; for the thread that polls
    std::atomic<bool> failed{false};
    failure failed_with{};
    failure suspicion{}; ///< a peer that is needed and lost

    /// What has come for a route's cursor that sums, and what it lacks.
    struct arrivals {
        bool news = false;            ///< something has come since the route looked for what nobody will sum
        int missing = -1;             ///< rank whose message the cursor waits for
        std::uint64_t missing_in = 0; ///< execution
    };
    arrivals pushes_in;                                ///< by two hops
    arrivals parts_in;                                 ///< by one hop
    std::uint32_t unsent[plan::one_hop_stages()] = {}; ///< stage → messages that are sent from it

  private:
    static constexpr char late_device[] = "its device has not come to this operation";

    // A result has come in, to where it belongs.
    void returned(peer& p, std::size_t slot, arrival const& what) noexcept {
        flight& back = p.flights[slot];
        execution& e = at(back.execution);
        if (!fits(p.rank, what, e, bytes(e, back.what).size())) return;
        spread(e, back.what);
        back.returned = true;
        --e.open;
        for (; p.oldest < p.pushed && p.flights[p.oldest % window].returned; ++p.oldest)
            p.flights[p.oldest % window].returned = false;
    }

    fixed_array<std::ptrdiff_t> apart_;
    std::byte* hop_stages_ = nullptr; // plan::one_hop_stages() of them, if `staged`
    std::size_t hop_stage_size_ = 0;
    fixed_array<std::uint64_t> lateness_; // rank → ns in the current wait
    tally messages_sent_, messages_received_, bytes_sent_, bytes_received_, waited_, slowest_rank_,
        slowest_ns_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_CORE_HPP
