// herring: the state that operations and routes of an engine share: executions, peers, memory, failures.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_STATE_HPP
#define HERRING_ENGINE_STATE_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/engine/counters.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/failure_state.hpp"
#include "herring/engine/ledger.hpp"
#include "herring/engine/neighbours.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/window.hpp"
#include "herring/kernel/copies.hpp"
#include "herring/model/part_format.hpp"
#include "herring/plan/plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The hyper values of an optimizer's groups: of each group its members and 1 if it is frozen; then the scale
/// of the loss. For the texts of ranks that differ in them.
///
/// Lifetime: what both refer to, longer than this.
struct hyper_values {
    std::span<double const> all;            ///< empty: there is no optimizer
    std::span<char const* const> members{}; ///< names of those of one group; nullptr: one has none

    /// Writes the name of a place of `all`: "hyper::rate of group 1", "the loss scale".
    HERRING_SEPARABLE void name(char (&to)[64], std::size_t place) const noexcept;
    /// Writes the values as text, as many as fit: "0.001 0 1". Returns its length.
    HERRING_SEPARABLE std::size_t list(char* to, std::size_t size) const noexcept;
    /// Writes how the values of `rank` differ from the list of `other`: "hyper::rate is 0.001 on rank 1 and
    /// 0.5 on rank 2". False: no listed one differs.
    HERRING_SEPARABLE bool compare(char (&to)[160], char const* listed, int other, int rank) const noexcept;
};

/// A rank of another node that this rank exchanges messages with.
struct peer {
    int rank;
    bool lost;
    errc why;            ///< it was lost
    std::uint32_t sends; ///< posted and not complete
};

/// Depends neither on a policy nor on the type of elements, so that a program has it once.
struct engine_state {
    HERRING_SEPARABLE engine_state(failure_sink sink, int rank, topology const& map, plan const& from,
                                   std::span<int const> with, std::size_t executions);

    // ---- memory -------------------------------------------------------------------------------------------

    /// Room for the distances from this rank's part of an execution to those of the local ranks.
    std::ptrdiff_t* local_offsets(std::uint64_t number) noexcept {
        return local_offsets_.data() + (number & ledger.mask()) * static_cast<std::size_t>(who.local_size);
    }
    /// Where element `offset` of the contribution of local rank l lies.
    std::byte* given_by(execution const& e, int l, std::size_t offset) const noexcept {
        return e.own + e.bytes(offset - e.own_begin) + (l == who.local ? 0 : e.local_offsets[l]);
    }
    /// Where local rank l finds element `offset` of its result.
    std::byte* result_of(execution const& e, int l, std::size_t offset) const noexcept {
        if (e.out != nullptr) return e.out + e.bytes(offset - e.out_begin);
        return given_by(e, l, offset);
    }
    std::byte* result(execution const& e, chunk const& c) const noexcept {
        return result_of(e, who.local, c.offset);
    }

    /// Copies bytes that may be where they belong already, or none.
    static void copy(std::byte* to, std::byte const* from, std::size_t bytes) noexcept {
        if (bytes > 0 && to != from) std::memcpy(to, from, bytes);
    }
    /// Copies what another rank of the node has written, and puts `next` in its place, which is no longer.
    /// `landing`: how lines at `to` are written.
    static void fetch(std::byte* to, std::byte* from, std::size_t bytes, copy_mode landing,
                      std::span<std::byte const> next = {}) noexcept {
        kernel::fetch_copy(to, from, bytes, landing == copy_mode::streamed, next);
    }
    /// Copies this rank's result of a chunk into the memories of the other local ranks.
    void spread(execution const& e, chunk const& c) noexcept {
        for (int l = 0; l < who.local_size; ++l)
            if (l != who.local) std::memcpy(result_of(e, l, c.offset), result(e, c), e.bytes(c.elements));
    }

    /// Ranks that contribute to an execution: of the world, or of a node that runs it alone.
    int ranks_in(execution const& e) const noexcept {
        return is_networked(e.path) ? contributing_ranks : who.local_size;
    }
    /// The format of a node's part of a sum.
    part_format summed_by(int node) const noexcept { return sum_parts.summed(who.map.local_size(node)); }
    /// Calls with(first, own, end, is_own) for each rack that contributes, in order: its nodes' parts are
    /// those from `first` to `end`, counted through both sides of `parts`. Where `contributes`, this node's
    /// part stands in its rack, `is_own`, before `own`.
    template <class With>
    void for_each_rack(parts_view const& parts, bool contributes, With const& with) const noexcept {
        std::size_t const before = parts.before.size(), count = before + parts.after.size();
        for (std::size_t at = 0, rack = 0; static_cast<int>(rack) < who.map.racks(); ++rack) {
            std::size_t const first = at;
            auto const is_of = [&](int node) { return who.map.rack(node) == static_cast<int>(rack); };
            while (at < count && is_of(at < before ? parts.before[at].node : parts.after[at - before].node))
                ++at;
            bool const is_own = contributes && is_of(who.node);
            if (at > first || is_own) with(first, is_own ? before : at, at, is_own);
        }
    }
    /// True if this node's part of a sum is made in staging memory; else it is sent from where it lies.
    bool is_staged() const noexcept { return who.local_size > 1 || sum_parts.kind != part_kind::stored; }

    /// Returns the least range of a chunk that has all that the ranks of a node own of it. The execution has
    /// `part.owned`.
    range owned_by_node(execution const& e, chunk const& c, int node) const noexcept {
        range all{c.offset, 0};
        for (int const rank : who.map.members(node)) {
            range const one = owned_by(e, c, rank);
            if (one.elements == 0) continue;
            std::size_t const from = all.elements == 0 ? one.offset : std::min(all.offset, one.offset);
            all = {from, std::max(all.elements == 0 ? one.end() : all.end(), one.end()) - from};
        }
        return all;
    }
    /// Returns the range of a chunk that one rank owns.
    range owned_by(execution const& e, chunk const& c, int rank) const noexcept {
        return intersection(e.part.owned[rank], c.range());
    }

    /// True if some rank of a node owns a range of the chunk; in a shard with an owner the rank owns all of
    /// it.
    bool is_owned_by(execution const& e, chunk const& c, int node) const noexcept {
        return owned_by_node(e, c, node).elements > 0;
    }

    /// Where element `offset` of this node's part of a sum lies: in the sum of the local ranks, or in the one
    /// contribution.
    std::byte const* part(execution const& e, chunk const& c, std::size_t offset,
                          std::byte const* stage) const noexcept {
        if (e.device_sum != nullptr) return e.device_sum + sum_parts.bytes(offset);
        return is_staged() ? stage + sum_parts.bytes(offset - c.offset) : given_by(e, who.local, offset);
    }

    // ---- failures -----------------------------------------------------------------------------------------

    /// True if a message belongs to this execution and has the size that is due; any other one ends the
    /// engine.
    bool matches(int from, arrival const& got, execution const& e, std::size_t bytes_due) noexcept {
        if (got.fingerprint == e.fingerprint && got.bytes == bytes_due) return true;
        mismatch(from, e, "of another size", rule_in(e, got.fingerprint, rules.size()));
        return false;
    }

    /// True if a message belongs to a networked execution before `reached`: this rank has run that one by
    /// another route, so it was another operation, or one of another size. Ends the engine then. False: the
    /// sender is ahead.
    bool is_stale(int from, arrival const& got, std::uint64_t reached) noexcept {
        // No rank is more than a ring ahead: half the numbers that a message carries tell ahead from behind.
        if (!got.here || ledger.mask() > arrival::numbers / 2) return false;
        if (((got.execution - ledger.networked_before(reached)) & arrival::numbers) <= arrival::numbers / 2)
            return false;
        mismatch(from, ledger.at(reached > 0 ? reached - 1 : 0), "of a size that takes another route");
        return true;
    }

    /// Ends the engine: `with` is not in execution `e`, as this rank is. `rule`: `with` is in the same call,
    /// by that rule; 0: in another one.
    HERRING_SEPARABLE void mismatch(int with, execution const& e, char const* how,
                                    std::uint8_t rule = 0) noexcept;
    /// `stamp`: of the execution that the other rank is in.
    void mismatch_on_node(int with_local, execution const& e, std::uint64_t stamp) noexcept {
        mismatch(who.map.rank_of(who.node, with_local), e, "of another size",
                 rule_in(e, fingerprint_in(stamp), rules.size()));
    }

    /// Returns the failure that ended the world, in this rank's words; a rank that differs from the one that
    /// reports it says where it is itself, or which hyper value differs.
    HERRING_SEPARABLE failure told(failure const& why) const noexcept;

    // ---- waiting ------------------------------------------------------------------------------------------

    /// Adds to the time that a rank was waited for: a peer, or one of the node; −1: none is known.
    void record_wait(int waited_for, std::uint64_t ns) noexcept {
        if (ns == 0) return;
        if (waited_for >= 0) {
            std::size_t const place =
                who.is_local(waited_for)
                    ? peers.size() + static_cast<std::size_t>(who.map.local_rank(waited_for))
                    : who.peer_of(waited_for);
            waited_for_ns_[place].add(ns);
            any_waited_for_.set(1);
        }
        waited_.add(ns);
    }
    /// Ends the statistics of one wait: finds the rank that was waited for longest. Times that the thread of
    /// a background driver records meanwhile count for this wait, for the next or not at all.
    void finish_wait_stats() noexcept {
        if (any_waited_for_.get() != 0 || slowest_rank_.get() != 0) find_slowest();
    }

    herring::counters counters() const noexcept {
        return {.operations = ledger.released().load(std::memory_order_acquire),
                .messages_sent = messages_sent.get(),
                .messages_received = messages_received.get(),
                .bytes_sent = bytes_sent.get(),
                .bytes_received = bytes_received.get(),
                .wait_ns = waited_.get(),
                .slowest_rank = static_cast<int>(slowest_rank_.get()) - 1,
                .slowest_ns = slowest_ns_.get()};
    }

    neighbours who;
    std::uint16_t const element_bytes; ///< as stored, of an execution that names no size
    part_format const sum_parts;       ///< of a node with one rank, in an operation that sums
    bool const owners_serve; ///< who owns a range of a buffer combines it; else a server does, for the owner
    int const contributing_ranks;

    execution_ledger ledger;
    failure_state failures;
    hyper_values values;                ///< of the optimizer, between whose steps alone they change
    std::span<char const* const> rules; ///< names of those that `execution::rule` chooses from, for errors
    fixed_array<peer> peers;
    fixed_array<node_part> node_parts; ///< room for the parts of one chunk

    tally messages_sent, messages_received, bytes_sent, bytes_received;

  private:
    HERRING_SEPARABLE void find_slowest() noexcept;
    // A bucket of a step whose weights are updated where gradients are summed.
    HERRING_SEPARABLE bool is_update(execution const& e) const noexcept;

    fixed_array<std::ptrdiff_t> local_offsets_;
    fixed_array<tally> waited_for_ns_; // place of a peer, then local rank → in the current wait
    tally any_waited_for_, waited_, slowest_rank_, slowest_ns_;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/state_impl.hpp"
#endif

#endif // HERRING_ENGINE_STATE_HPP
