// herring: a rank that does not come to a reduce_scatter, all_gather or broadcast, or dies in one, is named to all others.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include "herring/collectives/all_gather.hpp"
#include "herring/collectives/broadcast.hpp"
#include "herring/collectives/reduce_scatter.hpp"

#include <thread>
#include <utility>

using namespace fault;

namespace {

enum class call { reduce_scatter, all_gather, broadcast };
constexpr call calls[] = {call::reduce_scatter, call::all_gather, call::broadcast};

constexpr char const* to_string(call c) {
    switch (c) {
    case call::reduce_scatter:
        return "reduce_scatter";
    case call::all_gather:
        return "all_gather";
    case call::broadcast:
        return "broadcast";
    }
    return "?";
}

/// One call whose result is checked; a failure is thrown.
template <class Reducer>
void make(call c, Reducer& reduce, world const& w, std::size_t n, milliseconds timeout) {
    herring::range const own = reduce.owned(n, w.rank());
    std::vector<float> all(n, static_cast<float>(w.rank() + 1)),
        mine(own.elements, static_cast<float>(w.rank() + 1));
    switch (c) {
    case call::reduce_scatter:
        herring::reduce_scatter(reduce, all, mine, timeout).value();
        for (float const x : mine) require(x == sum_of(w.size(), 0, 0), "a sum");
        break;
    case call::all_gather:
        herring::all_gather(reduce, mine, all, timeout).value();
        for (int r = 0; r < w.size(); ++r)
            if (herring::range const theirs = reduce.owned(n, r); theirs.elements > 0)
                require(all[theirs.offset] == static_cast<float>(r + 1), "a range");
        break;
    case call::broadcast:
        herring::broadcast(reduce, all, 0, timeout).value();
        require(n == 0 || (all[0] == 1 && all[n - 1] == 1), "the root's buffer");
        break;
    }
}

setup scene_of(call c, std::size_t n, char const* what, std::vector<std::string> nodes) {
    setup s;
    s.ranks = static_cast<int>(nodes.size());
    s.nodes = std::move(nodes);
    s.name = std::string(to_string(c)) + " of " + std::to_string(n) + ": " + what;
    return s;
}

template <class Reducer> void never_calls(std::vector<std::string> const& nodes) {
    for (call const c : calls)
        for (std::size_t const n : {1000u, 1'000'000u}) {
            setup const s = scene_of(c, n, "a rank never calls", nodes);
            int const victim = s.ranks - 1;
            report const seen = play(s, [&](world& w, board& b) {
                Reducer reduce(w);
                make(c, reduce, w, n, plenty);
                if (w.rank() == victim) {
                    outlast(b, w.size() - 1);
                    ::kill(::getpid(), SIGKILL);
                }
                b.strike();
                make(c, reduce, w, n, milliseconds(150 * slower));
            });
            check_named(s, seen, victim, {errc::timeout}, milliseconds(2'500));
        }
}

template <class Reducer> void is_killed(std::vector<std::string> const& nodes) {
    for (call const c : calls)
        for (std::size_t const n : {1000u, 1'000'000u}) {
            setup const s = scene_of(c, n, "a rank is killed", nodes);
            int const victim = s.ranks / 2;
            report const seen = play(s, [&](world& w, board& b) {
                Reducer reduce(w);
                make(c, reduce, w, n, plenty);
                if (w.rank() == victim)
                    std::thread([&b] {
                        std::this_thread::sleep_for(milliseconds(5)); // makes the moment arbitrary
                        b.die();
                    }).detach();
                while (true) make(c, reduce, w, n, plenty);
            });
            check_named(s, seen, victim, {errc::peer_lost});
        }
}

/// A misuse of this rank's, which is thrown.
template <class Reducer> void misuse(call c, Reducer& reduce) {
    std::vector<float> all(1000), mine(1);
    switch (c) {
    case call::reduce_scatter:
        return herring::reduce_scatter(reduce, all, mine);
    case call::all_gather:
        return herring::all_gather(reduce, mine, all);
    case call::broadcast:
        return herring::broadcast(reduce, all, 3);
    }
}

template <class Reducer> void ends_by_misuse(std::vector<std::string> const& nodes) {
    for (call const c : calls) {
        setup s = scene_of(c, 1000, "a misuse ends a rank", nodes);
        s.how = start::join; // launch would tell of any exception
        report const seen = play(s, [&](world& w, board& b) {
            Reducer reduce(w);
            make(c, reduce, w, 1000, plenty);
            if (w.rank() == 1) {
                b.strike();
                misuse(c, reduce);
            }
            make(c, reduce, w, 1000, plenty);
        });
        check_named(s, seen, 1, {errc::peer_failed});
        for (auto const& one : seen.ranks) {
            std::string const text = one.why.message();
            CAPTURE(text);
            CHECK(text.find(std::string(to_string(c)) + ": bad argument: ") != std::string::npos);
        }
    }
}

template <class Reducer> void differs_by_no_elements(std::vector<std::string> const& nodes) {
    for (call const c : calls)
        for (std::size_t const n : {1000u, 1'000'000u})
            for (int const victim : {0, 1}) {
                setup const s = scene_of(c, n, "none on a rank", nodes);
                report const seen = play(s, [&](world& w, board& b) {
                    Reducer reduce(w);
                    make(c, reduce, w, 0, plenty);
                    b.strike();
                    make(c, reduce, w, w.rank() == victim ? 0 : n, plenty);
                });
                INFO(s.name << "\n" << seen.text());
                for (auto const& one : seen.ranks) {
                    CHECK(one.how == state::error);
                    CHECK(one.why.what == errc::mismatch);
                    CHECK(std::string(one.why.operation) == to_string(c));
                    CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
                }
            }
}

} // namespace

TEST_CASE("collectives: a rank that never calls is named at the deadline") {
    never_calls<flat>({"a", "b", "c"});
    never_calls<shared>({"a", "a", "b"});
    never_calls<shared>({"a", "a", "a"});
}

TEST_CASE("collectives: a rank that is killed in one is named to all others") {
    is_killed<flat>({"a", "b", "c"});
    is_killed<shared>({"a", "b", "b"});
    is_killed<shared>({"a", "a"});
}

TEST_CASE("collectives: a misuse of one rank's loses nothing") {
    for (call const c : calls) {
        setup const s = scene_of(c, 1000, "one rank gives a wrong size first", {"a", "a", "b"});
        report const seen = play(s, [&](world& w, board&) {
            shared reduce(w);
            if (w.rank() == 1) {
                try {
                    misuse(c, reduce);
                    require(false, "it is refused");
                } catch (herring::error const& why) {
                    require(why.code() == errc::bad_argument, why.what());
                }
            }
            make(c, reduce, w, 1000, plenty);
        });
        INFO(seen.text());
        for (auto const& one : seen.ranks) CHECK(one.how == state::done);
    }
}

TEST_CASE("collectives: a misuse that ends a rank is told to all others, with its text") {
    ends_by_misuse<flat>({"a", "b", "c"});
    ends_by_misuse<shared>({"a", "a", "b"});
    ends_by_misuse<shared>({"a", "a"});
}

TEST_CASE("collectives: no elements on one rank is a mismatch on all, by the name of the call") {
    differs_by_no_elements<flat>({"a", "b"});
    differs_by_no_elements<flat>({"a", "b", "c"});
    differs_by_no_elements<shared>({"a", "a", "b"});
    differs_by_no_elements<shared>({"a", "a"});
    differs_by_no_elements<shared>({"a", "a", "a"});
}

TEST_CASE("collectives: a misuse that was caught says nothing of what ends the rank later") {
    setup s = scene_of(call::broadcast, 1000, "a misuse is caught", {"a", "b"});
    s.how = start::join;
    report const seen = play(s, [&](world& w, board&) {
        flat reduce(w);
        if (w.rank() == 1) try {
                misuse(call::broadcast, reduce);
            } catch (herring::error const&) {
            }
        make(call::broadcast, reduce, w, 1000, plenty);
        if (w.rank() == 1) throw std::runtime_error("not of Herring");
        make(call::broadcast, reduce, w, 1000, plenty);
    });
    INFO(seen.text());
    CHECK(seen.ranks[0].how == state::error);
    CHECK(seen.ranks[0].why.message().find("bad argument") == std::string::npos);
    CHECK(seen.ranks[1].how == state::other);
}
