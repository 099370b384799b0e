// herring: the code of docs/writing-a-policy.md: a transport and a fusion policy of one's own, at work.
// SPDX-License-Identifier: Apache-2.0
// Own object: it specialises a template of the library.
//
// What stands between [snippet] and [end] is shown on that page; tests/docs/check_snippets.sh compares.
#include "doctest/doctest.h"

#include "conformance/transport_suite.hpp"
#include "conformance/update_suite.hpp"

// [snippet includes]
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/training.hpp>
#include <herring/transport/transport.hpp> // the concept; no other transport is reached
// [end]
#include <herring/lazy_reducer.hpp>
#include <herring/transport/chaos.hpp>
#include <herring/transport/checked.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

// [snippet fusion]
/// Closes a bucket before it would grow beyond `Bytes`; a larger tensor is a bucket of its own.
template <std::size_t Bytes> struct at_most {
    static_assert(Bytes > 0 && Bytes % 64 == 0, "tensors are padded to 64 bytes");

    using axis = herring::axes::fusion;            // what it is for
    static constexpr char const* name = "at_most"; // what messages call it

    static constexpr bool closes(herring::fusion_state const& state) noexcept {
        return state.bucket_bytes + state.next_bytes > Bytes;
    }
};
static_assert(herring::checked_policy<at_most<1 << 20>>);
// [end]

// [snippet optimizer]
/// Steps of one length, by the sign of a running mean of the gradients.
struct lion {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "lion";
    static constexpr herring::optimizer_facts facts{.states = 1, .takes_vectors = true};

    struct hyper {
        double rate = 1e-4, mean = 0.9, keeps = 0.99;
    };
    template <class Number> struct numbers { Number rate, mean, keeps; };
    template <class Number> static numbers<Number> prepare(hyper const& h, std::uint64_t /*step*/) noexcept {
        return {static_cast<Number>(h.rate), static_cast<Number>(h.mean), static_cast<Number>(h.keeps)};
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes gradient, Lanes* state, numbers<Number> const& with) noexcept {
        using herring::lanes::product; // rounded: not contracted with a sum
        Lanes const toward = gradient + product(state[0] - gradient, with.mean);
        weight = toward > 0 ? weight - with.rate : toward < 0 ? weight + with.rate : weight;
        state[0] = gradient + product(state[0] - gradient, with.keeps);
    }
};
static_assert(herring::checked_policy<lion>);
// [end]

// [snippet sync]
/// Exchanges a bucket when its gradient on any rank is twice as large as when it was last exchanged; in any case after 50 steps.
struct doubled {
    using axis = herring::axes::sync;
    static constexpr herring::sync_facts facts{.observes = true, .votes = true};
    using ballot = herring::sync::ballot;

    void observe(std::size_t bucket, double squares) noexcept { norms[bucket % ballot::bits].now = squares; }
    ballot vote() noexcept {
        ballot mine;
        for (std::size_t bit = 0; bit < ballot::bits; ++bit)
            if (norms[bit].now > 4 * norms[bit].last) mine.set(bit); // squares: twice as large
        return mine;
    }
    void agreed(ballot const& any) noexcept { // ends a step; the same ballot on every rank
        steps = steps % 50 + 1;
        next = steps < 50 ? any : ballot::all();
        for (std::size_t bit = 0; bit < ballot::bits; ++bit)
            if (next.has(bit)) norms[bit].last = norms[bit].now;
    }
    bool due(std::size_t bucket) const noexcept { return next.has(bucket); }

    struct norm {
        double now = 0, last = 0;
    };
    norm norms[ballot::bits];
    ballot next = ballot::all();
    std::int64_t steps = 0; // an int would leave a gap behind it
};
static_assert(herring::checked_policy<doubled>);
// [end]

// [snippet optimizer_with_norms]
/// Rates by layer: a step of a tensor is a fraction of its weights' norm.
struct lars {
    using axis = herring::axes::optimizer;
    static constexpr char const* name = "lars";
    static constexpr herring::optimizer_facts facts{.takes_vectors = true, .tensor_norms = true};

    struct hyper {
        double rate = 0.001;
    };
    template <class Number> static Number prepare(hyper const& h, std::uint64_t /*step*/) noexcept {
        return static_cast<Number>(h.rate);
    }
    template <class Lanes, class Number>
    static Lanes direction(Lanes /*weight*/, Lanes gradient, Lanes* /*state*/, Number const&) noexcept {
        return gradient;
    }
    template <class Number> static Number adapt(Number rate, herring::tensor_norms const& of) noexcept {
        return of.directions > 0 ? static_cast<Number>(rate * (of.weights / of.directions)) : rate;
    }
    template <class Lanes, class Number>
    static void step(Lanes& weight, Lanes direction, Lanes* /*state*/, Number const& rate) noexcept {
        weight = weight - herring::lanes::product(direction, rate);
    }
};
static_assert(herring::checked_policy<lars>);
// [end]

// [snippet update]
/// Keeps the contribution that is furthest from zero; of two as far, the lower rank's.
struct furthest {
    using axis = herring::axes::update;
    static constexpr char const* name = "furthest"; // ranks compare it when they construct a reducer
    template <class T>
    static constexpr bool supports = !std::is_integral_v<T>;             // the least integer has no negative
    static constexpr herring::update_facts facts{.takes_vectors = true}; // made of operators and ?: alone

    template <class Acc> static Acc combine(Acc a, Acc b) noexcept {
        Acc const from_a = a < 0 ? -a : a, from_b = b < 0 ? -b : b;
        return from_b > from_a ? b : a;
    }
    template <class Acc> static Acc finish(Acc total, int /*ranks*/) noexcept { return total; }
};
static_assert(herring::checked_policy<furthest>);
// [end]

// [snippet facts]
/// Carries messages between processes of one machine as UNIX datagrams.
///
/// Cost:    three system calls and two copies a message.
/// Threads: one at a time; `wake` from any.
/// Errors:  `unsupported` when ranks are on several machines.
class local_socket {
  public:
    using axis = herring::axes::transport;
    static constexpr char const* name = "local_socket";
    static constexpr herring::transport_facts facts{.max_message = 64
                                                                   << 10, // a default socket buffer takes two
                                                    .keeps_order = true,
                                                    .tuning = {.chunk_bytes = 16 << 10,
                                                               .window_bytes = 64 << 10,
                                                               .one_hop_bytes = 4 << 10,
                                                               .one_hop_bytes_two_nodes = 4 << 10}};
    // [end]

    // [snippet constructor]
    local_socket(herring::world& ranks, herring::transport_needs const& needs) : rank_(ranks.rank()) {
        if (ranks.ranks_on_this_machine() < ranks.size())
            throw herring::error(herring::errc::unsupported, rank_, -1, name,
                                 "ranks are on several machines; use transport::tcp");
        // The kernel chooses a name that no other socket has; it is gone with the socket.
        place mine{.length = sizeof(sa_family_t)};
        mine.name.sun_family = AF_UNIX;
        if (::bind(socket_.number, reinterpret_cast<sockaddr*>(&mine.name), mine.length) != 0 ||
            bell_.number < 0)
            throw herring::error(herring::errc::no_resources, rank_, -1, name,
                                 std::string("no socket: ") + std::strerror(errno) + "; see ulimit -n");
        mine.length = sizeof mine.name;
        ::getsockname(socket_.number, reinterpret_cast<sockaddr*>(&mine.name), &mine.length);
        auto const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), needs.timeout);
        for (int const rank : needs.peers) {
            peer& added = peers_.emplace_back(peer{.rank = rank});
            std::memcpy(&added.at, all[static_cast<std::size_t>(rank)].data(), sizeof added.at);
        }
        // Room for all that may be posted, so that nothing is allocated from here on.
        posted_.reserve(peers_.size() * needs.receives_per_peer);
        done_.reserve(peers_.size() * (needs.receives_per_peer + needs.sends_per_peer + 1));
        handed_.reserve(done_.capacity());
    }
    local_socket(local_socket const&) = delete;
    local_socket& operator=(local_socket const&) = delete;
    ~local_socket() {
        for (std::size_t i = 0; i < peers_.size(); ++i)
            (void)send(herring::peer_id::at(i), {0, rank_, true}, {});
    }
    // [end]

    // [snippet post]
    bool post_send(herring::peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        if (from.size() > facts.max_message) return false;      // the engine never asks for it
        if (!send(to, {tag, rank_, false}, from)) return false; // «not now»: the engine comes again
        done_.push_back(
            {.token = token, .bytes = from.size(), .peer = to, .what = herring::completion::sent});
        return true;
    }

    bool post_receive(herring::peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        auto const found = std::find_if(early_.begin(), early_.end(), [&](early const& message) {
            return message.from == from && matching(message.tag, tag);
        });
        if (found == early_.end()) {
            posted_.push_back({from, tag, into, token});
        } else { // it came before anybody asked for it
            std::size_t const fits = std::min(found->bytes.size(), into.size());
            if (fits > 0) std::memcpy(into.data(), found->bytes.data(), fits);
            done_.push_back({.token = token,
                             .bytes = found->bytes.size(),
                             .peer = from,
                             .what = herring::completion::received,
                             .tag = found->tag});
            early_.erase(found);
        }
        return true;
    }
    // [end]

    // [snippet poll]
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        refused_ = false;
        while (take_one()) {
        }
        handed_.swap(done_); // the functor may post, which adds to done_
        std::size_t const count = handed_.size();
        for (herring::completion const& done : handed_) on_completion(done);
        handed_.clear();
        return count;
    }
    // [end]

    // [snippet wait]
    void wait(herring::time_point until) noexcept {
        if (!done_.empty()) return;
        auto left = std::chrono::nanoseconds(until - herring::clock::now());
        left = std::clamp<std::chrono::nanoseconds>(left, std::chrono::seconds(0), std::chrono::hours(1));
        // Nobody tells when the queue of a peer has room again.
        if (refused_) left = std::min<std::chrono::nanoseconds>(left, std::chrono::microseconds(100));
        timespec const time{static_cast<time_t>(left.count() / 1'000'000'000),
                            static_cast<long>(left.count() % 1'000'000'000)};
        pollfd watched[] = {{socket_.number, POLLIN, 0}, {bell_.number, POLLIN, 0}};
        (void)::ppoll(watched, 2, &time, nullptr);
        std::uint64_t rung = 0;
        (void)!::read(bell_.number, &rung, sizeof rung);
    }
    void wake() noexcept {
        std::uint64_t const one = 1;
        (void)!::write(bell_.number, &one, sizeof one);
    }

    void register_memory(std::span<std::byte>) noexcept {}
    char const* describe(herring::peer_id) const noexcept { return "its socket is closed"; }
    // [end]

  private:
    struct descriptor {
        int number = -1;
        explicit descriptor(int made) noexcept : number(made) {}
        descriptor(descriptor const&) = delete;
        descriptor& operator=(descriptor const&) = delete;
        ~descriptor() {
            if (number >= 0) ::close(number);
        }
    };
    struct header {
        std::uint64_t tag = 0;
        int source = -1;
        bool leaves = false;
    };
    struct receive {
        herring::peer_id from;
        std::uint64_t tag;
        std::span<std::byte> into;
        std::uint64_t token;
    };
    struct early {
        herring::peer_id from;
        std::uint64_t tag;
        std::vector<std::byte> bytes;
    };
    struct place {
        sockaddr_un name{};
        socklen_t length = 0;
    };
    struct peer {
        int rank = -1;
        place at{};
        bool lost = false;
    };

    static int open_socket() noexcept {
        return ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    }

    /// Some bits of a tag are carried to the receiver, and do not take part in matching.
    static bool matching(std::uint64_t a, std::uint64_t b) noexcept {
        return ((a ^ b) & ~herring::carried_bits) == 0;
    }

    bool send(herring::peer_id id, header head, std::span<std::byte const> from) noexcept {
        peer& to = peers_[id.place()];
        if (to.lost) return false;
        iovec parts[] = {{&head, sizeof head}, {const_cast<std::byte*>(from.data()), from.size()}};
        msghdr message{};
        message.msg_name = &to.at.name;
        message.msg_namelen = to.at.length;
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        if (::sendmsg(socket_.number, &message, 0) >= 0) return true;
        if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)
            refused_ = true;
        else
            lose(id);
        return false;
    }

    /// Reads one message, straight to its place if somebody waits for it. False: there is none.
    bool take_one() noexcept {
        header head;
        ssize_t const size = ::recv(socket_.number, &head, sizeof head, MSG_PEEK | MSG_TRUNC);
        if (size < 0) return false;
        auto const source =
            std::find_if(peers_.begin(), peers_.end(), [&](peer const& p) { return p.rank == head.source; });
        bool const ours = size >= static_cast<ssize_t>(sizeof head) && source != peers_.end();
        auto const from = herring::peer_id::at(static_cast<std::size_t>(source - peers_.begin()));
        if (!ours || head.leaves) {
            (void)::recv(socket_.number, &head, sizeof head, 0);
            if (ours) lose(from);
            return true;
        }
        std::size_t const bytes = static_cast<std::size_t>(size) - sizeof head;
        auto const found = std::find_if(posted_.begin(), posted_.end(), [&](receive const& wanted) {
            return wanted.from == from && matching(wanted.tag, head.tag);
        });
        std::span<std::byte> into;
        if (found != posted_.end())
            into = found->into;
        else
            into = early_.emplace_back(early{from, head.tag, std::vector<std::byte>(bytes)}).bytes;
        iovec parts[] = {{&head, sizeof head}, {into.data(), into.size()}};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        (void)::recvmsg(socket_.number, &message, 0); // what does not fit is cut off
        if (found != posted_.end()) {
            // The true size: the engine sees from it when ranks differ.
            done_.push_back({.token = found->token,
                             .bytes = bytes,
                             .peer = from,
                             .what = herring::completion::received,
                             .tag = head.tag});
            posted_.erase(found);
        }
        return true;
    }

    void lose(herring::peer_id id) noexcept {
        if (std::exchange(peers_[id.place()].lost, true)) return; // once a peer; what it sent before stays
        done_.push_back({.peer = id, .what = herring::completion::lost, .why = herring::errc::peer_lost});
    }

    int rank_;
    descriptor socket_{open_socket()};
    descriptor bell_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
    std::vector<peer> peers_; // by their peer_id
    std::vector<receive> posted_;
    std::vector<early> early_;
    std::vector<herring::completion> done_;
    std::vector<herring::completion> handed_;
    bool refused_ = false;
};
static_assert(herring::checked_policy<local_socket>);

TEST_CASE("local_socket passes the suite of its axis") {
    // [snippet suite]
    using namespace herring::conformance; // tests/conformance/transport_suite.hpp
    CHECK(text(transport_suite<local_socket>({.start = ranks_as::processes})) == "");
    CHECK(text(transport_suite<local_socket>()) == ""); // ranks as threads
    // [end]
}

// [snippet rough]
using rough = herring::transport::chaos<local_socket>; // herring/transport/chaos.hpp

int sums(herring::world& world) {
    herring::reducer<std::int64_t, rough, herring::update::sum> reduce(world, {{"a", 3}, {"b", 70'001}});
    for (int step = 0; step < 5; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            for (std::int64_t& x : reduce.tensor(i)) x = world.rank() + step;
            reduce.ready(i);
        }
        reduce.wait();
        std::int64_t const n = world.size(), due = n * (n - 1) / 2 + n * step;
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (std::int64_t const x : reduce.tensor(i))
                if (x != due) {
                    std::printf("again: HERRING_CHAOS_SEED=%llu\n",
                                static_cast<unsigned long long>(reduce.transport().seed()));
                    return 1;
                }
    }
    return 0;
}
// [end]

// [snippet decorator]
/// Any transport, and how many bytes each rank was sent.
template <class Inner> struct metered : Inner {
    static constexpr char const* name = "metered"; // ranks compare it

    metered(herring::world& ranks, herring::transport_needs const& wanted)
        : Inner(ranks, wanted), ranks_(wanted.peers.begin(), wanted.peers.end()), sent_(ranks_.size()) {}

    bool post_send(herring::peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        if (!Inner::post_send(to, tag, from, token)) return false; // not now: the engine comes again
        sent_[to.place()] += from.size();
        return true;
    }
    bool post_send(herring::peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept
        requires(Inner::facts.envelope_bytes > 0) { // called by `checked` and `sealed` around it
        if (!Inner::post_send(to, tag, envelope, from, token)) return false;
        sent_[to.place()] += from.size();
        return true;
    }

    /// By place in `peers()`.
    std::vector<std::uint64_t> const& bytes_sent() const noexcept { return sent_; }
    std::vector<int> const& peers() const noexcept { return ranks_; }

  private:
    std::vector<int> ranks_;
    std::vector<std::uint64_t> sent_;
};
static_assert(herring::checked_policy<metered<local_socket>>);
// [end]
TEST_CASE("a decorator passes the suite, and meters what it sends") {
    using namespace herring::conformance;
    CHECK(text(transport_suite<metered<local_socket>>({.start = ranks_as::processes})) == "");
    CHECK(herring::launch(
              2,
              [](herring::world& world) {
                  herring::reducer<float, metered<herring::transport::tcp>, herring::update::sum> reduce(
                      world);
                  std::vector<float> values(1000, 1.0f);
                  reduce.all_reduce(values);
                  std::uint64_t const sent = reduce.transport().bytes_sent()[0];
                  return values[0] == 2 && reduce.transport().peers()[0] == 1 - world.rank() &&
                                 sent == reduce.counters().bytes_sent && sent >= 4000
                             ? 0
                             : 1;
              },
              {.nodes = {"a", "b"}}) == 0);
}

TEST_CASE("a decorator meters messages with an envelope") {
    using checked = herring::transport::checked<metered<herring::transport::tcp>>;
    CHECK(herring::launch(2,
                          [](herring::world& world) {
                              herring::reducer<float, checked, herring::update::sum> reduce(world);
                              std::vector<float> values(1000, 1.0f);
                              reduce.all_reduce(values);
                              return values[0] == 2 && reduce.transport().inner().bytes_sent()[0] >= 4000 ? 0
                                                                                                          : 1;
                          },
                          {.nodes = {"a", "b"}}) == 0);
}

TEST_CASE("local_socket bears chaos") {
    // [snippet chaos]
    using namespace herring::conformance;
    CHECK(text(transport_suite<rough>({.start = ranks_as::processes})) == "");
    CHECK(herring::launch(3, sums, {.nodes = {"a", "b", "c"}}) == 0);
    // [end]
}

// [snippet lift]
struct mean_of_squares : herring::update::average { // combines and finishes like it
    static constexpr char const* name = "mean_of_squares";
    static constexpr herring::update_facts facts{.takes_vectors = true, .lifts = true, .with_finish = true};
    template <class Acc> static Acc lift(Acc x) noexcept { return x * x; }
};
// [end]

TEST_CASE("mean_of_squares passes the suite, and is what a reducer does") {
    CHECK(herring::conformance::text(herring::conformance::update_suite<mean_of_squares>()) == "");
    CHECK(herring::launch(
              3,
              [](herring::world& world) {
                  herring::reducer<float, local_socket, herring::intra_node::shared_memory, mean_of_squares>
                      reduce(world);
                  return reduce.all_reduce(static_cast<float>(world.rank()) + 1.0f) == 14.0f / 3.0f ? 0 : 1;
              },
              {.nodes = {"a", "a", "b"}}) == 0);
}

// [snippet element]
struct extent { // of what all ranks have seen
    float low, high;
    friend extent operator+(extent a, extent b) noexcept {
        return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    }
};
template <> inline constexpr bool herring::is_element<extent> = true; // in the global namespace

using extents = herring::reducer<extent, herring::transport::tcp, herring::update::sum>; // + of all ranks

int seen_by_all(herring::world& world) {
    extents reduce(world);
    auto const mine = static_cast<float>(world.rank());
    auto const [low, high] = reduce.all_reduce(extent{mine, mine + 1});
    return low == 0 && high == static_cast<float>(world.size()) ? 0 : 1;
}
// [end]
TEST_CASE("a struct is reduced like a number") { CHECK(herring::launch(3, seen_by_all) == 0); }

// [snippet accumulator]
struct fixed { // 8 bits behind the point
    std::int16_t bits = 0;

    fixed() = default;
    explicit fixed(std::int32_t sum) : bits(static_cast<std::int16_t>(std::clamp(sum, -32'768, 32'767))) {}
    explicit operator std::int32_t() const { return bits; }
};
template <> inline constexpr bool herring::is_element<fixed> = true;
template <> struct herring::element<fixed> : herring::own_element<fixed, std::int32_t> {};
// [end]
TEST_CASE("an accumulator of one's own: partial sums go beyond the element, and are narrowed once") {
    for (auto const& nodes :
         {std::vector<std::string>{"a", "a", "a", "a"}, {"a", "a", "b", "b"}, {"a", "b", "c", "d"}})
        CHECK(herring::launch(
                  4,
                  [](herring::world& world) {
                      herring::reducer<fixed, herring::transport::tcp, herring::intra_node::shared_memory,
                                       herring::update::sum>
                          reduce(world);
                      std::int32_t const fits[] = {30'000, 30'000, -30'000, -20'000};
                      std::int32_t const beyond[] = {30'000, 30'000, -1, -2};
                      std::vector<fixed> two{fixed(fits[world.rank()]), fixed(beyond[world.rank()])};
                      reduce.all_reduce(two);
                      return two[0].bits == 10'000 && two[1].bits == 32'767 ? 0 : 1;
                  },
                  {.nodes = nodes}) == 0);
}

namespace c10 { // as libtorch has it
struct alignas(2) BFloat16 {
    std::uint16_t x;
};
} // namespace c10
// [snippet same_bits]
template <> struct herring::element<c10::BFloat16> : herring::same_bits_as<herring::bfloat16> {};

using gradients = herring::reducer<c10::BFloat16, herring::transport::tcp, herring::update::average>;

void average_over_ranks(herring::world& world, std::span<c10::BFloat16> of_libtorch) {
    gradients reduce(world);
    reduce.all_reduce(of_libtorch); // where it lies, by the kernels for herring::bfloat16
}
// [end]
TEST_CASE("a type of another library is reduced by the bits that it has") {
    CHECK(herring::launch(2, [](herring::world& world) {
              std::vector<c10::BFloat16> two(
                  2, {world.rank() == 0 ? std::uint16_t{0x3f80} : std::uint16_t{0x4040}});
              average_over_ranks(world, two); // of 1 and 3
              return two[0].x == 0x4000 && two[1].x == 0x4000 ? 0 : 1;
          }) == 0);
}

TEST_CASE("furthest passes the suite of its axis, and is what a reducer does") {
    // [snippet update_suite]
    CHECK(herring::conformance::text(herring::conformance::update_suite<furthest>()) == "");
    // [end]
    CHECK(herring::launch(3, [](herring::world& world) {
              herring::reducer<float, local_socket, herring::intra_node::shared_memory, furthest> reduce(
                  world);
              std::vector<float> x(1000, world.rank() == 1 ? -5.0f : static_cast<float>(world.rank()));
              reduce.all_reduce(x);
              return std::count(x.begin(), x.end(), -5.0f) == 1000 ? 0 : 1;
          }) == 0);
}

TEST_CASE("doubled exchanges when one rank's gradient has doubled") {
    CHECK(herring::launch(2,
                          [](herring::world& world) {
                              herring::reducer<float, local_socket, doubled> lazy(world, {{"weight", 100}});
                              lazy.start(0, [](std::size_t, std::span<float> weights) {
                                  std::fill(weights.begin(), weights.end(), 0.0f);
                              });
                              std::string seen;
                              for (float const growth : {1.0f, 1.5f, 2.5f, 3.0f, 4.0f, 6.0f, 6.0f}) {
                                  for (float& x : lazy.tensor(0)) x = world.rank() == 1 ? growth : 1;
                                  lazy.ready(0);
                                  seen += lazy.wait() == herring::step::exchanged ? 'x' : '.';
                                  lazy.updated(0);
                                  lazy.settle();
                              }
                              return seen == "xx.x..x" ? 0 : 1;
                          },
                          {.nodes = {"a", "b"}}) == 0);
}

TEST_CASE("at_most keeps every bucket below its bound, and a large tensor alone") {
    // [snippet plan]
    std::array<std::size_t, 6> const elements{1000, 200, 5000, 0, 30, 40};
    herring::plan const made = herring::make_plan<at_most<8192>, herring::sharding::balanced>(
        elements, herring::topology::uniform(2, 2), sizeof(float), sizeof(float), {});
    CHECK(made.buckets.size() == 3); // {1000, 200}, {5000}, {0, 30, 40}
    CHECK(made.buckets[0].elements * sizeof(float) <= 8192);
    CHECK(made.buckets[1].tensors == 1);
    // [end]
}

// [snippet use]
using mine = herring::reducer<float, local_socket, herring::intra_node::shared_memory, at_most<64 << 10>>;

int average(herring::world& world) {
    mine reduce(world, {{"bias", 3}, {"empty", 0}, {"weight", 100'003}, {"head", 1000}});
    for (int step = 0; step < 20; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            for (float& x : reduce.tensor(i)) x = static_cast<float>(world.rank() + step);
            reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (float const x : reduce.tensor(i))
                if (x != static_cast<float>(world.size() - 1) / 2 + static_cast<float>(step)) return 1;
    }
    return 0;
}
// [end]

TEST_CASE("both at work: processes on one node, on two, on uneven ones, alone") {
    CHECK(herring::launch(4, average, {.nodes = {"a", "a", "b", "b"}}) == 0);
    CHECK(herring::launch(3, average, {.nodes = {"a", "b", "c"}}) == 0);
    CHECK(herring::launch(5, average, {.nodes = {"a", "a", "b", "b", "b"}}) == 0);
    CHECK(herring::launch(2, average) == 0);
    CHECK(herring::launch(1, average) == 0);
}
