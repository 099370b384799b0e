// herring: tests of collectives/all_to_all.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_to_all.hpp"

#include "unit/collectives/blocks.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>

using namespace collectives;

namespace {
template <class Reducer> int exchange(herring::world& world) {
    Reducer reduce(world);
    int const me = world.rank();
    for (std::size_t const n : block_sizes) {
        std::vector<std::uint32_t> in, due;
        for (int r = 0; r < world.size(); ++r) {
            append_block(in, me, r, n);
            append_block(due, r, me, n);
        }
        std::vector<std::uint32_t> out(in.size());
        herring::all_to_all(reduce, in, out);
        if (out != due) return 1;
        if (!herring::all_to_all(reduce, in, out, std::chrono::seconds(20)).ok() || out != due) return 2;
        // Rank r gives r + s elements more to rank s, and an odd rank none to rank 0.
        std::vector<std::size_t> sends, receives;
        auto const count = [&](int from, int to) {
            return from % 2 == 1 && to == 0 ? 0 : n + static_cast<std::size_t>(from + to);
        };
        in.clear();
        due.clear();
        for (int r = 0; r < world.size(); ++r) {
            append_block(in, me, r, count(me, r));
            append_block(due, r, me, count(r, me));
            sends.push_back(count(me, r));
            receives.push_back(count(r, me));
        }
        out.assign(due.size(), 0);
        herring::all_to_all(reduce, in, sends, out, receives);
        if (out != due) return 3;
    }
    return 0;
}
} // namespace

TEST_CASE("all_to_all: each rank gets its block of every rank, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, exchange<flat>) == 0);
        CHECK(run(shape, exchange<nodes>) == 0);
    }
}

TEST_CASE(
    "all_to_all: counts that do not match are told on all ranks, nothing moves, and the world goes on") {
    for (auto const& shape :
         std::vector<std::vector<std::string>>{{"a", "b", "c"}, {"a", "a", "b"}, {"a", "a", "a"}}) {
        std::vector<std::string> told(3);
        CHECK(run(shape, [&](herring::world& world) {
                  nodes reduce(world);
                  int const me = world.rank();
                  std::vector<std::size_t> sends(3, 4), receives(3, 4);
                  if (me == 1) receives[2] = 3;
                  std::vector<std::uint32_t> const in(12, 1);
                  std::vector<std::uint32_t> out(me == 1 ? 11 : 12, 7), untouched = out;
                  herring::status const ended =
                      herring::all_to_all(reduce, in, sends, out, receives, std::chrono::seconds(20));
                  if (ended.why().what != herring::errc::mismatch || out != untouched) return 1;
                  told[static_cast<std::size_t>(me)] = ended.why().message();
                  receives[2] = 4;
                  out.resize(12);
                  herring::all_to_all(reduce, in, sends, out, receives);
                  return out == std::vector<std::uint32_t>(12, 1) ? 0 : 2;
              }) == 0);
        for (std::string const& one : told) {
            CAPTURE(one);
            CHECK(one.find("rank 2 sends 4 elements to rank 1, which expects 3") != std::string::npos);
        }
    }
}

TEST_CASE("all_to_all: sizes, counts and memory that do not fit are refused, and nothing is lost") {
    CHECK(run({"a", "b"}, [](herring::world& world) {
              flat reduce(world);
              std::vector<float> in(10, 1), out(10), odd(9);
              auto const refused = [](auto const& call, char const* words) {
                  try {
                      call();
                      return false;
                  } catch (herring::error const& why) {
                      return why.code() == herring::errc::bad_argument &&
                             std::string(why.what()).find(words) != std::string::npos;
                  }
              };
              std::vector<std::size_t> const five{5, 5}, one{10}, large{~std::size_t{0}, 11};
              if (!refused([&] { herring::all_to_all(reduce, in, odd); },
                           "each of 2 ranks: 10 elements in, 9 out"))
                  return 1;
              if (!refused([&] { herring::all_to_all(reduce, odd, odd); }, "9 elements in")) return 2;
              if (!refused([&] { herring::all_to_all(reduce, in, in); }, "overlap")) return 3;
              if (!refused([&] { herring::all_to_all(reduce, in, one, out, five); },
                           "send_counts has 1 counts"))
                  return 4;
              if (!refused([&] { herring::all_to_all(reduce, in, five, odd, five); }, "receive_counts"))
                  return 5;
              if (!refused([&] { herring::all_to_all(reduce, in, large, out, five); }, "send_counts"))
                  return 6;
              herring::all_to_all(reduce, in, out);
              return out == in ? 0 : 7;
          }) == 0);
}
