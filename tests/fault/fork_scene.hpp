// herring: what tests of processes that a rank forks off share: a child that touches its parent's objects, and ends as programs do.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_FORK_SCENE_HPP
#define HERRING_TESTS_FAULT_FORK_SCENE_HPP

#include "scene.hpp"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

namespace fault {

/// Forks. The child runs `body`, prints what it throws, and calls exit, which destroys what is static. Returns its number.
template <class Body> pid_t forked(Body&& body) {
    std::fflush(nullptr);
    pid_t const child = ::fork();
    require(child >= 0, "a process is forked");
    if (child != 0) return child;
    ::alarm(20); // whatever becomes of the test
    int status = 1;
    try {
        status = body();
    } catch (std::exception const& e) {
        std::fprintf(stderr, "in a forked process: %s\n", e.what());
    }
    std::exit(status);
}

/// The child's status as of a shell.
inline int status_of(pid_t child) {
    int raw = 0;
    require(::waitpid(child, &raw, 0) == child, "the child ends");
    return WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
}

/// Each call is refused in the words for a forked process.
template <class... Call> void require_refused(char const* object, pid_t parent, Call&&... call) {
    int number = 0;
    auto const one = [&](auto&& each) {
        std::string said = "nothing";
        try {
            each();
        } catch (herring::error const& e) {
            said = e.what();
            std::string const words = "forked off after the " + std::string(object) + " was made (process " +
                                      std::to_string(parent) + ")";
            if (e.code() == errc::bad_state && said.find(words) != std::string::npos) said.clear();
        }
        require(said.empty(), "call " + std::to_string(number) + " is refused, it says: " + said);
        ++number;
    };
    (one(call), ...);
}

/// As a program has them that ends by exit.
template <class Reducer> struct globals {
    static inline std::unique_ptr<world> ranks{};
    static inline std::unique_ptr<Reducer> reduce{}; // the first to go

    static void make(world& w, layout const& tensors) {
        ranks = std::make_unique<world>(std::move(w));
        reduce = std::make_unique<Reducer>(*ranks, tensors);
    }
    static void end() {
        reduce.reset();
        ranks.reset();
    }
};

/// Steps; between two of them, and in the middle of one, a child calls what it has, and ends by exit.
template <class Reducer, class Step, class Calls>
void fork_among_steps(world& w, layout const& tensors, Step&& step, Calls&& calls) {
    using all = globals<Reducer>;
    int const rank = w.rank();
    all::make(w, tensors);
    pid_t const parent = ::getpid();
    auto const child = [&] {
        return forked([&] {
            world& ranks = *all::ranks;
            require(ranks.forked_off() && ranks.rank() == rank, "the child knows");
            require_refused(
                "world", parent, [&] { ranks.barrier(); }, [&] { (void)ranks.all_gather({}); },
                [&] { ranks.check(); },
                [&] {
                    std::byte key[16];
                    ranks.derive_key(key, "any", 0);
                },
                [&] { herring::reducer<float, herring::transport::tcp, herring::update::sum> more(ranks); });
            ranks.fail(failure::make(errc::peer_failed, rank, rank, "test", "of a child"));
            calls(*all::reduce, parent);
            return 7;
        });
    };
    for (int n = 0; n < 6; ++n) {
        if (n == 2 && rank != 1) require(status_of(child()) == 7, "the child ends well");
        if (n == 4) { // in the middle of a step, too
            pid_t middle = -1;
            step(*all::reduce, *all::ranks, n, [&] {
                if (rank == 0) middle = child();
            });
            if (rank == 0) require(status_of(middle) == 7, "the child ends well");
            continue;
        }
        step(*all::reduce, *all::ranks, n, [] {});
    }
    all::end();
}

/// The same of a reducer that exchanges every step.
template <class Reducer> void fork_in_a_loop(world& w) {
    fork_among_steps<Reducer>(
        w, layout{{"a", 30'000}, {"b", 10}, {"c", 200'000}},
        [](Reducer& r, world const& of, int number, auto&& meanwhile) {
            for (std::size_t i = 0; i < r.size(); ++i) {
                fill(r, of, number, i);
                r.ready(i);
                if (i == 0) meanwhile();
            }
            r.wait();
            verify(r, of, number);
        },
        [](Reducer& r, pid_t parent) {
            require_refused(
                "world", parent, [&] { (void)r.all_reduce(1.0f); }, [&] { r.ready(0); }, [&] { r.wait(); },
                [&] { r.poll(); }, [&] { (void)r.done(); });
        });
}

/// A rank is killed whose child lives on: the others hear of it at once.
template <class Reducer> void killed_with_a_child(setup const& how) {
    constexpr int victim = 1;
    report const seen = play(how, [&](world& w, board& b) {
        Reducer r(w, layout{{"a", 30'000}, {"b", 10}});
        for (int n = 0;; ++n) {
            step(r, w, n);
            if (n != 3 || w.rank() != victim) continue;
            pid_t const child = ::fork();
            if (child == 0) {
                ::alarm(40); // whatever becomes of the test
                outlast(b, w.size() - 1);
                ::_exit(0);
            }
            b.die();
        }
    });
    check_named(how, seen, victim, {errc::peer_lost});
}

} // namespace fault

#endif // HERRING_TESTS_FAULT_FORK_SCENE_HPP
