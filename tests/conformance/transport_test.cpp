// herring: every transport passes the suite of its axis; a wrong one fails the case that it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

using namespace herring::conformance;
using herring::completion;
using herring::errc;
using herring::exchange_tuning;
using herring::time_point;
using herring::transport_needs;
using herring::world;
using std::chrono::milliseconds;
namespace transport = herring::transport;

namespace {

/// Small limits, so that the paths around them are taken: several connections, poll() before reading, little memory
/// for messages that come early.
using cramped = transport::basic_tcp<transport::tcp_tuning{.chunk_bytes = 4096,
                                                           .window_bytes = 8192,
                                                           .connections = 3,
                                                           .direct_peers = 0,
                                                           .unexpected_bytes = 600'000}>;

enum class fault {
    none,
    drops,       // every 100th message
    swaps,       // the payloads of two tags
    early,       // says that a send is done before it has read it
    twice,       // reports every 50th completion twice
    miscounts,   // poll returns one too many
    uncarried,   // matches as it should, and loses the bits that are carried along
    half_token,  // gives back 32 bits of a token
    cuts,        // a message that is too long, in silence
    deaf,        // wait() does not hear messages
    endless,     // wait() does not look at the clock
    no_wake,     // wake() does nothing
    unstuck,     // wake() is forgotten when nobody waits just then
    keeps_quiet, // about peers that left
    turns,       // the order of messages with one tag
    spills       // a byte past the end of a receive
};

/// inproc, with the defect that `present` says.
class faulty {
  public:
    static inline fault present =
        fault::none; // not a template parameter: one instance of the suite compiles sooner

    using axis = herring::axes::transport;
    static constexpr char const* name = "faulty";
    static constexpr std::size_t max_message = transport::inproc::max_message;
    static constexpr int tag_bits = 64;
    static constexpr bool keeps_order = true;
    static constexpr bool registers_memory = false;
    static constexpr bool device_memory = false;
    static constexpr exchange_tuning tuning = transport::inproc::tuning;

    faulty(world& ranks, transport_needs const& needs) : inner_(ranks, needs) {}

    bool post_send(int peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        ++sends_;
        if (present == fault::drops && sends_ % 100 == 0) {
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            return true;
        }
        if (present == fault::swaps) tag ^= 1;
        if (present == fault::early) {
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            held_.push_back({peer, tag, from, 0, polls_ + 3});
            return true;
        }
        if (present == fault::turns && held_.empty()) {
            held_.push_back({peer, tag, from, token, polls_ + 3});
            return true;
        }
        bool const posted = inner_.post_send(peer, tag, from, token);
        if (present == fault::turns) flush(true);
        return posted;
    }
    bool post_receive(int peer, std::uint64_t tag, std::span<std::byte> into, std::uint64_t token) noexcept {
        receives_.push_back({token, into});
        return inner_.post_receive(peer, tag, into, token);
    }
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        ++polls_;
        flush(false);
        std::size_t count = 0;
        auto const report = [&](completion const& done) {
            ++count;
            on_completion(done);
        };
        std::vector<completion> const now = std::move(made_up_);
        made_up_.clear();
        for (completion const& done : now) report(done);
        inner_.poll([&](completion done) noexcept {
            if (present == fault::early && done.what == completion::sent) return;
            if (present == fault::keeps_quiet && done.what == completion::lost) return;
            if (present == fault::uncarried) done.tag &= ~herring::carried_bits;
            if (present == fault::half_token && done.what != completion::lost) done.token &= 0xffff'ffffu;
            if (done.what == completion::received)
                for (auto const& [token, into] : receives_) {
                    if (token != done.token) continue;
                    if (present == fault::cuts) done.bytes = std::min(done.bytes, into.size());
                    if (present == fault::spills) *(into.data() + into.size()) = std::byte{1};
                }
            report(done);
            if (present == fault::twice && ++reported_ % 50 == 0) report(done);
        });
        return count + (present == fault::miscounts && count > 0 ? 1 : 0);
    }
    void wait(time_point until) noexcept {
        if (present == fault::deaf) {
            while (herring::clock::now() < until) ::sched_yield();
            return;
        }
        if (present == fault::endless) until = herring::clock::now() + std::chrono::seconds(3);
        waits_.store(true);
        inner_.wait(until);
        waits_.store(false);
    }
    void wake() noexcept {
        if (present == fault::no_wake) return;
        if (present == fault::unstuck && !waits_.load()) return;
        inner_.wake();
    }
    void register_memory(std::span<std::byte>) noexcept {}
    char const* describe(int peer) const noexcept { return inner_.describe(peer); }

  private:
    struct held {
        int peer;
        std::uint64_t tag;
        std::span<std::byte const> from;
        std::uint64_t token;
        int due;
    };
    void flush(bool all) noexcept {
        while (!held_.empty() && (all || held_.front().due <= polls_)) {
            held const one = held_.front();
            held_.erase(held_.begin());
            inner_.post_send(one.peer, one.tag, one.from, one.token);
        }
    }

    transport::inproc inner_;
    std::vector<completion> made_up_;
    std::vector<held> held_;
    std::vector<std::pair<std::uint64_t, std::span<std::byte>>> receives_;
    std::atomic<bool> waits_{false};
    int polls_ = 0;
    int sends_ = 0;
    int reported_ = 0;
};

/// Whether the case finds something.
void caught_by(fault what, std::string_view name) {
    CAPTURE(name);
    settings const how{.patience = milliseconds(500 * (HERRING_TEST_SCALE > 1 ? 4 : 1)), .only = name};
    faulty::present = fault::none;
    CHECK(text(transport_suite<faulty>({.only = name})) == "");
    faulty::present = what;
    findings const found = transport_suite<faulty>(how);
    CHECK_FALSE(found.empty());
    if (!found.empty()) MESSAGE(text(found.front()));
}

} // namespace

TEST_CASE("transport: inproc") { CHECK(text(transport_suite<transport::inproc>()) == ""); }

TEST_CASE("transport: tcp, between threads") { CHECK(text(transport_suite<transport::tcp>()) == ""); }

TEST_CASE("transport: tcp, between processes") {
    CHECK(text(transport_suite<transport::tcp>({.start = ranks_as::processes})) == "");
}

TEST_CASE("transport: tcp with several connections and little memory") {
    CHECK(text(transport_suite<cramped>()) == "");
    CHECK(text(transport_suite<cramped>({.start = ranks_as::processes})) == "");
}

TEST_CASE("transport: what is wrong is found") {
    caught_by(fault::drops, "many");
    caught_by(fault::swaps, "tags");
    caught_by(fault::early, "back_pressure");
    caught_by(fault::twice, "any_order");
    caught_by(fault::miscounts, "sizes");
    caught_by(fault::half_token, "sizes");
    caught_by(fault::uncarried, "carried");
    caught_by(fault::cuts, "too_long");
    caught_by(fault::deaf, "wait_for_message");
    caught_by(fault::endless, "wait_ends");
    caught_by(fault::no_wake, "wake");
    caught_by(fault::unstuck, "wake");
    caught_by(fault::keeps_quiet, "leave");
    caught_by(fault::turns, "one_tag");
    caught_by(fault::spills, "sizes");
}
