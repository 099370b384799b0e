// herring: an ensemble's control connection: whole messages in and out of a socket, bounded, then with tags.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CONTROL_LINK_HPP
#define HERRING_ENSEMBLE_CONTROL_LINK_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/base/text.hpp"
#include "herring/control/wire/frame.hpp"
#include "herring/control/wire/message_keys.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/local_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Result of `control_link::receive`.
struct incoming {
    enum class what {
        nothing,       ///< no message yet
        whole,         ///< `kind` and `body` are a message; valid until the next receive
        other_version, ///< a message of another version of the protocol
        wrong,         ///< no message, as `why` says
        closed         ///< by the other end or by the network
    } found = what::nothing;
    message kind = message::apply;
    std::uint16_t version = protocol_version;
    std::span<std::byte const> body{};
    descriptor passed{}; ///< the one that came with the message over a unix socket
    char const* why = "";
};

/// A control connection, over tcp or over a unix socket whose packets are whole messages.
///
/// A stream is read to the end of a message and not a byte further: the bytes behind a lane's last message
/// belong to the lane. The buffer holds one message at most, whose size was checked before it was read.
/// Lifetime: owns the socket; moves.
class control_link {
  public:
    control_link() = default;
    /// `is_frontend`: this end is the frontend's. `is_local`: a unix socket.
    control_link(descriptor&& socket, bool is_frontend, bool is_local) noexcept
        : socket_(std::move(socket)), is_frontend_(is_frontend), is_local_(is_local) {
        int const on = 1;
        if (!is_local && socket_.get() >= 0)
            (void)::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    bool open() const noexcept { return socket_.get() >= 0; }
    int socket() const noexcept { return socket_.get(); }
    bool is_local() const noexcept { return is_local_; }
    void close() noexcept { *this = control_link(); }
    /// Gives the socket of a proven lane away.
    int release() noexcept { return socket_.release(); }
    /// True while bytes wait for room in the socket.
    bool wants_write() const noexcept { return sent_ < out_.size(); }
    /// Puts a tag on every message that follows, in both directions.
    void protect(wire::message_keys&& keys) noexcept { keys_.emplace(std::move(keys)); }
    /// Notes that the member has been admitted: other messages are due from now on.
    void admitted() noexcept { is_admitted_ = true; }

    /// Sends what the socket takes; the rest waits for `flush`. `passed`: a descriptor, over a unix socket.
    HERRING_SETUP void send(message kind, std::span<std::byte const> body, int passed = -1) {
        if (!open() || finish_) return;
        constexpr std::size_t most = std::size_t{1} << 16; // for a peer that does not read
        if (out_.size() - sent_ > most) return fail();
        std::size_t const at = out_.size();
        append_message(out_, kind, body);
        if (keys_)
            out_.append(keys_->next(std::span<std::byte const>(out_).subspan(at, wire::head_bytes),
                                    sha256().update(body).finish()));
        if (!is_local_) return flush();
        if (!send_packet(socket(), out_, passed)) fail();
        out_.clear();
    }
    HERRING_SETUP void flush() noexcept {
        while (sent_ < out_.size()) {
            ssize_t const n = ::send(socket(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
            if (n > 0) {
                sent_ += static_cast<std::size_t>(n);
                continue;
            }
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            return fail();
        }
        out_.clear();
        sent_ = 0;
        if (finish_) ::shutdown(socket(), SHUT_WR);
    }
    /// Closes the sending direction behind the bytes that wait.
    HERRING_SETUP void finish() noexcept {
        finish_ = true;
        flush();
    }

    /// Reads at most to the end of one message. `wrong` and `closed` are returned again by later calls.
    HERRING_SETUP incoming receive() {
        if (failed_) return of(incoming::what::closed);
        return is_local_ ? receive_local() : receive_stream();
    }
    /// Reads and drops bytes. True if the other end has closed.
    HERRING_SETUP bool drop_input() noexcept {
        std::byte junk[4096];
        if (is_local_) return receive_packet(socket(), junk).bytes == 0;
        ssize_t const n = ::recv(socket(), junk, sizeof junk, MSG_DONTWAIT);
        return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK);
    }

  private:
    void fail() noexcept {
        failed_ = true;
        sent_ = 0;
        out_.clear();
        ::shutdown(socket(), SHUT_RDWR); // makes the socket readable for its owner
    }
    static incoming of(incoming::what found, char const* why = "") noexcept {
        incoming made;
        made.found = found;
        made.why = why;
        return made;
    }

    HERRING_SETUP incoming receive_stream() {
        if (done_) {
            in_.clear();
            done_ = false;
            length_ = 0;
        }
        while (true) {
            bool const has_head = in_.size() >= wire::head_bytes;
            std::size_t const due = has_head ? wire::head_bytes + length_ + tag_bytes() : wire::head_bytes;
            if (has_head && in_.size() == due) return finished();
            std::byte part[1024];
            ssize_t const n = ::recv(socket(), part, std::min(sizeof part, due - in_.size()), MSG_DONTWAIT);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return {};
            if (n <= 0) return of(incoming::what::closed);
            in_.append({part, static_cast<std::size_t>(n)});
            if (!has_head && !look_at_head()) return of(incoming::what::wrong, why_);
        }
    }
    HERRING_SETUP incoming receive_local() {
        std::byte room[wire::head_bytes + 256];
        packet got = receive_packet(socket(), room);
        if (got.bytes < 0) return {};
        if (got.bytes == 0) return of(incoming::what::closed);
        in_.clear();
        in_.append({room, static_cast<std::size_t>(got.bytes)});
        if (!got.whole || got.descriptors > 1)
            return of(incoming::what::wrong, "a packet with more than a message has");
        if (!look_at_head() || in_.size() < wire::head_bytes) return of(incoming::what::wrong, why_);
        if (in_.size() != wire::head_bytes + length_ + tag_bytes())
            return of(incoming::what::wrong, "a packet of another size than its message");
        incoming made = finished();
        made.passed = std::move(got.passed);
        return made;
    }

    std::size_t tag_bytes() const noexcept { return keys_ ? wire::tag_bytes : 0; }

    /// Recognises foreign bytes by the first of them, however slowly they come.
    HERRING_SETUP bool look_at_head() noexcept {
        why_ = "bytes that are no control message";
        std::byte ours[4];
        put(ours, wire::magic);
        if (std::memcmp(ours, in_.data(), std::min(in_.size(), sizeof ours)) != 0) return false;
        if (in_.size() < wire::head_bytes) return true;
        if (!head_.read(in_)) return false;
        length_ = head_.length;
        why_ = "a message of more bytes than its kind may have";
        return length_ <= most_body(static_cast<message>(head_.type), !is_frontend_, is_admitted_);
    }
    HERRING_SETUP incoming finished() noexcept {
        std::span<std::byte const> const all(in_);
        std::span<std::byte const> const body = all.subspan(wire::head_bytes, length_);
        done_ = true;
        if (head_.body_crc != crc32c(body))
            return of(incoming::what::wrong, "a message whose checksum is wrong");
        if (keys_ && !keys_->accepts(all.first(wire::head_bytes), body, all.last(wire::tag_bytes)))
            return of(incoming::what::wrong,
                      "a message whose tag is not of the key of this connection: it was "
                      "forged or changed on its way");
        incoming made =
            of(head_.version == protocol_version ? incoming::what::whole : incoming::what::other_version);
        made.kind = static_cast<message>(head_.type);
        made.version = head_.version;
        made.body = body;
        return made;
    }

    descriptor socket_{};
    bool is_frontend_ = false, is_local_ = false, is_admitted_ = false;
    bool finish_ = false, failed_ = false;
    bool done_ = false; // `in_` is a message that was returned
    wire::head head_{};
    std::size_t length_ = 0;
    char const* why_ = "";
    byte_buffer in_{}, out_{};
    std::size_t sent_ = 0;
    std::optional<wire::message_keys> keys_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CONTROL_LINK_HPP
