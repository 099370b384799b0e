// herring: what routes with pushes and results share: turns, a push and its result's receive, answers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_ROUTES_PUSHES_HPP
#define HERRING_ENGINE_ROUTES_PUSHES_HPP

#include "herring/base/config.hpp"
#include "herring/engine/execution.hpp"
#include "herring/engine/messages.hpp"
#include "herring/engine/operation.hpp"
#include "herring/engine/window.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The end of a peer's turn to be pushed to.
enum class push_turn : std::uint8_t {
    pushed,
    wanted,  ///< work on its chunk
    refused, ///< for now
    nothing  ///< before a result or an execution comes
};

/// Gives each peer of a queue its turn, one push at a time, until a round of turns pushes nothing.
template <class PushOne>
HERRING_ALWAYS_INLINE std::size_t push_in_turn(peer_queue& ready, PushOne const& push_one) noexcept {
    std::size_t progress = 0;
    for (std::size_t left = ready.size(); left > 0;) { // since the last push
        push_turn const end = push_one(ready.front());
        if (end == push_turn::wanted) break; // the next call goes on with this peer
        end == push_turn::nothing ? ready.drop_front() : ready.rotate();
        left = end == push_turn::pushed ? ready.size() : left - 1;
        progress += end == push_turn::pushed;
    }
    return progress;
}

/// Pushes the chunk under a cursor to a peer of node `node`, and moves the cursor on.
template <class Core>
push_turn push_part(Core& core, std::size_t to, int node, chunk_cursor& cursor, push_window& pushes,
                    std::byte* stage, message push, message result, wanted_work& wanted) noexcept {
    std::uint64_t const number = cursor.at;
    execution const& e = core.ledger.at(number);
    chunk const c = cursor.here(e);
    std::size_t const slot = pushes.slot();
    if (!pushes.is_prepared()) {
        // The result lands in place: it cannot arrive before the server has the whole push.
        std::span<std::byte> const into = core.memory.for_transport(core.landing(e, c));
        if (!core.receive(to, result, pushes.next(), into, slot)) {
            core.require_peer(core.peers[to]);
            return push_turn::refused;
        }
        core.ledger.add(number);
        pushes.prepare(c, number);
        wanted.make_part_of(number, c, stage);
        return push_turn::wanted;
    }
    std::span<std::byte const> const from = core.memory.for_transport(core.part(e, c, node, stage));
    if (!core.send(to, push, pushes.next(), from, slot, number)) return push_turn::refused;
    pushes.sent();
    core.ledger.handled(number);
    cursor.next_chunk();
    return push_turn::pushed;
}

/// Posts the receives of a peer's pushes below number `end`. False: not all, now.
template <class Core>
bool post_pushes(Core& core, std::size_t from, serve_window& served, slot_row const& rows, message push,
                 std::uint64_t end) noexcept {
    for (; served.to_post() < end; served.posted()) {
        std::size_t const slot = served.to_post() % served.size();
        if (!core.receive(from, push, served.to_post(), rows.at(slot), slot)) return false;
    }
    return true;
}

/// Answers the next push of a peer. First the receive for the push that this result allows; behind receives
/// of the first window that were refused. False: not now.
template <class Core>
bool answer_push(Core& core, std::size_t to, serve_window& served, slot_row const& rows, message push,
                 message result, std::span<std::byte const> with, std::uint64_t execution) noexcept {
    served.vacate();
    if (!post_pushes(core, to, served, rows, push, served.next() + served.size() + 1)) {
        core.require_peer(core.peers[to]);
        return false;
    }
    if (!core.send(to, result, served.next(), with, 0, execution)) return false;
    served.answered();
    return true;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_ENGINE_ROUTES_PUSHES_HPP
