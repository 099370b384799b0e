// herring: tests of bench/timeline_inspect.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "../../../bench/timeline_inspect.hpp"

#include "unit/trace/timelines.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

using bench::timeline_inspection, herring::timeline_data;
using timelines::schedule, timelines::trace_event;

namespace {
/// Ranks 0, 1 and 3 are in a wait, 0 for 1 and 1 and 3 for 2; rank 2 is not there yet.
std::vector<timeline_data> stuck() {
    std::vector<timeline_data> all;
    int const waits_for[] = {1, 2, -1, 2};
    for (int rank = 0; rank < 4; ++rank) {
        schedule s(rank);
        s.submitted(0, 0, 0).reduced(10, 0, 0);
        if (rank == 2) {
            s.at(20, trace_event::tensor_ready, {.index = 1});
        } else {
            s.submitted(20, 1, 1).at(30, trace_event::wait_begin);
            s.at(1'500'000'040, trace_event::waits_for,
                 {.index = 1, .peer = waits_for[rank], .execution = 1});
        }
        all.push_back(s.done());
    }
    return all;
}
} // namespace

TEST_CASE("inspect: who is behind, in which operation, and who is waited for in the end") {
    timeline_inspection const found(stuck());
    CHECK(found.behind() == std::vector<int>{2});
    CHECK(found.waited_for() == std::vector<int>{2});
    CHECK(found.states()[0].bucket == 1);
    CHECK(found.states()[0].waits_for == 1);
    std::string const text = found.text();
    CHECK(text.find("behind: rank 2\n") != std::string::npos);
    CHECK(text.find("waited for in the end: rank 2\n") != std::string::npos);
    CHECK(text.find(
              "rank 0 on somewhere, process 0: lives, or was killed; 2 operations submitted, 1 complete; in "
              "bucket 1, waits for rank 1") != std::string::npos);
    CHECK(text.find("last event: tensor_ready 'bias', 1.500 s before the newest") != std::string::npos);
}

TEST_CASE("inspect: a rank without a file is named, and is who is waited for") {
    std::vector<timeline_data> all = stuck();
    all.erase(all.begin() + 2);
    timeline_inspection const found(all);
    CHECK(found.waited_for() == std::vector<int>{2});
    CHECK(found.text().find("no file of: rank 2\n") != std::string::npos);
}

TEST_CASE(
    "inspect: with as many submissions the one with fewer results is behind; none where all ended in order") {
    std::vector<timeline_data> all;
    for (int rank = 0; rank < 2; ++rank) {
        schedule s(rank, 2);
        s.submitted(0, 0, 0);
        if (rank == 0) s.reduced(10, 0, 0);
        all.push_back(s.done());
    }
    CHECK(timeline_inspection(all).behind() == std::vector<int>{1});
    all[1].ended = true; // it left in the middle of an operation, in order
    CHECK(timeline_inspection(all).behind().empty());
    all[1].failed = true;
    CHECK(timeline_inspection(all).behind() == std::vector<int>{1});
    for (auto& one : all) {
        one.ended = true;
        one.failed = false;
    }
    CHECK(timeline_inspection(all).text().find("all reducers ended in order") != std::string::npos);
}

TEST_CASE("inspect: a circle of waits has an end for the reader") {
    std::vector<timeline_data> all;
    for (int rank = 0; rank < 2; ++rank) {
        schedule s(rank, 2);
        s.submitted(0, 0, 0).at(5, trace_event::waits_for, {.index = 0, .peer = 1 - rank});
        all.push_back(s.done());
    }
    CHECK_FALSE(timeline_inspection(all).waited_for().empty());
}

TEST_CASE("inspect: a file that is none says which it is") {
    CHECK_THROWS_WITH_AS(bench::read_timeline_file("/nowhere"),
                         "herring: read_timeline: bad argument: /nowhere: No such file or directory",
                         herring::error);
    CHECK_THROWS_AS(bench::read_timeline_file("/dev/zero"), herring::error);
    CHECK_THROWS_AS(bench::read_timeline_file("/proc/self/exe"), herring::error);
    std::string const pipe = "/tmp/herring-pipe-" + std::to_string(::getpid()) + ".timeline";
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    CHECK_THROWS_AS(bench::read_timeline_file(pipe), herring::error); // and does not wait for a writer
    ::unlink(pipe.c_str());
}

TEST_CASE("inspect: a process lives, or not, where its identifier counts; elsewhere nobody knows") {
    auto const process = [](auto const& change) {
        timeline_data one = schedule(0, 1).done();
        one.host_id = herring::detail::clock_identity();
        one.process_space = herring::detail::process_space();
        one.pid = static_cast<std::uint32_t>(::getpid());
        change(one);
        return std::string(timeline_inspection(std::vector{one}).states()[0].process);
    };
    constexpr std::uint32_t nobody = 0x7fff'fff0; // beyond the largest process identifier
    CHECK(process([](auto&) {}) == "lives");
    CHECK(process([](auto& one) { one.pid = nobody; }) == "is gone: it was killed");
    CHECK(process([](auto& one) { ++one.process_space; }) == "lives, or was killed");
    CHECK(process([](auto& one) { one.pid = nobody, one.process_space = 0; }) == "lives, or was killed");
    CHECK(process([](auto& one) { one.pid = nobody, ++one.host_id; }) == "lives, or was killed");
}
