// herring: tests of transport/checked.hpp; tests/conformance has the suite over it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/transport/checked.hpp"

#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace herring;
using transport::chaos;
using transport::chaos_seed;
using transport::chaos_tuning;
using transport::checked;
using transport::inproc;

namespace {

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
template <class Transport> outcome stream(pair<Transport>& ends, std::uint64_t count) {
    outcome seen;
    std::vector<std::uint64_t> out(count), in(count);
    std::vector<bool> came(count);
    std::uint64_t posted = 0, expected = 0;
    for (int polls = 0; polls < 200'000 && seen.lost.empty() && (seen.sent < count || seen.received < count);
         ++polls) {
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

} // namespace

TEST_CASE("checked: facts are those of the transport that it decorates, of host memory, verified") {
    using plain = checked<transport::tcp>;
    CHECK(std::string(plain::name) == "checked<tcp>");
    CHECK(std::string(checked<chaos<inproc>>::name) == "checked<chaos<inproc>>");
    CHECK(plain::facts.verifies);
    CHECK(plain::facts.envelope_bytes == 0);
    CHECK_FALSE(plain::facts.device_memory);
    CHECK(plain::facts.keeps_order);
    CHECK(plain::facts.runs_handlers);
    CHECK(plain::facts.tuning == transport::tcp::facts.tuning);
    CHECK_FALSE(transport::tcp::facts.verifies);
    static_assert(transport_policy<plain>);
    static_assert(transport_policy<checked<inproc>>);
}

TEST_CASE("checked: the envelope is of this message and of no other") {
    using envelope = detail::checked_envelope;
    std::array<std::byte, 40> payload{};
    for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i * 5);
    detail::checked_message const what{.tag = 77, .counter = 5, .sender = 1, .receiver = 2};
    envelope::buffer const made = envelope::of(what, payload);
    envelope const right(made);
    CHECK(right.counter == 5);
    CHECK(right.is_of(what, payload));
    auto const other = [&](auto const& change) {
        detail::checked_message changed = what;
        change(changed);
        return right.is_of(changed, payload);
    };
    CHECK_FALSE(other([](auto& m) { m.tag ^= std::uint64_t{1} << 40; }));
    CHECK_FALSE(other([](auto& m) { m.counter = 6; }));
    CHECK_FALSE(other([](auto& m) { m.sender = 0; }));
    CHECK_FALSE(other([](auto& m) { m.receiver = 1; }));
    CHECK_FALSE(right.is_of(what, std::span(payload).first(39)));
    std::swap_ranges(payload.begin(), payload.begin() + 2, payload.begin() + 8); // TCP's sum stays
    CHECK_FALSE(right.is_of(what, payload));
    CHECK_FALSE(envelope(std::span(made).first(8)).is_of(what, payload));
    CHECK_FALSE(envelope(std::span<std::byte const>()).is_of(what, payload));
}

TEST_CASE("checked: messages that come twice are dropped, and the receives that they took are posted again") {
    pair<checked<chaos<inproc, chaos_tuning{.duplicate_per_1000 = 500}>>> ends(chaos_seed{3});
    outcome const seen = stream(ends, 2000);
    CHECK(seen.received == 2000);
    CHECK(seen.sent == 2000);
    CHECK(seen.wrong == 0);
    CHECK(seen.lost.empty());
    CHECK(ends[0].inner().counts().duplicated > 500);
    CHECK(ends[1].counts().repeated > 500);
    CHECK(ends[1].counts().received == 2000);
    CHECK(ends[1].counts().corrupted == 0);
}

TEST_CASE("checked: a changed message is no result: its sender is lost, with the size and the ranks") {
    pair<checked<chaos<inproc, chaos_tuning{.flip_per_1000 = 30}>>> ends(chaos_seed{4});
    outcome const seen = stream(ends, 2000);
    REQUIRE(seen.lost.size() == 1);
    CHECK(seen.lost[0].why == errc::corrupted);
    CHECK(seen.received < 2000);
    CHECK(seen.wrong == 0);
    CHECK(ends[1].counts().corrupted == 1);
    std::string const why = ends[1].describe(peer_id{0});
    CAPTURE(why);
    CHECK(why.find("8 bytes") != std::string::npos);
    CHECK(why.find("came to rank 1 otherwise than rank 0 sent it") != std::string::npos);
    // Nothing more of that rank.
    std::array<std::byte, 8> more{};
    CHECK_FALSE(ends[1].post_receive(peer_id{0}, 9, more, 1));
    CHECK_FALSE(ends[1].post_send(peer_id{0}, 9, more, 1));
    for (int i = 0; i < 100; ++i) CHECK(ends[1].poll([](completion const&) noexcept {}) == 0);
}

TEST_CASE(
    "checked: one turned bit in a reduction is an error that names the pair, on all ranks, and no result") {
    using turns = checked<chaos<transport::tcp, chaos_tuning{.flip_per_1000 = 20}>>;
    std::atomic<int> told{0}, named{0}, wrong{0};
    for (std::uint64_t seed = 1; seed <= 6; ++seed)
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
                named += std::string(why.what()).find("otherwise than rank") != std::string::npos;
            }
        });
    CHECK(wrong == 0);
    CHECK(told == 18);
    CHECK(named == 18);
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

TEST_CASE("checked: the bits of a reduction are those without it, also where messages come late and twice") {
    auto const plain = reduced<transport::tcp>();
    auto const same = [&](std::vector<float> const& other) {
        return other.size() == plain.size() &&
               std::memcmp(other.data(), plain.data(), plain.size() * sizeof(float)) == 0;
    };
    CHECK(plain.size() == 150'000);
    CHECK(same(reduced<checked<transport::tcp>>()));
    CHECK(same(
        reduced<checked<chaos<transport::tcp, chaos_tuning{.duplicate_per_1000 = 200}>>>(chaos_seed{5})));
}
