// herring: lists of copies: what changes while a device is behind never waits for it, and never overwrites what it still reads.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/pipeline/copy_lists.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

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

// Of five tensors, of nothing to several chunks, each call copies those that its mask has; now and then from elsewhere, and now and
// then the device catches up. Returns how many calls left something else than they should.
std::size_t wrong_subsets(std::uint64_t seed, std::vector<unsigned> const& masks) {
    host_machine machine({.seed = seed});
    world alone;
    host_runtime device(alone);
    constexpr std::size_t sizes[] = {130'000, 32'768, 0, 70'001, 300};
    constexpr std::size_t tensors = std::size(sizes), room = 250'000;
    host_runtime::memory memory(device, 4 * room);
    auto* const all = reinterpret_cast<unsigned char*>(memory.data());
    struct seen {
        unsigned char* from; // is filled anew for every call
        unsigned char const* at;
        std::vector<unsigned char> fresh, want;
        bool right = false;
    };
    std::vector<seen> snapshots(masks.size());
    std::vector<unsigned char> want(room);
    std::mt19937_64 random(seed);
    gpu::copy_lists<host_runtime> lists(device, tensors, 1);
    host_runtime::stream in(device);
    for (std::size_t call = 0; call < masks.size(); ++call) {
        std::vector<gpu::copy_item> items;
        std::size_t at = 0, tensor = 0;
        unsigned char* const from = all + (random() % 16 == 0 ? 1 + random() % 2 : 0) * room;
        std::vector<unsigned char> fresh(room);
        for (std::size_t i = 0; i < room; ++i)
            fresh[i] = static_cast<unsigned char>(i * 31 + i / 251 + call * 17);
        for (std::size_t const bytes : sizes) {
            if ((masks[call] >> tensor++ & 1) != 0) {
                items.push_back({all + 3 * room + at, from + at, bytes});
                std::copy_n(fresh.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                            want.begin() + static_cast<std::ptrdiff_t>(at));
            }
            at += bytes;
        }
        snapshots[call] = {from, all + 3 * room, std::move(fresh), want};
        host_runtime::launch(
            in.handle(),
            [](void* self) {
                auto& me = *static_cast<seen*>(self);
                std::copy(me.fresh.begin(), me.fresh.end(), me.from);
            },
            &snapshots[call]);
        if (!items.empty()) {
            lists.prepare(0, 0, items);
            lists.put(in.handle(), 0, 0, items);
            lists.used(in.handle(), 0);
        }
        host_runtime::launch(
            in.handle(),
            [](void* self) {
                auto& me = *static_cast<seen*>(self);
                me.right = std::memcmp(me.at, me.want.data(), me.want.size()) == 0;
            },
            &snapshots[call]);
        if (random() % 4 != 0) machine.drain(*in.handle());
    }
    machine.drain(*in.handle());
    return static_cast<std::size_t>(
        std::count_if(snapshots.begin(), snapshots.end(), [](seen const& one) { return !one.right; }));
}

} // namespace

TEST_CASE("copy_lists: other tensors in each call: every copy is its own") {
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
        CAPTURE(seed);
        // The fourth list is the third and what was left behind it of the first, whose chunks began elsewhere.
        CHECK(wrong_subsets(seed, {0b11011, 0b11000, 0b00101, 0b11101}) == 0);
        std::mt19937_64 random(seed);
        std::vector<unsigned> masks(80);
        for (unsigned& mask : masks) mask = static_cast<unsigned>(random() % 32);
        CHECK(wrong_subsets(seed, masks) == 0);
    }
}

TEST_CASE("copy_lists: the same, by turns, and always others: no call waits, and every copy is its own") {
    for (std::uint64_t seed = 1; seed < 5; ++seed) {
        CHECK(wrong<host_runtime>(std::array{8, 8, 8, 8}, seed) == 0);
        CHECK(wrong<host_runtime>(std::array{8, 16, 8, 16, 8}, seed) == 0);
        CHECK(wrong<host_runtime>(std::array{8, 16, 24, 32, 40, 8, 8}, seed) == 0);
    }
    CHECK(wrong<hasty>(std::array{8, 16, 24, 32, 40, 8, 8}, 1) > 0); // what this test must see
    CHECK(wrong<hasty>(std::array{8, 16, 24, 32, 40, 8, 8}, 1) < 100);
}
