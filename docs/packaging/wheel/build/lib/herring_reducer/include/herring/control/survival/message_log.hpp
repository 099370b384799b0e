// herring: numbered messages that outlive their connection: kept, acknowledged, repeated over the next. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SURVIVAL_MESSAGE_LOG_HPP
#define HERRING_CONTROL_SURVIVAL_MESSAGE_LOG_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/control/wire/message_kind.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::wire {

/// One end's book of the numbered messages (`is_numbered`) between two ends: the sent messages that the other
/// end has not acknowledged, and the number of messages that this end has taken.
///
/// Numbers are not on the wire. TCP keeps the order of a connection's messages, so both ends count. When a
/// connection takes the place of another, each end says how many messages it has taken, and the other begins
/// behind them.
/// Units:   a count of messages is the number of the last one; the first has number 1.
/// Cost:    a copy of each message until it is acknowledged, with the next heartbeat; at most `most_bytes` in
///          all. Beyond that the oldest are forgotten: then no connection can take the place of this one
///          until they have been acknowledged.
/// Source:  XEP-0198, stream management, counts and repeats the same way.
class message_log {
  public:
    static constexpr std::size_t most_bytes = std::size_t{1} << 20;

    struct message {
        message_kind type{};
        std::uint64_t sequence = 0;
        byte_buffer body{};
    };

    // ---- what is sent -------------------------------------------------------------------------------------

    /// Keeps the next message; to be called before it is sent.
    HERRING_SETUP void keep(message_kind type, std::uint64_t sequence, std::span<std::byte const> body) {
        if (std::size_t const size = head_bytes + body.size(); size <= most_bytes) {
            while (bytes_ + size > most_bytes) forget_first();
            message made{type, sequence, {}};
            made.body.append(body);
            kept_.push_back(std::move(made));
            bytes_ += size;
        } else {
            kept_.clear();
            bytes_ = 0;
        }
        ++sent_;
    }

    /// Notes that the other end has taken so many messages. False: more than were sent.
    HERRING_SETUP bool acknowledge(std::uint64_t count) noexcept {
        if (count > sent_) return false;
        if (count <= acknowledged_) return true; // an older acknowledgement
        acknowledged_ = count;
        while (kept_.size() > sent_ - count) forget_first();
        return true;
    }

    /// True if all messages behind the first `count` are still here.
    bool has_all_after(std::uint64_t count) const noexcept {
        return count <= sent_ && sent_ - count <= kept_.size();
    }
    /// True if another connection could carry on.
    bool has_all() const noexcept { return has_all_after(acknowledged_); }

    /// Calls `send(message const&)` for each that has not been acknowledged, in order.
    template <class Send> void repeat(Send&& send) const {
        for (message const& each : kept_) send(each);
    }

    // ---- what comes in ------------------------------------------------------------------------------------

    /// The number of messages that have been taken.
    std::uint64_t taken() const noexcept { return taken_; }

    /// Notes that message `number` has come in. False: it has been taken before, and is to be dropped.
    bool take(std::uint64_t number) noexcept {
        if (number <= taken_) return false;
        taken_ = number;
        return true;
    }

  private:
    void forget_first() noexcept {
        bytes_ -= head_bytes + kept_.front().body.size();
        kept_.pop_front();
    }

    std::list<message> kept_; // the last one has number sent_
    std::size_t bytes_ = 0;   // of these messages
    std::uint64_t sent_ = 0, acknowledged_ = 0, taken_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_SURVIVAL_MESSAGE_LOG_HPP
