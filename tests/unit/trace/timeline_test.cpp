// herring: tests of trace/timeline.hpp: the ring, the recorder's file, and what a reducer records.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline.hpp"

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using herring::trace_event, herring::timeline_data, herring::world, herring::layout;
namespace trace = herring::trace;

namespace {
void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error(what);
}

/// A timeline that belongs to no reducer, of a world of one rank.
template <std::size_t Records> struct alone {
    world ranks;
    layout tensors{{"a", 4}};
    trace::timeline<Records> kept;
    alone() {
        std::uint64_t const bytes[] = {16};
        kept.attach({ranks, tensors, bytes, 42, 1, true});
    }
};
} // namespace

TEST_CASE("timeline: before it is attached it keeps nothing, and says so") {
    trace::timeline<> none;
    none.record(trace_event::wait_begin, {});
    CHECK(none.data().records.empty());
    CHECK(none.image().empty());
    CHECK(none.report().records == 0);
}

TEST_CASE("timeline: what was recorded comes back, oldest first, and newer ones replace it") {
    alone<128> one; // 64 in each ring
    for (std::uint32_t i = 0; i < 100; ++i)
        one.kept.record(
            trace_event::part_sent,
            {.index = i, .peer = 0, .execution = i, .bytes = std::uint64_t{i} << 31, .message = i});
    one.kept.record(trace_event::wait_end, {.index = 0, .peer = 0});
    timeline_data const data = one.kept.data();
    CHECK(data.records.size() == 64);
    CHECK(data.lost == 37); // one more than were replaced: it could have been under way
    std::uint32_t next = 37;
    std::int64_t before = 0;
    for (auto const& r : data.records) {
        CHECK(r.ns >= before);
        before = r.ns;
        if (r.what == trace_event::wait_end) continue;
        CHECK(r.index == next);
        CHECK(r.message == next);
        CHECK(r.execution == next++);
        CHECK(r.bytes == 0xffffffff);
    }
    CHECK(data.digest == 42);
    CHECK(data.tensor_names == std::vector<std::string>{"a"});
    CHECK_FALSE(data.clock_jumped);
    CHECK(data.is_aligned());
}

TEST_CASE("timeline: a copy that is taken while another thread records has whole records") {
    alone<64> one; // 32 in each ring, which go round all the time
    std::atomic<bool> stop{false};
    std::thread engine([&] {
        for (std::uint32_t i = 0; !stop; ++i)
            one.kept.record(trace_event::part_sent,
                            {.index = i, .peer = 0, .execution = i, .bytes = i, .message = i});
    });
    for (int copies = 0; copies < 200; ++copies) {
        timeline_data const data = one.kept.data();
        CHECK(data.damaged == 0);
        std::uint32_t before = 0;
        for (auto const& r : data.records) {
            CHECK((r.index == r.execution && r.index == r.bytes && r.index == r.message));
            CHECK((before == 0 || r.index == before + 1));
            before = r.index;
        }
    }
    stop = true;
    engine.join();
}

TEST_CASE("timeline: a reducer's step is recorded: each flight has both ends, and each message the name of "
          "its other end") {
    using traced = herring::reducer<float, herring::transport::inproc, herring::update::average,
                                    herring::fusion::per_tensor, trace::timeline<1 << 14>>;
    std::vector<timeline_data> all(3);
    herring::launch_threads(3, [&](world& ranks) {
        traced reduce(ranks, layout{{"a", 100'000}, {"b", 5}, {"c", 30'000}});
        for (int step = 0; step < 3; ++step) {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
            reduce.wait();
        }
        (void)reduce.all_reduce(1.0f);
        ranks.barrier();
        all[static_cast<std::size_t>(ranks.rank())] = reduce.trace().data();
        ranks.barrier();
    });
    std::map<std::uint64_t, int> sent, arrived; // from, to, name
    for (timeline_data const& data : all) {
        std::map<trace_event, int> count;
        std::map<std::uint32_t, int> ends;
        for (auto const& r : data.records) {
            ++count[r.what];
            if (r.what == trace_event::bucket_submitted) ++ends[r.execution];
            if (r.what == trace_event::bucket_reduced) CHECK(++ends[r.execution] == 2);
            auto const name = [&](int from, int to) {
                return static_cast<std::uint64_t>(from * 3 + to) << 32 | r.message;
            };
            if (r.what == trace_event::part_sent || r.what == trace_event::result_sent) {
                CHECK(++sent[name(data.rank, r.peer)] == 1);
                CHECK(ends[r.execution] == 1); // between submission and result
            }
            if (r.what == trace_event::part_arrived || r.what == trace_event::result_arrived)
                CHECK(++arrived[name(r.peer, data.rank)] == 1);
        }
        CHECK(data.lost == 0);
        CHECK(ends.size() == 10);
        CHECK(count[trace_event::tensor_ready] == 9);
        CHECK(count[trace_event::wait_begin] == 3);
        CHECK(count[trace_event::wait_end] == 3);
        CHECK(count[trace_event::fold_begin] == count[trace_event::fold_end]);
        CHECK(count[trace_event::fold_begin] > 0);
        CHECK(data.bucket_bytes.size() == 3);
    }
    CHECK(sent == arrived);
    CHECK(!sent.empty());
}

TEST_CASE("timeline: parts are put down to their execution, with a thread of the reducer's and ranks of one "
          "node, too") {
    using traced = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                                    herring::update::average, herring::fusion::per_tensor,
                                    herring::progress::thread, trace::timeline<1 << 14>>;
    herring::launch_options options;
    options.nodes = {"a", "a", "b"};
    herring::launch_threads(
        3,
        [&](world& ranks) {
            traced reduce(ranks, layout{{"a", 50'000}, {"b", 5}});
            for (int step = 0; step < 5; ++step) {
                for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
                reduce.wait();
            }
            timeline_data const data = reduce.trace().data(); // while the other thread lives
            std::set<std::uint32_t> submitted;
            for (auto const& r : data.records)
                if (r.what == trace_event::bucket_submitted) submitted.insert(r.execution);
            for (auto const& r : data.records)
                if (r.what == trace_event::part_arrived || r.what == trace_event::part_sent)
                    require(submitted.contains(r.execution) || r.execution == submitted.size(),
                            "a part of an execution that there is, or of the next one");
            auto const report = reduce.trace().report();
            require(report.exposed.count == 5 && report.buckets.size() == 2, "all steps are there");
            ranks.barrier();
        },
        options);
}

TEST_CASE("timeline: only some ranks have one: they record, and their clocks are not compared") {
    using traced =
        herring::reducer<float, herring::transport::inproc, herring::update::sum, trace::timeline<64>>;
    using plain = herring::reducer<float, herring::transport::inproc, herring::update::sum>;
    herring::launch_threads(2, [](world& ranks) {
        if (ranks.rank() == 0) {
            traced reduce(ranks, layout{{"a", 5}});
            reduce.ready(0);
            reduce.wait();
            require(!reduce.trace().data().is_aligned(), "there is nobody to compare clocks with");
            require(reduce.trace().report().exposed.count == 1, "the step is recorded");
        } else {
            plain reduce(ranks, layout{{"a", 5}});
            reduce.ready(0);
            reduce.wait();
        }
    });
}

TEST_CASE("timeline: the recorder's file describes itself, and one that cannot be written is no error") {
    char folder[] = "/tmp/herring-timeline-XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    ::setenv("HERRING_TIMELINE_DIR", folder, 1);
    std::string path;
    {
        alone<64> one;
        one.kept.record(trace_event::wait_begin, {});
        path = one.kept.file();
        CHECK(path.starts_with(folder));
        // As a killed process leaves it: nobody has told the file anything since.
        std::string const bytes = herring::detail::small_file(path);
        timeline_data const data = herring::read_timeline(std::as_bytes(std::span(bytes)));
        CHECK(data.records.size() == 1);
        CHECK_FALSE(data.ended);
        CHECK(data.pid == static_cast<std::uint32_t>(::getpid()));
        CHECK(data.version == herring::version_string);
        CHECK(data.host == herring::detail::host_name());
    }
    std::string const bytes = herring::detail::small_file(path);
    CHECK(herring::read_timeline(std::as_bytes(std::span(bytes))).ended);
    ::unlink(path.c_str());
    ::rmdir(folder);
    { // the folder is gone
        alone<64> one;
        CHECK(one.kept.file().empty());
        one.kept.record(trace_event::wait_begin, {});
        CHECK(one.kept.data().records.size() == 1);
    }
    ::unsetenv("HERRING_TIMELINE_DIR");
}
