// herring: tests of transport/sealed.hpp; tests/conformance has the suite over it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/sealed.hpp"

#include "herring/control/alone.hpp"
#include "herring/herring.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/checked.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <openssl/crypto.h>

using namespace herring;
using transport::chaos;
using transport::chaos_seed;
using transport::chaos_tuning;
using transport::inproc;
using transport::sealed;
using transport::sealed_generations;

namespace {

/// What libcrypto allocates; it takes these functions only before it has allocated anything.
std::atomic<std::uint64_t> allocations{0};
void* counted_malloc(std::size_t size, char const*, int) { return ++allocations, std::malloc(size); }
void* counted_realloc(void* of, std::size_t size, char const*, int) {
    return ++allocations, std::realloc(of, size);
}
void counted_free(void* of, char const*, int) { std::free(of); }
int const counts_allocations = CRYPTO_set_mem_functions(counted_malloc, counted_realloc, counted_free);

/// What somebody on the network does to a message: given its payload, envelope and tag.
struct on_its_way {
    std::vector<std::byte> payload;
    std::vector<std::byte> envelope;
    std::uint64_t tag = 0;
};

/// inproc, with somebody on the network who sees each message and may change, keep or repeat it.
class tapped {
  public:
    using axis = axes::transport;
    static constexpr char const* name = "tapped";
    static constexpr transport_facts facts{
        .abandons = true, .envelope_bytes = inproc::facts.envelope_bytes, .tuning = inproc::facts.tuning};
    /// Returns what is to arrive in place of a message; under `guard`.
    static inline std::function<std::vector<on_its_way>(on_its_way const&)> tap;
    static inline std::mutex guard;
    /// Each second post is refused, at first.
    static inline bool refuses = false;

    tapped(world& ranks, transport_needs const& needs) : inner_(ranks, needs) {}

    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        return post_send(to, tag, {}, from, token);
    }
    bool post_send(peer_id to, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept {
        if (refuses && (posts_++ & 1) == 0) return false;
        std::lock_guard const lock(guard);
        if (!tap) return inner_.post_send(to, tag, envelope, from, token);
        std::uint64_t said = token;
        for (on_its_way& one : tap({{from.begin(), from.end()}, {envelope.begin(), envelope.end()}, tag})) {
            auto& kept = under_way_.emplace_back(std::make_unique<on_its_way>(std::move(one)));
            inner_.post_send(to, kept->tag, kept->envelope, kept->payload, std::exchange(said, ghost));
        }
        if (said == token) unsaid_.push_back({token, from.size(), to, completion::sent});
        return true;
    }
    bool post_receive(peer_id from, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        return inner_.post_receive(from, tag, into, token);
    }
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        std::size_t count = unsaid_.size();
        for (completion const& one : std::exchange(unsaid_, {})) on_completion(one);
        inner_.poll([&](completion const& done) noexcept {
            if (done.what == completion::sent && done.token == ghost) return;
            ++count;
            on_completion(done);
        });
        return count;
    }
    void wait(time_point until) noexcept { inner_.wait(until); }
    void wake() noexcept { inner_.wake(); }
    void abandon() noexcept { inner_.abandon(); }
    void register_memory(std::span<std::byte>) noexcept {}
    char const* describe(peer_id peer) const noexcept { return inner_.describe(peer); }

  private:
    static constexpr std::uint64_t ghost = ~std::uint64_t{0};
    std::uint64_t posts_ = 0;
    std::vector<std::unique_ptr<on_its_way>> under_way_;
    std::vector<completion> unsaid_;
    inproc inner_;
};
static_assert(transport_policy<tapped>);

/// Puts a tap in, for as long as it lives.
struct with_tap {
    explicit with_tap(std::function<std::vector<on_its_way>(on_its_way const&)> what) {
        tapped::tap = std::move(what);
    }
    ~with_tap() { tapped::tap = nullptr; }
};

/// The ends of two ranks, driven by one thread.
template <class Transport> class pair {
  public:
    template <class... Arguments> explicit pair(Arguments const&... arguments) : worlds_(thread_worlds(2)) {
        std::thread other([&] { make(1, arguments...); });
        make(0, arguments...);
        other.join();
        if (!ends_[0] || !ends_[1]) throw std::string("no pair");
    }
    Transport& operator[](int rank) { return *ends_[static_cast<std::size_t>(rank)]; }

  private:
    template <class... Arguments> void make(int rank, Arguments const&... arguments) {
        std::array<int, 1> const peers{1 - rank};
        transport_needs const needs{
            .peers = peers, .receives_per_peer = 20, .sends_per_peer = 20, .largest_message = 4096};
        ends_[static_cast<std::size_t>(rank)] =
            std::make_unique<Transport>(worlds_[static_cast<std::size_t>(rank)], needs, arguments...);
    }
    std::vector<world> worlds_;
    std::array<std::unique_ptr<Transport>, 2> ends_;
};

/// What became of `count` messages from rank 0 to rank 1, with two tags in turn.
struct outcome {
    std::uint64_t received = 0, sent = 0, wrong = 0;
    std::vector<completion> lost{};
};
template <class Transport>
outcome stream(pair<Transport>& ends, std::uint64_t count, int most_polls = 200'000) {
    outcome seen;
    std::vector<std::uint64_t> out(count), in(count);
    std::vector<bool> came(count);
    std::uint64_t posted = 0, expected = 0;
    for (int polls = 0;
         polls < most_polls && seen.lost.empty() && (seen.sent < count || seen.received < count); ++polls) {
        if (expected < count && expected < seen.received + 2 &&
            ends[1].post_receive(peer_id{0}, expected % 2,
                                 std::as_writable_bytes(std::span(&in[expected], 1)), expected))
            ++expected;
        if (posted < expected && posted < seen.sent + 2) {
            out[posted] = posted * 7919;
            if (ends[0].post_send(peer_id{0}, posted % 2, std::as_bytes(std::span(&out[posted], 1)), posted))
                ++posted;
        }
        ends[0].poll([&](completion const& done) {
            if (done.what == completion::lost) seen.lost.push_back(done);
            seen.sent += done.what == completion::sent;
        });
        ends[1].poll([&](completion const& done) {
            if (done.what == completion::lost) seen.lost.push_back(done);
            if (done.what != completion::received) return;
            ++seen.received;
            std::uint64_t const which = in[done.token] / 7919;
            bool const due = in[done.token] % 7919 == 0 && which < count && which % 2 == done.token % 2;
            seen.wrong += !due || came[which];
            if (due) came[which] = true;
        });
    }
    return seen;
}

/// The same where the 50th message is changed on its way. It must be no result.
template <class Change> outcome attacked(Change&& change, std::string* why = nullptr) {
    pair<sealed<tapped>> ends;
    std::vector<on_its_way> before;
    with_tap const here([&](on_its_way const& one) {
        before.push_back(one);
        return before.size() == 50 ? change(one, before) : std::vector<on_its_way>{one};
    });
    outcome const seen = stream(ends, 200, 20'000);
    if (why != nullptr) *why = ends[1].describe(peer_id{0});
    CHECK(seen.wrong == 0);
    return seen;
}

} // namespace

TEST_CASE("sealed: facts are those of the transport that it decorates, of host memory, verified") {
    using plain = sealed<transport::tcp>;
    CHECK(std::string(plain::name) == "sealed<tcp>");
    CHECK(std::string(sealed<chaos<inproc>>::name) == "sealed<chaos<inproc>>");
    CHECK(plain::facts.verifies);
    CHECK(plain::facts.envelope_bytes == 0);
    CHECK(plain::facts.max_message == 64 << 20);
    CHECK_FALSE(plain::facts.device_memory);
    CHECK(plain::facts.keeps_order);
    CHECK(plain::facts.runs_handlers);
    CHECK(plain::facts.tuning == transport::tcp::facts.tuning);
    static_assert(transport_policy<plain>);
    static_assert(transport_policy<sealed<inproc>>);
}

TEST_CASE("sealed: a network sees none of what is sent, nor the same bytes twice") {
    pair<sealed<tapped>> ends;
    std::map<std::vector<std::byte>, int> seen;
    with_tap const here([&](on_its_way const& one) {
        ++seen[one.payload];
        CHECK(one.envelope.size() == 24);
        return std::vector<on_its_way>{one};
    });
    outcome const all = stream(ends, 500);
    CHECK(all.received == 500);
    CHECK(all.wrong == 0);
    CHECK(seen.size() == 500);
    for (std::uint64_t i = 0; i < 500; ++i) {
        std::uint64_t const sent = i * 7919;
        auto const bytes = std::as_bytes(std::span(&sent, 1));
        CHECK(seen.count({bytes.begin(), bytes.end()}) == 0);
    }
    CHECK(ends[0].counts().sealed == 500);
    CHECK(ends[1].counts().opened == 500);
}

TEST_CASE("sealed: what is changed, cut, swapped or forged is no result; the error names the pair") {
    using list = std::vector<on_its_way>;
    auto const refused = [](auto&& change) {
        std::string why;
        outcome const seen = attacked(change, &why);
        CAPTURE(why);
        REQUIRE(seen.lost.size() == 1);
        CHECK(seen.lost[0].why == errc::corrupted);
        CHECK(why.find("does not open at rank 1: it is not what rank 0 sealed") != std::string::npos);
    };
    refused([](on_its_way one, list const&) {
        one.payload[3] ^= std::byte{16};
        return list{one};
    });
    refused([](on_its_way one, list const&) {
        one.payload.pop_back();
        return list{one};
    });
    refused([](on_its_way one, list const&) {
        one.envelope.pop_back();
        return list{one};
    });
    refused([](on_its_way one, list const&) {
        one.envelope[20] ^= std::byte{1};
        return list{one};
    });
    refused([](on_its_way one, list const&) { // of the number: as if it was a later one
        one.envelope[1] ^= std::byte{1};
        return list{one};
    });
    refused([](on_its_way one, list const& before) { // of another message
        one.payload = before[10].payload;
        return list{one};
    });
    refused([](on_its_way one, list const&) { // bits of a tag that are carried along
        one.tag ^= std::uint64_t{1} << 30;
        return list{one};
    });
    refused([](on_its_way one, list const& before) { // to whom waits for the other tag
        on_its_way other = before[before.size() - 2];
        one.payload.swap(other.payload);
        one.envelope.swap(other.envelope);
        return list{one};
    });
}

TEST_CASE("sealed: a message that is larger than its receive ends its sender, unopened") {
    std::string why;
    outcome const seen = attacked(
        [](on_its_way one, auto const&) {
            one.payload.resize(100);
            return std::vector<on_its_way>{one};
        },
        &why);
    CAPTURE(why);
    REQUIRE(seen.lost.size() == 1);
    CHECK(seen.lost[0].why == errc::protocol);
    CHECK(why.find("100 bytes came for a receive of 8") != std::string::npos);
}

TEST_CASE("sealed: recorded messages that are sent again are dropped, at once and after keys have changed") {
    pair<sealed<tapped>> ends(sealed_generations{9});
    CHECK(ends[0].generation_bits() == 9);
    std::map<std::uint64_t, std::vector<on_its_way>> before; // by tag
    std::uint64_t again = 0;
    with_tap const here([&](on_its_way const& one) {
        std::vector<on_its_way> all{one};
        auto& same = before[one.tag];
        if (same.size() % 3 == 2) all.push_back(one), ++again;
        if (same.size() % 5 == 4) all.push_back(same[same.size() / 2]), ++again;
        if (same.size() % 7 == 6) all.push_back(same[0]), ++again;
        same.push_back(one);
        return all;
    });
    outcome const seen = stream(ends, 3000);
    CHECK(seen.received == 3000);
    CHECK(seen.wrong == 0);
    CHECK(seen.lost.empty());
    CHECK(again > 1500);
    CHECK(ends[1].counts().repeated > again - 10); // but the last ones
    CHECK(ends[1].counts().refused == 0);
}

TEST_CASE("sealed: messages that are taken away are missing, and what came before them is not") {
    std::uint64_t taken = 0;
    pair<sealed<tapped>> ends;
    with_tap const here([&](on_its_way const& one) {
        return ++taken > 100 ? std::vector<on_its_way>{} : std::vector<on_its_way>{one};
    });
    outcome const seen = stream(ends, 200, 2000);
    CHECK(seen.received == 100); // a deadline finds the rest
    CHECK(seen.lost.empty());
}

TEST_CASE("sealed: a post that is refused is sealed once: no number twice, none left out") {
    tapped::refuses = true;
    pair<sealed<tapped>> ends;
    std::map<std::vector<std::byte>, int> envelopes;
    std::vector<std::uint64_t> numbers;
    with_tap const here([&](on_its_way const& one) {
        std::uint64_t number = 0;
        std::memcpy(&number, one.envelope.data(), sizeof number);
        numbers.push_back(number);
        return std::vector<on_its_way>{one};
    });
    outcome const seen = stream(ends, 1000);
    tapped::refuses = false;
    CHECK(seen.received == 1000);
    CHECK(seen.wrong == 0);
    CHECK(ends[0].counts().sealed == 1000);
    std::sort(numbers.begin(), numbers.end());
    REQUIRE(numbers.size() == 1000);
    for (std::uint64_t i = 0; i < 1000; ++i) CHECK(numbers[i] == i);
}

TEST_CASE("sealed: keys change under way, also where messages come late, in any order and twice") {
    pair<sealed<chaos<inproc, chaos_tuning{.duplicate_per_1000 = 300}>>> ends(sealed_generations{1},
                                                                              chaos_seed{3});
    CHECK(ends[0].generation_bits() == 9); // as many as can be under way
    outcome const seen = stream(ends, 5000, 1'000'000);
    CHECK(seen.received == 5000);
    CHECK(seen.wrong == 0);
    CHECK(seen.lost.empty());
    CHECK(ends[1].counts().repeated > 1000);
}

TEST_CASE("sealed: nothing is allocated by libcrypto once the transport stands, keys that change included") {
    REQUIRE(counts_allocations == 1);
    std::uint64_t const none = allocations;
    pair<sealed<inproc>> ends(sealed_generations{9});
    std::uint64_t const before = allocations;
    CHECK(before > none);
    outcome const seen = stream(ends, 3000);
    CHECK(seen.received == 3000);
    CHECK(allocations == before);
}

TEST_CASE("sealed: more than was announced is refused; so is what is larger") {
    pair<sealed<inproc>> ends;
    std::vector<std::byte> large(4097);
    CHECK_FALSE(ends[0].post_send(peer_id{0}, 1, large, 1));
    for (std::uint64_t i = 0; i < 20; ++i)
        CHECK(ends[0].post_send(peer_id{0}, 1, std::span(large).first(4096), i));
    CHECK_FALSE(ends[0].post_send(peer_id{0}, 1, {}, 20));
}

TEST_CASE("sealed: a world without a secret is refused, with what to do") {
    detail::membership bare;
    bare.control = detail::control_alone::make();
    world open(std::move(bare));
    try {
        sealed<inproc> refused(open, {});
        FAIL("no secret");
    } catch (error const& why) {
        CHECK(why.code() == errc::bad_state);
        CHECK(std::string(why.what()).find("HERRING_SECRET") != std::string::npos);
    }
}

TEST_CASE("sealed: ranks that join with a secret seal; those without are refused, each in its own words") {
    for (bool const with : {true, false}) {
        std::string const address = "127.0.0.1:" + std::to_string(free_port());
        std::atomic<int> summed{0}, refused{0};
        auto const rank = [&](int r) {
            try {
                world joined =
                    join({.rank = r,
                          .size = 2,
                          .address = address,
                          .secret = with ? std::optional<std::string>(std::string(64, 'a')) : std::nullopt});
                CHECK(joined.has_secret() == with);
                reducer<float, sealed<transport::tcp>, update::sum> reduce(joined, layout{{"a", 1000}});
                std::fill(reduce.tensor(0).begin(), reduce.tensor(0).end(), static_cast<float>(r + 1));
                reduce.ready(0);
                reduce.wait();
                summed += reduce.tensor(0)[999] == 3.0f;
            } catch (error const& why) {
                refused += why.code() == errc::bad_state || why.code() == errc::peer_failed ||
                           why.code() == errc::peer_lost;
            }
        };
        std::thread other(rank, 1);
        rank(0);
        other.join();
        CHECK(summed == (with ? 2 : 0));
        CHECK(refused == (with ? 0 : 2));
    }
}

TEST_CASE("sealed: a rank that seals and one that does not are told of each other") {
    std::atomic<int> told{0};
    launch_threads(2, [&](world& w) {
        try {
            if (w.rank() == 0)
                reducer<float, sealed<transport::tcp>>(w, layout{{"a", 10}});
            else
                reducer<float, transport::tcp>(w, layout{{"a", 10}});
        } catch (error const& why) {
            std::string const text = why.what();
            CAPTURE(text);
            told += why.code() == errc::mismatch && text.find("transport=sealed<tcp>") != std::string::npos &&
                    text.find("transport=tcp") != std::string::npos;
        }
    });
    CHECK(told == 2);
}

TEST_CASE(
    "sealed: one turned bit in a reduction is an error that names the pair, on all ranks, and no result") {
    using turns = sealed<chaos<transport::tcp, chaos_tuning{.flip_per_1000 = 20}>>;
    std::atomic<int> told{0}, named{0}, wrong{0};
    for (std::uint64_t seed = 1; seed <= 4; ++seed)
        launch_threads(3, [&](world& w) {
            reducer<std::int64_t, turns, update::sum, fusion::per_tensor> reduce(
                w, layout{{"small", 5}, {"large", 200'000}}, chaos_seed{seed});
            try {
                for (int step = 0; step < 200; ++step) {
                    for (std::size_t i = 0; i < 2; ++i) {
                        std::fill(reduce.tensor(i).begin(), reduce.tensor(i).end(), w.rank() + 1);
                        reduce.ready(i);
                    }
                    reduce.wait();
                    for (std::size_t i = 0; i < 2; ++i)
                        for (std::int64_t const x : reduce.tensor(i)) wrong += x != 6;
                }
            } catch (error const& why) {
                told += why.code() == errc::corrupted;
                named += std::string(why.what()).find("it is not what rank") != std::string::npos;
            }
        });
    CHECK(wrong == 0);
    CHECK(told == 12);
    CHECK(named == 12);
}

namespace {
std::vector<float> sums(int rank, std::uint64_t step) {
    std::vector<float> made(30'000);
    for (std::size_t i = 0; i < made.size(); ++i)
        made[i] = 1.0f / static_cast<float>(i * 3 + static_cast<std::size_t>(rank) * 7 + step + 1);
    return made;
}
template <class Transport, class... Arguments> std::vector<float> reduced(Arguments const&... arguments) {
    std::vector<float> bits;
    launch_threads(3, [&](world& w) {
        reducer<float, Transport, fusion::per_tensor> reduce(w, layout{{"a", 30'000}}, arguments...);
        for (std::uint64_t step = 0; step < 5; ++step) {
            auto const mine = sums(w.rank(), step);
            std::copy(mine.begin(), mine.end(), reduce.tensor(0).begin());
            reduce.ready(0);
            reduce.wait();
            if (w.rank() == 0) bits.insert(bits.end(), reduce.tensor(0).begin(), reduce.tensor(0).end());
        }
    });
    return bits;
}
} // namespace

TEST_CASE("sealed: the bits of a reduction are those without it, also where messages come late and twice") {
    auto const plain = reduced<transport::tcp>();
    auto const same = [&](std::vector<float> const& other) {
        return other.size() == plain.size() &&
               std::memcmp(other.data(), plain.data(), plain.size() * sizeof(float)) == 0;
    };
    CHECK(plain.size() == 150'000);
    CHECK(same(reduced<sealed<transport::tcp>>()));
    CHECK(
        same(reduced<sealed<chaos<transport::tcp, chaos_tuning{.duplicate_per_1000 = 200}>>>(chaos_seed{5})));
}
