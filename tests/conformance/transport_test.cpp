// herring: every transport passes the suite of its axis; a wrong one fails the case that it breaks.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/transport_suite.hpp"

#include "doctest/doctest.h"

#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

#include <array>
#include <memory>
#include <mutex>

using namespace herring::conformance;
using herring::completion;
using herring::errc;
using herring::peer_id;
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
    peels,       // loses envelopes
    confuses,    // envelopes: gives the one that was sent last
    half_token,  // gives back 32 bits of a token
    cuts,        // a message that is too long, in silence
    deaf,        // wait() does not hear messages
    endless,     // wait() does not look at the clock
    no_wake,     // wake() does nothing
    unstuck,     // wake() is forgotten when nobody waits just then
    keeps_quiet, // about peers that left
    forgets,     // takes copies, and loses those that nobody has received when it goes
    turns,       // the order of messages with one tag
    spills,      // a byte past the end of a receive
    overruns,    // the rest of a message that is too long, past the end of its receive
    pads,        // up to 8 bytes of what lies behind a message at its sender
    chatters,    // reports something where there are no peers
    impatient,   // drops messages whose receive is not posted
    stingy,      // takes 256 receives, whatever was announced
    few,         // knows seven ranks
    one_way,     // forgets receives that are posted within poll
    haunts,      // brings what an earlier one had not sent
    clings,      // abandon() does nothing
    lingers,     // nor does destruction
    greedy,      // takes more than max_message
    mixes        // two on one world
};

/// inproc, with the defect that `present` says.
class faulty {
  public:
    static inline fault present =
        fault::none; // not a template parameter: one instance of the suite compiles sooner

    using axis = herring::axes::transport;
    static constexpr char const* name = "faulty";
    static constexpr herring::transport_facts facts{.max_message = 250'000,
                                                    .keeps_order = true,
                                                    .abandons = true,
                                                    .envelope_bytes = 20,
                                                    .tuning = transport::inproc::facts.tuning};

    faulty(world& ranks, transport_needs const& needs)
        : rank_(static_cast<std::size_t>(ranks.rank())), alone_(needs.peers.empty()),
          peers_(needs.peers.begin(), needs.peers.end()), inner_(make(ranks, needs)) {
        if (first_[rank_] == nullptr) first_[rank_] = this;
        if (present != fault::haunts) left_behind_[rank_].clear();
        ghosts_.swap(left_behind_[rank_]);
        for (auto const& [peer, tag, bytes] : ghosts_) inner_->post_send(peer, tag, bytes, ghost);
    }
    ~faulty() {
        if (first_[rank_] == this) first_[rank_] = nullptr;
        if (present == fault::haunts)
            for (held const& one : unsent_)
                left_behind_[rank_].push_back({one.peer, one.tag, {one.from.begin(), one.from.end()}});
        if (present == fault::lingers) {
            std::lock_guard const lock(guard_);
            graveyard_.push_back(std::move(inner_));
        }
    }
    /// Frees what lingers.
    static void bury() { graveyard_.clear(); }

    bool post_send(peer_id peer, std::uint64_t tag, std::span<std::byte const> from,
                   std::uint64_t token) noexcept {
        if (present != fault::greedy && from.size() > facts.max_message) return false;
        if (present == fault::mixes && first_[rank_] != this && first_[rank_] != nullptr)
            return first_[rank_]->inner_->post_send(peer, tag, from, token);
        ++sends_;
        {
            std::lock_guard const lock(guard_);
            last_sent_[rank_] = from;
        }
        std::size_t const to = rank_of(peer);
        bool const early = present == fault::impatient && sent_to_[to]++ >= awaited_[to][rank_].load();
        if (early || (present == fault::few && to >= 7)) {
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            return true;
        }
        if (present == fault::haunts) unsent_.push_back({peer, tag, from, token, 0});
        if (present == fault::drops && sends_ % 100 == 0) {
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            return true;
        }
        if (present == fault::swaps) tag ^= 1;
        if (present == fault::forgets) {
            copies_.emplace_back(from.begin(), from.end());
            if (!inner_->post_send(peer, tag, copies_.back(), ghost)) return copies_.pop_back(), false;
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            return true;
        }
        if (present == fault::early) {
            made_up_.push_back({token, from.size(), peer, completion::sent, errc::ok, 0});
            held_.push_back({peer, tag, from, 0, polls_ + 3});
            return true;
        }
        if (present == fault::turns && held_.empty()) {
            held_.push_back({peer, tag, from, token, polls_ + 3});
            return true;
        }
        bool const posted = inner_->post_send(peer, tag, from, token);
        if (present == fault::turns) flush(true);
        return posted;
    }
    bool post_send(peer_id peer, std::uint64_t tag, std::span<std::byte const> envelope,
                   std::span<std::byte const> from, std::uint64_t token) noexcept {
        {
            std::lock_guard const lock(guard_);
            last_envelope_[rank_].assign(envelope.begin(), envelope.end());
        }
        return inner_->post_send(peer, tag, present == fault::peels ? envelope.first(0) : envelope, from,
                                 token);
    }
    bool post_receive(peer_id peer, std::uint64_t tag, std::span<std::byte> into,
                      std::uint64_t token) noexcept {
        if (present == fault::one_way && polling_) return true;
        if (present == fault::stingy && receives_.size() >= 256) return false;
        ++awaited_[rank_][rank_of(peer)];
        receives_.push_back({token, into});
        return inner_->post_receive(peer, tag, into, token);
    }
    template <class OnCompletion> std::size_t poll(OnCompletion&& on_completion) noexcept {
        ++polls_;
        flush(false);
        std::size_t count = 0;
        auto const report = [&](completion const& done) {
            ++count;
            polling_ = true;
            on_completion(done);
            polling_ = false;
        };
        if (present == fault::chatters && alone_) report({});
        std::vector<completion> const now = std::move(made_up_);
        made_up_.clear();
        for (completion const& done : now) report(done);
        inner_->poll([&](completion done) noexcept {
            if (done.what == completion::sent && done.token == ghost) return;
            if (present == fault::haunts && done.what == completion::sent)
                std::erase_if(unsent_, [&](held const& one) { return one.token == done.token; });
            if (present == fault::early && done.what == completion::sent) return;
            if (present == fault::keeps_quiet && done.what == completion::lost) return;
            if (present == fault::uncarried) done.tag &= ~herring::carried_bits;
            std::vector<std::byte> confused;
            if (present == fault::confuses && !done.envelope.empty()) {
                std::lock_guard const lock(guard_);
                confused = last_envelope_[rank_of(done.peer)];
                done.envelope = confused;
            }
            if (present == fault::half_token && done.what != completion::lost) done.token &= 0xffff'ffffu;
            if (done.what == completion::received)
                for (auto const& [token, into] : receives_) {
                    if (token != done.token) continue;
                    if (present == fault::cuts) done.bytes = std::min(done.bytes, into.size());
                    if (present == fault::overruns || present == fault::pads) write_past(into, done);
                    if (present == fault::spills) *(into.data() + into.size()) = std::byte{1};
                }
            if (present == fault::stingy && done.what == completion::received)
                std::erase_if(receives_, [&](auto const& r) { return r.first == done.token; });
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
        inner_->wait(until);
        waits_.store(false);
    }
    void wake() noexcept {
        if (present == fault::no_wake) return;
        if (present == fault::unstuck && !waits_.load()) return;
        inner_->wake();
    }
    void abandon() noexcept {
        if (present != fault::clings) inner_->abandon();
    }
    void register_memory(std::span<std::byte>) noexcept {}
    char const* describe(peer_id peer) const noexcept { return inner_->describe(peer); }

  private:
    static constexpr std::uint64_t ghost = ~std::uint64_t{0};
    struct left_behind {
        peer_id peer;
        std::uint64_t tag;
        std::vector<std::byte> bytes;
    };
    // A fault that lies between ranks needs what all of them see; a row is its rank's own.
    static inline std::array<faulty*, 16> first_{};
    static inline std::array<std::vector<left_behind>, 16> left_behind_{};
    static inline std::array<std::array<std::atomic<int>, 16>, 16> awaited_{};
    static inline std::array<std::span<std::byte const>, 16> last_sent_{};
    static inline std::array<std::vector<std::byte>, 16> last_envelope_{};
    static inline std::mutex guard_;
    static inline std::vector<std::unique_ptr<transport::inproc>> graveyard_;

    std::size_t rank_of(peer_id peer) const { return static_cast<std::size_t>(peers_[peer.place()]); }

    std::unique_ptr<transport::inproc> make(world& ranks, transport_needs const& needs) {
        for (auto& count : awaited_[rank_]) count.store(0);
        return std::make_unique<transport::inproc>(ranks, needs); // ends with a barrier
    }

    void write_past(std::span<std::byte> into, completion const& done) noexcept {
        std::lock_guard const lock(guard_);
        std::span<std::byte const> const from = last_sent_[rank_of(done.peer)];
        if (from.size() != done.bytes || from.size() < into.size()) return;
        std::size_t const end = present == fault::pads ? (from.size() + 7) / 8 * 8 : from.size();
        std::copy(from.data() + into.size(), from.data() + end, into.data() + into.size());
    }

    struct held {
        peer_id peer;
        std::uint64_t tag;
        std::span<std::byte const> from;
        std::uint64_t token;
        int due;
    };
    void flush(bool all) noexcept {
        while (!held_.empty() && (all || held_.front().due <= polls_)) {
            held const one = held_.front();
            held_.erase(held_.begin());
            inner_->post_send(one.peer, one.tag, one.from, one.token);
        }
    }

    std::size_t const rank_;
    bool const alone_;
    std::vector<int> const peers_;
    std::vector<std::vector<std::byte>> copies_; // outlive inner_, which reads them
    std::unique_ptr<transport::inproc> inner_;
    std::vector<completion> made_up_;
    std::vector<held> held_;
    std::vector<held> unsent_;
    std::vector<left_behind> ghosts_;
    std::array<int, 16> sent_to_{};
    bool polling_ = false;
    std::vector<std::pair<std::uint64_t, std::span<std::byte>>> receives_;
    std::atomic<bool> waits_{false};
    int polls_ = 0;
    int sends_ = 0;
    int reported_ = 0;
};

/// inproc with facts that are too small for the engine.
struct narrow : transport::inproc {
    using inproc::inproc;
    static constexpr herring::transport_facts facts{
        .tag_bits = 32, .abandons = true, .envelope_bytes = inproc::facts.envelope_bytes};
};
using turning = transport::chaos<transport::inproc, transport::chaos_tuning{.flip_per_1000 = 10}>;
using cutting = transport::chaos<transport::inproc, transport::chaos_tuning{.cut = {0, 1}, .after = 40}>;
using stopping = transport::chaos<transport::inproc, transport::chaos_tuning{.stop = 1, .after = 50}>;

constexpr milliseconds short_patience{300 * (HERRING_TEST_SLOW ? 4 : 1)};

/// What breaks what. Every case of the suite is there.
struct slip {
    fault what;
    std::string_view name; // of the case that finds it
};
constexpr std::array slips{
    slip{fault::chatters, "nobody"},
    slip{fault::miscounts, "sizes"},
    slip{fault::half_token, "sizes"},
    slip{fault::spills, "sizes"},
    slip{fault::twice, "any_order"},
    slip{fault::impatient, "unexpected"},
    slip{fault::stingy, "in_flight"},
    slip{fault::early, "back_pressure"},
    slip{fault::few, "everyone"},
    slip{fault::swaps, "tags"},
    slip{fault::uncarried, "carried"},
    slip{fault::peels, "envelopes"},
    slip{fault::confuses, "envelopes"},
    slip{fault::turns, "one_tag"},
    slip{fault::drops, "many"},
    slip{fault::one_way, "functor_posts"},
    slip{fault::deaf, "wait_for_message"},
    slip{fault::endless, "wait_ends"},
    slip{fault::no_wake, "wake"},
    slip{fault::unstuck, "wake"},
    slip{fault::keeps_quiet, "leave"},
    slip{fault::forgets, "last_words"},
    slip{fault::haunts, "destroy_in_flight"},
    slip{fault::clings, "abandon"},
    slip{fault::lingers, "destroy"},
    slip{fault::cuts, "too_long"},
    slip{fault::overruns, "too_long"},
    slip{fault::pads, "sizes"},
    slip{fault::greedy, "beyond"},
    slip{fault::mixes, "two_at_once"},
};

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

TEST_CASE("transport: what is wrong is found, by every case of the suite") {
    faulty::present = fault::none;
    CHECK(text(transport_suite<faulty>()) == "");
    for (auto const& one : transport_cases<faulty>::list) {
        std::string_view const name = one.name;
        bool const listed = name == "facts" || std::any_of(slips.begin(), slips.end(),
                                                           [&](slip const& s) { return s.name == name; });
        CAPTURE(name);
        CHECK(listed);
    }
    for (slip const& one : slips) {
        CAPTURE(one.name);
        faulty::present = one.what;
        // One case takes its time.
        milliseconds const more(one.name == "last_words" ? 2'000 : 0);
        findings const found = transport_suite<faulty>({.patience = short_patience + more, .only = one.name});
        faulty::present = fault::none;
        faulty::bury();
        CHECK_FALSE(found.empty());
        if (!found.empty()) MESSAGE(text(found.front()));
    }
    CHECK(text(run_case("facts", 1, {}, {}, transport_cases<narrow>::facts)) != "");
}

TEST_CASE("transport: what chaos destroys is found, and a finding says how to see it again") {
    settings const how{.patience = short_patience};
    std::array const all{text(run_case("many", 2, {}, how, transport_cases<turning>::many)),
                         text(run_case("any_order", 3, {}, how, transport_cases<cutting>::any_order)),
                         text(run_case("any_order", 3, {}, how, transport_cases<stopping>::any_order))};
    for (std::string const& found : all) {
        CAPTURE(found);
        CHECK(found != "");
        CHECK(found.find("again: HERRING_CHAOS_SEED=") != std::string::npos);
    }
}
