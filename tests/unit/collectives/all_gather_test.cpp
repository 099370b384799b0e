// herring: tests of collectives/all_gather.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_gather.hpp"

#include "herring/collectives/broadcast.hpp"
#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

using namespace collectives;

namespace {
template <class Reducer> int all_ranges(herring::world& world) {
    Reducer reduce(world);
    for (std::size_t const n : sizes) {
        herring::range const own = reduce.owned(n);
        std::vector<float> const mine = filled(world.rank(), own.elements, own.offset);
        std::vector<float> const unset(n, -1);
        std::vector<float> out;
        auto const is_due = [&] { return has_ranges_of_all(reduce, world.size(), out); };
        for (int turn = 0; turn < 2; ++turn) {
            out = unset;
            herring::all_gather(reduce, mine, out);
            if (!is_due()) return 1;
        }
        // Its own range is where it belongs already.
        out = unset;
        std::span<float> const place = std::span(out).subspan(own.offset, own.elements);
        std::copy(mine.begin(), mine.end(), place.begin());
        if (!herring::all_gather(reduce, place, out, std::chrono::seconds(20)).ok()) return 2;
        if (!is_due()) return 3;
    }
    return 0;
}
} // namespace

TEST_CASE("all_gather: each rank gets what all own, on every shape and size") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, all_ranges<flat>) == 0);
        CHECK(run(shape, all_ranges<nodes>) == 0);
    }
}

namespace {
// Results of 64 MiB in all are written past the caches: whole lines, and what lies before and behind them.
int large_ranges(herring::world& world) {
    nodes reduce(world);
    {
        std::size_t const first = 1; // element of a line that is not the buffer's
        std::size_t const n =
            (std::size_t{64} << 20) / sizeof(float) / static_cast<std::size_t>(world.size()) + 77;
        herring::range const own = reduce.owned(n);
        std::vector<float> const mine = filled(world.rank(), own.elements, own.offset);
        std::vector<float> const unset(first + n + 16, -1);
        std::vector<float> memory = unset;
        std::span<float> const out = std::span(memory).subspan(first, n);
        auto const is_due = [&] {
            return has_ranges_of_all(reduce, world.size(), out) && memory[0] == -1 &&
                   same_bytes(std::span(memory).last(16), std::span(unset).last(16));
        };
        herring::all_gather(reduce, mine, out);
        if (!is_due()) return 1;
        std::span<float> const place = out.subspan(own.offset, own.elements);
        auto const forget = [&] { std::copy_n(unset.begin(), n, out.begin()); };
        forget();
        std::copy(mine.begin(), mine.end(), place.begin());
        herring::all_gather(reduce, place, out);
        if (!is_due()) return 2;
        if (world.rank() > 0) forget();
        herring::broadcast(reduce, out, 0);
        if (!is_due()) return 3;
    }
    return 0;
}
} // namespace

TEST_CASE("all_gather: buffers that are written past the caches, wherever they begin in a line") {
    CHECK(run({"a", "a", "a"}, large_ranges) == 0);
}

namespace {
struct page { // of which a range has more bytes than a piece
    std::byte at[300'000];
};
template <class Element> std::vector<Element> bits(int rank, std::size_t n) {
    std::vector<Element> all(n);
    std::size_t i = 0;
    for (std::byte& one : std::as_writable_bytes(std::span(all)))
        one = static_cast<std::byte>(i++ * 7 + static_cast<std::size_t>(rank) * 31);
    return all;
}
template <class Element, class Reducer>
bool gathers(Reducer& reduce, int rank, int ranks, std::size_t n, bool twice) {
    std::vector<Element> const mine = bits<Element>(rank, n);
    std::vector<Element> out(n), due(n);
    for (int r = 0; r < ranks; ++r) {
        herring::range const own = reduce.owned(n, r);
        std::copy_n(bits<Element>(r, n).begin() + static_cast<std::ptrdiff_t>(own.offset), own.elements,
                    due.begin() + static_cast<std::ptrdiff_t>(own.offset));
    }
    herring::range const own = reduce.owned(n, rank);
    auto const part = std::span(mine).subspan(own.offset, own.elements);
    herring::all_gather(reduce, part, out);
    if (twice && !herring::all_gather(reduce, part, out, std::chrono::seconds(20)).ok()) return false;
    return same_bytes(std::as_bytes(std::span(out)), std::as_bytes(std::span(due)));
}
template <class Reducer> int other_types(herring::world& world) {
    Reducer reduce(world);
    for (std::size_t const n : {0u, 1u, 7u, 4099u, 300'001u}) {
        if (!gathers<std::byte>(reduce, world.rank(), world.size(), n, true)) return 1;
        if (!gathers<std::uint16_t>(reduce, world.rank(), world.size(), n, false)) return 2;
    }
    for (std::size_t const n : {0u, 1u, 5u})
        if (!gathers<page>(reduce, world.rank(), world.size(), n, false)) return 3;
    return 0;
}
} // namespace

TEST_CASE("all_gather: bytes and structs, whatever the reducer's elements") {
    for (auto const& shape : shapes) {
        CAPTURE(shape.size());
        CHECK(run(shape, other_types<flat>) == 0);
        CHECK(run(shape, other_types<nodes>) == 0);
    }
}

TEST_CASE("all_gather: element sizes that differ are told, and so is the size") {
    for (auto const& shape : std::vector<std::vector<std::string>>{{"a", "a"}, {"a", "b"}, {"a", "b", "c"}}) {
        std::vector<std::string> told(shape.size());
        run(shape, [&](herring::world& world) {
            nodes reduce(world);
            std::size_t const n = 12, own = reduce.owned(n).elements;
            std::chrono::seconds const limit(20);
            auto const ended = [&](auto element) {
                std::vector<decltype(element)> const mine(own);
                std::vector<decltype(element)> all(n);
                return herring::all_gather(reduce, mine, all, limit);
            };
            herring::status const result = world.rank() == 1 ? ended(std::uint16_t{}) : ended(std::byte{});
            if (result.why().what == herring::errc::mismatch)
                told[static_cast<std::size_t>(world.rank())] = result.why().message();
            return 0;
        });
        for (std::string const& one : told) {
            CAPTURE(one);
            CHECK(one.find("all_gather") != std::string::npos);
            bool const says = one.find("12 elements of 1 byte") != std::string::npos ||
                              one.find("12 elements of 2 bytes") != std::string::npos;
            CHECK(says);
        }
    }
}

TEST_CASE("all_gather: a range of another size is refused, and in the middle of a step every call is") {
    CHECK(run({"a", "b"}, [](herring::world& world) {
              flat reduce(world, {{"w", 4}, {"b", 4}});
              std::vector<float> mine(7), out(13);
              try {
                  herring::all_gather(reduce, std::span(mine).first(5), out);
                  return 1;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_argument) return 2;
              }
              reduce.ready(0);
              try {
                  herring::all_gather(reduce, std::span(mine).first(reduce.owned(13, world.rank()).elements),
                                      out);
                  return 3;
              } catch (herring::error const& why) {
                  if (why.code() != herring::errc::bad_state) return 4;
              }
              reduce.ready(1);
              reduce.wait();
              return 0;
          }) == 0);
}
