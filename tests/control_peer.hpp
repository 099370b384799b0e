// herring: one end of a control connection in the hands of a test: as a rank, as rank 0, with or without the secret.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONTROL_PEER_HPP
#define HERRING_TESTS_CONTROL_PEER_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/control/wire/message_kind.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/frame.hpp"
#include "herring/net/handshake.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/// The secret of ranks that have one.
inline herring::detail::secret const& our_secret() {
    static herring::detail::secret const made(std::string(64, 'a'));
    return made;
}

/// A socket that listens on the loopback, for a rank 0 of the test's or of the library's, which takes it over.
struct control_listener {
    int socket = -1;
    herring::detail::endpoint at{};
    control_listener() {
        std::string why;
        auto const found =
            herring::detail::resolve("127.0.0.1", 0, herring::clock::now() + std::chrono::seconds(30), why);
        if (!found.empty()) socket = herring::detail::listen_on(found[0]);
        if (socket < 0) throw std::runtime_error("not so: the loopback has a free port");
        at = herring::detail::local_end(socket);
    }
    void close() { ::close(std::exchange(socket, -1)); }
};

/// Speaks the protocol as the library does, message by message, so that a test can say something else at any place. What goes
/// wrong is an exception, for a forked rank too.
struct control_peer {
    using kind = herring::detail::wire::message_kind;

    int socket = -1;
    std::uint32_t rank = 0; // in the name of which it speaks
    herring::detail::byte_buffer challenge{};
    std::optional<herring::detail::wire::handshake> seen{};
    std::optional<herring::detail::wire::message_keys> keys{};
    herring::detail::seal_provider const* seals = nullptr; // by which it would seal
    herring::detail::key_exchange exchange{};
    std::optional<herring::detail::wire::frame_seal> seal{};
    std::optional<herring::detail::secret_key> world_key{};
    std::optional<herring::detail::secret_key> resumption_key{}; // of the connection by which it has joined
    std::uint64_t job = 0;                                       // from the welcome

    control_peer() = default;
    control_peer(control_peer const&) = delete;
    ~control_peer() { close(); }
    void close() {
        if (socket >= 0) ::close(std::exchange(socket, -1));
    }

    static void require(bool holds, char const* what) {
        if (!holds) throw std::runtime_error(std::string("not so: ") + what);
    }

    // ---- messages -----------------------------------------------------------------------------------------

    void send(std::span<std::byte const> bytes) const {
        require(::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(bytes.size()),
                "it can be sent");
    }
    /// As it goes over the wire, with its tag where there are keys, or sealed.
    herring::detail::byte_buffer bytes_of(kind what, std::uint64_t sequence,
                                          std::span<std::byte const> body) {
        namespace detail = herring::detail;
        detail::byte_buffer bytes;
        if (seal) {
            require(seal->append(bytes, what, rank, sequence, body, detail::wire::protocol_version),
                    "it can be sealed");
            return bytes;
        }
        detail::wire::append_message(bytes, what, rank, sequence, body);
        if (keys)
            bytes.append(keys->next(std::span<std::byte const>(bytes).first(detail::wire::head_bytes),
                                    detail::sha256().update(body).finish()));
        return bytes;
    }
    void say(kind what, std::uint64_t sequence = 0, std::span<std::byte const> body = {}) {
        send(bytes_of(what, sequence, body));
    }

    struct heard {
        herring::detail::wire::head front{};
        std::vector<std::byte> body{};
        std::vector<std::byte> raw{};
    };
    /// The next message; nothing once the connection has ended.
    std::optional<heard> hear() {
        namespace wire = herring::detail::wire;
        pollfd ready{socket, POLLIN, 0};
        if (::poll(&ready, 1, 30'000) != 1) return {};
        if (seal) return hear_sealed();
        heard made;
        made.raw.resize(wire::head_bytes);
        if (!read(made.raw.data(), made.raw.size())) return {};
        require(made.front.read(made.raw), "it is a control message");
        std::size_t const tag = keys ? wire::tag_bytes : 0;
        made.raw.resize(wire::head_bytes + made.front.length + tag);
        require(read(made.raw.data() + wire::head_bytes, made.front.length + tag), "it comes whole");
        std::span<std::byte const> const all(made.raw);
        auto const body = all.subspan(wire::head_bytes, made.front.length);
        made.body.assign(body.begin(), body.end());
        if (keys)
            require(keys->accepts(all.first(wire::head_bytes), body, all.last(tag)), "its tag is right");
        return made;
    }
    heard await(kind what) {
        while (std::optional<heard> next = hear())
            if (next->front.type == what) return *std::move(next);
        throw std::runtime_error("not so: message " + std::to_string(static_cast<int>(what)) + " comes");
    }

    // ---- as a rank ----------------------------------------------------------------------------------------

    void connect(herring::detail::endpoint const& to) {
        socket = ::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        require(::connect(socket, to.get(), to.size) == 0, "rank 0 listens");
    }
    herring::detail::wire::challenge knock() {
        say(kind::knock);
        heard const asked = await(kind::challenge);
        herring::detail::wire::challenge read;
        require(read.read(asked.body), "a challenge");
        challenge.clear();
        challenge.append(asked.body);
        return read;
    }
    /// What a rank of this number says of itself.
    static herring::detail::wire::hello hello_of(std::uint32_t rank, std::uint32_t size) {
        herring::detail::wire::hello said;
        said.rank = rank;
        said.size = size;
        said.incarnation = 1;
        said.node = said.boot = "here";
        said.nonce = herring::detail::random_nonce();
        return said;
    }
    /// A body of a hello to the last challenge, with its proof.
    herring::detail::byte_buffer proven(herring::detail::wire::hello said,
                                        herring::detail::secret const* by = nullptr) {
        namespace wire = herring::detail::wire;
        wire::challenge asked;
        require(asked.read(challenge), "a challenge");
        said.has_secret = by != nullptr;
        said.seals = by != nullptr && seals != nullptr;
        herring::detail::secret_key shared;
        bool const sealed = said.seals && asked.seals;
        if (sealed) said.nonce = agreed(asked.nonce, shared);
        herring::detail::byte_buffer words = said.write();
        wire::proof shown{};
        if (by != nullptr) {
            seen.emplace(wire::rank_names, by->key(asked.salt), challenge, words, sealed ? &shared : nullptr);
            shown = seen->proof_of_dialler();
        }
        words.append(shown);
        return words;
    }
    /// Takes the admission that was read.
    void admitted(heard const& reply) {
        namespace wire = herring::detail::wire;
        wire::admit told;
        require(reply.front.type == kind::admit && told.read(reply.body), "an admission");
        if (seen) {
            require(told.proof == seen->proof_of_acceptor(told.wrapped), "rank 0 has the secret");
            seen->wrap(told.wrapped);
            resumption_key.emplace(seen->resumption_key());
            protect(false);
        }
        world_key.emplace(told.wrapped);
    }
    /// The reply: an admission, which it takes, or a refusal.
    heard greet(herring::detail::wire::hello const& said, herring::detail::secret const* by = nullptr) {
        knock();
        rank = said.rank;
        say(kind::hello, 0, proven(said, by));
        std::optional<heard> reply = hear();
        require(reply.has_value(), "a reply");
        if (reply->front.type == kind::admit) admitted(*reply);
        return *std::move(reply);
    }
    void join(std::uint32_t as, std::uint32_t size, herring::detail::endpoint const& to,
              herring::detail::secret const* by = nullptr) {
        connect(to);
        require(greet(hello_of(as, size), by).front.type == kind::admit, "it is admitted");
        herring::detail::wire::welcome told;
        require(told.read(await(kind::welcome).body, size) == nullptr, "it is welcome");
        job = told.job;
    }
    /// What it says of itself where it comes again.
    herring::detail::wire::resume resume_of(std::uint64_t attempt = 1) const {
        herring::detail::wire::resume said;
        said.rank = rank;
        said.incarnation = 1;
        said.job = job;
        said.attempt = attempt;
        said.nonce = herring::detail::random_nonce();
        return said;
    }
    /// A body of a resume to the last challenge, with its proof under that key.
    herring::detail::byte_buffer proven(herring::detail::wire::resume said,
                                        herring::detail::secret_key const* by) {
        namespace wire = herring::detail::wire;
        wire::challenge asked;
        require(asked.read(challenge), "a challenge");
        herring::detail::secret_key shared;
        if (seals != nullptr) said.nonce = agreed(asked.nonce, shared);
        herring::detail::byte_buffer words = said.write();
        wire::proof shown{};
        if (by != nullptr) {
            seen.emplace(wire::rank_names, *by, challenge, words, seals != nullptr ? &shared : nullptr);
            shown = seen->proof_of_dialler();
        }
        words.append(shown);
        return words;
    }
    /// Comes again, over this connection, as what `first` has joined as: whether rank 0 admits it.
    bool resume(control_peer const& first, herring::detail::wire::resume const& said,
                herring::detail::secret_key const* by, herring::detail::endpoint const& to) {
        connect(to);
        rank = first.rank;
        knock();
        say(kind::resume, 0, proven(said, by));
        std::optional<heard> const reply = hear();
        if (!reply) return false;
        herring::detail::wire::admit told;
        require(reply->front.type == kind::admit && told.read(reply->body), "an admission");
        if (seen) {
            require(told.proof == seen->proof_of_acceptor(told.wrapped), "rank 0 knows who has joined");
            protect(false);
        }
        return true;
    }

    // ---- as rank 0 ----------------------------------------------------------------------------------------

    void accept(int listener) {
        pollfd asks{listener, POLLIN, 0};
        require(::poll(&asks, 1, 30'000) == 1, "a rank connects");
        socket = ::accept(listener, nullptr, nullptr);
    }
    /// Challenges whoever knocks; returns the body of its hello.
    std::vector<std::byte> challenged(bool has_secret = false) {
        namespace wire = herring::detail::wire;
        await(kind::knock);
        wire::challenge asks;
        asks.nonce = herring::detail::random_nonce();
        asks.has_secret = has_secret;
        asks.seals = has_secret && seals != nullptr;
        if (asks.seals) {
            exchange = herring::detail::key_exchange(*seals);
            asks.nonce = exchange.shown();
        }
        challenge = asks.write();
        say(kind::challenge, 0, challenge);
        return await(kind::hello).body;
    }
    /// Admits who said that.
    void admit(std::span<std::byte const> hello, herring::detail::secret const* by = nullptr) {
        namespace wire = herring::detail::wire;
        wire::admit told;
        told.wrapped = herring::detail::random_nonce();
        world_key.emplace(told.wrapped);
        if (by != nullptr) {
            wire::challenge asked;
            require(asked.read(challenge), "a challenge");
            std::span<std::byte const> const words = hello.first(hello.size() - wire::proof_bytes);
            wire::hello said;
            require(said.read(words), "a hello");
            herring::detail::secret_key shared;
            bool const sealed = asked.seals && said.seals;
            if (sealed) require(exchange.agree(said.nonce, shared), "a key that is shared");
            seen.emplace(wire::rank_names, by->key(asked.salt), challenge, words, sealed ? &shared : nullptr);
            seen->wrap(told.wrapped);
            told.proof = seen->proof_of_acceptor(told.wrapped);
            resumption_key.emplace(seen->resumption_key());
        }
        say(kind::admit, 0, told.write());
        if (seen) protect(true);
    }
    void let_in(int listener, herring::detail::secret const* by = nullptr) {
        accept(listener);
        admit(challenged(by != nullptr), by);
    }

  private:
    void protect(bool at_rank_0) {
        if (seals != nullptr)
            seal.emplace(seen->seal(at_rank_0, *seals));
        else
            keys.emplace(seen->keys(at_rank_0));
    }
    /// Returns this end's public key.
    herring::detail::exchange_key agreed(herring::detail::exchange_key const& other,
                                         herring::detail::secret_key& shared) {
        exchange = herring::detail::key_exchange(*seals);
        require(exchange.agree(other, shared), "a key that is shared");
        return exchange.shown();
    }
    /// `raw` is what came over the wire.
    std::optional<heard> hear_sealed() {
        namespace wire = herring::detail::wire;
        heard made;
        made.raw.resize(wire::sealed_head_bytes);
        if (!read(made.raw.data(), made.raw.size())) return {};
        std::vector<std::byte> open(made.raw);
        require(seal->open_head(std::span<std::byte, wire::sealed_head_bytes>(open)), "its head opens");
        require(made.front.read(open), "it is a control message");
        open.resize(wire::sealed_body_bytes(made.front.length));
        require(read(open.data(), open.size()), "it comes whole");
        made.raw.insert(made.raw.end(), open.begin(), open.end());
        require(seal->open_body(open), "its body opens");
        open.resize(made.front.length);
        made.body = std::move(open);
        return made;
    }
    bool read(std::byte* into, std::size_t size) const {
        return size == 0 || ::recv(socket, into, size, MSG_WAITALL) == static_cast<ssize_t>(size);
    }
};

#endif // HERRING_TESTS_CONTROL_PEER_HPP
