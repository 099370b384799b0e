// huge_pages: the caller's gradients in small pages, in pages that are made huge, and from an allocator of huge pages.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/memory/huge_pages.hpp>
#include <herring/transport/tcp.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <vector>

constexpr std::size_t model_elements = 64 << 20; // 256 MiB of floats

using gradients = herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory,
                                   herring::update::average>;

// The median time of a step, in milliseconds, of the rank that took longest.
double measure(herring::world& world, gradients& reduce, std::span<float> mine) {
    std::vector<double> times;
    for (int step = 0; step < 7; ++step) {
        world.barrier();
        auto const begin = std::chrono::steady_clock::now();
        reduce.ready(0, mine);
        reduce.wait();
        std::chrono::duration<double, std::milli> const took = std::chrono::steady_clock::now() - begin;
        times.push_back(took.count());
    }
    std::nth_element(times.begin(), times.begin() + 3, times.end());
    double slowest = times[3];
    for (auto const& other : world.all_gather(std::as_bytes(std::span(&times[3], 1))))
        slowest = std::max(slowest, *reinterpret_cast<double const*>(other.data()));
    return slowest;
}

void run(herring::world& world) {
    gradients reduce(world, {{"gradients", model_elements}});
    std::vector<float> ordinary(model_elements, 1.0f);
    double const small = measure(world, reduce, ordinary);
    bool const moved = herring::advise_huge_pages(std::span(ordinary));
    double const advised = measure(world, reduce, ordinary);
    ordinary = {};
    std::vector<float, herring::huge_page_allocator<float>> huge(model_elements, 1.0f);
    double const allocated = measure(world, reduce, huge);
    if (world.rank() != 0) return;
    std::printf("transparent huge pages: %s\n", to_string(herring::system_huge_pages()));
    std::printf("std::vector                      %6.1f ms\n", small);
    std::printf("the same, advise_huge_pages      %6.1f ms%s\n", advised,
                moved ? "" : "   (the system has none for it)");
    std::printf("huge_page_allocator              %6.1f ms\n", allocated);
}

int main() { return herring::launch(2, run); }
