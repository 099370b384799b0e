// herring: tests of collectives/gather.hpp and scatter.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/gather.hpp"

#include "herring/collectives/scatter.hpp"
#include "unit/collectives/blocks.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace collectives;

namespace {
// A message costs more than a hop: small blocks go through one server.
struct few_messages : herring::transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "few_messages";
    static constexpr herring::transport_facts facts = [] {
        herring::transport_facts those = inproc::facts;
        those.same_host_tuning.message_ns = 1;
        return those;
    }();
};
using served = herring::reducer<float, few_messages, herring::update::sum>;

template <class Reducer> int to_and_from_every_root(herring::world& world) {
    Reducer reduce(world);
    int const me = world.rank(), ranks = world.size();
    for (std::size_t const n : block_sizes)
        for (int root = 0; root < ranks; ++root) {
            bool const here = me == root;
            std::vector<std::uint32_t> mine, due, all(here ? n * static_cast<std::size_t>(ranks) : 0);
            append_block(mine, me, root, n);
            for (int r = 0; here && r < ranks; ++r) append_block(due, r, root, n);
            herring::gather(reduce, mine, all, root);
            if (all != due) return 1;
            for (auto* const blocks : {&mine, &due, &all}) // others come back: no server has seen them
                for (std::uint32_t& one : *blocks) one = ~one;
            std::vector<std::uint32_t> back(n);
            herring::scatter(reduce, all, back, root);
            if (back != mine) return 2;
            if (!here) {
                if (!herring::gather(reduce, mine, all, root, std::chrono::seconds(20)).ok()) return 3;
                if (!herring::scatter(reduce, all, back, root, std::chrono::seconds(20)).ok()) return 4;
                continue;
            }
            auto const place = std::span(all).subspan(n * static_cast<std::size_t>(root), n); // its own block
            if (!herring::gather(reduce, place, all, root, std::chrono::seconds(20)).ok() || all != due)
                return 5;
            if (!herring::scatter(reduce, all, place, root, std::chrono::seconds(20)).ok() || all != due)
                return 6;
        }
    return 0;
}

// Rank r has n + r elements; an odd one none for rank 0.
template <class Reducer> int of_given_sizes(herring::world& world) {
    Reducer reduce(world);
    int const me = world.rank(), ranks = world.size();
    for (std::size_t const n : block_sizes)
        for (int root = 0; root < ranks; ++root) {
            bool const here = me == root;
            std::vector<std::size_t> counts;
            std::vector<std::uint32_t> mine, due;
            std::size_t before = 0;
            for (int r = 0; r < ranks; ++r) {
                std::size_t const count = r % 2 == 1 && root == 0 ? 0 : n + static_cast<std::size_t>(r);
                if (here) counts.push_back(count);
                if (here && r < root) before += count;
                if (r == me) append_block(mine, r, root, count);
                if (here) append_block(due, r, root, count);
            }
            std::vector<std::uint32_t> all(due.size()), back(mine.size());
            herring::gather(reduce, mine, all, counts, root);
            if (all != due) return 1;
            herring::scatter(reduce, all, back, counts, root);
            if (back != mine) return 2;
            auto const place = here ? std::span(all).subspan(before, mine.size()) : std::span(back);
            if (!herring::gather(reduce, place, all, counts, root, std::chrono::seconds(20)).ok()) return 3;
            if (!herring::scatter(reduce, all, place, counts, root, std::chrono::seconds(20)).ok()) return 4;
            if (all != due || back != mine) return 5;
        }
    return 0;
}
} // namespace

TEST_CASE("gather, scatter: blocks of given sizes, to every root and back, on every shape") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, of_given_sizes<flat>) == 0);
        CHECK(run(shape, of_given_sizes<nodes>) == 0);
    }
}

TEST_CASE("gather, scatter: counts that do not match are told on all ranks, and the world goes on") {
    for (bool const gathers : {true, false}) {
        std::vector<std::string> told(3);
        CHECK(run({"a", "b", "b"}, [&](herring::world& world) {
                  nodes reduce(world);
                  std::size_t const me = static_cast<std::size_t>(world.rank());
                  std::vector<std::size_t> counts(me == 1 ? 3 : 0, 4);
                  std::vector<std::uint32_t> const whole(me == 1 ? 12 : 0, 5), part(me == 2 ? 3 : 4, 6);
                  std::vector<std::uint32_t> all(whole), own(part), right(4);
                  std::chrono::seconds const limit(20);
                  herring::status const ended = gathers
                                                    ? herring::gather(reduce, part, all, counts, 1, limit)
                                                    : herring::scatter(reduce, whole, own, counts, 1, limit);
                  if (ended.why().what != herring::errc::mismatch || all != whole || own != part) return 1;
                  told[me] = ended.why().message();
                  herring::scatter(reduce, whole, right, counts, 1);
                  return right == std::vector<std::uint32_t>(4, 5) ? 0 : 2;
              }) == 0);
        for (std::string const& one : told) {
            CAPTURE(one);
            CHECK(one.find(gathers ? "gather" : "scatter") != std::string::npos);
            CHECK(one.find(gathers
                               ? "rank 2 sends 3 elements to rank 1, which expects 4"
                               : "rank 1 sends 4 elements to rank 2, which expects 3") != std::string::npos);
        }
    }
}

TEST_CASE("gather, scatter: blocks to every root and back, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, to_and_from_every_root<flat>) == 0);
        CHECK(run(shape, to_and_from_every_root<served>) == 0);
        CHECK(run(shape, to_and_from_every_root<nodes>) == 0);
    }
}

namespace {
template <class Reducer> void expect_told_roots(std::vector<std::string> const& shape, std::size_t n) {
    std::vector<std::string> told(shape.size());
    run(shape, [&](herring::world& world) {
        Reducer reduce(world);
        std::vector<float> const mine(n);
        std::vector<float> all(n * shape.size());
        herring::status const ended =
            herring::gather(reduce, mine, all, world.rank() == 1 ? 1 : 0, std::chrono::seconds(20));
        if (ended.why().what == herring::errc::mismatch)
            told[static_cast<std::size_t>(world.rank())] = ended.why().message();
        return 0;
    });
    std::string const size = " with " + std::to_string(n) + " elements";
    for (std::string const& one : told) {
        CAPTURE(one);
        CHECK(one.find("a call of gather to rank") != std::string::npos);
        if (n == 10) CHECK(one.find(size) != std::string::npos);
    }
}
} // namespace

TEST_CASE("gather, scatter: roots that differ are a mismatch on every rank, which says where blocks go") {
    for (std::size_t const n : {std::size_t{10}, std::size_t{100'000}}) {
        for (auto const& shape : std::vector<std::vector<std::string>>{
                 {"a", "a"}, {"a", "b"}, {"a", "a", "a"}, {"a", "a", "b", "b"}})
            expect_told_roots<nodes>(shape, n);
        expect_told_roots<served>({"a", "b", "c"}, n);
    }
}

namespace {
using tallies = std::vector<std::uint64_t>;
// What each rank sends in a gather and in a scatter of 25 elements of 4 bytes: messages of both, then bytes of both.
template <class Reducer> std::vector<tallies> sent_by(std::vector<std::string> const& shape, int root) {
    std::vector<tallies> sent(shape.size());
    CHECK(run(shape, [&](herring::world& world) {
              Reducer reduce(world);
              std::vector<std::uint32_t> mine(25), all(25 * shape.size());
              herring::counters const first = reduce.counters();
              herring::gather(reduce, mine, all, root);
              herring::counters const between = reduce.counters();
              herring::scatter(reduce, all, mine, root);
              herring::counters const last = reduce.counters();
              sent[static_cast<std::size_t>(world.rank())] = {
                  between.messages_sent - first.messages_sent, last.messages_sent - between.messages_sent,
                  between.bytes_sent - first.bytes_sent, last.bytes_sent - between.bytes_sent};
              return 0;
          }) == 0);
    return sent;
}
} // namespace

TEST_CASE("gather, scatter: small blocks take one message to one server, and one back") {
    for (int root = 0; root < 4; ++root) {
        std::vector<tallies> const sent = sent_by<served>({"a", "b", "c", "d"}, root);
        for (int rank = 0; rank < 4; ++rank) {
            CAPTURE(root);
            CAPTURE(rank);
            bool const here = rank == root;
            tallies const by_server{3, 3, here ? 0u : 400u, here ? 300u : 200u},
                by_other{1, 1, 100, here ? 400u : 0u};
            CHECK(sent[static_cast<std::size_t>(rank)] == (rank == 0 ? by_server : by_other));
        }
        std::vector<tallies> const shared = sent_by<nodes>({"a", "a", "b", "b", "b", "c"}, root);
        std::uint64_t const due[] = {2, 0, 1, 0, 0, 1};
        for (std::size_t rank = 0; rank < 6; ++rank)
            CHECK(tallies{shared[rank][0], shared[rank][1]} == tallies{due[rank], due[rank]});
    }
}

TEST_CASE("gather, scatter: a size or a root that does not fit is refused, and nothing is lost") {
    CHECK(run({"a", "b"}, [](herring::world& world) {
              flat reduce(world);
              std::vector<float> const mine(10, 1);
              std::vector<float> all(19), block(10);
              std::vector<std::size_t> const one{19}, ten{10, 10};
              int refused = 0;
              for (int turn = 0; turn < 6; ++turn) try {
                      if (turn == 0) herring::gather(reduce, mine, all, 2);
                      if (turn == 1) herring::scatter(reduce, all, block, -1);
                      if (world.rank() == 0 && turn == 2) herring::gather(reduce, mine, all, 0);
                      if (world.rank() == 0 && turn == 3) herring::scatter(reduce, all, block, 0);
                      if (world.rank() == 0 && turn == 4) herring::gather(reduce, mine, all, one, 0);
                      if (world.rank() == 0 && turn == 5) herring::scatter(reduce, all, block, ten, 0);
                  } catch (herring::error const& why) {
                      refused += why.code() == herring::errc::bad_argument;
                  }
              if (refused != (world.rank() == 0 ? 6 : 2)) return 1;
              all.resize(20);
              herring::gather(reduce, mine, all, 0);
              return world.rank() > 0 || all == std::vector<float>(20, 1) ? 0 : 2;
          }) == 0);
}
