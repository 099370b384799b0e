// herring: what the routes of an engine share: who is who, the executions, the peers, and how chunks are summed.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_CONTEXT_HPP
#define HERRING_ENGINE_CONTEXT_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/table.hpp"
#include "herring/element.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/peer.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/plan/plan.hpp"
#include "herring/trace/trace.hpp"
#include "herring/transport/transport.hpp"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>

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

/// Shared by the routes of one engine. Knows how to sum a chunk, not when.
template <class Element, class Transport, class IntraNode, class Update> struct engine_context {
    using accumulator = herring::accumulator<Element>;
    using source = kernel::source;

    /// Tensors lie on devices, and come to the host by the intra-node reducer.
    static constexpr bool on_device = requires { requires bool(IntraNode::device_memory); };
    /// The node's ranks are summed by their devices, which leave this rank the sums of its chunks as one part.
    static constexpr bool sums_on_device = requires { requires bool(IntraNode::sums_on_device); };

    /// What other nodes serve is sent from the device, and received there.
    static constexpr bool parts_on_device = requires {
        requires bool(IntraNode::leaves_parts) && bool(Transport::device_memory);
    };

    HERRING_SETUP engine_context(world& all, topology const& where, plan const& made, Transport& messages,
                                 IntraNode& local_ranks, std::span<int const> with, std::size_t executions,
                                 std::span<std::byte> staging)
        : ranks(all), map(where), transport(messages), node(local_ranks), rank(all.rank()),
          my_node(map.node(rank)), local(map.local_rank(rank)), local_size(map.local_size(my_node)),
          wide(made.partial_bytes != made.element_bytes), staged(wide || local_size > 1),
          window(made.window()), ring_mask(std::bit_ceil(executions + 1) - 1), ring(ring_mask + 1),
          index(static_cast<std::size_t>(map.size())), peers(with.size()),
          group(static_cast<std::size_t>(local_size)), remote(static_cast<std::size_t>(map.nodes())),
          targets(static_cast<std::size_t>(local_size)),
          apart_(ring.size() * static_cast<std::size_t>(local_size)) {
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
    engine_context(engine_context const&) = delete;
    engine_context& operator=(engine_context const&) = delete;

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

    // ---- where a chunk lies, and its sum --------------------------------------------------------------------------

    /// How far from this rank's memory of an execution that of each local rank is, in bytes: known once all have arrived.
    std::ptrdiff_t* apart(execution const& e) noexcept {
        return apart_.data() +
               static_cast<std::size_t>(&e - ring.data()) * static_cast<std::size_t>(local_size);
    }

    Element* element(execution const& e, std::size_t offset) const noexcept {
        return reinterpret_cast<Element*>(e.own) + offset;
    }
    std::span<Element> elements(execution const& e, chunk const& c) const noexcept {
        return {element(e, c.offset), c.elements};
    }
    std::span<std::byte const> bytes(execution const& e, chunk const& c) const noexcept {
        return std::as_bytes(elements(e, c));
    }

    /// Whether what a node sends are sums; else it is the contribution of its one rank, as stored.
    bool summed(int of_node) const noexcept { return wide || map.local_size(of_node) > 1; }

    /// Bytes of an element of a node's part, as it travels.
    std::size_t partial_bytes() const noexcept { return wide ? sizeof(accumulator) : sizeof(Element); }

    std::span<source const> local_sources(execution const& e, chunk const& c) noexcept {
        auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
        if constexpr (sums_on_device) {
            group[0] = {node.part(own), wide};
            return {group.data(), 1};
        } else {
            for (int l = 0; l < local_size; ++l)
                group[static_cast<std::size_t>(l)] = {own + apart(e)[l], false};
            return {group.data(), group.size()};
        }
    }
    std::span<Element* const> local_targets(execution const& e, chunk const& c) noexcept {
        if constexpr (sums_on_device) {
            targets[0] = element(e, c.offset);
            return {targets.data(), 1};
        } else {
            auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
            for (int l = 0; l < local_size; ++l)
                targets[static_cast<std::size_t>(l)] = reinterpret_cast<Element*>(own + apart(e)[l]);
            return {targets.data(), targets.size()};
        }
    }

    /// Sums the local ranks' parts into all local memories: the whole world is one node.
    void fold_local(execution const& e, chunk const& c) noexcept {
        kernel::fold<Update, Element>(local_sources(e, c), local_targets(e, c), c.elements, map.size());
    }

    /// Sums what `group` names, in its order, for this rank alone.
    void fold_group_into(std::byte* at, std::size_t count) noexcept {
        fold_group_into(reinterpret_cast<Element*>(at), count);
    }
    void fold_group_into(Element* target, std::size_t count) noexcept {
        kernel::fold<Update, Element>(std::span<source const>(group.data(), group.size()),
                                      std::span<Element* const>(&target, 1), count, map.size());
    }

    /// On a node of two ranks: sums a part and the other rank's copy of its part, which lies `apart` bytes from this rank's.
    /// Puts `next` in that copy's place.
    void fold_exchanging(execution const& e, lent_part const& part, std::ptrdiff_t apart,
                         std::span<std::byte const> next) noexcept {
        auto* const copy =
            reinterpret_cast<Element*>(reinterpret_cast<std::byte*>(element(e, part.offset)) + apart);
        source const own{part.from}, other{copy};
        source const sources[] = {local == 0 ? own : other, local == 0 ? other : own};
        kernel::fold_exchanging<Update, Element>(
            sources, reinterpret_cast<Element*>(part.to), part.elements, map.size(), copy,
            {reinterpret_cast<Element const*>(next.data()), next.size() / sizeof(Element)});
    }

    /// This node's part of a chunk as it travels: where it lies, or summed into `stage`.
    std::span<std::byte const> part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if constexpr (sums_on_device)
            return {node.part(reinterpret_cast<std::byte*>(element(e, c.offset))),
                    c.elements * partial_bytes()};
        else
            return staged ? std::span<std::byte const>(stage, c.elements * partial_bytes()) : bytes(e, c);
    }
    void make_part(execution const& e, chunk const& c, std::byte* stage) noexcept {
        if (staged && !sums_on_device)
            kernel::fold_partial<Update, Element>(local_sources(e, c), reinterpret_cast<accumulator*>(stage),
                                                  c.elements);
    }

    /// Sums the parts of all nodes in their order, the local ranks' as one of them, into all local memories.
    /// `slot(peer)` is where the part of a peer's node lies.
    template <class Slot>
    void fold_all(execution const& e, chunk const& c, std::uint32_t k, Slot const& slot) noexcept {
        std::size_t count = 0;
        for (int n = 0; n < map.nodes(); ++n)
            if (n != my_node) remote[count++] = {slot(peers[handler(n, k)]), summed(n)};
        std::span<source const> const parts(remote.data(), count);
        auto const before = static_cast<std::size_t>(my_node);
        kernel::fold<Update, Element>(parts.first(before), local_sources(e, c), parts.subspan(before),
                                      local_targets(e, c), c.elements, map.size());
    }

    /// Whether the devices have summed execution `gathered`; has them sum what all local ranks have arrived at.
    bool sum_on_device(std::uint64_t arrived) noexcept {
        return node.template summed<Update, Element>(
            gathered, arrived, map.size(), [this](std::uint64_t e) -> execution const& { return at(e); });
    }

    /// Where a one-hop part of this node's is made: one for all peers.
    std::byte* hop_stage(std::size_t slot) const noexcept { return hop_stages_ + slot * hop_stage_size_; }

    /// Copies this rank's result of a chunk into the memories of the other local ranks.
    void spread(execution const& e, chunk const& c) noexcept {
        if (sums_on_device) return; // which spread it themselves
        auto* const own = reinterpret_cast<std::byte*>(element(e, c.offset));
        for (int l = 0; l < local_size; ++l)
            if (l != local) std::memcpy(own + apart(e)[l], own, c.elements * sizeof(Element));
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
        if (transport.post_send(p.rank, tag_of(what, number, e.fingerprint, number_of_execution), from,
                                token{what, to, slot, number_of_execution}.packed()))
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
        return transport.post_receive(peers[from].rank, tag_of(what, number), into,
                                      token{what, from, slot, 0}.packed());
    }

    /// Called when nothing moves without this peer. If it is lost, that is the end, unless there is better news: the
    /// peer may have left because of a failure elsewhere, and whoever waits looks for that first.
    void need(peer const& p) noexcept {
        if (p.lost && suspicion.what == errc::ok)
            suspicion = failure::make(p.why, rank, p.rank, "reduce", transport.describe(p.rank));
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
        if constexpr (requires { transport.abandon(); }) transport.abandon();
        failed.store(true, std::memory_order_release);
    }

    world& ranks;
    topology const& map;
    Transport& transport;
    IntraNode& node;
    int const rank;
    int const my_node;
    int const local;
    int const local_size;
    bool const wide;   ///< parts of a node travel in the accumulator's type, so that they are rounded once
    bool const staged; ///< parts of a node are made in staging memory; else they are sent from where they lie
    std::uint32_t const window;

    std::uint64_t const ring_mask;
    table<execution> ring;
    std::uint64_t gathered = 0; ///< executions that all local ranks have arrived at

    table<std::size_t> index; ///< rank → place in peers; only of those that are
    table<peer> peers;

    bool failing = false; ///< `failed_with` is set; for the thread that polls
    std::atomic<bool> failed{false};
    failure failed_with{};
    failure suspicion{}; ///< a peer that is needed and lost

    // Room for one call of the kernel.
    table<source> group;
    table<source> remote;
    table<Element*> targets;

  private:
    table<std::ptrdiff_t> apart_;
    std::byte* hop_stages_ = nullptr; // plan::one_hop_stages() of them, if `staged`
    std::size_t hop_stage_size_ = 0;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_CONTEXT_HPP
