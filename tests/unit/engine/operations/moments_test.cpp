// herring: tests of engine/operations/moments.hpp: mean and deviation by every route, over a network without manners.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/operations/moments.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include "herring/plan/collective_division.hpp"
#include "herring/update/moments.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace moments_operation_test {

using tensors = std::vector<std::size_t>;
template <class T> using operation = herring::operations::moments<T, herring::update::moments>;
template <class T>
using world = mesh::world_of<T, herring::update::moments, herring::placement::colocated, operation<T>>;

// On each side of every threshold of small_tuning(). Each twice: what lies behind a bucket has its deviations.
tensors const sizes{1, 15, 16, 17, 24, 25, 32, 33, 48, 49, 64, 65, 100, 129, 333, 1000, 2047};
tensors doubled() {
    tensors all;
    for (std::size_t const n : sizes) all.insert(all.end(), {n, n});
    return all;
}

std::vector<std::vector<int>> const shapes{{1},    {2},    {3},       {4},    {1, 1},       {1, 1, 1},
                                           {2, 2}, {1, 2}, {3, 1, 2}, {2, 3}, {1, 1, 1, 1}, {4, 4}};

/// Whole numbers, so that mean and deviation are exact in some shapes and of few digits in all.
template <class T> T value(int rank, std::size_t which, std::size_t i) {
    return static_cast<T>(
        static_cast<float>((static_cast<std::size_t>(rank) * 7919 + which * 104'729 + i * 31) % 101));
}

/// Shards of each bucket, which executions point to.
template <class T> struct divisions {
    std::map<std::size_t, std::pair<herring::bucket, std::vector<herring::shard>>> made;

    auto const& of(world<T>& all, std::size_t which) {
        auto const [at, is_new] = made.try_emplace(which);
        auto& [whole, shards] = at->second;
        std::size_t const n = all.made.buckets[which].elements;
        herring::bucket_tensor const tensor{0, 0, n};
        if (is_new)
            herring::detail::divide_twofold<herring::sharding::balanced>(
                whole, {n, all.made.line_elements, std::span(&tensor, 1)}, all.made, shards, {});
        return at->second;
    }
};

template <class T>
void submit(world<T>& all, divisions<T>& by, typename world<T>::rank& r, std::size_t which) {
    auto const mine = all.memory(r, which);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value<T>(r.number, which, i);
    auto const behind = all.memory(r, which + 1);
    std::memset(static_cast<void*>(behind.data()), 0x5a, behind.size_bytes());
    auto const& [whole, shards] = by.of(all, which);
    r.runs->submit({.shards = shards.data(),
                    .shard_count = whole.shards,
                    .path = whole.path,
                    .operation = world<T>::engine::template number_of<operation<T>>(),
                    .own = reinterpret_cast<std::byte*>(mine.data()),
                    .elements = whole.elements,
                    .fingerprint = static_cast<std::uint32_t>(which),
                    .label = static_cast<std::uint32_t>(which),
                    .part = {.second = {herring::detail::twofold_begin(whole.elements, all.made)}}});
    ++r.submitted;
}

template <class T> bool is_due(world<T>& all, typename world<T>::rank& r, std::size_t which) {
    auto const mean = all.memory(r, which), deviation = all.memory(r, which + 1);
    int const ranks = all.map.size();
    double const step = std::is_same_v<T, float> ? 1e-5 : 0.2;
    auto const first_mean = all.memory(*all.ranks[0], which),
               first_deviation = all.memory(*all.ranks[0], which + 1);
    if (std::memcmp(mean.data(), first_mean.data(), mean.size_bytes()) != 0 ||
        std::memcmp(deviation.data(), first_deviation.data(), mean.size_bytes()) != 0)
        return false;                          // the same bits on every rank
    if (&r != all.ranks[0].get()) return true; // whose results are due, for they were looked at first
    for (std::size_t i = 0; i < mean.size(); ++i) {
        double sum = 0, squares = 0;
        for (int n = 0; n < ranks; ++n) sum += static_cast<float>(value<T>(n, which, i));
        for (int n = 0; n < ranks; ++n) {
            double const off = static_cast<float>(value<T>(n, which, i)) - sum / ranks;
            squares += off * off;
        }
        if (std::fabs(static_cast<float>(mean[i]) - sum / ranks) > step ||
            std::fabs(static_cast<float>(deviation[i]) - std::sqrt(squares / ranks)) > step) {
            MESSAGE("rank " << r.number << ", bucket " << which << " of " << mean.size() << ", element "
                            << i);
            return false;
        }
    }
    return true;
}

template <class T> void every_shape(std::uint32_t seeds) {
    for (auto const& shape : shapes)
        for (std::uint32_t seed = 0; seed < seeds; ++seed) {
            CAPTURE(shape.size());
            CAPTURE(shape[0]);
            CAPTURE(seed);
            world<T> all(shape, doubled(), mesh::small_tuning(), seed, seed == 1 ? 20 : 0);
            divisions<T> by;
            for (int turn = 0; turn < 12; ++turn) {
                std::vector<std::size_t> calls;
                for (std::size_t b = all.net.pick(3); b < sizes.size() && calls.size() < 7;
                     b += 1 + all.net.pick(4))
                    calls.push_back(2 * b);
                for (auto& r : all.ranks)
                    for (std::size_t const which : calls) submit(all, by, *r, which);
                REQUIRE(all.settle());
                for (auto& r : all.ranks)
                    for (std::size_t const which : calls) REQUIRE(is_due(all, *r, which));
            }
            if (seed != 1) CHECK(all.net.early() == 0);
            CHECK(all.net.quiet());
        }
}

} // namespace moments_operation_test

TEST_CASE(
    "moments: mean and deviation on every shape, by every route, mixed, over a network without manners") {
    moments_operation_test::every_shape<float>(3);
    moments_operation_test::every_shape<herring::bfloat16>(2);
}

TEST_CASE("moments: by two hops three quarters of what two all-reduces send, and by one hop half of it") {
    using namespace moments_operation_test;
    world<float> all({1, 1, 1, 1}, {4096, 4096, 40, 40}, mesh::small_tuning(), 1, 0);
    divisions<float> by;
    for (std::size_t const which : {std::size_t{0}, std::size_t{2}}) {
        std::vector<std::uint64_t> before;
        for (auto& r : all.ranks) before.push_back(r->runs->counters().bytes_sent);
        for (auto& r : all.ranks) submit(all, by, *r, which);
        REQUIRE(all.settle());
        std::uint64_t const bytes = all.made.buckets[which].elements * 4;
        for (std::size_t r = 0; r < 4; ++r)
            CHECK(all.ranks[r]->runs->counters().bytes_sent - before[r] ==
                  (which == 0 ? 3 * 3 * bytes / 4 : 3 * bytes));
    }
}

TEST_CASE("moments: results land elsewhere than the contribution where no other rank sees the memory") {
    using namespace moments_operation_test;
    world<float> all({1, 1, 1}, {3000, 3000, 30, 30}, mesh::small_tuning(), 4, 0);
    divisions<float> by;
    for (std::size_t const which : {std::size_t{0}, std::size_t{2}}) {
        auto const& [whole, shards] = by.of(all, which);
        std::size_t const n = whole.elements;
        std::vector<std::vector<float>> in(3), mean(3), deviation(3);
        for (std::size_t r = 0; r < 3; ++r) {
            for (std::size_t i = 0; i < n; ++i) in[r].push_back(value<float>(static_cast<int>(r), which, i));
            mean[r].assign(n, -1);
            deviation[r].assign(n, -1);
            auto& one = *all.ranks[r];
            one.runs->submit({.shards = shards.data(),
                              .shard_count = whole.shards,
                              .path = whole.path,
                              .operation = world<float>::engine::number_of<operation<float>>(),
                              .own = reinterpret_cast<std::byte*>(in[r].data()),
                              .elements = n,
                              .out = reinterpret_cast<std::byte*>(mean[r].data()),
                              .part = {.second = {herring::detail::twofold_begin(n, all.made),
                                                  reinterpret_cast<std::byte*>(deviation[r].data())}}});
            ++one.submitted;
        }
        REQUIRE(all.settle());
        for (std::size_t r = 0; r < 3; ++r) {
            CHECK((mean[r] == mean[0]));
            CHECK((deviation[r] == deviation[0]));
            int wrong = 0;
            for (std::size_t i = 0; i < n; ++i) {
                double sum = 0, squares = 0;
                for (int k = 0; k < 3; ++k) sum += static_cast<double>(value<float>(k, which, i));
                for (int k = 0; k < 3; ++k) {
                    double const off = static_cast<double>(value<float>(k, which, i)) - sum / 3;
                    squares += off * off;
                }
                wrong += in[r][i] != value<float>(static_cast<int>(r), which, i) ||
                         std::fabs(static_cast<double>(mean[r][i]) - sum / 3) > 1e-5 ||
                         std::fabs(static_cast<double>(deviation[r][i]) - std::sqrt(squares / 3)) > 1e-5;
            }
            CHECK(wrong == 0);
        }
    }
}
