// herring: real processes that join over real sockets: places, deaths, refusals, junk.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join.hpp"

#include "control_peer.hpp"
#include "doctest/doctest.h"
#include "free_port.hpp"
#include "herring/join/join_as.hpp"
#include "herring/launch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

using herring::errc;
using herring::launch;
using herring::world;
using std::chrono::milliseconds;
namespace detail = herring::detail;
namespace wire = herring::detail::wire;

namespace {

// Longer than anything here takes: only a defect waits for it.
constexpr milliseconds plenty{30'000};

// In a forked rank a failed CHECK would be nobody's; an exception is the launch's status.
void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

struct quiet {
    int saved = ::dup(2);
    quiet() {
        int const null = ::open("/dev/null", O_WRONLY);
        ::dup2(null, 2);
        ::close(null);
    }
    ~quiet() {
        ::dup2(saved, 2);
        ::close(saved);
    }
};

detail::endpoint literal(std::string const& host, std::uint16_t port) {
    std::string why;
    auto const found = detail::resolve(host, port, herring::clock::now() + plenty, why);
    require(!found.empty(), host + " resolves");
    return found[0];
}

herring::join_options as(int rank, int size, std::string const& address, milliseconds timeout = plenty) {
    herring::join_options made;
    made.rank = rank;
    made.size = size;
    made.address = address;
    made.timeout = timeout;
    return made;
}

template <class Function> herring::failure thrown_by(Function&& f) {
    try {
        f();
    } catch (herring::error const& why) {
        return why.why();
    }
    throw std::runtime_error("not so: it throws");
}

void expect(herring::failure const& why, errc code, int local_rank, int peer,
            std::vector<std::string> const& parts) {
    std::string const text = why.message();
    require(why.what == code, std::string("code ") + herring::to_string(code) + " in: " + text);
    require(why.reporter == local_rank, "local rank " + std::to_string(local_rank) + " in: " + text);
    require(why.peer == peer, "peer " + std::to_string(peer) + " in: " + text);
    for (std::string const& part : parts)
        require(text.find(part) != std::string::npos, "'" + part + "' in: " + text);
}

void gathers(world& w) {
    for (int round = 0; round < 4; ++round) {
        auto const bytes = [&](int rank) {
            std::size_t const size = round == 0 ? 0 : static_cast<std::size_t>(rank * 40'009 + round * 13);
            return std::vector<std::byte>(size, static_cast<std::byte>(rank * 16 + round));
        };
        auto const all = w.all_gather(bytes(w.rank()));
        require(static_cast<int>(all.size()) == w.size(), "one answer a rank");
        for (int r = 0; r < w.size(); ++r)
            require(std::ranges::equal(all[static_cast<std::size_t>(r)], bytes(r)), "what was given");
        w.barrier();
    }
}

/// A plain blocking connection to the rendezvous port, for those who are no rank.
struct outsider {
    int socket = -1;
    explicit outsider(std::string const& address) {
        auto const at = detail::split_address(address, "test");
        detail::endpoint const to = literal(at.host, at.port);
        auto const until = herring::clock::now() + plenty;
        while (herring::clock::now() < until) {
            socket = ::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (::connect(socket, to.get(), to.size) == 0) return;
            ::close(socket);
            socket = -1;
            ::sched_yield(); // rank 0 is about to listen
        }
        throw std::runtime_error("not so: rank 0 listens");
    }
    outsider(outsider&& other) noexcept : socket(other.socket) { other.socket = -1; }
    outsider(outsider const&) = delete;
    ~outsider() {
        if (socket >= 0) ::close(socket);
    }
    void say(std::span<std::byte const> bytes) const {
        [[maybe_unused]] auto const n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
    std::vector<std::byte> hear() const {
        std::vector<std::byte> heard;
        std::byte bytes[512];
        pollfd ready{socket, POLLIN, 0};
        while (::poll(&ready, 1, static_cast<int>(plenty.count())) == 1) {
            ssize_t const n = ::recv(socket, bytes, sizeof bytes, 0);
            if (n <= 0) break;
            heard.insert(heard.end(), bytes, bytes + n);
        }
        return heard;
    }
    herring::failure refusal() const {
        std::vector<std::byte> const heard = hear();
        wire::head h;
        require(h.read(heard) && h.type == wire::message_kind::refuse, "a refusal");
        herring::failure why;
        require(wire::read_failure(std::span<std::byte const>(heard).subspan(wire::head_bytes), 1000, why),
                "a readable refusal");
        return why;
    }
};

detail::endpoint place(std::string const& address) {
    auto const at = detail::split_address(address, "test");
    return literal(at.host, at.port);
}

/// A hello as a rank of the last version sent it, before anything else.
detail::byte_buffer hello_of_version(std::uint16_t version) {
    detail::byte_buffer out;
    wire::append_message(out, wire::message_kind::hello, 2, 0, std::vector<std::byte>(80), version);
    return out;
}

std::string const secrets[] = {std::string(64, '1'), std::string(64, '2')};
detail::secret const first_secret(secrets[0]);

/// What rank 0 says to a hello with the first secret.
herring::failure refusal_of(std::string const& address, std::uint32_t rank, std::uint32_t size) {
    control_peer other;
    other.connect(place(address));
    auto const reply = other.greet(control_peer::hello_of(rank, size), &first_secret);
    require(reply.front.type == wire::message_kind::refuse, "a refusal");
    std::span<std::byte const> words;
    wire::proof shown{};
    herring::failure why;
    require(wire::split_proof(reply.body, words, shown) &&
                shown == other.seen->proof_of_refusal(wire::refusal_front(0), words) &&
                wire::read_failure(words, 1000, why),
            "a readable refusal, with rank 0's proof");
    return why;
}

void gather_once(herring::join_options const& options) {
    world w = herring::join(options);
    gathers(w);
}

/// An order between processes that do not share a world yet.
struct steps {
    std::atomic<int>* at = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    steps() = default;
    steps(steps const&) = delete;
    ~steps() { ::munmap(at, 4096); }
    void reach(int step) const { at->store(step); }
    void await(int step) const {
        auto const until = herring::clock::now() + plenty;
        while (at->load() < step) {
            if (herring::clock::now() > until)
                throw std::runtime_error("not so: step " + std::to_string(step));
            ::sched_yield();
        }
    }
};

} // namespace

TEST_CASE("join: ranks get their places, nodes and collectives") {
    for (int const n : {1, 2, 3, 4, 7}) {
        CAPTURE(n);
        std::string const address = free_address();
        CHECK(launch(n, [&](world& l) {
                  herring::join_options options = as(l.rank(), n, address);
                  options.node = l.rank() % 3 == 0 ? "first" : "second"; // uneven
                  world w = herring::join(options);
                  require(w.rank() == l.rank() && w.size() == n, "place");
                  require(w.nodes() == (n == 1 ? 1 : 2), "nodes");
                  require(w.node() == (l.rank() % 3 == 0 ? 0 : 1), "node");
                  require(w.ranks_on_this_machine() == n, "ranks on this machine");
                  require(w.local_address() == "127.0.0.1", "address");
                  std::uint64_t const job = w.job();
                  for (auto const& theirs : w.all_gather(std::as_bytes(std::span(&job, 1))))
                      require(std::memcmp(theirs.data(), &job, sizeof job) == 0, "one job");
                  gathers(w);
              }) == 0);
    }
}

TEST_CASE("join: racks are declared by all ranks or by none, and every rank hears what is wrong") {
    auto const with_racks = [](std::vector<std::string> const& racks, auto const& check) {
        std::string const address = free_address();
        CHECK(launch(static_cast<int>(racks.size()), [&](world& l) {
                  herring::join_options options = as(l.rank(), l.size(), address);
                  options.node = l.rank() == 3 ? "n1" : "n" + std::to_string(l.rank());
                  options.rack = racks[static_cast<std::size_t>(l.rank())];
                  check(options);
              }) == 0);
    };
    with_racks({"x", "y", "x", "y"}, [](auto const& options) {
        world w = herring::join(options);
        int const nodes[] = {0, 2, 1, 2};
        require(w.topology().racks() == 2 && w.node() == nodes[w.rank()], "nodes rack by rack");
        gathers(w);
    });
    auto const refused = [&](std::vector<std::string> const& racks, int wrong, std::string const& words) {
        with_racks(racks, [&](auto const& options) {
            expect(thrown_by([&] { herring::join(options); }), errc::mismatch, options.rank, wrong, {words});
        });
    };
    refused({"x", "y", "", "y"}, 2, "rank 0 is in rack 'x', rank 2 in no rack");
    refused({"x", "y", "x", "z"}, 3, "rank 1 is in rack 'y', rank 3 of the same node in rack 'z'");
    refused({"x", std::string(99, 'y'), "x", "y"}, 1, "the rack of rank 1, 'yyyy");
}

TEST_CASE("join: without a node's name, ranks of one host share a node; names and IPv6 work") {
    for (std::string const host : {"::1", "localhost"}) {
        CAPTURE(host);
        std::string const v6 = host == "::1" ? free_address("::1") : free_address();
        if (v6.empty()) continue; // no IPv6 here
        std::string const address = host == "::1" ? v6 : "localhost" + v6.substr(v6.rfind(':'));
        CHECK(launch(3, [&](world& l) {
                  world w = herring::join(as(l.rank(), 3, address));
                  require(w.nodes() == 1 && w.local_size() == 3, "one node");
                  if (host == "::1") require(w.local_address() == "::1", "address " + w.local_address());
                  gathers(w);
              }) == 0);
    }
}

TEST_CASE("join: a world that is joined again and again on one port") {
    std::string const address = free_address();
    CHECK(launch(3, [&](world& l) {
              for (int round = 0; round < 20; ++round) {
                  world w = herring::join(as(l.rank(), 3, address));
                  w.barrier();
              }
          }) == 0);
}

TEST_CASE("join: a rank that is killed is named to all others, waiting or not") {
    quiet const hush;
    for (int const victim : {0, 1, 3}) {
        for (bool const waiting : {true, false}) {
            CAPTURE(victim);
            CAPTURE(waiting);
            std::string const address = free_address();
            // The launch would tell them as well: only the star's word counts, so nobody asks `l`.
            int const status = launch(4, [&](world& l) {
                world w = herring::join(as(l.rank(), 4, address));
                w.barrier();
                if (w.rank() == victim) ::kill(::getpid(), SIGKILL);
                if (waiting) {
                    expect(thrown_by([&] { w.barrier(plenty); }), errc::peer_lost, w.rank(), victim,
                           {"barrier", "closed"});
                } else {
                    auto const until = herring::clock::now() + plenty;
                    while (w.failed() == nullptr && herring::clock::now() < until) ::sched_yield();
                    require(w.failed() != nullptr && w.failed()->peer == victim, "the victim is named");
                }
                // From now on every call says so at once.
                expect(thrown_by([&] { w.all_gather({}, plenty); }), errc::peer_lost, w.rank(), victim, {});
            });
            CHECK(status == 128 + SIGKILL);
        }
    }
}

TEST_CASE("join: a rank that is missing at the deadline is named on every rank") {
    std::string const address = free_address();
    CHECK(launch(4, [&](world& l) {
              if (l.rank() == 2) return;
              expect(thrown_by([&] { herring::join(as(l.rank(), 4, address, milliseconds(300))); }),
                     errc::timeout, l.rank(), 2, {"rank 2 did not join", address, "300 ms"});
          }) == 0);
    // Rank 0 itself.
    CHECK(launch(3, [&](world& l) {
              if (l.rank() == 0) return;
              expect(thrown_by([&] { herring::join(as(l.rank(), 3, address, milliseconds(100))); }),
                     errc::timeout, l.rank(), 0, {"no answer from rank 0", address, "Connection refused"});
          }) == 0);
}

TEST_CASE("join: rank 0's times hold for every rank that gives none") {
    std::string const address = free_address();
    CHECK(launch(3, [&](world& l) {
              herring::join_options options = as(l.rank(), 3, address);
              if (l.rank() == 0) options.failure_detector.peer_timeout = milliseconds(2'500);
              if (l.rank() != 1) options.default_timeout = milliseconds(300); // the same on two
              world w = herring::join(options);
              require(w.peer_timeout() == milliseconds(2'500), "rank 0's peer_timeout");
              require(w.default_timeout() == milliseconds(300), "rank 0's default_timeout");
              w.barrier(plenty);
              if (w.rank() == 2) {
                  while (w.failed() == nullptr) ::sched_yield();
                  return;
              }
              auto const before = std::chrono::steady_clock::now();
              expect(thrown_by([&] { w.barrier(); }), errc::timeout, w.rank(), 2, {"did not come within"});
              require(std::chrono::steady_clock::now() - before < milliseconds(15'000), // half of the default
                      "a barrier within rank 0's default_timeout");
          }) == 0);
}

TEST_CASE("join: a rank that gives other times than rank 0 is refused by name") {
    std::string const address = free_address();
    CHECK(launch(2, [&](world& l) {
              if (l.rank() == 0) {
                  herring::join_options options = as(0, 2, address, milliseconds(700));
                  options.default_timeout = herring::never;
                  expect(thrown_by([&] { herring::join(options); }), errc::timeout, 0, 1,
                         {"rank 1 (", "was refused: its default_timeout"});
                  return;
              }
              herring::join_options options = as(1, 2, address);
              options.failure_detector.peer_timeout = milliseconds(700);
              expect(thrown_by([&] { herring::join(options); }), errc::mismatch, 1, 0,
                     {"its peer_timeout (HERRING_PEER_TIMEOUT) is 700 ms, rank 0's is 5 s", "rank 0 alone"});
              options.failure_detector.peer_timeout = milliseconds(5'000); // what rank 0 has by default
              options.default_timeout = milliseconds(250);
              expect(thrown_by([&] { herring::join(options); }), errc::mismatch, 1, 0,
                     {"its default_timeout (HERRING_DEFAULT_TIMEOUT) is 250 ms, rank 0's is never"});
          }) == 0);
}

TEST_CASE("join: rank 0's links hold for every rank that gives none, and for groups") {
    std::string const address = free_address();
    herring::links const given{.latency_ns = 10'000, .rate_mbit = 100'000};
    CHECK(launch(3, [&](world& l) {
              herring::join_options options = as(l.rank(), 3, address);
              if (l.rank() != 1) options.links = given; // the same on two
              world w = herring::join(options);
              require(w.links() == given, "rank 0's links");
              require(w.split(0).links() == given, "those of the world");
              w.barrier(plenty);
          }) == 0);
}

TEST_CASE("join: a rank with other links than rank 0 ends the world, with both on every rank") {
    for (bool const rank_0_has : {true, false}) {
        std::string const address = free_address();
        std::string const both =
            std::string("rank 1 has links rate=25000, rank 0 has ") + (rank_0_has ? "rate=100000" : "none");
        CHECK(launch(3, [&](world& l) {
                  herring::join_options options = as(l.rank(), 3, address);
                  if (l.rank() == 0 && rank_0_has) options.links.rate_mbit = 100'000;
                  if (l.rank() == 1) options.links.rate_mbit = 25'000;
                  herring::failure const why = thrown_by([&] {
                      world w = herring::join(options);
                      w.barrier(plenty);
                  });
                  require(why.what == errc::mismatch, why.message());
                  require(std::string(why.message()).find(both) != std::string::npos, why.message());
              }) == 0);
    }
}

TEST_CASE("join: a probe that rank 0 asks for gives all ranks the same links") {
    std::string const address = free_address();
    CHECK(launch(4, [&](world& l) {
              herring::join_options options = as(l.rank(), 4, address);
              options.node = std::to_string(l.rank());
              if (l.rank() == 0) options.links = {.latency_ns = 12'345, .probe = true};
              world w = herring::join(options);
              herring::links const mine = w.links();
              require(mine.latency_ns == 12'345 && mine.probe, "what is declared stays");
              std::uint32_t const figures[] = {mine.send_ns, mine.receive_ns, mine.rate_mbit};
              auto const all = w.all_gather(std::as_bytes(std::span(figures)));
              for (auto const& one : all)
                  require(std::ranges::equal(one, std::as_bytes(std::span(figures))),
                          "the same on all ranks");
          }) == 0);
}

TEST_CASE("join: who does not fit is refused with the reason, and the others join") {
    // Ranks 0 to 2 become the world; process 3 tries what is wrong, before and after.
    std::string const address = free_address();
    steps const step;
    CHECK(launch(4, [&](world& l) {
              if (l.rank() < 3) {
                  if (l.rank() == 2) step.await(1);
                  herring::join_options options = as(l.rank(), 3, address);
                  options.secret = secrets[0];
                  world w = herring::join(options);
                  gathers(w);
                  if (l.rank() == 0) step.reach(2);
                  step.await(3);
                  gathers(w);
                  return;
              }
              auto const tried = [&](int rank, int size, std::string const& secret) {
                  herring::join_options options = as(rank, size, address);
                  if (!secret.empty()) options.secret = secret;
                  return thrown_by([&] { herring::join(options); });
              };
              expect(tried(2, 5, secrets[0]), errc::mismatch, 2, 0, {"5 ranks", "rank 0 says 3"});
              expect(tried(4, 5, secrets[0]), errc::mismatch, 4, 0, {"5 ranks", "rank 0 says 3"});
              expect(tried(2, 3, secrets[1]), errc::mismatch, 2, 0, {"its secret is not rank 0's"});
              expect(tried(2, 3, ""), errc::mismatch, 2, 0, {"rank 0 has a secret, it has none"});
              {
                  outsider const other(address);
                  other.say(hello_of_version(77));
                  expect(other.refusal(), errc::mismatch, 2, 0, {"version 77", "version 7"});
              }
              expect(refusal_of(address, 9, 3), errc::refused, 9, 0, {"rank 9 is out of range", "0 to 2"});
              expect(refusal_of(address, 0, 3), errc::refused, 0, 0, {"rank 0 has already joined"});
              step.reach(1);
              step.await(2);
              expect(tried(1, 3, secrets[0]), errc::refused, 1, 0,
                     {"rank 1 has already joined from 127.0.0.1:"});
              expect(tried(2, 3, secrets[1]), errc::mismatch, 2, 0, {"its secret is not rank 0's"});
              step.reach(3);
          }) == 0);
}

TEST_CASE("join: rank 0 says first who was refused and why, then who is missing") {
    std::string const address = free_address();
    CHECK(launch(2, [&](world& l) {
              herring::join_options options =
                  as(l.rank(), 2, address, milliseconds(l.rank() == 0 ? 500 : 5'000));
              options.secret = secrets[l.rank()];
              herring::failure const why = thrown_by([&] { herring::join(options); });
              if (l.rank() == 1) return expect(why, errc::mismatch, 1, 0, {"its secret is not rank 0's"});
              expect(why, errc::timeout, 0, 1,
                     {"was refused: its secret is not rank 0's", "rank 1 did not join"});
              std::string const text = why.text;
              require(text.starts_with("rank 1 (127.0.0.1:"), "who was refused comes first: " + text);
              require(text.find("was refused") < text.find("did not join"),
                      "the reason comes first: " + text);
          }) == 0);
}

TEST_CASE("join: who comes first keeps its place, before the world is complete") {
    std::string const address = free_address();
    steps const step;
    CHECK(launch(4, [&](world& l) {
              // Processes 2 and 3 are both rank 1 of 3, and one of them is turned away; then rank 2 comes.
              if (l.rank() == 0) {
                  gather_once(as(0, 3, address));
              } else if (l.rank() == 1) {
                  step.await(1);
                  gather_once(as(2, 3, address));
              } else {
                  try {
                      gather_once(as(1, 3, address));
                  } catch (herring::error const& why) {
                      expect(why.why(), errc::refused, 1, 0, {"rank 1 has already joined from 127.0.0.1:"});
                      step.reach(1);
                  }
              }
          }) == 0);
}

TEST_CASE("join: a rank that dies before all are there may be started again") {
    std::string const address = free_address();
    steps const step;
    CHECK(launch(3, [&](world& l) {
              if (l.rank() == 2) {
                  {
                      outsider const comes_first(address); // rank 0 listens
                      control_peer dies;
                      dies.connect(place(address));
                      dies.greet(control_peer::hello_of(1, 3));
                      dies.await(wire::message_kind::still_waiting_for); // once a second: it has a place
                  }
                  step.reach(1);
              } else if (l.rank() == 1) {
                  step.await(1);
              }
              gather_once(as(l.rank(), 3, address));
          }) == 0);
}

TEST_CASE("join: junk, silence and scans are survived, before and after") {
    std::string const address = free_address();
    steps const step;
    CHECK(launch(3, [&](world& l) {
              if (l.rank() < 2) {
                  if (l.rank() == 1) step.await(1);
                  world w = herring::join(as(l.rank(), 2, address));
                  gathers(w);
                  if (l.rank() == 0) step.reach(2);
                  step.await(3);
                  gathers(w);
                  return;
              }
              std::vector<outsider> silent;
              for (int i = 0; i < 200; ++i) silent.emplace_back(address);
              std::uint64_t seed = 1;
              for (int i = 0; i < 100; ++i) {
                  outsider const junk(address);
                  std::vector<std::byte> bytes(static_cast<std::size_t>(i) * 40);
                  for (std::byte& b : bytes)
                      b = static_cast<std::byte>((seed = seed * 6364136223846793005u + 1) >> 56);
                  junk.say(bytes);
              }
              for (std::size_t size = 0; size < 60; size += 7)
                  outsider(address).say(std::span<std::byte const>(hello_of_version(3)).first(size));
              { // a right head that announces more than a stranger may send
                  outsider const bomb(address);
                  herring::detail::byte_buffer bytes;
                  wire::append_message(bytes, wire::message_kind::hello, 1, 0, std::vector<std::byte>(5000));
                  bomb.say(bytes);
                  require(bomb.hear().empty(), "no answer to a bomb");
              }
              { // a right head of a message that is not for strangers
                  outsider const odd(address);
                  herring::detail::byte_buffer bytes;
                  wire::append_message(bytes, wire::message_kind::contribute, 1, 0, {});
                  odd.say(bytes);
                  require(odd.hear().empty(), "no answer to a stranger");
              }
              for (int i = 0; i < 70; ++i) silent.emplace_back(address);
              step.reach(1);
              step.await(2);
              for (int i = 0; i < 50; ++i) {
                  control_peer late;
                  late.connect(place(address));
                  require(late.greet(control_peer::hello_of(1, 3)).front.type == wire::message_kind::refuse,
                          "a refusal");
              }
              step.reach(3);
          }) == 0);
}

TEST_CASE("join: a member that sends nonsense ends the world with its name") {
    std::string const address = free_address();
    CHECK(launch(3, [&](world& l) {
              if (l.rank() == 2) {
                  outsider const comes_first(address); // rank 0 listens
                  control_peer rank_2;
                  rank_2.join(2, 3, place(address));
                  rank_2.say(wire::message_kind::contribute, 99); // out of turn
                  while (rank_2.hear()) {
                  }
                  return;
              }
              world w = herring::join(as(l.rank(), 3, address));
              expect(thrown_by([&] { w.barrier(plenty); }), errc::protocol, w.rank(), 2, {"out of turn"});
          }) == 0);
}

TEST_CASE("join: a rank that leaves is no failure, until someone waits for it") {
    for (int const leaver : {0, 1, 2}) {
        CAPTURE(leaver);
        std::string const address = free_address();
        CHECK(launch(3, [&](world& l) {
                  world w = herring::join(as(l.rank(), 3, address));
                  w.barrier();
                  if (l.rank() == leaver) w = world(); // leaves
                  l.barrier(plenty);
                  require(w.failed() == nullptr, "leaving is no failure");
                  l.barrier(plenty);
                  if (l.rank() != leaver)
                      expect(thrown_by([&] { w.barrier(plenty); }), errc::peer_lost, l.rank(), leaver,
                             {"left"});
              }) == 0);
    }
}

TEST_CASE("join: who comes back to a world that goes on is told so at its deadline") {
    std::string const address = free_address();
    CHECK(launch(3, [&](world& l) {
              {
                  world w = herring::join(as(l.rank(), 3, address));
                  w.barrier();
                  if (l.rank() != 1) {
                      l.barrier(plenty);
                      return;
                  }
              }
              expect(thrown_by([&] { herring::join(as(1, 3, address, milliseconds(100))); }), errc::timeout,
                     1, 0, {"the world is complete and rank 1 has left it"});
              l.barrier(plenty);
          }) == 0);
}

TEST_CASE("join: a deadline in a collective names who did not come, on every rank") {
    for (int const late : {0, 1}) {
        CAPTURE(late);
        std::string const address = free_address();
        CHECK(launch(3, [&](world& l) {
                  world w = herring::join(as(l.rank(), 3, address));
                  if (l.rank() != late)
                      expect(thrown_by([&] { w.barrier(milliseconds(100)); }), errc::timeout, l.rank(), late,
                             {late == 0 ? "rank 0" : "rank 1 did not come"});
                  l.barrier(plenty);
                  expect(thrown_by([&] { w.barrier(plenty); }), errc::timeout, l.rank(), late, {});
                  l.barrier(plenty);
              }) == 0);
    }
}

TEST_CASE("join: different collectives at once, and announced failures, end every rank's calls") {
    std::string const address = free_address();
    CHECK(launch(3, [&](world& l) {
              {
                  world w = herring::join(as(l.rank(), 3, address));
                  herring::failure const why = thrown_by([&] {
                      if (l.rank() == 1)
                          w.barrier(plenty);
                      else
                          w.all_gather({}, plenty);
                      w.barrier(plenty);
                  });
                  require(why.what == errc::mismatch && why.reporter == l.rank(), why.message());
                  l.barrier(plenty);
              }
              world w = herring::join(as(l.rank(), 3, address));
              if (l.rank() == 2)
                  w.fail(herring::failure::make(errc::device, 2, -1, "all_reduce", "on purpose"));
              if (l.rank() != 2)
                  expect(thrown_by([&] { w.barrier(plenty); }), errc::peer_failed, l.rank(), 2,
                         {"on purpose"});
              l.barrier(plenty);
          }) == 0);
}
