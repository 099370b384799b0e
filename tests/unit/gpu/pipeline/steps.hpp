// herring: what the tests of both pipelines share: a step of every rank on the model of a device, and how it ended.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_UNIT_GPU_PIPELINE_STEPS_HPP
#define HERRING_TESTS_UNIT_GPU_PIPELINE_STEPS_HPP

#include "gpu_model/host_runtime.hpp"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/inproc.hpp"

#include "doctest/doctest.h"

#include <string>
#include <vector>

namespace gpu_test {

using namespace herring;

/// Two steps of each rank; ended[r] is what rank r threw, or empty. A step's values are ranks and step numbers. `Scale`: tensors are
/// so many times as large.
template <class Node, std::size_t Scale = 1>
std::vector<std::string> run(std::vector<std::string> const& nodes, bool leave_early = false) {
    std::vector<std::string> ended(nodes.size());
    launch_options options;
    options.nodes = nodes;
    auto const body = [&](world& ranks) {
        std::string& mine = ended[static_cast<std::size_t>(ranks.rank())];
        struct job {
            float* at;
            float value;
            std::size_t count;
            bool good;
        } jobs[4] = {};
        try {
            reducer<float, update::sum, transport::inproc, Node, fusion::balanced_buffer<4096, 1>> reduce(
                ranks, {{"a", 3000 * Scale}, {"b", 500}, {"c", 2500 * Scale}});
            gpu::host_runtime device(ranks);
            gpu::host_runtime::stream in(device);
            auto const write = [](void* what) {
                auto const& j = *static_cast<job*>(what);
                for (std::size_t i = 0; i < j.count; ++i) j.at[i] = j.value;
            };
            auto const read = [](void* what) {
                auto& j = *static_cast<job*>(what);
                j.good = true;
                for (std::size_t i = 0; i < j.count; ++i) j.good = j.good && j.at[i] == j.value;
            };
            for (int step = 0; step < 2; ++step) {
                for (std::size_t t = 0; t < 3; ++t) {
                    if (t == 2) {
                        job& j = jobs[step * 2];
                        j = {reduce.tensor(t).data(), static_cast<float>(ranks.rank() + step), 2500 * Scale,
                             false};
                        gpu::host_runtime::launch(in.handle(), write, &j);
                    }
                    reduce.ready(t, in.handle());
                }
                reduce.wait(in.handle());
                int const n = ranks.size();
                job& j = jobs[step * 2 + 1];
                j = {reduce.tensor(2).data(), static_cast<float>(n * (n - 1) / 2 + n * step), 2500 * Scale,
                     false};
                gpu::host_runtime::launch(in.handle(), read, &j);
            }
            if (leave_early && ranks.rank() == 0) return 0; // its queues are still full
        } catch (error const& why) {
            mine = why.what();
            ranks.fail(why.why());
            return 0;
        }
        if (!jobs[1].good || !jobs[3].good) mine = "a wrong sum";
        return 0;
    };
    launch_threads(static_cast<int>(nodes.size()), body, options);
    return ended;
}

inline bool all_well(std::vector<std::string> const& ended) {
    for (std::string const& one : ended)
        if (!one.empty()) return false;
    return true;
}

/// The call with this number fails, on whatever rank that is: nobody hangs, every rank ends well or with the device's error.
/// Returns what is wrong with that, or nothing.
template <class Node, std::size_t Scale = 1>
std::string fail_at(std::uint64_t number, std::vector<std::string> const& nodes) {
    gpu::host_machine machine(
        {.seed = number, .fail_at = number, .fail_rank = static_cast<int>(number % 3) - 1});
    std::vector<std::string> const ended = run<Node, Scale>(nodes);
    std::string wrong;
    bool any = false;
    for (std::string const& one : ended) {
        any = any || !one.empty();
        if (!one.empty() && one.find("device error") == std::string::npos) wrong += one + "\n";
    }
    if (!any && number <= 4) wrong += "nobody noticed";
    if (machine.device_used != 0 || machine.pinned_used != 0) wrong += "memory is left\n";
    return wrong;
}

/// What every pipeline's own test starts with.
template <class Node, std::size_t Scale = 1> void sound_steps() {
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
        gpu::host_machine machine({.seed = seed});
        CHECK(all_well(run<Node, Scale>({"a", "a", "b"})));
        CHECK(all_well(run<Node, Scale>({"a", "a"}, true)));
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
}

template <class Node, std::size_t Scale = 1> void any_call_may_fail() {
    for (std::uint64_t number = 1; number < 120; number = number < 20 ? number + 1 : number + 9) {
        CAPTURE(number);
        CHECK(fail_at<Node, Scale>(number, {"a", "a"}) == "");
        if (Scale == 1) CHECK(fail_at<Node, Scale>(number, {"a", "a", "b"}) == "");
    }
}

template <class Node> void every_rank_is_told_what_there_is_not() {
    {
        gpu::host_machine machine({.device_bytes = 30000});
        for (std::string const& one : run<Node>({"a", "a"})) {
            CAPTURE(one);
            CHECK(one.find("device memory") != std::string::npos);
        }
        CHECK(machine.device_used == 0);
    }
    {
        gpu::host_machine machine({.pinned_bytes = 10000});
        for (std::string const& one : run<Node>({"a", "b"})) {
            CAPTURE(one);
            CHECK(one.find("pinned memory") != std::string::npos);
        }
        CHECK(machine.device_used == 0);
        CHECK(machine.pinned_used == 0);
    }
    for (std::string const& one : run<Node>({"a", "a"})) CHECK(one.find("host_machine") != std::string::npos);
}

/// Memory of the host, of another device, of another size: this rank's error, and the step goes on.
template <class Node> void wrong_memory_is_refused() {
    gpu::host_machine machine({.devices = 2});
    static std::string said[2][7];
    launch_threads(2, [](world& ranks) {
        static gpu::host_runtime::memory* of[2];
        gpu::host_runtime device(ranks);
        gpu::host_runtime::memory mine(device, 4000);
        of[ranks.rank()] = &mine;
        reducer<float, update::average, transport::inproc, Node> reduce(ranks, {{"a", 100}});
        gpu::host_runtime::stream in(device);
        std::vector<float> host(100);
        auto const first = [](gpu::host_runtime::memory& m) { return reinterpret_cast<float*>(m.data()); };
        auto const caught = [](auto const& call) -> std::string {
            try {
                call();
            } catch (error const& why) {
                return why.what();
            }
            return "nothing";
        };
        std::string* const mine_said = said[ranks.rank()];
        float* const theirs = first(*of[1 - ranks.rank()]);
        mine_said[0] = caught([&] { reduce.ready(0, device_span<float>(host.data(), 100), in.handle()); });
        mine_said[1] = caught([&] { reduce.ready(0, device_span<float>(theirs, 100), in.handle()); });
        mine_said[2] = caught([&] { reduce.ready(0, device_span<float>(first(mine), 99), in.handle()); });
        mine_said[3] = caught([&] { reduce.all_reduce(device_span<float>(host.data(), 100), in.handle()); });
        gpu::host_runtime::stream other(device);
        other.handle()->capture(); // as a program that makes a graph of its own
        mine_said[4] = caught([&] { reduce.ready(0, other.handle()); });
        mine_said[5] =
            caught([&] { reduce.all_reduce(device_span<float>(first(mine), 100), other.handle()); });
        reduce.ready(0, device_span<float>(first(mine), 100), in.handle());
        mine_said[6] = caught([&] { (void)reduce.wait(other.handle(), clock::now()); });
        (void)other.handle()->captured();
        reduce.wait(in.handle());
        reduce.all_reduce(device_span<float>(first(mine), 100), in.handle());
        ranks.barrier();
        return 0;
    });
    for (auto const& of_rank : said) {
        CHECK(of_rank[0].find("memory of the host") != std::string::npos);
        CHECK(of_rank[1].find("memory of another device") != std::string::npos);
        CHECK(of_rank[2].find("has 100 elements, the span has 99") != std::string::npos);
        CHECK(of_rank[3].find("all_reduce: bad argument: it is memory of the host") != std::string::npos);
        char const* const calls[] = {"ready", "all_reduce", "wait"};
        for (int i = 0; i < 3; ++i) {
            CAPTURE(of_rank[4 + i]);
            CHECK(of_rank[4 + i].find(std::string(calls[i]) +
                                      ": bad argument: the stream is being captured") != std::string::npos);
        }
    }
    CHECK(machine.device_used == 0);
}

} // namespace gpu_test

#endif // HERRING_TESTS_UNIT_GPU_PIPELINE_STEPS_HPP
