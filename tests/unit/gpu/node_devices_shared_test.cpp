// herring: ranks that share a device are allowed, and told of once a device.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/node_devices.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <cstdio>
#include <string>

#include <unistd.h>

using namespace herring;

TEST_CASE("sharing: one line a shared device, by the first rank of it") {
    struct {
        std::vector<std::string> nodes;
        int devices, lines;
    } const cases[] = {{{"a"}, 1, 0},
                       {{"a", "a"}, 2, 0},
                       {{"a", "a"}, 1, 1},
                       {{"a", "a", "a"}, 2, 1},
                       {{"a", "b"}, 1, 0},
                       {{"a", "b", "a", "b"}, 1, 2},
                       {{"a", "a", "a", "a"}, 2, 2},
                       {{"a", "a", "a"}, 3, 0}};
    for (auto const& one : cases) {
        CAPTURE(one.lines);
        gpu::host_machine machine({.workers = 0, .devices = one.devices});
        launch_options options;
        options.nodes = one.nodes;
        launch_threads(
            static_cast<int>(one.nodes.size()), [](world& ranks) { gpu::host_runtime const device(ranks); },
            options);
        CHECK(machine.shared_devices == one.lines);
    }
}

namespace {

// What is written to stderr meanwhile.
template <class Call> std::string on_stderr(Call&& call) {
    std::FILE* const kept = std::tmpfile();
    REQUIRE(kept != nullptr);
    std::fflush(stderr);
    int const saved = ::dup(2);
    ::dup2(::fileno(kept), 2);
    call();
    std::fflush(stderr);
    ::dup2(saved, 2);
    ::close(saved);
    std::rewind(kept);
    std::string text;
    for (int c = std::fgetc(kept); c != EOF; c = std::fgetc(kept)) text += static_cast<char>(c);
    std::fclose(kept);
    return text;
}

int count(std::string const& text, char const* what) {
    int found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
}

// Two devices that three ranks share, three times.
int share(world& ranks) {
    for (int round = 0; round < 3; ++round)
        for (char const* const name : {"device X", "device Y"}) {
            bool const told = gpu::warn_if_shared(ranks, std::as_bytes(std::span(name, 8)), name[7], name);
            if (told != (ranks.rank() == 0)) std::fputs("told by another\n", stderr);
        }
    return 0;
}

} // namespace

TEST_CASE("sharing: the line is printed once a process and device, however often it is asked") {
    std::string const processes = on_stderr([] { launch(3, share); });
    std::string const threads = on_stderr([] { launch_threads(3, share); });
    for (std::string const& text : {processes, threads}) {
        CAPTURE(text);
        CHECK(count(text, "\n") == 2);
        CHECK(count(text, "herring: rank 0: 3 ranks of this node share device 88 (device X)") == 1);
        CHECK(count(text, "herring: rank 0: 3 ranks of this node share device 89 (device Y)") == 1);
    }
}

TEST_CASE("sharing: processes are told what turns cost and what to do, threads that they share the speed") {
    auto const tell = [](world& ranks) {
        char const name[] = "device Z";
        (void)gpu::warn_if_shared(ranks, std::as_bytes(std::span(name)), 0, name);
    };
    std::string const processes = on_stderr([&] { launch(2, tell); });
    CAPTURE(processes);
    for (char const* const part :
         {"by turns", "4.4 ms where 0.04 ms is usual", "start CUDA's MPS (nvidia-cuda-mps-control -d)",
          "one rank a device", "intra_node::pcie_staging"})
        CHECK(count(processes, part) == 1);
    std::string const threads = on_stderr([&] { launch_threads(2, tell); });
    CAPTURE(threads);
    CHECK(count(threads, "its speed, as threads of one process") == 1);
    CHECK(count(threads, "turns") == 0);
    CHECK(count(threads, "MPS") == 0);
}
