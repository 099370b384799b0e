// herring: lists of copies: what changes while a device is behind never waits for it, and never overwrites what it still reads.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/copy_lists.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

using namespace herring;
using gpu::host_machine;
using gpu::host_runtime;

namespace {

// Takes every list for free.
struct hasty : host_runtime {
    using host_runtime::host_runtime;
    bool done(event&) noexcept { return true; }
};

// Two parts, put `calls` times into a stream that stands still until the last call has returned: each time from the places
// that `from` says. Returns how many of the calls' copies went wrong.
template <class Runtime, std::size_t Calls>
int wrong(std::array<int, Calls> const& from, std::uint64_t seed) {
    host_machine machine({.seed = seed});
    world alone;
    Runtime device(alone);
    constexpr std::size_t values = 64;
    host_runtime::memory memory(device, 2 * values * sizeof(int));
    int* const here = reinterpret_cast<int*>(memory.data());
    for (int i = 0; i < static_cast<int>(values); ++i) here[i] = i;
    static std::atomic<bool> open;
    static std::atomic<int> shut_for_ever;
    open = false, shut_for_ever = 0;
    struct seen {
        int const* at;
        std::array<int, 4> got;
    };
    std::array<seen, Calls> all{};
    gpu::copy_lists<Runtime> lists(device, 4, 2);
    host_runtime::stream in(device);
    host_runtime::launch(
        in.handle(),
        [](void*) {
            time_point const late = clock::now() + std::chrono::seconds(20);
            while (!open && clock::now() < late) std::this_thread::yield();
            shut_for_ever = !open;
        },
        nullptr);
    for (std::size_t call = 0; call < Calls; ++call) {
        for (std::size_t part = 0; part < 2; ++part) {
            int* const to = here + values + 2 * part;
            int const* const there = here + from[call] + 2 * static_cast<int>(part);
            gpu::copy_item const items[] = {{to, there, sizeof(int)}, {to + 1, there + 1, sizeof(int)}};
            lists.prepare(part, 2 * part, items);
            lists.put(in.handle(), part, 2 * part, items);
            lists.used(in.handle(), part);
        }
        all[call].at = here + values;
        host_runtime::launch(
            in.handle(),
            [](void* self) {
                auto& me = *static_cast<seen*>(self);
                for (std::size_t i = 0; i < 4; ++i) me.got[i] = me.at[i];
            },
            &all[call]);
    }
    open = true;
    machine.drain(*in.handle());
    int found = shut_for_ever * 100; // the host waited for the stream
    for (std::size_t call = 0; call < Calls; ++call)
        for (int i = 0; i < 4; ++i) found += all[call].got[static_cast<std::size_t>(i)] != from[call] + i;
    return found;
}

} // namespace

TEST_CASE("copy_lists: the same, by turns, and always others: no call waits, and every copy is its own") {
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
        CHECK(wrong<host_runtime>(std::array{8, 8, 8, 8}, seed) == 0);
        CHECK(wrong<host_runtime>(std::array{8, 16, 8, 16, 8}, seed) == 0);
        CHECK(wrong<host_runtime>(std::array{8, 16, 24, 32, 40, 8, 8}, seed) == 0);
    }
    CHECK(wrong<hasty>(std::array{8, 16, 24, 32, 40, 8, 8}, 1) > 0); // what this test must see
    CHECK(wrong<hasty>(std::array{8, 16, 24, 32, 40, 8, 8}, 1) < 100);
}
