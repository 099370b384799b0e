// herring: sinks that remember what an ensemble's control threads called, and one end of a connection in the hands of a test.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_ENSEMBLE_CONTROL_HPP
#define HERRING_TESTS_ENSEMBLE_CONTROL_HPP

#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/ensemble/acceptor.hpp"
#include "herring/ensemble/admission.hpp"
#include "herring/ensemble/control_link.hpp"
#include "herring/ensemble/control_options.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/messages.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ensemble_control {

namespace detail = herring::detail;
namespace ensembles = herring::detail::ensembles;
namespace wire = herring::detail::wire;
using ensembles::message;
using what = ensembles::incoming::what;

// Longer than anything here takes: only a defect waits for it.
inline constexpr std::chrono::seconds plenty{30};

inline std::string const the_secret(64, 'a');

inline ensembles::shape a_shape() { return {"speech", "combine::mean", "float", 8, 32, 64, "v1"}; }
inline ensembles::acceptor_options acceptor_options() {
    ensembles::acceptor_options made;
    made.address = "127.0.0.1:0";
    made.secret = the_secret;
    // As if there were no time-outs: a loaded machine may take long.
    made.peer_timeout = std::chrono::minutes(5);
    made.handshake_time = std::chrono::minutes(2);
    made.heartbeat = std::chrono::milliseconds(50);
    return made;
}
inline ensembles::dialler_options dialler_options(std::vector<std::string> frontends) {
    ensembles::dialler_options made;
    made.frontends = std::move(frontends);
    made.name = "a";
    made.secret = the_secret;
    made.handshake_time = std::chrono::minutes(2);
    made.first_pause = std::chrono::milliseconds(1);
    made.last_pause = std::chrono::milliseconds(50);
    return made;
}

inline void require(bool holds, char const* text) {
    if (!holds) throw std::runtime_error(std::string("not so: ") + text);
}

/// One call of a sink.
struct call {
    std::string name{};
    std::size_t index = 0; // peer or frontend
    std::uint64_t incarnation = 0;
    std::uint32_t credits = 0;
    std::string text{};
    ensembles::lane_ends ends{};
    ensembles::admission facts{};
    herring::admission_refusal reason = herring::admission_refusal::none;
    herring::failure why{};
};

/// Calls in order; the test takes them one by one.
class calls {
  public:
    void add(call&& made) {
        std::lock_guard const held(lock_);
        all_.push_back(std::move(made));
        changed_.notify_all();
    }
    /// The next call, which has this name.
    call next(char const* name) {
        std::unique_lock held(lock_);
        require(changed_.wait_for(held, plenty, [&] { return !all_.empty(); }), name);
        call made = std::move(all_.front());
        all_.pop_front();
        if (made.name != name)
            throw std::runtime_error("not '" + std::string(name) + "' but '" + made.name + "': " + made.text);
        return made;
    }
    /// The next call of this name; others before it are dropped.
    call await(char const* name) {
        while (true) {
            std::unique_lock held(lock_);
            require(changed_.wait_for(held, plenty, [&] { return !all_.empty(); }), name);
            call made = std::move(all_.front());
            all_.pop_front();
            if (made.name == name) return made;
        }
    }
    bool empty() {
        std::lock_guard const held(lock_);
        return all_.empty();
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<call> all_;
};

inline detail::descriptor some_memory() { return detail::descriptor(::memfd_create("test", MFD_CLOEXEC)); }

struct frontend_sink {
    calls heard{};
    detail::descriptor memory{};

    void admitted(ensembles::peer_index peer, std::uint64_t incarnation, std::uint32_t credits,
                  ensembles::lane_ends&& ends) {
        call made{.name = "admitted", .index = peer, .incarnation = incarnation, .credits = credits};
        made.ends = std::move(ends);
        heard.add(std::move(made));
    }
    void draining(ensembles::peer_index peer, std::uint64_t incarnation) {
        heard.add({.name = "draining", .index = peer, .incarnation = incarnation});
    }
    void lost(ensembles::peer_index peer, std::uint64_t incarnation, std::string_view why) {
        heard.add({.name = "lost", .index = peer, .incarnation = incarnation, .text = std::string(why)});
    }
    void refused(herring::admission_refusal reason, std::string_view text) {
        heard.add({.name = "refused", .text = std::string(text), .reason = reason});
    }
    int local_memory() { return memory.get(); }
};

struct member_sink {
    calls heard{};
    bool has_memory = false;

    void connected(std::size_t frontend, ensembles::admission const& facts, ensembles::lane_ends&& ends) {
        call made{.name = "connected", .index = frontend, .facts = facts};
        made.ends = std::move(ends);
        heard.add(std::move(made));
    }
    void disconnected(std::size_t frontend, std::string_view why) {
        heard.add({.name = "disconnected", .index = frontend, .text = std::string(why)});
    }
    void refused(std::size_t frontend, herring::failure const& why) {
        heard.add({.name = "refused", .index = frontend, .text = why.text, .why = why});
    }
    detail::descriptor local_memory(std::size_t, ensembles::admission const&) {
        return has_memory ? some_memory() : detail::descriptor();
    }
};

/// The address of "host:port".
inline detail::endpoint endpoint_of(std::string const& text) {
    auto const where = detail::split_address(text, "a test's address");
    std::string why;
    auto const found = detail::resolve(where.host, where.port, herring::clock::now() + plenty, why);
    require(!found.empty(), "an address");
    return found[0];
}
inline detail::descriptor connected_to(std::string const& address) {
    detail::endpoint const to = endpoint_of(address);
    detail::descriptor made(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    require(::connect(made.get(), to.get(), to.size) == 0, "it listens");
    return made;
}
/// Waits for the other end to close; what comes until then is dropped.
inline bool closes(int socket) {
    std::byte junk[4096];
    pollfd ready{socket, POLLIN, 0};
    while (::poll(&ready, 1, 30'000) == 1) {
        ssize_t const n = ::recv(socket, junk, sizeof junk, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return true;
    }
    return false;
}

/// While it lives this thread, and threads that it starts, are another user's. Only root can be: see `made`.
class another_user {
  public:
    another_user() : made(::syscall(SYS_setresuid, -1, 65534, -1) == 0) {} // seteuid() is for all threads
    ~another_user() {
        if (!made) return;
        (void)::syscall(SYS_setresuid, -1, 0, -1);
        (void)::prctl(PR_SET_DUMPABLE, 1); // as it was
    }
    another_user(another_user const&) = delete;
    another_user& operator=(another_user const&) = delete;

    bool const made;
};

/// A message that was received.
struct heard_message {
    message kind = message::apply;
    std::vector<std::byte> body{};
    detail::descriptor passed{};
};
/// The next message; throws where none comes, or what is none.
inline heard_message hear(ensembles::control_link& link) {
    pollfd ready{link.socket(), POLLIN, 0};
    while (true) {
        ensembles::incoming got = link.receive();
        if (got.found == what::whole)
            return {got.kind, {got.body.begin(), got.body.end()}, std::move(got.passed)};
        require(got.found == what::nothing, got.found == what::closed ? "it stays open" : "a message");
        require(::poll(&ready, 1, 30'000) == 1, "a message comes");
    }
}
/// The next message of a kind; heartbeats before it are dropped.
inline heard_message await(ensembles::control_link& link, message kind) {
    while (true) {
        heard_message got = hear(link);
        if (got.kind == kind) return got;
        require(got.kind == message::heartbeat, "the kind of message that is due");
    }
}

/// A member, step by step, so that a test can say something else at any place.
struct member_peer {
    ensembles::control_link link{};
    ensembles::hello said{};
    detail::byte_buffer challenge{}, words{};
    std::optional<wire::handshake> seen{};
    ensembles::admit told{};
    detail::secret_key lane_key{};

    explicit member_peer(std::string const& address, std::uint64_t incarnation = 1, std::string name = "a")
        : link(connected_to(address), false, false) {
        said.has_secret = true;
        said.incarnation = incarnation;
        said.name = std::move(name);
        said.credits = 4;
        said.boot = detail::boot_id();
        said.shape = a_shape();
        said.lanes = herring::lane::any;
    }
    wire::challenge apply() {
        link.send(message::apply, {});
        auto const got = await(link, message::challenge);
        challenge.clear();
        challenge.append(got.body);
        wire::challenge read;
        require(read.read(got.body), "a challenge");
        return read;
    }
    /// With a proof by this secret; an empty one: none.
    void hello(wire::challenge const& asked, std::string const& secret = std::string(64, 'a')) {
        said.nonce = detail::random_nonce();
        words = said.write();
        detail::byte_buffer body = said.write();
        wire::proof shown{};
        if (!secret.empty()) {
            seen.emplace(ensembles::admission_names, detail::secret(secret).key(asked.salt), challenge,
                         words);
            shown = seen->proof_of_dialler();
        }
        body.append(shown);
        link.send(message::hello, body);
    }
    /// After the admission.
    void admitted() {
        auto const got = await(link, message::admit);
        std::span<std::byte const> const body(got.body);
        require(told.read(body.subspan(32)), "an admission");
        if (seen) {
            std::array<std::byte, 32> shown{};
            require(ensembles::read_32(body.first(32), shown) &&
                        shown == seen->proof_of_acceptor(body.subspan(32)),
                    "the frontend proves itself");
            seen->wrap(told.wrapped);
            link.protect(seen->keys(false));
        }
        lane_key = detail::secret_key(told.wrapped);
        link.admitted();
    }
    void join(std::string const& secret = std::string(64, 'a')) {
        hello(apply(), secret);
        admitted();
    }
    ensembles::refuse refused() {
        auto const got = await(link, message::refuse);
        std::span<std::byte const> body(got.body);
        std::span<std::byte const> before;
        wire::proof shown{};
        ensembles::refuse read;
        if (seen && wire::split_proof(body, before, shown) && shown == seen->proof_of_refusal({}, before)) {
            proven_refusal = true;
            body = before;
        }
        require(read.read(body), "a refusal");
        return read;
    }
    bool proven_refusal = false;

    /// The socket of a proven lane by tcp.
    detail::descriptor lane(std::string const& address) {
        ensembles::control_link made(connected_to(address), false, false);
        greet(made, herring::lane::tcp);
        prove(made, -1);
        return detail::descriptor(made.release());
    }
    ensembles::lane_hello lane_said{};
    detail::byte_buffer lane_words{}, lane_challenge{};
    void greet(ensembles::control_link& made, herring::lane kind) {
        lane_said.ticket = told.ticket;
        lane_said.kind = kind;
        lane_said.nonce = detail::random_nonce();
        lane_words = lane_said.write();
        made.send(message::lane_hello, lane_words);
        auto const asked = await(made, message::lane_challenge);
        lane_challenge.clear();
        lane_challenge.append(asked.body);
    }
    detail::descriptor prove(ensembles::control_link& made, int passed) {
        wire::handshake const both(ensembles::lane_names, lane_key, lane_words, lane_challenge);
        made.send(message::lane_proof, both.proof_of_dialler(), passed);
        auto got = await(made, message::lane_accept);
        std::array<std::byte, 32> shown{};
        require(ensembles::read_32(got.body, shown) && shown == both.proof_of_acceptor({}),
                "the frontend proves itself for the lane");
        return std::move(got.passed);
    }
};

/// A port in the hands of a test, at which a dialler is met.
struct false_frontend {
    detail::descriptor listener{};
    std::string address{};
    false_frontend() {
        detail::endpoint at = endpoint_of("127.0.0.1:1");
        at.port(0);
        listener = detail::descriptor(detail::listen_on(at));
        require(listener.get() >= 0, "a port");
        address = detail::local_end(listener.get()).text();
    }
    ensembles::control_link accept() {
        pollfd ready{listener.get(), POLLIN, 0};
        require(::poll(&ready, 1, 30'000) == 1, "somebody dials");
        return ensembles::control_link(
            detail::descriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)), true, false);
    }
};

/// An acceptor with places for members "a" and "b", and what it has told its sink.
struct listening_frontend {
    frontend_sink sink{};
    std::optional<ensembles::acceptor> at{};

    explicit listening_frontend(ensembles::acceptor_options const& options = acceptor_options(),
                                bool memory = false) {
        if (memory) sink.memory = some_memory();
        at.emplace(options, a_shape(), std::vector<std::string>{"a", "b"}, sink);
    }
    std::string const& address() const { return at->address(); }
};

} // namespace ensemble_control

#endif // HERRING_TESTS_ENSEMBLE_CONTROL_HPP
