// herring: what every intra-node reducer must do: the cases, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_INTRA_NODE_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_INTRA_NODE_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/intra_node/intra_node.hpp"

#include <array>
#include <optional>

#include <pthread.h>

namespace herring::conformance {

/// The cases. Each is a function of a stage; the ranks of a world are on one node or on two.
template <class P> struct intra_node_cases {
    /// Local ranks that P joins: those of the node, or this one alone.
    static int locals(stage& on) noexcept { return P::facts.joins_ranks ? on.ranks.local_size() : 1; }
    static int local(stage& on) noexcept { return P::facts.joins_ranks ? on.ranks.local_rank() : 0; }
    /// Of these, the one with a number.
    static int rank_of(stage& on, int l) noexcept {
        return P::facts.joins_ranks ? on.ranks.topology().rank_of(on.ranks.node(), l) : on.rank();
    }
    static std::uint64_t seed(int rank, std::uint64_t n) noexcept {
        return static_cast<std::uint64_t>(rank) * 1'000'003 + n;
    }

    /// Polls until `holds`; false when patience ends.
    template <class Predicate> static bool until(stage& on, Predicate&& holds, std::string const& what) {
        for (idle_rounds between; !holds(); between.pause()) {
            if (on.late()) {
                on.find(what + " did not happen");
                return false;
            }
        }
        return true;
    }

    static void facts(stage& on) {
        on.expect(P::name != nullptr && P::name[0] != 0, "name is empty");
        on.expect(P::facts.tuning.local_chunk_bytes >= 64,
                  "facts.tuning.local_chunk_bytes is less than a cache line");
    }

    /// Regions: zeroed, aligned, apart, of the size asked for; peer() finds them all.
    static void memory(stage& on) {
        for (std::size_t const bytes :
             {std::size_t{64}, std::size_t{4096}, std::size_t{4096 + 64}, std::size_t{(1 << 20) + 192}}) {
            P node(on.ranks, bytes);
            std::byte* const own = node.memory();
            std::span<std::byte> const mine(own, bytes);
            on.expect(reinterpret_cast<std::uintptr_t>(own) % 64 == 0, "memory() is not on a cache line");
            on.expect(std::all_of(mine.begin(), mine.end(), [](std::byte b) { return b == std::byte{0}; }),
                      "memory() is not zeroed");
            for (std::size_t const offset : {std::size_t{0}, bytes / 2, bytes - 1})
                on.expect(node.peer(local(on), own + offset) == own + offset,
                          "peer() of this rank itself is elsewhere");
            on.meet(0); // all have looked for zeroes
            pattern(seed(on.rank(), bytes)).fill(mine);
            node.arrive(0);
            if (!until(
                    on, [&] { return node.first_not_arrived(0) < 0; }, "arrival of all"))
                return;
            for (int l = 0; l < locals(on); ++l) {
                std::span<std::byte const> const theirs(node.peer(l, own), bytes);
                on.expect(pattern(seed(rank_of(on, l), bytes)).difference(theirs) < 0,
                          "the region of local rank " + std::to_string(l) + " does not hold what it wrote");
                on.expect(node.peer(l, own + bytes - 1) == theirs.data() + bytes - 1,
                          "peer() is not the same everywhere in a region");
            }
            node.finish(0, true);
            until(
                on, [&] { return node.first_not_finished(0) < 0; }, "the end of all");
            on.meet(1);
        }
    }

    /// Nothing at all is a region as well.
    static void no_memory(stage& on) {
        P node(on.ranks, 0);
        node.arrive(0);
        until(
            on, [&] { return node.first_not_arrived(0) < 0; }, "arrival without memory");
        on.meet(0);
    }

    /// first_not_arrived() names a local rank that has not arrived, and only such.
    static void arrive(stage& on) {
        P node(on.ranks, 4096);
        int const all = locals(on);
        std::uint64_t e = 0;
        for (int round = 0; round < 3; ++round)
            for (int late = 0; late < on.ranks.topology().largest_node();
                 ++late, ++e) { // another one is late each time
                bool const early = local(on) != late;
                if (early) node.arrive(e);
                on.meet(0);
                if (early && late < all) {
                    for (int i = 0; i < 3; ++i)
                        on.expect(node.first_not_arrived(e) == late,
                                  "first_not_arrived() says " + std::to_string(node.first_not_arrived(e)) +
                                      " where local rank " + std::to_string(late) + " has not arrived");
                    // Executions to come: nobody is there yet.
                    on.expect(node.first_not_arrived(e + 1) >= 0,
                              "first_not_arrived() of an execution that nobody has arrived at is -1");
                }
                on.meet(1);
                if (!early) node.arrive(e);
                if (!until(
                        on, [&] { return node.first_not_arrived(e) < 0; }, "arrival of all"))
                    return;
                on.meet(2);
            }
        // Several ahead of the others.
        if (local(on) == 0)
            for (std::uint64_t i = 0; i < 5; ++i) node.arrive(e + i);
        on.meet(3);
        for (std::uint64_t i = 0; i < 5; ++i) {
            if (local(on) != 0) node.arrive(e + i);
            if (!until(
                    on, [&] { return node.first_not_arrived(e + i) < 0; },
                    "arrival of all, one of them far ahead"))
                return;
        }
        for (std::uint64_t i = 0; i < e; ++i)
            on.expect(node.first_not_arrived(i) < 0, "first_not_arrived() of an execution long past");
        on.meet(4);
    }

    /// first_not_finished() names a local rank that has not finished; finish(e) is for all up to e.
    static void finish(stage& on) {
        P node(on.ranks, 4096);
        int const all = locals(on);
        std::uint64_t e = 0;
        for (int late = 0; late < on.ranks.topology().largest_node(); ++late, e += 3) {
            for (std::uint64_t i = 0; i < 3; ++i) node.arrive(e + i);
            until(
                on, [&] { return node.first_not_arrived(e + 2) < 0; }, "arrival of all");
            if (local(on) != late) node.finish(e + 2, late % 2 == 0); // the last one tells of all three
            on.meet(0);
            if (local(on) != late && late < all) {
                for (std::uint64_t i = 0; i < 3; ++i)
                    on.expect(node.first_not_finished(e + i) == late,
                              "first_not_finished() says " + std::to_string(node.first_not_finished(e + i)) +
                                  " where local rank " + std::to_string(late) + " has not finished");
            }
            on.meet(1);
            if (local(on) == late) node.finish(e + 2, true);
            for (std::uint64_t i = 0; i < 3; ++i)
                if (!until(
                        on, [&] { return node.first_not_finished(e + i) < 0; }, "the end of all"))
                    return;
            on.meet(2);
        }
    }

    /// What is written before arrive() is seen after first_not_arrived(); what is written elsewhere before finish(), after first_not_finished().
    static void order(stage& on) {
        constexpr std::size_t words = 64;
        P node(on.ranks, words * 8 * 2);
        int const all = locals(on);
        auto* const mine = reinterpret_cast<std::uint64_t*>(node.memory());
        auto const theirs = [&](int l) {
            return reinterpret_cast<std::uint64_t*>(node.peer(l, node.memory()));
        };
        for (std::uint64_t e = 0; e < static_cast<std::uint64_t>(times(3000)); ++e) {
            if (e % 100 == 0) on.rest(); // a machine that is busy may need long for all of them
            for (std::size_t i = 0; i < words; ++i) mine[i] = seed(on.rank(), e) + i;
            node.arrive(e);
            if (!until(
                    on, [&] { return node.first_not_arrived(e) < 0; }, "arrival of all"))
                return;
            // This rank's chunk of the sum, into all memories, as an engine would.
            for (std::size_t i = static_cast<std::size_t>(local(on)); i < words;
                 i += static_cast<std::size_t>(all)) {
                std::uint64_t sum = 0;
                for (int l = 0; l < all; ++l) sum += theirs(l)[i];
                for (int l = 0; l < all; ++l) theirs(l)[words + i] = sum;
            }
            node.finish(e, true);
            if (!until(
                    on, [&] { return node.first_not_finished(e) < 0; }, "the end of all"))
                return;
            for (std::size_t i = 0; i < words; ++i) {
                std::uint64_t sum = 0;
                for (int l = 0; l < all; ++l) sum += seed(rank_of(on, l), e) + i;
                if (!on.expect(mine[words + i] == sum, "execution " + std::to_string(e) + ": a wrong sum"))
                    return;
            }
        }
        on.meet(0);
    }

    /// A sleep ends when another local rank arrives or finishes, on wake(), and by itself.
    static void sleep(stage& on) {
        P node(on.ranks, 4096);
        int const all = locals(on);
        node.sleep(node.listen(), time_point{}); // given up
        node.sleep(node.listen(), clock::now() + std::chrono::milliseconds(2));
        if (all > 1) {
            std::uint64_t const count = static_cast<std::uint64_t>(times(300));
            auto const asleep_until = [&](auto const& there, char const* what) {
                while (true) {
                    std::uint32_t const heard = node.listen();
                    bool const now = there();
                    time_point const until = clock::now() + on.patience();
                    node.sleep(heard, now ? time_point{} : until);
                    if (now) return true;
                    if (clock::now() >= until) {
                        on.find(std::string("slept through ") + what);
                        return false;
                    }
                }
            };
            for (std::uint64_t e = 0; e < count; ++e) {
                // They take turns, each asleep while the others are at work.
                for (int turn = 0; turn < all; ++turn)
                    if (turn == local(on)) {
                        node.arrive(e);
                    } else if (turn < local(on)) {
                        continue;
                    }
                if (!asleep_until([&] { return node.first_not_arrived(e) < 0; }, "an arrival")) return;
                node.finish(e, true);
                if (!asleep_until([&] { return node.first_not_finished(e) < 0; }, "the end of an execution"))
                    return;
            }
        }
        on.rest();
        on.meet(0);
    }

    /// wake(), from another thread, ends a sleep.
    static void wake(stage& on) {
        if (locals(on) == 1) return; // nothing to wait for: its sleeps need not sleep
        static constexpr std::uint32_t rounds = 100;
        P node(on.ranks, 4096);
        struct waker {
            P& node;
            std::atomic<std::uint32_t> asked{0}, woken{0};
            static void* run(void* self) noexcept {
                waker& me = *static_cast<waker*>(self);
                for (std::uint32_t r = 1; r <= rounds; ++r) {
                    while (me.asked.load() < r) {
                        if (me.asked.load() == ~std::uint32_t{0}) return nullptr;
                        ::sched_yield();
                    }
                    me.woken.store(r);
                    me.node.wake();
                }
                return nullptr;
            }
        } other{node};
        pthread_t thread;
        if (::pthread_create(&thread, nullptr, waker::run, &other) != 0) return on.find("no thread");
        for (std::uint32_t r = 1; r <= rounds; ++r) {
            other.asked.store(r);
            bool woken = false;
            while (!woken) {
                std::uint32_t const heard = node.listen();
                woken = other.woken.load() >= r;
                time_point const until = clock::now() + on.patience();
                node.sleep(heard, woken ? time_point{} : until);
                if (!woken && clock::now() >= until) {
                    on.find("slept through a wake()");
                    other.asked.store(~std::uint32_t{0});
                    r = rounds;
                    break;
                }
            }
        }
        ::pthread_join(thread, nullptr);
        on.rest();
        on.meet(0);
    }

    /// has_left() tells of a local rank that has left, once it arrives no more; not before.
    static void has_left(stage& on) {
        int const all = locals(on);
        std::optional<P> node(std::in_place, on.ranks, std::size_t{4096});
        int const leaver = all - 1;
        node->arrive(0);
        if (!until(
                on, [&] { return node->first_not_arrived(0) < 0; }, "arrival of all"))
            return;
        for (int l = 0; l < all; ++l) on.expect(!node->has_left(l), "has_left(), and everyone is here");
        node->finish(0, true);
        until(
            on, [&] { return node->first_not_finished(0) < 0; }, "the end of all");
        on.meet(0);
        if (all > 1) {
            if (local(on) == leaver) {
                node->arrive(1); // its last word
                node.reset();
            } else {
                if (!until(
                        on, [&] { return node->has_left(leaver); }, "news that a local rank has left"))
                    return;
                node->arrive(1);
                on.expect(node->first_not_arrived(1) != leaver,
                          "the last arrival of a rank that left is forgotten");
                for (int l = 0; l < leaver; ++l)
                    on.expect(!node->has_left(l), "has_left() of a local rank that is here");
                // Its memory stays for the others.
                std::memset(node->peer(leaver, node->memory()), 1, 4096);
            }
        }
        on.meet(1);
    }

    /// Made and destroyed again and again, two at once, on one world.
    static void again(stage& on) {
        for (std::uint64_t round = 0; round < 5; ++round) {
            P one(on.ranks, 64 * (round + 1));
            P two(on.ranks, 4096);
            std::memset(one.memory(), 0x11, 64);
            one.arrive(0);
            if (!until(
                    on, [&] { return one.first_not_arrived(0) < 0; }, "arrival of all"))
                return;
            on.expect(locals(on) == 1 || two.first_not_arrived(0) >= 0,
                      "an arrival at one is an arrival at the other");
            on.meet(0);
            on.expect(two.memory()[0] == std::byte{0}, "memory of one is memory of the other");
            two.arrive(0);
            if (!until(
                    on, [&] { return two.first_not_arrived(0) < 0; }, "arrival of all at the second"))
                return;
            on.meet(1);
        }
    }

    struct entry {
        char const* name;
        void (*run)(stage&);
    };
    static constexpr std::array list{
        entry{"facts", facts},   entry{"memory", memory}, entry{"no_memory", no_memory},
        entry{"arrive", arrive}, entry{"finish", finish}, entry{"order", order},
        entry{"sleep", sleep},   entry{"wake", wake},     entry{"has_left", has_left},
        entry{"again", again},
    };
};

/// Runs every case in worlds of one node and of two. Empty: the model is sound.
template <class P> findings intra_node_suite(settings const& how = {}) {
    static_assert(intra_node_policy<P>);
    std::vector<std::vector<std::string>> const worlds{{"a"}, {"a", "a"}, {"a", "b", "a", "a", "b"}};
    findings all;
    for (auto const& one : intra_node_cases<P>::list)
        for (auto const& nodes : worlds)
            append(all, run_case(one.name, static_cast<int>(nodes.size()), nodes, how, one.run));
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_INTRA_NODE_SUITE_HPP
