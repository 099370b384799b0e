// herring: the messages between a job and a service, and to the processes that it starts; their connection.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_MESSAGES_HPP
#define HERRING_SERVICE_MESSAGES_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/version.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/lent_servers.hpp"
#include "herring/net/frame.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/message_link.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace HERRING_NAMESPACE::detail::leasing {

inline constexpr std::uint16_t protocol_version = 1;
inline constexpr wire::handshake_names names{"herring service", "tenant", "service"};

/// In this order: job → service knock, hello, ask; service → job all others. From the admission on messages
/// have tags.
enum class message : std::uint16_t {
    knock = 1,
    challenge,
    hello,
    admit,
    ask,
    wait,   ///< what is asked for is held by others, as the words say; again each second
    grant,  ///< the ranks have been started; the connection is the lease from here on
    refuse, ///< a failure; the last message
    drain   ///< the service is about to end
};

inline constexpr std::size_t most_name = 64, most_text = 1024, most_tensors = 1 << 16, most_ask = 1'000'000;

/// Returns the longest body of a message: of a peer that has not proved itself, and of a tenant.
constexpr std::size_t most_body(message kind, bool proven) noexcept {
    return proven && kind == message::ask ? most_ask : most_text;
}

HERRING_SETUP inline void put_text(byte_buffer& to, std::string_view text) {
    wire::append<std::uint16_t>(to, text.size());
    wire::append(to, text);
}
/// Reads a text of at most `most` bytes, which can be shown.
HERRING_SETUP inline std::string take_text(wire::reader& in, std::size_t most) {
    std::size_t const size = in.number<std::uint16_t>();
    if (size > most) in.ok = false;
    std::string text(in.text(in.ok ? size : 0));
    wire::make_printable(text);
    return text;
}

HERRING_SETUP inline void put_layout(byte_buffer& to, layout const& tensors) {
    wire::append<std::uint32_t>(to, tensors.size());
    for (tensor_spec const& one : tensors) {
        put_text(to, std::string_view(one.name).substr(0, most_text));
        wire::append<std::uint64_t>(to, one.elements);
        wire::append<std::uint32_t>(to, one.group);
    }
}
HERRING_SETUP inline layout take_layout(wire::reader& in) {
    std::size_t const count = in.number<std::uint32_t>();
    if (count > most_tensors) in.ok = false;
    std::vector<tensor_spec> tensors;
    for (std::size_t i = 0; i < count && in.ok; ++i) {
        tensor_spec one;
        std::size_t const size = in.number<std::uint16_t>();
        one.name = in.text(size <= most_text ? size : 0); // ranks compare its bytes
        one.elements = in.number<std::uint64_t>();
        one.group = in.number<std::uint32_t>();
        if (size > most_text) in.ok = false;
        tensors.push_back(std::move(one));
    }
    return layout(std::move(tensors));
}

HERRING_SETUP inline void put_time(byte_buffer& to, std::chrono::milliseconds time) {
    wire::append<std::uint64_t>(to, static_cast<std::uint64_t>(std::max<long long>(time.count(), 0)));
}
HERRING_SETUP inline std::chrono::milliseconds take_time(wire::reader& in) noexcept {
    constexpr std::uint64_t day = 86'400'000;
    return std::chrono::milliseconds(std::min(in.number<std::uint64_t>(), day));
}

/// A tenant's reply to the challenge. On the wire a proof follows it.
struct hello {
    wire::nonce nonce{};
    std::string tenant{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        put_text(out, tenant);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        in.bytes(nonce);
        tenant = take_text(in, most_name);
        return in.done();
    }
};

/// What a job asks for.
struct ask {
    std::string version = HERRING_VERSION_STRING;
    std::string type{};
    std::uint32_t servers = 0;
    lease_terms terms{};
    std::chrono::milliseconds queue_for{};
    layout tensors{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        put_text(out, version);
        put_text(out, type);
        wire::append<std::uint32_t>(out, servers);
        wire::append<std::uint32_t>(out, static_cast<std::uint32_t>(terms.workers));
        put_text(out, terms.address);
        wire::append<std::uint8_t>(out, terms.seals ? 1 : 0);
        put_time(out, terms.timeout);
        put_time(out, queue_for);
        put_layout(out, tensors);
        return out;
    }
    /// False: no job asks so. Of another version only `version` is read.
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        version = take_text(in, most_name);
        if (version != HERRING_VERSION_STRING) return in.ok;
        type = take_text(in, most_text);
        servers = in.number<std::uint32_t>();
        std::uint32_t const workers = in.number<std::uint32_t>();
        terms.address = take_text(in, most_text);
        std::uint8_t const seals = in.number<std::uint8_t>();
        terms.timeout = take_time(in);
        queue_for = take_time(in);
        tensors = take_layout(in);
        terms.seals = seals == 1;
        terms.workers = static_cast<int>(workers & 0xFFFFu);
        return in.done() && seals < 2 && servers > 0 && servers < 0x8000 && workers > 0 && workers < 0x8000;
    }
};

/// What a process that a service starts reads: the rank that it becomes, behind the ask.
struct orders {
    std::uint32_t rank = 0; ///< among the servers
    std::string secret{};
    std::string checkpoints{}; ///< folder beneath which those of the tenant lie; empty: none
    ask of{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        wire::append<std::uint32_t>(out, rank);
        put_text(out, secret);
        put_text(out, checkpoints);
        out.append(of.write());
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        rank = in.number<std::uint32_t>();
        secret = take_text(in, most_name);
        checkpoints = take_text(in, 4096);
        return in.ok && of.read(in.rest);
    }
};

/// Owns the socket; a message is bounded by what its kind may have before anything waits for it.
class lease_link {
  public:
    enum class state {
        nothing, ///< so far
        whole,   ///< `kind()` and `body()` are a message, until the next `receive`
        wrong,   ///< what this protocol does not have, or a message of another version
        closed   ///< by the other end, or by the network
    };

    lease_link() = default;
    explicit lease_link(descriptor&& socket) noexcept : socket_(std::move(socket)) {
        bytes_.socket = socket_.get();
    }

    int socket() const noexcept { return socket_.get(); }
    descriptor release() noexcept { return std::move(socket_); }
    bool wants_write() const noexcept { return bytes_.sent < bytes_.out.size(); }
    /// Notes that the other end has proved itself: messages have tags from here on.
    HERRING_SETUP void protect(wire::handshake const& proven, bool at_service) {
        bytes_.protect(proven, at_service, nullptr);
        proven_ = true;
    }

    /// Sends what the socket takes; the rest waits for `flush`.
    HERRING_SETUP void send(message kind, std::span<std::byte const> body = {}) {
        sha256_digest const digest = proven_ ? sha256().update(body).finish() : sha256_digest{};
        bytes_.append(static_cast<wire::message_kind>(kind), 0, 0, body, digest, protocol_version);
        flush();
    }
    void flush() noexcept { (void)bytes_.write(); }
    /// Closes the sending direction behind what waits.
    void finish() noexcept {
        bytes_.finish = true;
        flush();
    }

    HERRING_SETUP state receive() {
        bytes_.in.drop(std::exchange(used_, 0));
        while (true) {
            parsed_message const got = bytes_.parse(0, [this](wire::head const& h) noexcept {
                return most_body(static_cast<message>(h.type), proven_);
            });
            if (got.is == parsed_message::state::whole && got.front.version == protocol_version) {
                kind_ = static_cast<message>(got.front.type);
                body_ = got.body;
                used_ = got.bytes;
                return state::whole;
            }
            if (got.is != parsed_message::state::incomplete) return state::wrong;
            std::byte part[4096];
            std::size_t const due = got.bytes - bytes_.in.size(); // no byte of what follows
            ssize_t const n = bytes_.read({part, due < sizeof part ? due : sizeof part});
            if (n < 0) return state::nothing;
            if (n == 0) return state::closed;
            bytes_.in.append({part, static_cast<std::size_t>(n)});
        }
    }
    message kind() const noexcept { return kind_; }
    std::span<std::byte const> body() const noexcept { return body_; }

  private:
    descriptor socket_{};
    message_link bytes_{};
    bool proven_ = false;
    message kind_{};
    std::span<std::byte const> body_{};
    std::size_t used_ = 0; // bytes of the message that was returned
};

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_MESSAGES_HPP
