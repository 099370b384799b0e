// herring: timelines of real processes over TCP: pictures of all ranks, and the recorder of one that is killed.
// SPDX-License-Identifier: Apache-2.0
#include "../../bench/timeline_inspect.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/trace/perfetto.hpp"
#include "herring/trace/timeline.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <sched.h>

using herring::layout, herring::world, herring::timeline_data;
using traced = herring::reducer<float, herring::transport::tcp, herring::update::average,
                                herring::fusion::per_tensor, herring::trace::timeline<1 << 12>>;

namespace {

layout const tensors{{"conv", 100'000}, {"fc", 7}, {"head", 30'000}};

void step(traced& reduce) {
    for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
    reduce.wait();
}
void require(bool holds, char const* what) {
    if (!holds) throw std::runtime_error(what);
}

std::vector<timeline_data> files_in(std::string const& folder) {
    std::vector<timeline_data> all;
    for (auto const& file : std::filesystem::directory_iterator(folder))
        all.push_back(bench::read_timeline_file(file.path().string()));
    return all;
}

/// A folder of this test's own.
struct folder {
    std::string path = "/tmp/herring-timelines-XXXXXX";
    folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~folder() { std::filesystem::remove_all(path); }
};

} // namespace

TEST_CASE("timelines: every message of four processes is there at both ends, and no part arrives before it "
          "was sent") {
    folder const out;
    int const status = herring::launch(
        4,
        [&](world& ranks) {
            traced reduce(ranks, tensors);
            for (int s = 0; s < 4; ++s) step(reduce);
            auto const all = herring::gather_timelines(reduce.trace());
            std::map<std::pair<std::uint64_t, std::uint32_t>, std::int64_t> sent;
            auto const ends = [&](herring::trace_event part, herring::trace_event result, auto const& end) {
                for (timeline_data const& of : all)
                    for (auto const& r : of.records)
                        if (r.what == part || r.what == result) end(of, r);
            };
            using enum herring::trace_event;
            ends(part_sent, result_sent, [&](timeline_data const& of, auto const& r) {
                sent[{static_cast<std::uint64_t>(of.rank * 4 + r.peer), r.message}] = of.common_ns(r.ns);
            });
            std::size_t const messages = sent.size();
            ends(part_arrived, result_arrived, [&](timeline_data const& of, auto const& r) {
                auto const from = sent.find({static_cast<std::uint64_t>(r.peer * 4 + of.rank), r.message});
                require(from != sent.end(), "it arrived once, and was sent");
                require(of.common_ns(r.ns) >= from->second - 2 * (of.bound_ns() + 1000), "after it was sent");
                sent.erase(from);
            });
            require(sent.empty(), "it arrived");
            require((messages > 100) == (ranks.rank() == 0), "rank 0 has them all");
            require(herring::write_perfetto(out.path + "/a.pftrace", reduce.trace()), "a picture");
            // The step goes on where the picture cannot be written.
            bool const written = herring::write_perfetto("/nowhere/at/all", reduce.trace());
            require(written == (ranks.rank() != 0), "rank 0 says that it cannot");
            step(reduce);
        },
        {.nodes = {"a", "b", "c", "d"}});
    CHECK(status == 0);
    CHECK(std::filesystem::file_size(out.path + "/a.pftrace") > 10'000);
}

TEST_CASE(
    "timelines: recorders tell of a job that lives for whom it waits, and of a killed rank where it was") {
    folder const out;
    ::setenv("HERRING_TIMELINE_DIR", out.path.c_str(), 1);
    // Rank 2 does not go on; when the files of the others tell so, it dies.
    auto const die_when_found = [&] {
        for (auto const until = herring::clock::now() + std::chrono::seconds(20);
             herring::clock::now() < until;) {
            bench::timeline_inspection const now(files_in(out.path));
            std::size_t waiting = 0;
            for (auto const& s : now.states()) waiting += s.waits_for >= 0;
            if (waiting == 3 && now.waited_for() == std::vector<int>{2} && now.behind() == now.waited_for())
                ::raise(SIGKILL);
            ::sched_yield();
        }
    };
    auto const body = [&](world& ranks) {
        traced reduce(ranks, tensors);
        step(reduce);
        step(reduce);
        if (ranks.rank() == 2) {
            reduce.ready(0);
            die_when_found();
        }
        step(reduce);
    };
    int const status = herring::launch(4, body, {.nodes = {"a", "b", "c", "d"}});
    ::unsetenv("HERRING_TIMELINE_DIR");
    CHECK(status != 0);
    std::vector<timeline_data> const all = files_in(out.path);
    REQUIRE(all.size() == 4);
    for (timeline_data const& one : all) {
        CHECK(one.damaged == 0);
        CHECK(one.job == all[0].job);
        CHECK(one.digest == all[0].digest);
        CHECK(one.node_of == std::vector<int>{0, 1, 2, 3});
        CHECK(one.is_aligned());
        CHECK(one.ended == (one.rank != 2));
        CHECK(one.failed == (one.rank != 2));
        CHECK_FALSE(one.clock_jumped);
    }
    bench::timeline_inspection const found(all);
    CHECK(found.behind() == std::vector<int>{2}); // it has submitted one bucket of three
    CHECK(found.waited_for() == std::vector<int>{2});
    std::string const text = found.text();
    CHECK(text.find("behind: rank 2\n") != std::string::npos);
    CHECK(text.find("is gone: it was killed; 7 operations submitted, 6 complete; in bucket 0") !=
          std::string::npos);
}
