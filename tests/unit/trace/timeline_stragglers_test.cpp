// herring: tests of trace/timeline_stragglers.hpp: who is slow is named, and nobody where nobody is.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline_stragglers.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>
#include <vector>

using herring::timeline_data;
using herring::timeline_stragglers;
using timelines::schedule;

namespace {

/// Timelines of `ranks` ranks in 20 steps of one bucket in `parts`; rank r submits `late(r, step)` ns after the step's begin. Clocks of other
/// ranks than 0 are an hour off, which is known to within 100 ns.
template <class Late>
std::vector<timeline_data> timelines_of(int ranks, Late const& late, std::uint32_t parts = 1) {
    constexpr std::int64_t hour = 3'600'000'000'000;
    std::vector<timeline_data> all;
    for (int r = 0; r < ranks; ++r) {
        std::int64_t const off = r == 0 ? 0 : hour;
        schedule s(r, ranks);
        for (std::uint32_t step = 0; step < 20; ++step) {
            std::int64_t const begin = 100'000'000 * std::int64_t{step};
            s.at(begin + late(r, step) - off, herring::trace_event::tensor_ready);
            for (std::uint32_t part = 0; part < parts; ++part) {
                s.submitted(begin + late(r, step) - off + part, parts * step + part, part);
                s.reduced(begin + 90'000'000 - off, parts * step + part, part);
            }
        }
        s.data.fixes[0] = {.at_ns = -off, .offset_ns = off, .bound_ns = 100};
        all.push_back(s.done());
    }
    return all;
}
int slow_one(timeline_stragglers const& found) {
    int who = -1;
    for (auto const& r : found.by_rank())
        if (r.is_slow) who = who == -1 ? r.rank : -2;
    return who;
}

} // namespace

TEST_CASE("stragglers: the rank that is slow in each step is named, whatever its clock") {
    for (int const slow : {0, 1, 3}) {
        timeline_stragglers const found(timelines_of(4, [&](int r, std::uint32_t step) {
            return (r == slow ? 5'000'000 : 1000 * r) + 50'000 * std::int64_t{step % 3};
        }));
        CHECK(found.buckets() == 20);
        CHECK(slow_one(found) == slow);
        CHECK(found.by_rank()[static_cast<std::size_t>(slow)].last == 20);
        std::string const said = found.text();
        CHECK_MESSAGE(said.find("rank " + std::to_string(slow) + " is behind: ") == 0, said);
    }
}

TEST_CASE("stragglers: the parts of a bucket are one submission") {
    timeline_stragglers const found(timelines_of(
        4, [](int r, std::uint32_t) { return r == 2 ? std::int64_t{5'000'000} : 0; }, 14));
    CHECK(found.buckets() == 20);
    CHECK(found.by_rank()[2].last == 20);
}

TEST_CASE("stragglers: of equals nobody is named, also where they take turns in being last") {
    timeline_stragglers const turns(timelines_of(4, [](int r, std::uint32_t step) {
        return static_cast<std::uint32_t>(r) == step % 4 ? std::int64_t{8'000'000} : 1000 * std::int64_t{r};
    }));
    CHECK(slow_one(turns) == -1);
    CHECK_MESSAGE(turns.text().find("no rank is behind the others, in 20 buckets") == 0, turns.text());
    // The last one always, but by less than a scheduler takes.
    CHECK(slow_one(timeline_stragglers(timelines_of(
              2, [](int r, std::uint32_t) { return r == 1 ? std::int64_t{60'000} : 0; }))) == -1);
}

TEST_CASE("stragglers: clocks that were not compared, and rings without a common bucket, say nothing") {
    auto all = timelines_of(2, [](int r, std::uint32_t) { return r == 1 ? std::int64_t{9'000'000} : 0; });
    CHECK(slow_one(timeline_stragglers(all)) == 1);
    all[1].fixes[0].bound_ns = -1;
    CHECK(slow_one(timeline_stragglers(all)) == -1);
    CHECK(timeline_stragglers(all).text().find("were not compared") != std::string::npos);
    all[1].records.clear();
    CHECK(timeline_stragglers(all).text() == "no bucket was submitted by all ranks\n");
}
