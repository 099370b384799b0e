// herring: the slots of a rank's region: apart, at the same place on every rank, locked by pages of its own.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/region.hpp"

#include "gpu_model/host_runtime.hpp"
#include "herring/launch.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <string>

using namespace herring;

TEST_CASE("region: slots do not touch what others lock") {
    gpu::host_machine machine;
    launch_threads(3, [](world& ranks) {
        gpu::host_runtime device(ranks);
        for (std::size_t const bytes : {std::size_t{0}, std::size_t{64}, std::size_t{5000}}) {
            gpu::region<gpu::host_runtime> mine(ranks, device, bytes, 10000, 3);
            std::byte* const base = mine.flags().memory();
            auto const page = [](std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) / 4096; };
            bool good = mine.slots() == 3 && mine.slot(3) == mine.slot(0) &&
                        mine.slot(1) - mine.slot(0) >= 10000 &&
                        mine.slot(0) - base >= static_cast<std::ptrdiff_t>(bytes) &&
                        mine.slot(2) + 10000 <= base + mine.bytes();
            // The page of the first slot begins behind the region's start, and that of the last ends before its end.
            good = good && page(mine.slot(0)) * 4096 >= reinterpret_cast<std::uintptr_t>(base) + bytes;
            good = good && (page(mine.slot(2) + 9999) + 1) * 4096 <=
                               reinterpret_cast<std::uintptr_t>(base) + mine.bytes();
            for (int l = 0; l < 3; ++l)
                good = good &&
                       mine.flags().peer(l, mine.slot(1)) - mine.flags().peer(l, base) == mine.slot(1) - base;
            if (!good)
                throw error(errc::internal, ranks.rank(), -1, "region_test",
                            "a slot is not where it must be");
            ranks.barrier();
        }
        return 0;
    });
    CHECK(machine.pinned_used == 0);
}

TEST_CASE("region: local ranks with other slots are told of each other") {
    gpu::host_machine machine;
    launch_options options;
    options.nodes = {"a", "a", "b"};
    launch_threads(
        3,
        [](world& ranks) {
            gpu::host_runtime device(ranks);
            std::string said = "nothing";
            try {
                gpu::region<gpu::host_runtime> mine(ranks, device, 64, 10000, ranks.rank() == 0 ? 3 : 2);
            } catch (error const& why) {
                said = why.what();
                ranks.fail(why.why());
            }
            bool const told =
                said.find("other slots") != std::string::npos && said.find("mismatch") != std::string::npos;
            if (ranks.node() == 0 && !told)
                throw error(errc::internal, ranks.rank(), -1, "region_test", said);
            return 0;
        },
        options);
    CHECK(machine.pinned_used == 0);
}

TEST_CASE("region: naps grow while a device is at work, and end with it") {
    gpu::host_machine machine;
    world alone;
    gpu::host_runtime device(alone);
    gpu::region<gpu::host_runtime> mine(alone, device, 64, 0, 0);
    time_point const late = clock::now() + std::chrono::hours(1);
    CHECK(mine.nap(late) == late);
    mine.busy = true;
    CHECK(mine.nap(late) < late);
    for (int i = 0; i < 100; ++i) (void)mine.nap(late);
    CHECK(mine.nap(late) < clock::now() + std::chrono::seconds(30));
    mine.busy = false;
    CHECK(mine.nap(late) == late);
}
