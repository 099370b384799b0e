// herring: what a session with dedicated servers has beside others: the command that its workers give, and its way to servers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SESSION_COMMANDS_HPP
#define HERRING_SESSION_COMMANDS_HPP

#include "herring/base/config.hpp"
#include "herring/base/time.hpp"
#include "herring/engine/command.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/routes/two_hop.hpp"
#include "herring/error.hpp"
#include "herring/plan/plan.hpp"
#include "herring/plan/roles.hpp"
#include "herring/step/piece.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Where a rank's command lies, and the executions that carry commands: each has one chunk for each server that is a node of its
/// own. The first local rank of each node sends it; the ranks of a node compare their calls by executions, as ever.
///
/// Lifetime: of the session; the memory is the region's, which the transport may send from.
class command_post {
  public:
    /// `memory`: of one command and its values.
    HERRING_SETUP void open(std::span<std::byte> memory, roles const& nodes) {
        memory_ = memory;
        for (std::size_t s = 0; s < nodes.servers.size(); ++s)
            if (nodes.contributor(nodes.servers[s]).value < 0)
                shards_.push_back({.offset = s,
                                   .elements = 1,
                                   .chunk_elements = 1,
                                   .chunks = 1,
                                   .first_chunk = static_cast<std::uint32_t>(shards_.size()),
                                   .server = server_id::at(s)});
    }
    /// Whether there are servers to command.
    bool any() const noexcept { return !shards_.empty(); }
    std::span<std::byte> memory() const noexcept { return memory_; }

    /// What follows commands from now on, until it is set again.
    void set_values(std::span<std::byte const> values) noexcept {
        std::memcpy(memory_.data() + command::bytes, values.data(), values.size());
    }
    /// The next command. Nothing of the session's is under way.
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
                .name = "serve"};
    }

    /// Sends the command that was written to all servers, and no more after it: no other rank has to be in any call, and nobody
    /// answers. Nothing polls the engine meanwhile.
    ///
    /// Blocks: until it is out, or `deadline`.
    template <class Core> HERRING_SETUP void send_last(Core& core, time_point deadline) noexcept {
        std::uint64_t const before = core.ledger.networked_before(core.ledger.submitted());
        two_hop_windows const& windows = core;
        std::size_t left = 0; // messages that are not out
        auto const take = [&](completion const& done) noexcept { left -= done.what == completion::sent; };
        for (std::size_t i = 0; i < core.peers.size(); ++i) {
            if (!core.who.map.is_server(core.peers[i].rank)) continue;
            std::uint64_t const tag =
                tag_of(message::push, windows.pairs[i].pushes.next(), fingerprint, before);
            while (!core.peers[i].lost && clock::now() < deadline) {
                if (core.transport.post_send(peer_id::at(i), tag, memory_, 0)) {
                    ++left;
                    break;
                }
                if (core.transport.poll(take) == 0) core.transport.wait(clock::now() + shortest_sleep);
            }
        }
        while (left > 0 && clock::now() < deadline)
            if (core.transport.poll(take) == 0) core.transport.wait(clock::now() + shortest_sleep);
    }

  private:
    static constexpr std::uint32_t fingerprint = fingerprint_of(0, 0x636f'6d6d'616e'64);
    static constexpr std::chrono::milliseconds shortest_sleep{1};

    std::span<std::byte> memory_;
    std::vector<shard> shards_;
    std::uint64_t count_ = 0;
};

/// Broadcasts what lies at `place_of(b)` of each bucket b at `root`, by the plan's own shards: a server gets what it combines in
/// a step, and no more.
template <class Session, class PlaceOf>
status broadcast_buckets(Session& session, std::uint8_t operation, int root, PlaceOf const& place_of,
                         time_point deadline) {
    plan const& of = session.plan();
    std::uint64_t last = session.requested();
    for (std::size_t b = 0; b < of.buckets.size(); ++b) {
        bucket const& one = of.buckets[b];
        if (one.elements == 0) continue;
        execution e =
            execution_of(one, of.shards.data(), {.own = place_of(b)}, no_bucket,
                         fingerprint_of(one.elements, std::uint64_t{operation} << 56 |
                                                          static_cast<std::uint64_t>(root + 1) << 33 | b));
        e.operation = operation;
        e.root = root;
        e.name = "start";
        last = session.submit(e);
    }
    return session.finish(last, deadline);
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_SESSION_COMMANDS_HPP
