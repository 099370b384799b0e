// herring: tests of the windows of a pair of ranks: every interleaving of a small model of the two.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/window.hpp"

#include "doctest/doctest.h"

#include "sanitizers.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace herring;
using namespace herring::detail;

namespace {

/// Visits every state that a model reaches by any order of its steps. A model has `enabled()`, the steps that it may take
/// now; `take(step)`, which returns what is wrong, or nullptr; `key()`, the same for equal states; `is_over()`; and can be
/// copied. Returns the first thing that is wrong.
template <class Model> std::string explore(Model const& start, std::size_t& states) {
    std::set<std::string> seen{start.key()};
    std::vector<Model> open{start};
    while (!open.empty()) {
        Model const now = std::move(open.back());
        open.pop_back();
        ++states;
        auto const steps = now.enabled();
        if (steps.empty() && !now.is_over()) return "stuck: " + now.key();
        for (auto const& step : steps) {
            Model next = now;
            if (char const* const wrong = next.take(step); wrong != nullptr)
                return wrong + (": " + next.key());
            if (seen.insert(next.key()).second) open.push_back(std::move(next));
        }
    }
    return {};
}

void add(std::string& key, std::uint64_t number) { (key += std::to_string(number)) += ' '; }
void add(std::string& key, std::set<std::uint64_t> const& numbers) {
    for (std::uint64_t const n : numbers) add(key, n);
    key += "| ";
}

// ---- two hops -----------------------------------------------------------------------------------------------------

/// A contributor and a server. Messages, either way, come in any order, at any time. `late`: receives of the server's first
/// window may be posted at any later time, as where the transport refuses them; pushes wait for them.
class two_hop_pair {
  public:
    enum class kind { open, prepare, send, push_comes, repost, answer, result_comes };
    struct step {
        kind what;
        std::uint64_t number = 0;
    };

    two_hop_pair(std::uint32_t size, std::uint64_t messages, bool late)
        : size_(size), messages_(messages), late_(late), pushes_(size), served_(size) {
        while (!late && served_.to_post() < size) post();
    }
    // A window is not copied: the other one takes the same steps.
    two_hop_pair(two_hop_pair const& other) : two_hop_pair(other.size_, other.messages_, other.late_) {
        for (step const& one : other.taken_) take(one);
    }
    two_hop_pair(two_hop_pair&&) = default;

    std::vector<step> enabled() const {
        std::vector<step> steps;
        if (pushes_.next() < messages_ && pushes_.has_credit())
            steps.push_back({pushes_.is_prepared() ? kind::send : kind::prepare});
        if (served_.to_post() < size_) steps.push_back({kind::open});
        for (std::uint64_t const n : pushed_)
            if (posted_.count(n) != 0) steps.push_back({kind::push_comes, n});
        if (is_reposted())
            steps.push_back({kind::answer});
        else if (served_.arrived().here || left_)
            steps.push_back({kind::repost});
        for (std::uint64_t const n : returned_) steps.push_back({kind::result_comes, n});
        return steps;
    }

    char const* take(step const& one) {
        taken_.push_back(one);
        switch (one.what) {
        case kind::open:
            if (char const* const wrong = post(); wrong != nullptr) return wrong;
            break;
        case kind::prepare: {
            std::uint64_t const n = pushes_.next();
            if (pushes_.slot() != n % size_) return "a push uses another slot than its number says";
            for (std::uint64_t const other : unanswered_)
                if (other % size_ == n % size_) return "a slot is written before its push is answered";
            pushes_.prepare({.offset = n}, n);
            break;
        }
        case kind::send: {
            std::uint64_t const n = pushes_.next();
            if (!late_ && posted_.count(n) == 0) return "a push is sent before its receive is posted";
            pushes_.sent();
            pushed_.insert(n);
            unanswered_.insert(n);
            if (unanswered_.size() > size_) return "more is in flight than there are credits";
            if (pushes_.is_prepared() || pushes_.next() != n + 1) return "the push after it is not the next";
            break;
        }
        case kind::push_comes: {
            std::size_t const slot = one.number % size_;
            if (!held_.insert(slot).second) return "a slot of the server is overwritten before its answer";
            if (posted_.erase(one.number) == 0) return "a push comes twice";
            pushed_.erase(one.number);
            served_.arrives(slot, {.bytes = one.number, .here = true});
            break;
        }
        case kind::repost: {
            std::uint64_t const n = served_.next();
            if (served_.arrived().bytes != n) return "another push is served than is next";
            left_ = true;
            served_.vacate();
            if (served_.arrived().here) return "a slot that was left is not empty";
            held_.erase(n % size_);
            if (char const* const wrong = post(); wrong != nullptr) return wrong;
            if (is_reposted() != (served_.to_post() == n + size_ + 1))
                return "the slot that was left is not the last one that is posted";
            break;
        }
        case kind::answer:
            returned_.insert(served_.next());
            left_ = false;
            served_.answered();
            if (is_reposted()) return "the receive of the next push counts as posted";
            break;
        case kind::result_comes: {
            std::size_t const slot = one.number % size_;
            push_window::flight const& back = pushes_.in_slot(slot);
            if (back.execution != one.number || back.what.offset != one.number)
                return "a result comes to a slot that is another push's";
            returned_.erase(one.number);
            unanswered_.erase(one.number);
            pushes_.answered(slot);
            break;
        }
        }
        if (posted_.size() + held_.size() > size_) return "more receives are posted than there are slots";
        if (pushes_.any_unanswered() != !unanswered_.empty()) return "the window lost count";
        if (!unanswered_.empty() && pushes_.oldest_unanswered().execution != *unanswered_.begin())
            return "the oldest push is another one";
        return nullptr;
    }

    bool is_over() const {
        return pushes_.next() == messages_ && unanswered_.empty() && served_.next() == messages_;
    }

    std::string key() const {
        std::string key;
        add(key, pushes_.next() * 2 + pushes_.is_prepared());
        add(key, served_.next() * 2 + left_);
        add(key, served_.to_post());
        add(key, pushed_);
        add(key, returned_);
        add(key, unanswered_);
        return key;
    }

  private:
    /// The receive of the push that the next answer allows is posted.
    bool is_reposted() const { return served_.to_post() > served_.next() + served_.size(); }
    /// The server's next receive.
    char const* post() {
        std::uint64_t const n = served_.to_post();
        served_.posted();
        if (held_.count(n % size_) != 0) return "a receive is posted into a slot that holds a push";
        return posted_.insert(n).second ? nullptr : "a receive is posted twice";
    }

    std::uint32_t size_;
    std::uint64_t messages_;
    bool late_;
    bool left_ = false; // the slot of the push that is answered next
    push_window pushes_;
    serve_window served_;
    std::vector<step> taken_;
    std::set<std::uint64_t> posted_;     // receives of the server, by the numbers of their pushes
    std::set<std::uint64_t> pushed_;     // on their way to the server
    std::set<std::size_t> held_;         // slots of the server with a push that is not answered
    std::set<std::uint64_t> returned_;   // on their way back
    std::set<std::uint64_t> unanswered_; // pushes that were sent
};

// ---- one hop ------------------------------------------------------------------------------------------------------

/// Two ranks that exchange parts. A rank sends part n when it has combined its part n − size/2. `late`: the receive that a
/// combined part allows may be posted at any later time, as where the transport refuses it; parts wait for it.
class one_hop_pair {
  public:
    enum class kind { send, comes, combine, post };
    struct step {
        kind what;
        int rank = 0; // that sends, gets, combines or posts
        std::uint64_t number = 0;
    };

    one_hop_pair(std::uint64_t messages, bool late) : messages_(messages), late_(late) {
        for (side& one : sides_) post_all(one);
    }

    std::vector<step> enabled() const {
        std::vector<step> steps;
        for (int r = 0; r < 2; ++r) {
            side const& mine = sides_[r];
            side const& other = sides_[1 - r];
            std::uint64_t const combined = mine.window.next_in();
            if (mine.window.next_out() < messages_ &&
                mine.window.next_out() - combined < exchange_window::size / 2)
                steps.push_back({kind::send, r});
            for (std::uint64_t n = 0; n < messages_; ++n)
                if (other.on_its_way.has(n) && mine.posted.has(n)) steps.push_back({kind::comes, r, n});
            if (combined < mine.window.next_out() && mine.window.arrived().here)
                steps.push_back({kind::combine, r});
            if (late_ && mine.window.owes_receive()) steps.push_back({kind::post, r});
        }
        return steps;
    }

    char const* take(step const& one) {
        side& mine = sides_[one.rank];
        side& other = sides_[1 - one.rank];
        switch (one.what) {
        case kind::send: {
            std::uint64_t const n = mine.window.next_out();
            if (!late_ && !other.posted.has(n)) return "a part is sent before its receive is posted";
            mine.window.sent();
            mine.on_its_way.insert(n);
            break;
        }
        case kind::comes: {
            std::size_t const slot = exchange_window::slot_of(one.number);
            other.on_its_way.erase(one.number);
            mine.posted.erase(one.number);
            if (!mine.held.insert(slot)) return "a slot is overwritten before its part is combined";
            mine.window.arrives(slot, {.bytes = one.number, .here = true});
            break;
        }
        case kind::combine: {
            std::uint64_t const n = mine.window.next_in();
            if (mine.window.arrived().bytes != n) return "another part is combined than is next";
            mine.held.erase(exchange_window::slot_of(n));
            mine.window.combined();
            if (mine.window.next_in() != n + 1) return "the part after it is not the next";
            if (!late_) post_all(mine);
            break;
        }
        case kind::post:
            post_one(mine);
            break;
        }
        if (mine.posted.size() + mine.held.size() > static_cast<int>(exchange_window::size))
            return "more receives are posted than there are slots";
        for (std::uint64_t n = 0; n < mine.window.to_post(); ++n)
            if (mine.posted.has(n) && mine.held.has(exchange_window::slot_of(n)))
                return "a receive is posted into a slot that holds a part";
        return nullptr;
    }

    bool is_over() const {
        return sides_[0].window.next_in() == messages_ && sides_[1].window.next_in() == messages_;
    }
    std::string key() const {
        std::string keys[2];
        for (int r = 0; r < 2; ++r) {
            add(keys[r], sides_[r].window.next_out());
            add(keys[r], sides_[r].window.next_in());
            add(keys[r], sides_[r].window.to_post());
            add(keys[r], sides_[r].on_its_way.bits);
        }
        return keys[0] < keys[1] ? keys[0] + keys[1] : keys[1] + keys[0]; // the ranks do the same
    }

  private:
    /// A set of numbers below 64.
    struct numbers {
        std::uint64_t bits = 0;
        bool has(std::uint64_t n) const { return (bits >> n & 1) != 0; }
        bool insert(std::uint64_t n) {
            bool const is_new = !has(n);
            bits |= std::uint64_t{1} << n;
            return is_new;
        }
        void erase(std::uint64_t n) { bits &= ~(std::uint64_t{1} << n); }
        int size() const { return std::popcount(bits); }
    };
    struct side {
        exchange_window window;
        numbers posted;     // receives, by the numbers of their parts
        numbers on_its_way; // parts to the other rank
        numbers held;       // slots with a part that is not combined
    };
    static void post_one(side& mine) {
        mine.posted.insert(mine.window.to_post());
        mine.window.posted();
    }
    static void post_all(side& mine) {
        while (mine.window.owes_receive()) post_one(mine);
    }

    std::uint64_t messages_;
    bool late_;
    side sides_[2];
};

} // namespace

TEST_CASE(
    "window: two hops: in every order of pushes and results no slot is overwritten, and all are answered") {
    for (std::uint32_t size = 1; size <= 4; ++size) {
        CAPTURE(size);
        std::size_t states = 0;
        CHECK(explore(two_hop_pair(size, 2 * size + 1, false), states) == "");
        CHECK(states > 10 * size);
        std::size_t late = 0;
        CHECK(explore(two_hop_pair(size, 2 * size + 1, true), late) == "");
        CHECK(late > states);
    }
}

TEST_CASE("window: a credit comes back when all pushes before it are answered, in whatever order they are") {
    push_window window(3);
    for (std::uint64_t n = 0; n < 3; ++n) {
        CHECK(window.has_credit());
        CHECK_FALSE(window.is_prepared());
        window.prepare({}, n);
        CHECK(window.is_prepared());
        window.sent();
    }
    CHECK_FALSE(window.has_credit());
    window.answered(1);
    window.answered(2);
    CHECK_FALSE(window.has_credit()); // slot 0 is the next one
    CHECK(window.oldest_unanswered().execution == 0);
    window.answered(0);
    CHECK_FALSE(window.any_unanswered());
    CHECK(window.slot() == 0);
    for (std::uint64_t n = 3; n < 6; ++n) {
        CHECK(window.has_credit());
        window.prepare({}, n);
        window.sent();
    }
    CHECK_FALSE(window.has_credit());
    CHECK(window.next() == 6);
}

TEST_CASE("window: one hop: two half windows suffice, in every order of parts") {
    for (bool const late : {false, true}) {
        if (late && (HERRING_TEST_ASAN || HERRING_TEST_TSAN)) continue; // 264,838 states
        CAPTURE(late);
        std::size_t states = 0;
        CHECK(explore(one_hop_pair(exchange_window::size + 1, late), states) == "");
        CHECK(states > 1000);
    }
}

TEST_CASE(
    "window: a row of slots is taken from the front of the staging memory; slots lie one behind the other") {
    std::vector<std::byte> memory(100);
    std::span<std::byte> left(memory);
    slot_row const first = slot_row::taken_from(left, 3, 20), second = slot_row::taken_from(left, 2, 16);
    CHECK(left.size() == 8);
    CHECK(left.data() == memory.data() + 92);
    for (std::size_t slot = 0; slot < 3; ++slot) {
        CHECK(first.at(slot).data() == memory.data() + slot * 20);
        CHECK(first.at(slot).size() == 20);
    }
    CHECK(second.at(1).data() == memory.data() + 76);
    CHECK(second.at(1).size() == 16);
}

TEST_CASE("window: a queue has each peer once, in the order in which they came, and turns round") {
    peer_queue queue(3);
    CHECK(queue.room() == 3);
    CHECK(queue.size() == 0);
    for (std::size_t const peer : {2u, 0u, 2u}) queue.add(peer);
    CHECK(queue.size() == 2);
    CHECK(queue.front() == 2);
    queue.rotate();
    CHECK(queue.front() == 0);
    queue.add(1);
    CHECK(queue.size() == 3); // all of them: the ring is full
    for (std::size_t const peer : {0u, 2u, 1u, 0u, 2u}) {
        CHECK(queue.front() == peer);
        queue.rotate();
    }
    queue.drop_front();
    queue.add(1); // it is new again, behind the others
    for (std::size_t const peer : {0u, 2u, 1u}) {
        CHECK(queue.front() == peer);
        queue.drop_front();
    }
    CHECK(queue.size() == 0);
}

TEST_CASE("window: a route looks for stale messages of all peers once for each move of its cursor, and of "
          "those from which something has come since") {
    stale_watch watch(4);
    std::vector<std::size_t> seen;
    auto const look = [&](std::uint64_t at, std::size_t stale = 4) {
        seen.clear();
        watch.look(at, [&](std::size_t peer) {
            seen.push_back(peer);
            return peer == stale;
        });
        return seen;
    };
    using peers = std::vector<std::size_t>;
    CHECK(look(0) == peers{});
    CHECK(look(1) == peers{0, 1, 2, 3});
    CHECK(look(1) == peers{});
    watch.came(2);
    watch.came(1);
    watch.came(2);
    CHECK(look(1) == peers{2, 1});
    CHECK(look(1) == peers{});
    watch.came(3);
    CHECK(look(2) == peers{3, 0, 1, 2}); // once for both
    CHECK(look(2) == peers{});
    CHECK(look(3, 1) == peers{0, 1}); // the engine has ended
}
