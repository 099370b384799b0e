// herring: ranks that do different things: throw, leave, call something else, give other sizes. Never a wrong result.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

using namespace fault;

namespace {

// Long enough for an operation that goes well; a misfit that only it ends is found then.
constexpr milliseconds deadline{700 * slower};

struct where {
    char const* name;
    bool on_nodes;
    bool two;
    int ranks;
    start how;
};

std::vector<where> places() {
    std::vector<where> made;
    for (start const how : {start::launch, start::join}) {
        made.push_back({"tcp", false, false, how == start::launch ? 2 : 3, how});
        made.push_back({"tcp", false, false, 4, how});
        made.push_back({"shared memory", true, false, how == start::launch ? 2 : 3, how});
        made.push_back({"shared memory", true, false, 4, how});
        if (how == start::join) made.push_back({"two nodes", true, true, 3, how});
        made.push_back({"two nodes", true, true, 4, how}); // of which 3 exchanges nothing with 0
    }
    return made;
}

setup setup_of(where const& p, std::string const& what) {
    setup s;
    s.how = p.how;
    s.ranks = p.ranks;
    if (p.two) s.nodes = two_nodes(p.ranks);
    s.name = std::string(p.name) + ": " + what;
    return s;
}

/// Plays `act(reducer, world, board)` on every rank, with the reducer that suits the place.
template <class Act> report play_at(where const& p, setup const& s, layout const& tensors, Act act) {
    auto const body = [&](auto* which, world& w, board& b) {
        std::remove_pointer_t<decltype(which)> reduce(w, tensors);
        step(reduce, w, 0);
        act(reduce, w, b);
    };
    return play(s, [&](world& w, board& b) {
        if (p.on_nodes)
            body(static_cast<shared*>(nullptr), w, b);
        else
            body(static_cast<flat*>(nullptr), w, b);
    });
}

/// All ranks ended in an error within `limit`, and none of them in success.
void check_all_fail(setup const& s, report const& seen, std::vector<errc> const& codes,
                    milliseconds limit = promptly) {
    INFO(s.name << " over " << to_string(s.how) << ", " << s.ranks << " ranks\n" << seen.text());
    for (int r = 0; r < s.ranks; ++r) {
        CAPTURE(r);
        auto const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.peer >= 0);
        CHECK(std::find(codes.begin(), codes.end(), one.why.what) != codes.end());
        CHECK(one.after_ms <= static_cast<double>(limit.count() * slower));
    }
}

layout const tensors{{"a", 50'000}, {"b", 3'000}, {"c", 400'000}, {"d", 10}};

} // namespace

TEST_CASE("misuse: a rank that throws in its function") {
    double most = 0;
    for (where const& p : places()) {
        for (bool const within : {false, true}) {
            int const victim = within ? p.ranks - 1 : 0;
            setup const s = setup_of(p, within ? "a rank throws in a step" : "a rank throws between steps");
            report const seen = play_at(p, s, tensors, [&](auto& reduce, world& w, board& b) {
                if (w.rank() == victim) {
                    if (within) reduce.ready(0);
                    b.strike();
                    throw std::runtime_error("of its own making");
                }
                for (int n = 1;; ++n) step(reduce, w, n);
            });
            check_named(s, seen, victim, {errc::peer_failed, errc::peer_lost});
            most = std::max(most, seen.slowest_ms(victim));
        }
    }
    std::printf("[misuse] throws: at most %.0f ms to the last error\n", most);
}

TEST_CASE("misuse: a rank that destroys its reducer in the middle of a step, and lives on") {
    double most = 0;
    for (where const& p : places()) {
        int const victim = 1;
        setup const s = setup_of(p, "a reducer destroyed in a step");
        auto const body = [&](auto* which, world& w, board& b) {
            using reducer = std::remove_pointer_t<decltype(which)>;
            if (w.rank() == victim) {
                {
                    reducer reduce(w, tensors);
                    reduce.ready(2);
                    reduce.ready(0);
                    b.strike();
                }
                outlast(b, w.size() - 1); // its world lives, its process too
                return;
            }
            reducer reduce(w, tensors);
            for (int n = 0;; ++n) step(reduce, w, n);
        };
        report const seen = play(s, [&](world& w, board& b) {
            if (p.on_nodes)
                body(static_cast<shared*>(nullptr), w, b);
            else
                body(static_cast<flat*>(nullptr), w, b);
        });
        check_named(s, seen, victim, {errc::peer_failed});
        most = std::max(most, seen.slowest_ms(victim));
    }
    std::printf("[misuse] destroys its reducer in a step: at most %.0f ms to the last error\n", most);
}

TEST_CASE("misuse: a rank that returns early, in order, while others go on") {
    double most = 0;
    for (where const& p : places()) {
        for (bool const lives : {false, true}) {
            int const victim = lives ? 0 : p.ranks - 1;
            setup const s =
                setup_of(p, lives ? "a rank ends its reducer, and lives on" : "a rank returns early");
            auto const body = [&](auto* which, world& w, board& b) {
                using reducer = std::remove_pointer_t<decltype(which)>;
                {
                    reducer reduce(w, tensors);
                    step(reduce, w, 0);
                    if (w.rank() != victim)
                        for (int n = 1;; ++n) step(reduce, w, n);
                    b.strike();
                }
                if (lives) outlast(b, w.size() - 1);
            };
            report const seen = play(s, [&](world& w, board& b) {
                if (p.on_nodes)
                    body(static_cast<shared*>(nullptr), w, b);
                else
                    body(static_cast<flat*>(nullptr), w, b);
            });
            check_named(s, seen, victim, {errc::peer_lost, errc::peer_failed});
            most = std::max(most, seen.slowest_ms(victim));
        }
    }
    std::printf("[misuse] leaves in order: at most %.0f ms to the last error\n", most);
}

TEST_CASE("misuse: the only server leaves when all that it still owes are sums") {
    // Everything is pushed: nothing but its results is waited for.
    setup s;
    s.ranks = 3;
    s.name = "one server leaves";
    report const seen = play(s, [&](world& w, board& b) {
        flat_of<herring::sharding::whole_tensor> reduce(w, layout{{"x", 1 << 16}});
        step(reduce, w, 0);
        std::vector<float> values(30'000, 1.0f);
        b.strike();
        if (w.rank() == 0) return; // and takes its reducer along
        reduce.all_reduce(values, plenty).value();
    });
    INFO(seen.text());
    for (int r = 1; r < 3; ++r) {
        auto const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.what == errc::peer_lost); // not its deadline
        CHECK(one.why.peer == 0);
    }
}

TEST_CASE("misuse: the last step of a rank that leaves is whole on all others") {
    // Whoever is done first goes, while its last bytes are still on their way.
    for (where const& p : places()) {
        setup const s = setup_of(p, "all leave when they are done");
        for (int round = 0; round < 3; ++round) {
            report const seen =
                play_at(p, s, layout{{"a", 1'000'000}, {"b", 100}}, [&](auto& reduce, world& w, board&) {
                    for (int n = 1; n < 4; ++n) step(reduce, w, n);
                });
            INFO(seen.text());
            for (auto const& one : seen.ranks) CHECK(one.how == state::done);
        }
    }
}

TEST_CASE("misuse: a rank calls all_reduce where the others are in a step") {
    double most = 0;
    for (where const& p : places()) {
        for (std::size_t const elements : {std::size_t{10}, std::size_t{3'000}, std::size_t{1'000'000}}) {
            int const other = elements == 3'000 ? 0 : p.ranks - 1;
            setup const s = setup_of(p, "all_reduce of " + std::to_string(elements) + " against a step");
            report const seen = play_at(p, s, tensors, [&](auto& reduce, world& w, board& b) {
                b.strike();
                if (w.rank() == other) {
                    std::vector<float> values(elements, 1.0f);
                    reduce.all_reduce(values, clock::now() + deadline).value();
                    throw std::runtime_error("not so: all_reduce returned a value: " +
                                             std::to_string(values[0]));
                }
                for (std::size_t i = 0; i < reduce.size(); ++i) {
                    fill(reduce, w, 1, i);
                    reduce.ready(i);
                }
                reduce.wait(clock::now() + deadline).value();
                throw std::runtime_error("not so: the step ended well");
            });
            check_all_fail(s, seen, {errc::mismatch});
            most = std::max(most, seen.slowest_ms(-1));
        }
    }
    std::printf("[misuse] all_reduce against a step: at most %.0f ms to the last error\n", most);
}

TEST_CASE("misuse: sizes of all_reduce that differ") {
    double most = 0;
    struct {
        std::size_t most_do, one_does;
    } const pairs[] = {{1'000, 1'001},         {10, 4'000},         {100, 2'000'000},   {2'000'000, 100},
                       {2'000'000, 2'000'001}, {1 << 20, 1 << 21},  {1 << 21, 1 << 20}, {3 << 20, 1 << 20},
                       {8'192, 16'384},        {65'536, 131'072},   {131'072, 65'536},  {4'000, 4'001},
                       {300'000, 300'016},     {32'768, 8 * 32'768}};
    int turn = 0;
    for (where const& p : places()) {
        for (auto const& pair : pairs) {
            int const other = ++turn % p.ranks;
            if (p.how == start::join && turn % 2 == 0) continue;
            setup const s = setup_of(p, "all_reduce of " + std::to_string(pair.most_do) + ", rank " +
                                            std::to_string(other) + " of " + std::to_string(pair.one_does));
            report const seen = play_at(p, s, layout{}, [&](auto& reduce, world& w, board& b) {
                std::size_t const own = w.rank() == other ? pair.one_does : pair.most_do;
                std::vector<float> good(5'000, 1.0f);
                reduce.all_reduce(good); // operations before it do not matter
                std::vector<float> values(own, 1.0f);
                b.strike();
                reduce.all_reduce(values, clock::now() + deadline).value();
                // Success anywhere is a sum of what does not belong together.
                throw std::runtime_error("not so: all_reduce returned " + std::to_string(values[0]) +
                                         " and " + std::to_string(values.back()));
            });
            check_all_fail(s, seen, {errc::mismatch});
            most = std::max(most, seen.slowest_ms(-1));
        }
    }
    std::printf("[misuse] other sizes: at most %.0f ms to the last error\n", most);
}

TEST_CASE("misuse: a rank does one operation more or fewer than the others, and the next one differs") {
    for (where const& p : places()) {
        int const other = p.ranks - 1;
        setup const s = setup_of(p, "one all_reduce fewer");
        report const seen = play_at(p, s, layout{}, [&](auto& reduce, world& w, board& b) {
            std::vector<float> first(2'000, 1.0f), second(3'000, 1.0f);
            b.strike();
            if (w.rank() != other) reduce.all_reduce(first, clock::now() + deadline).value();
            reduce.all_reduce(second, clock::now() + deadline).value();
            throw std::runtime_error("not so: all_reduce returned");
        });
        check_all_fail(s, seen, {errc::mismatch});
    }
}
