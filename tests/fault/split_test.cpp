// herring: groups of a world: a lost rank ends the worlds that have it, and no other; who is missing in a split is named.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <functional>
#include <optional>
#include <thread>

using namespace fault;
using namespace std::chrono_literals;

namespace {

constexpr start starts[] = {start::launch, start::join};

/// Two rows of two: {0, 1} and {2, 3}.
setup grid(start how, char const* name) {
    setup made;
    made.how = how;
    made.ranks = 4;
    made.name = name;
    made.failure_detector = {.heartbeat = 100ms, .long_wait = 300ms};
    return made;
}

/// `call` throws; returns what.
template <class Call> failure thrown_by(Call&& call) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.why();
    }
    throw std::runtime_error("not so: the call throws");
}

void require_failure(failure const& seen, errc what, int peer, std::string const& words = {}) {
    require(seen.what == what && seen.peer == peer && std::string(seen.text).find(words) != std::string::npos,
            to_string(what) + std::string(" of rank ") + std::to_string(peer) + " " + words + ", but " +
                seen.message());
}

/// A group works: collectives, a reducer, and a group of the group.
void use(world& group, int step_number = 0) {
    group.barrier();
    flat reduce(group, layout{{"few", 3}, {"many", 70'000}});
    step(reduce, group, step_number);
    world same = group.split(0);
    require(same.size() == group.size(), "a split of a group has its ranks");
    same.barrier();
}

void all_done(setup const& how, report const& seen, int victim = -1) {
    INFO(how.name << " over " << to_string(how.how) << "\n" << seen.text());
    for (int r = 0; r < how.ranks; ++r)
        if (r != victim) CHECK(seen.ranks[static_cast<std::size_t>(r)].how == state::done);
}

} // namespace

TEST_CASE("split: a rank that is killed ends the worlds that have it, and its neighbours' group goes on") {
    for (start const how : starts)
        for (int const victim : {1, 3}) {
            setup const here = grid(how, "killed in a group");
            report const seen = play(here, [victim](world& w, board& b) {
                world row = w.split(w.rank() / 2, w.rank());
                world column = w.split(w.rank() % 2, w.rank());
                use(row);
                b.entered.fetch_add(1);
                if (w.rank() == victim) {
                    await(b.entered, 4);
                    b.die();
                }
                if (w.rank() / 2 == victim / 2) {
                    require_failure(thrown_by([&] { row.barrier(); }), errc::peer_lost, victim % 2);
                } else {
                    await(b.struck_ns, 1);
                    while (w.failed() == nullptr) ::sched_yield();
                    use(row, 1);
                }
                if (w.rank() % 2 == victim % 2)
                    require_failure(thrown_by([&] { column.barrier(); }), errc::peer_lost, victim / 2);
                require_failure(thrown_by([&] { w.barrier(); }), errc::peer_lost, victim);
                require_failure(thrown_by([&] { (void)w.split(0); }), errc::peer_lost, victim);
                if (w.rank() / 2 != victim / 2) use(row, 2);
            });
            all_done(here, seen, victim);
        }
}

TEST_CASE("split: a group that has lost the carrier of its messages, rank 0 of the joined world, says so") {
    setup const here = grid(start::join, "rank 0 is killed");
    report const seen = play(here, [](world& w, board& b) {
        world row = w.split(w.rank() / 2, w.rank());
        b.entered.fetch_add(1);
        if (w.rank() == 0) {
            await(b.entered, 4);
            b.die();
        }
        if (w.rank() == 1) require_failure(thrown_by([&] { row.barrier(); }), errc::peer_lost, 0);
        if (w.rank() >= 2)
            require_failure(thrown_by([&] {
                                await(b.struck_ns, 1);
                                for (;;) row.barrier();
                            }),
                            errc::peer_lost, -1, "rank 0 of the joined world, is lost");
    });
    all_done(here, seen, 0);
    // Memory has no carrier.
    setup const there = grid(start::launch, "rank 0 is killed");
    report const other = play(there, [](world& w, board& b) {
        world row = w.split(w.rank() / 2, w.rank());
        b.entered.fetch_add(1);
        if (w.rank() == 0) {
            await(b.entered, 4);
            b.die();
        }
        if (w.rank() == 1) return require_failure(thrown_by([&] { row.barrier(); }), errc::peer_lost, 0);
        while (w.failed() == nullptr) ::sched_yield();
        use(row);
    });
    all_done(there, other, 0);
}

TEST_CASE("split: what a rank announces in a group or in its parent ends that world alone") {
    for (start const how : starts) {
        setup const here = grid(how, "announced failures");
        report const seen = play(here, [](world& w, board&) {
            world row = w.split(w.rank() / 2, w.rank());
            world column = w.split(w.rank() % 2, w.rank());
            if (w.rank() == 1) row.fail(failure::make(errc::bad_argument, 1, -1, "test", "not this"));
            if (w.rank() < 2)
                require_failure(thrown_by([&] {
                                    for (;;) row.barrier();
                                }),
                                w.rank() == 1 ? errc::bad_argument : errc::peer_failed,
                                w.rank() == 1 ? -1 : 1, "not this");
            else
                use(row);
            use(column);
            w.barrier();
            if (w.rank() == 2) w.fail(failure::make(errc::bad_argument, 2, -1, "test", "not that"));
            (void)thrown_by([&] {
                for (;;) w.barrier();
            });
            use(column, 1);
        });
        all_done(here, seen);
    }
}

TEST_CASE("split: a deadline that passes in the parent ends the parent, and no group") {
    for (start const how : starts) {
        setup const here = grid(how, "a deadline of the parent");
        report const seen = play(here, [](world& w, board& b) {
            world row = w.split(w.rank() / 2, w.rank());
            if (w.rank() != 3)
                require_failure(thrown_by([&] { w.barrier(300ms); }), errc::timeout, 3, "rank 3");
            else
                while (w.failed() == nullptr) ::sched_yield();
            b.entered.fetch_add(1);
            use(row);
        });
        all_done(here, seen);
    }
}

TEST_CASE("split: who is in another call, has left, dies or does not come is named on all ranks") {
    struct kind {
        char const* name;
        errc what;
        std::function<void(world&, board&)> last; // what rank 3 does
    };
    kind const kinds[] = {
        {"in an all_gather", errc::mismatch, [](world& w, board&) { (void)w.all_gather({}); }},
        {"in a reducer", errc::mismatch,
         [](world& w, board& b) {
             flat reduce(w, layout{{"a", 3}}); // constructed by all
             b.strike();
             step(reduce, w, 0);
         }},
        {"left", errc::peer_lost, [](world& w, board&) { world const gone = std::move(w); }},
        {"killed", errc::peer_lost, [](world&, board& b) { b.die(); }},
        {"computes", errc::timeout, [](world&, board& b) { outlast(b, 3); }},
    };
    for (start const how : starts)
        for (kind const& each : kinds) {
            setup const here = grid(how, each.name);
            report const seen = play(here, [&each](world& w, board& b) {
                if (w.rank() == 3) {
                    try {
                        each.last(w, b);
                    } catch (herring::error const&) {
                    }
                    return;
                }
                std::optional<flat> reduce;
                if (each.name == std::string("in a reducer")) reduce.emplace(w, layout{{"a", 3}});
                failure const seen_here =
                    thrown_by([&] { (void)w.split(0, 0, each.what == errc::timeout ? 300ms : plenty); });
                bool const knows = seen_here.what == each.what || seen_here.what == errc::peer_lost;
                require(knows && (seen_here.peer == 3 ||
                                  std::string(seen_here.text).find("rank 3") != std::string::npos),
                        std::string("rank 3 is named, but ") + seen_here.message());
            });
            INFO(std::string(each.name) << " over " << to_string(how) << "\n" << seen.text());
            all_done(here, seen, 3);
            for (int r = 0; r < 3; ++r)
                CHECK(seen.ranks[static_cast<std::size_t>(r)].after_ms < 2500.0 * slower);
        }
}

TEST_CASE("split: calls in crossed order of groups are found without a deadline") {
    for (start const how : starts) {
        setup const here = grid(how, "crossed groups");
        report const seen = play(here, [](world& w, board& b) {
            world row = w.split(w.rank() / 2, w.rank());
            world column = w.split(w.rank() % 2, w.rank());
            b.strike();
            // 0 waits for 1, 1 for 3, 3 for 2, 2 for 0.
            world& first = w.rank() == 0 || w.rank() == 3 ? row : column;
            failure const seen_here = thrown_by([&] { first.barrier(); });
            require(seen_here.what == errc::mismatch &&
                        std::string(seen_here.text).find("waits in a call of another world") !=
                            std::string::npos,
                    std::string("a deadlock of two worlds, but ") + seen_here.message());
            w.barrier(); // goes on
        });
        all_done(here, seen);
        for (auto const& one : seen.ranks) CHECK(one.after_ms < 2500.0 * slower);
    }
}

TEST_CASE("split: a wait that the failure of its group has ended is part of no deadlock in another group") {
    for (start const how : starts) {
        setup const here = grid(how, "ended waits");
        report const seen = play(here, [](world& w, board&) {
            world first = w.split(w.rank() / 2, w.rank());
            world second = w.split(w.rank() / 2, w.rank());
            bool const is_late = w.rank() % 2 == 0;
            if (is_late) {
                require_failure(thrown_by([&] { first.barrier(); }), errc::peer_failed, 1);
                std::this_thread::sleep_for(1500ms); // in no call of Herring's
            } else {
                std::this_thread::sleep_for(1000ms); // rank 0 has reported its wait
                first.fail(failure::make(errc::peer_failed, first.rank(), 1, "test", "on purpose"));
            }
            second.barrier();
            w.barrier();
        });
        all_done(here, seen);
    }
}

TEST_CASE("split: waits in two groups at once are told apart, and the one in vain names who is missing") {
    for (start const how : starts) {
        setup const here = grid(how, "two waits");
        report const seen = play(here, [](world& w, board& b) {
            world row = w.split(w.rank() / 2, w.rank());
            world column = w.split(w.rank() % 2, w.rank());
            if (w.rank() == 0) {
                failure in_row{};
                std::thread other([&] { in_row = thrown_by([&] { row.barrier(300ms); }); });
                column.barrier(); // rank 2 comes once the row has failed
                other.join();
                require_failure(in_row, errc::timeout, 1, "rank 1");
            } else if (w.rank() == 1) {
                while (row.failed() == nullptr) ::sched_yield();
                b.entered.fetch_add(1);
                column.barrier();
            } else {
                await(b.entered, 1);
                column.barrier();
            }
            w.barrier();
        });
        all_done(here, seen);
    }
}

TEST_CASE("split: a group outlives its parent, whoever leaves first") {
    for (start const how : starts) {
        setup const here = grid(how, "outlived parents");
        report const seen = play(here, [](world& w, board& b) {
            std::optional<world> parent(std::move(w));
            std::optional<world> row(parent->split(parent->rank() / 2, parent->rank()));
            int const rank = parent->rank();
            world pair = row->split(0, -row->rank());
            parent.reset();
            use(*row);
            row.reset();
            use(pair);
            if (rank < 2) { // among them rank 0, which goes on for the others
                world const gone = std::move(pair);
                b.entered.fetch_add(1);
                return;
            }
            // Rank 0 does not leave before these do, so both cannot have left: a moment shows that it would.
            for (int i = 0; i < 30 && b.entered.load() < 2; ++i) std::this_thread::sleep_for(10ms);
            use(pair);
        });
        all_done(here, seen);
    }
}

TEST_CASE("split: a rank that is stopped for good ends its worlds, and another group goes on") {
    for (start const how : starts) {
        setup here = grid(how, "stopped in a group");
        here.failure_detector.peer_timeout = 1'000ms;
        report const seen = play(here, [](world& w, board& b) {
            world row = w.split(w.rank() / 2, w.rank());
            w.barrier();
            if (w.rank() == 3) {
                b.ranks[15].pid.store(::getpid());
                b.strike();
                ::kill(::getpid(), SIGSTOP);
                return;
            }
            if (w.rank() == 2) require_failure(thrown_by([&] { row.barrier(); }), errc::peer_lost, 1);
            if (w.rank() < 2) {
                while (w.failed() == nullptr) ::sched_yield();
                use(row);
            }
            b.entered.fetch_add(1);
            await(b.entered, 3);
            if (w.rank() == 0) ::kill(b.ranks[15].pid.load(), SIGKILL);
        });
        all_done(here, seen, 3);
    }
}
