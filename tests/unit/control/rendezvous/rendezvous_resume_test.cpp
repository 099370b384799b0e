// herring: tests of control connections that take the place of silent ones: at every byte of a conversation, and who else would like to.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/rendezvous/rendezvous.hpp"

#include "herring/machine/address.hpp"
#include "herring/world.hpp"

#include "control_peer.hpp"
#include "deaf_socket.hpp"
#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <optional>
#include <semaphore>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace resume_tests {

using herring::errc;
using herring::failure;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace wire = herring::detail::wire;
namespace rendezvous = herring::detail::rendezvous;
using kind = control_peer::kind;

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};
enum class protection { none, tags, seals };

using listener = control_listener;

/// A real rank, which finds rank 0 at `where`. Silence of 2/5 of `peer_timeout` makes another connection.
world join(int rank, int size, int listens, detail::endpoint const& where, protection by,
           milliseconds peer_timeout, milliseconds heartbeat = detail::not_given) {
    rendezvous::settings made;
    made.rank = rank;
    made.size = size;
    made.addresses = detail::fixed_array<detail::endpoint>(1);
    made.addresses[0] = where;
    made.address_text = where.text();
    made.node = made.boot = "here";
    made.timeout = plenty;
    made.deadline = herring::clock::now() + plenty;
    made.asked.detector.peer_timeout = peer_timeout;
    made.asked.detector.heartbeat = heartbeat;
    made.times = detail::resolve(made.asked);
    if (by != protection::none)
        made.secret.emplace(detail::secrets{detail::secret(std::string(64, 'a')), {}, {}});
    if (by == protection::seals) made.seals = &toy_seals::table();
    if (rank == 0) made.listeners.emplace_back(listens);
    return world(rendezvous::join_world(std::move(made)));
}

constexpr std::size_t forever = std::numeric_limits<std::size_t>::max();

/// Between a rank and rank 0. A connection through it falls silent, both ways and for good, once so many of its bytes have gone
/// one way.
class relay {
  public:
    explicit relay(detail::endpoint const& rank_0) : rank_0_(rank_0), thread_([this] { run(); }) {}
    ~relay() {
        stop_.store(true);
        thread_.join();
        for (route const& r : routes_) ::close(r.socket);
        ::close(own_.socket);
    }
    detail::endpoint const& at() const { return own_.at; }
    /// Connection `which`, after that many bytes to rank 0, or from there.
    void silence(std::size_t which, bool to_rank_0, std::size_t bytes) {
        lines_[which].most[to_rank_0] = bytes;
    }
    /// The first one, after so many more.
    void silence_first(bool to_rank_0, std::size_t more) {
        lines_[0].most[to_rank_0] = lines_[0].gone[to_rank_0] + more;
    }
    int connections() const { return connections_.load(); }
    std::size_t gone(std::size_t which, bool to_rank_0) const { return lines_[which].gone[to_rank_0]; }

  private:
    struct line {
        std::array<std::atomic<std::size_t>, 2> most{forever, forever}, gone{}; // bytes: from rank 0, to it
        std::atomic<bool> silent{false};
    };
    struct route { // one direction of a line
        int socket = -1, other = -1;
        line* of = nullptr;
        bool to_rank_0 = false, ended = false;
    };

    void run() {
        while (!stop_.load()) {
            std::vector<pollfd> sleeps{{own_.socket, POLLIN, 0}};
            for (route const& r : routes_)
                sleeps.push_back({r.ended || r.of->silent ? -1 : r.socket, POLLIN, 0});
            (void)::poll(sleeps.data(), sleeps.size(), 10);
            for (std::size_t i = 0; i < routes_.size(); ++i)
                if (sleeps[i + 1].revents != 0) pass(routes_[i]);
            for (route const& r : routes_)
                if (!r.of->silent && r.of->gone[r.to_rank_0] >= r.of->most[r.to_rank_0]) fall_silent(*r.of);
            if (sleeps[0].revents != 0) accept();
        }
    }
    void accept() {
        int const rank = ::accept4(own_.socket, nullptr, nullptr, SOCK_CLOEXEC);
        int const rank_0 = ::socket(rank_0_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)::connect(rank_0, rank_0_.get(), rank_0_.size);
        int const which = connections_.fetch_add(1);
        line& l = lines_[static_cast<std::size_t>(which) % lines_.size()];
        routes_.push_back({rank, rank_0, &l, true, false});
        routes_.push_back({rank_0, rank, &l, false, false});
    }
    void pass(route& r) {
        std::byte some[4096];
        if (r.of->silent) return;
        std::size_t const most = r.of->most[r.to_rank_0], gone = r.of->gone[r.to_rank_0];
        std::size_t const room = std::min(sizeof some, most - std::min(most, gone));
        ssize_t const n = room == 0 ? -1 : ::recv(r.socket, some, room, MSG_DONTWAIT);
        if (n > 0) (void)::send(r.other, some, static_cast<std::size_t>(n), MSG_NOSIGNAL);
        if (n > 0) r.of->gone[r.to_rank_0] += static_cast<std::size_t>(n);
        r.ended = n == 0 || (n < 0 && room != 0 && errno != EAGAIN);
        if (r.ended) ::shutdown(r.other, SHUT_WR);
    }
    void fall_silent(line& l) {
        l.silent = true;
        for (route const& r : routes_)
            if (r.of == &l) (void)set_deaf(r.socket, true);
    }

    detail::endpoint rank_0_;
    listener own_{};
    std::array<line, 16> lines_{};
    std::vector<route> routes_{};
    std::atomic<int> connections_{0};
    std::atomic<bool> stop_{false};
    std::thread thread_;
};

/// Two real ranks with a relay between them, which call collectives.
class conversation {
  public:
    conversation(protection by, milliseconds peer_timeout) : between_(hub_.at) {
        std::jthread first([&] { ranks_[0].emplace(join(0, 2, hub_.socket, hub_.at, by, peer_timeout)); });
        ranks_[1].emplace(join(1, 2, -1, between_.at(), by, peer_timeout));
        first.join();
    }
    relay& between() { return between_; }
    world& rank(std::size_t r) { return *ranks_[r]; }

    /// Each rank gives what nobody else gives, and looks at what it gets. What went wrong, or nothing.
    std::string talk(std::uint32_t rounds) {
        std::array<std::string, 2> wrong;
        std::jthread other([&] { wrong[1] = side(1, rounds); });
        wrong[0] = side(0, rounds);
        other.join();
        return wrong[0] + wrong[1];
    }
    /// Both leave in order.
    void end() {
        std::jthread other([&] { ranks_[1].reset(); });
        ranks_[0].reset();
        other.join();
    }

  private:
    std::string side(std::uint32_t rank, std::uint32_t rounds) {
        try {
            for (std::uint32_t round = 0; round < rounds; ++round) {
                auto const word = [&](std::uint32_t of) { return 1000 * (of + 1) + begun_[rank] + round; };
                std::uint32_t const mine = word(rank);
                auto const all = ranks_[rank]->all_gather(std::as_bytes(std::span(&mine, 1)), plenty);
                for (std::uint32_t r = 0; r < 2; ++r) {
                    std::uint32_t got = 0;
                    if (std::as_const(all)[r].size() != sizeof got) return "a part of another size; ";
                    std::memcpy(&got, std::as_const(all)[r].data(), sizeof got);
                    if (got != word(r)) return "a part of another round; ";
                }
            }
            begun_[rank] += rounds;
            return {};
        } catch (herring::error const& why) {
            return std::string(why.what()) + "; ";
        }
    }

    listener hub_{};
    relay between_;
    std::array<std::optional<world>, 2> ranks_{};
    std::array<std::uint32_t, 2> begun_{};
};

/// Of conversation `number`: every other is authenticated, the others are sealed or not protected at all.
protection by_number(std::size_t number) {
    return number % 2 == 0 ? protection::tags : number % 4 == 1 ? protection::seals : protection::none;
}

/// One conversation for each of `count`, as many at once as two cores can start in time; `silence(relay&, number)` once it has begun.
template <class Silence>
void at_every_byte(std::size_t count, int least_connections, Silence const& silence) {
    std::vector<std::string> wrong(count);
    std::vector<std::thread> all;
    std::counting_semaphore<> places(100);
    for (std::size_t i = 0; i < count; ++i) {
        places.acquire();
        all.emplace_back([&, i] {
            try {
                conversation c(by_number(i), milliseconds(3'000));
                silence(c.between(), i);
                wrong[i] = c.talk(3);
                // Silence may begin behind the last message.
                auto const until = herring::clock::now() + plenty;
                while (wrong[i].empty() && c.between().connections() < least_connections &&
                       herring::clock::now() < until)
                    wrong[i] = c.talk(1);
                if (wrong[i].empty()) wrong[i] = c.talk(2);
                if (c.between().connections() < least_connections)
                    wrong[i] += "no other connection was made; ";
                c.end();
            } catch (std::exception const& why) {
                wrong[i] = why.what();
            }
            places.release();
        });
    }
    for (std::thread& each : all) each.join();
    for (std::size_t i = 0; i < count; ++i) {
        INFO("conversation " << i << ", protection " << static_cast<int>(by_number(i)));
        CHECK(wrong[i] == "");
    }
}

TEST_CASE("resume: a connection falls silent at any byte, and every call ends as if it had not") {
    if (!can_be_deaf()) return;
    // Some 70 bytes a message, three rounds: every message of both ways.
    at_every_byte(200, 2, [](relay& r, std::size_t i) {
        r.silence_first((i / 4) % 2 == 1, 1 + i / 8 * 9 + i % 4 * 2);
    });
}

TEST_CASE("resume: the connection that is to take the place falls silent at any byte, too") {
    if (!can_be_deaf()) return;
    // Knock, challenge, resume, admission, and `resumed` twice: some 290 bytes to rank 0, and 240 from there, with what is repeated.
    at_every_byte(200, 3, [](relay& r, std::size_t i) {
        r.silence_first((i / 8) % 2 == 1, 40);
        r.silence(1, (i / 4) % 2 == 1, 1 + i / 8 * 9 + i % 4 * 2);
    });
}

/// A real rank 0 of three; ranks 1 and 2 are the test's, and have joined.
struct scene {
    listener hub{};
    std::optional<world> here{};
    control_peer first{}, other{};
    bool has_secret;

    explicit scene(bool with_secret, milliseconds peer_timeout = plenty) : has_secret(with_secret) {
        std::jthread joins([&] {
            here.emplace(join(0, 3, hub.socket, hub.at, has_secret ? protection::tags : protection::none,
                              peer_timeout, milliseconds(20)));
        });
        std::jthread second([&] { other.join(2, 3, hub.at, by()); });
        first.join(1, 3, hub.at, by());
        second.join();
        joins.join();
    }
    ~scene() {
        for (control_peer* const each : {&first, &other}) each->close();
        here.reset();
    }
    detail::secret const* by() const { return has_secret ? &our_secret() : nullptr; }
    detail::secret_key const* key() const { return has_secret ? &*first.resumption_key : nullptr; }
    /// Rank 0 still hears, and answers, over that connection.
    bool lives(control_peer& over) {
        over.say(kind::heartbeat);
        over.await(kind::heartbeat);
        return here->failed() == nullptr;
    }
};

TEST_CASE("resume: where too much was said to carry on, the rank is lost after its silence, however often it "
          "comes again") {
    if (!can_be_deaf()) return;
    conversation c(protection::none, milliseconds(2'000));
    REQUIRE(c.talk(1) == "");
    c.between().silence_first(false, 100'000);
    std::vector<std::byte> const mine(800'000); // the result is more than a log keeps
    std::array<errc, 2> ended{};
    auto const from = herring::clock::now();
    auto const call = [&](std::size_t rank) {
        try {
            (void)c.rank(rank).all_gather(mine, plenty);
        } catch (herring::error const& why) {
            ended[rank] = why.code();
        }
        if (rank == 0)
            while (c.rank(0).failed() == nullptr && herring::clock::now() < from + plenty)
                std::this_thread::sleep_for(milliseconds(10));
    };
    std::jthread other([&] { call(1); });
    call(0);
    REQUIRE(c.rank(0).failed() != nullptr);
    CHECK(c.rank(0).failed()->what == errc::peer_lost);
    other.join();
    CHECK(herring::clock::now() - from < plenty / 2); // both
    CHECK(ended[1] == errc::peer_lost);
    CHECK(c.between().connections() > 1);
}

TEST_CASE("resume: who has not made the handshake of a rank does not get its place, whatever it knows") {
    for (bool const has_secret : {true, false}) {
        CAPTURE(has_secret);
        scene s(has_secret);
        auto const refused = [&](char const* what, wire::resume const& said, detail::secret_key const* by) {
            CAPTURE(what);
            control_peer stranger;
            CHECK_FALSE(stranger.resume(s.first, said, by, s.hub.at));
            CHECK(s.lives(s.first));
        };
        wire::resume const right = s.first.resume_of(2);
        wire::resume said = right;
        ++said.incarnation;
        refused("another incarnation", said, s.key());
        said = right;
        ++said.job;
        refused("another job", said, s.key());
        said = right;
        said.attempt = 0;
        refused("no newer than what there is", said, s.key());
        if (!has_secret) continue;
        refused("no proof", right, nullptr);
        detail::secret_key const of_secret = our_secret().key({});
        refused("the secret, and nothing of the handshake", right, &of_secret);
        refused("another rank's handshake", right, &*s.other.resumption_key);
        said = right;
        said.rank = 2;
        refused("as another rank", said, s.key());
        said.rank = 0;
        refused("as rank 0", said, s.key());
        said.rank = 7;
        refused("as a rank that is none", said, s.key());
    }
}

TEST_CASE("resume: what was recorded of one proves nothing") {
    scene s(true);
    control_peer real;
    real.connect(s.hub.at);
    real.rank = 1;
    real.knock();
    detail::byte_buffer const words = real.proven(s.first.resume_of(1), s.key());
    real.close(); // unsent: even what rank 0 has never seen
    control_peer replayed;
    replayed.connect(s.hub.at);
    replayed.rank = 1;
    replayed.knock();
    replayed.say(kind::resume, 0, words);
    CHECK_FALSE(replayed.hear().has_value());
    CHECK(s.lives(s.first));
}

TEST_CASE("resume: until it has said what it has taken, a candidate counts for nothing") {
    for (bool const has_secret : {true, false}) {
        CAPTURE(has_secret);
        scene s(has_secret);
        failure const lie = failure::make(errc::peer_failed, 1, -1, "test", "a candidate said so");
        struct word {
            kind what;
            std::uint64_t sequence;
            detail::byte_buffer body;
        };
        std::array<word, 5> const words{{{kind::fail, 0, wire::write_failure(lie)},
                                         {kind::leave, 0, {}},
                                         {kind::resumed, 1'000, {}}, // that many there were not
                                         {kind::barrier, 1, {}},
                                         {kind::hello, 0, {}}}};
        std::uint64_t attempt = 0;
        for (word const& each : words) {
            CAPTURE(static_cast<int>(each.what));
            control_peer candidate;
            REQUIRE(candidate.resume(s.first, s.first.resume_of(++attempt), s.key(), s.hub.at));
            candidate.say(each.what, each.sequence, each.body);
            CHECK_FALSE(candidate.hear().has_value());
            CHECK(s.lives(s.first));
        }
    }
}

TEST_CASE("resume: the newest connection wins, the one before it ends nobody, and nothing is said twice") {
    for (bool const has_secret : {true, false}) {
        CAPTURE(has_secret);
        scene s(has_secret, milliseconds(2'000)); // 200 ms between two
        std::thread calls([&] { s.here->barrier(plenty); });
        s.first.say(kind::barrier, 1);
        s.other.say(kind::barrier, 1);
        s.first.await(kind::collective_result); // message 1
        calls.join();

        control_peer second;
        REQUIRE(second.resume(s.first, s.first.resume_of(1), s.key(), s.hub.at));
        second.say(kind::resumed, 0);                                     // as if the result had not come
        CHECK(second.await(kind::resumed).front.sequence == 1);           // the barrier has
        CHECK(second.await(kind::collective_result).front.sequence == 1); // it is repeated
        CHECK_FALSE([&] {                                                 // rank 0 has closed the first one
            while (s.first.hear()) {
            }
            return s.first.hear().has_value();
        }());
        s.first.close();
        s.other.say(kind::heartbeat);
        second.say(kind::heartbeat, 1); // and is not repeated again, once it is acknowledged
        second.await(kind::heartbeat);

        control_peer hasty;
        CHECK_FALSE(hasty.resume(s.first, s.first.resume_of(1), s.key(), s.hub.at)); // as old as that one
        std::optional<control_peer> third;
        for (bool in = false; !in;) { // not at once: how often is bounded
            second.say(kind::heartbeat, 1);
            s.other.say(kind::heartbeat);
            third.emplace();
            in = third->resume(s.first, s.first.resume_of(2), s.key(), s.hub.at);
            REQUIRE(s.here->failed() == nullptr);
        }
        third->say(kind::resumed, 1);
        third->await(kind::resumed);
        for (int beats = 0; beats < 2;) {
            std::optional<control_peer::heard> const next = third->hear();
            REQUIRE(next.has_value());
            CHECK(next->front.type != kind::collective_result);
            beats += next->front.type == kind::heartbeat;
            third->say(kind::heartbeat, 1);
            s.other.say(kind::heartbeat);
        }
        // What this rank says over the newest one counts.
        third->say(kind::fail, 0,
                   wire::write_failure(failure::make(errc::peer_failed, 1, -1, "test", "over the third")));
        auto const until = herring::clock::now() + plenty;
        while (s.here->failed() == nullptr && herring::clock::now() < until)
            std::this_thread::sleep_for(milliseconds(1));
        REQUIRE(s.here->failed() != nullptr);
        CHECK(std::strstr(s.here->failed()->text, "over the third") != nullptr);
    }
}

TEST_CASE("resume: the end of the connection in place is a death at once, while a candidate waits") {
    scene s(true);
    control_peer candidate;
    REQUIRE(candidate.resume(s.first, s.first.resume_of(1), s.key(), s.hub.at));
    auto const begun = herring::clock::now();
    s.first.close();
    while (s.here->failed() == nullptr && herring::clock::now() - begun < plenty / 2)
        std::this_thread::sleep_for(milliseconds(1));
    REQUIRE(s.here->failed() != nullptr);
    CHECK(s.here->failed()->peer == 1);
}

TEST_CASE("resume: a connection that rank 0's kernel has given up is no death of a rank that others hear") {
    if (!can_be_deaf()) return;
    constexpr milliseconds bound{600};
    scene s(true, bound);
    detail::wire::signs_of_life heard;
    heard.add(1, 3);
    std::jthread vouches([&](std::stop_token const& enough) {
        try {
            while (!enough.stop_requested()) {
                s.other.say(kind::heartbeat, 0, heard.write());
                std::this_thread::sleep_for(milliseconds(10));
            }
        } catch (std::exception const&) {
            // Rank 0 has failed, and the test says so.
        }
    });
    REQUIRE(set_deaf(s.first.socket, true));
    auto const end = herring::clock::now() + 8 * bound; // after 5 it is given up
    while (s.here->failed() == nullptr && herring::clock::now() < end)
        std::this_thread::sleep_for(milliseconds(1));
    CHECK(s.here->failed() == nullptr);
    control_peer second;
    CHECK(second.resume(s.first, s.first.resume_of(1), s.key(), s.hub.at));
    second.say(kind::resumed, 0);
    second.await(kind::resumed);
    second.await(kind::heartbeat);
    vouches.request_stop();
    vouches.join();
    CHECK(s.here->failed() == nullptr);
}

TEST_CASE("resume: a false rank 0 gets no rank to carry on with it, and the rank goes on where it was") {
    if (!can_be_deaf()) return;
    listener hub;
    control_peer rank_0;
    std::optional<world> rank_1;
    std::jthread joins([&] { rank_1.emplace(join(1, 2, -1, hub.at, protection::tags, plenty)); });
    rank_0.let_in(hub.socket, &our_secret());
    std::vector<int> const zeroes(2);
    herring::failure_detector_options times{.peer_timeout = milliseconds(2'000),
                                            .heartbeat = milliseconds(20)};
    rank_0.say(kind::welcome, 0,
               wire::welcome{1, detail::resolve({.detector = times}), zeroes, zeroes}.write());
    joins.join();
    REQUIRE(set_deaf(rank_0.socket, true));
    detail::secret_key const of_secret = our_secret().key({});
    for (int times_tried = 0; times_tried < 2; ++times_tried) {
        control_peer nobody;
        nobody.accept(hub.socket);
        nobody.await(kind::knock);
        wire::challenge asks;
        asks.nonce = detail::random_nonce();
        asks.has_secret = true;
        nobody.challenge = asks.write();
        nobody.say(kind::challenge, 0, nobody.challenge);
        auto const said = nobody.await(kind::resume);
        wire::admit told;
        wire::handshake const guess(wire::rank_names, of_secret, nobody.challenge,
                                    std::span(said.body).first(said.body.size() - wire::proof_bytes));
        told.proof = guess.proof_of_acceptor(told.wrapped);
        nobody.say(kind::admit, 0, told.write());
        CHECK_FALSE(nobody.hear().has_value());
    }
    (void)::setsockopt(rank_0.socket, SOL_SOCKET, SO_DETACH_FILTER, &hub.socket, sizeof hub.socket);
    rank_0.say(kind::heartbeat);
    rank_0.await(kind::heartbeat);
    CHECK(rank_1->failed() == nullptr);
    std::jthread leaves([&] { rank_1.reset(); });
    rank_0.await(kind::leave); // one that has heard rank 0 leave need not say so
    rank_0.say(kind::leave);
    rank_0.close();
    leaves.join();
    ::close(hub.socket);
}

TEST_CASE("resume: an acknowledgement of what was not sent is a wrong message") {
    scene s(true);
    s.first.say(kind::heartbeat, 7);
    auto const until = herring::clock::now() + plenty;
    while (s.here->failed() == nullptr && herring::clock::now() < until)
        std::this_thread::sleep_for(milliseconds(1));
    REQUIRE(s.here->failed() != nullptr);
    CHECK(s.here->failed()->what == errc::protocol);
    CHECK(s.here->failed()->peer == 1);
}

} // namespace resume_tests
