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

/// The first, third and fifth go from job to service, all others back. From the admission on messages
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

/// Writes the members of a message, in the order in which `reading` takes them.
struct writing {
    byte_buffer out{};

    HERRING_SETUP void text(std::string const& from, std::size_t most) {
        std::string_view const cut = std::string_view(from).substr(0, most);
        wire::append<std::uint16_t>(out, cut.size());
        wire::append(out, cut);
    }
    template <class Integer> void number(Integer const& from) {
        wire::append<Integer>(out, static_cast<std::uint64_t>(from));
    }
    static constexpr bool goes_on() noexcept { return true; }
    HERRING_SETUP void time(std::chrono::milliseconds from) {
        number(std::max<std::int64_t>(from.count(), 0));
    }
};

/// Reads the members of a message. A member that is not there, or longer than it may be, turns `in.ok` false.
struct reading {
    wire::reader in;

    HERRING_SETUP void text(std::string& to, std::size_t most) {
        std::size_t const size = in.number<std::uint16_t>();
        in.ok = in.ok && size <= most;
        to = in.text(in.ok ? size : 0);
    }
    template <class Integer> void number(Integer& to) { to = in.number<Integer>(); }
    bool goes_on() const noexcept { return in.ok; }
    /// A day at most.
    HERRING_SETUP void time(std::chrono::milliseconds& to) {
        to = std::chrono::milliseconds(std::min<std::uint64_t>(in.number<std::uint64_t>(), 86'400'000));
    }
};

template <class Message> HERRING_SETUP byte_buffer write(Message const& from) {
    writing to;
    Message copy = from;
    copy.members(to);
    return std::move(to.out);
}
/// False: no end of this protocol writes that.
template <class Message> HERRING_SETUP bool read(Message& to, std::span<std::byte const> from) {
    reading all{{from}};
    to.members(all);
    return all.in.done() && to.is_sound();
}

/// A tenant's reply to the challenge. On the wire a proof follows it.
struct hello {
    wire::nonce nonce{};
    std::string tenant{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        wire::append(out, tenant);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) {
        wire::reader in{from};
        in.bytes(nonce);
        tenant = in.text(std::min(in.rest.size(), most_name));
        wire::make_printable(tenant);
        return in.done();
    }
};

/// The request of a job.
struct ask {
    std::string version = HERRING_VERSION_STRING, type{};
    std::uint32_t servers = 0;
    lease_terms terms{};
    std::chrono::milliseconds queue_for{};
    std::vector<tensor_spec> tensors{};

    template <class Io> HERRING_SETUP void members(Io& io) {
        io.text(version, most_name);
        io.text(type, most_text);
        io.number(servers);
        io.number(terms.workers);
        io.text(terms.address, most_text);
        io.number(terms.seals);
        io.time(terms.timeout);
        io.time(queue_for);
        auto count = static_cast<std::uint32_t>(tensors.size());
        io.number(count);
        for (std::size_t i = 0; i < std::min<std::size_t>(count, most_tensors) && io.goes_on(); ++i) {
            if (i == tensors.size()) tensors.emplace_back();
            io.text(tensors[i].name, most_text);
            io.number(tensors[i].elements);
            io.number(tensors[i].group);
        }
    }
    HERRING_SETUP bool is_sound() {
        for (std::string* const shown : {&version, &type, &terms.address}) wire::make_printable(*shown);
        return servers > 0 && servers < 0x8000 && terms.workers > 0 && terms.workers < 0x8000;
    }
};

/// The orders of a process that a service starts: the rank that it becomes. In the file that it reads, the
/// key of its secret stands before them.
struct orders {
    std::uint32_t rank = 0;    ///< among the servers
    std::string checkpoints{}; ///< folder beneath which those of the tenant lie; empty: none
    ask of{};

    template <class Io> HERRING_SETUP void members(Io& io) {
        io.number(rank);
        io.text(checkpoints, 4096);
        of.members(io);
    }
    bool is_sound() { return of.is_sound(); }
};

inline constexpr char const* other_version =
    "it speaks another version of the protocol of services; build both from one version of Herring";

/// Owns the socket; a message is bounded by what its kind may have before anything waits for it.
class lease_link {
  public:
    enum class state {
        nothing, ///< so far
        whole,   ///< `kind()` and `body()` are a message, until the next `receive`
        other,   ///< a message of another version of this protocol
        wrong,   ///< what this protocol does not have
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
                return proven_ && static_cast<message>(h.type) == message::ask ? most_ask : most_text;
            });
            if (got.is == parsed_message::state::whole) {
                used_ = got.bytes;
                if (got.front.version != protocol_version) return state::other;
                kind_ = static_cast<message>(got.front.type);
                body_ = got.body;
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
