// herring: real processes reduce over libfabric: the same bits as over transport::tcp, and as they must be.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/launch.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/ofi.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "libfabric.hpp"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

using namespace herring;

namespace {

using names = std::vector<std::string>;
constexpr exchange_tuning small{
    .chunk_bytes = 8_KiB, .window_bytes = 16_KiB, .one_hop_bytes = 2_KiB, .one_hop_bytes_two_nodes = 20_KiB};

constexpr provider_facts small_chunks(provider_facts facts) {
    facts.tuning = small;
    return facts;
}

// Small sizes, so that every threshold is crossed by tensors of a few hundred kilobytes.
struct quick_tcp : provider::tcp {
    static constexpr char const* name = "ofi<tcp>, small chunks";
    static constexpr provider_facts facts = small_chunks(provider::tcp::facts);
};
struct quick_shm : provider::shm {
    static constexpr char const* name = "ofi<shm>, small chunks";
    static constexpr provider_facts facts = small_chunks(provider::shm::facts);
};

launch_options on(names nodes) {
    launch_options options;
    options.nodes = std::move(nodes);
    options.timeout = std::chrono::seconds(120);
    return options;
}

// Not exact in any order: the order must be the same.
float value(int rank, std::size_t i, int step) {
    std::uint32_t x =
        static_cast<std::uint32_t>(i * 2654435761u) ^ static_cast<std::uint32_t>(rank * 40503 + step);
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return static_cast<float>(x) / 65536.0f - 30000.0f;
}

std::size_t differing(std::span<float const> a, std::span<float const> b) {
    std::size_t count = 0, size = a.size();
    float const *const x = a.data(), *const y = b.data();
    if (size == 0 || std::memcmp(x, y, size * sizeof *x) == 0) return 0;
    for (std::size_t i = 0; i < size; ++i) count += std::memcmp(x + i, y + i, sizeof *x) != 0;
    return count;
}

template <class Transport, class... Policies> int work(world& ranks) {
    std::vector<std::size_t> const sizes{1000, 0, 3, 170'001, 17, 4096, 33'333, 1};
    reducer<float, Transport, update::sum, Policies...> reduce(ranks, layout::of(sizes));
    reducer<float, transport::tcp, update::sum, Policies...> other(ranks, layout::of(sizes));
    std::size_t failures = 0;
    int const rank = ranks.rank(), size = ranks.size();
    for (int step = 0; step < 6; ++step) {
        if (ranks.rank() == step % ranks.size()) // everyone else runs ahead
            for (auto const until = clock::now() + std::chrono::milliseconds(3); clock::now() < until;) {
            }
        for (std::size_t n = 0; n < sizes.size(); ++n) {
            std::size_t const i = (n * 3 + static_cast<std::size_t>(step)) % sizes.size();
            float *const mine = reduce.tensor(i).data(), *const theirs = other.tensor(i).data();
            for (std::size_t k = 0, elements = sizes[i]; k < elements; ++k)
                mine[k] = theirs[k] = value(rank, k, step);
            reduce.ready(i);
            if (n % 2 == 0) reduce.poll();
        }
        reduce.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i) other.ready(i);
        other.wait();
        for (std::size_t i = 0; i < sizes.size(); ++i)
            failures += differing(reduce.tensor(i), other.tensor(i));
        for (std::size_t const length : std::vector<std::size_t>{1, 513, 5120, 65'537, 300'001}) {
            std::vector<float> mine, sum; // again after 1000 elements
            for (std::size_t k = 0; k < length; ++k) {
                float* const again = sum.data();
                mine.push_back(static_cast<float>((k + static_cast<std::size_t>(rank + step)) % 1000));
                sum.push_back(k < 1000 ? 0 : again[k - 1000]);
                for (int r = 0; r < size && k < 1000; ++r)
                    sum[k] += static_cast<float>((k + static_cast<std::size_t>(r + step)) % 1000);
            }
            reduce.all_reduce(mine);
            failures += differing(mine, sum);
        }
    }
    if (failures > 0) std::fprintf(stderr, "rank %d: %zu elements differ\n", ranks.rank(), failures);
    return failures > 0 ? 1 : 0;
}

template <class Transport, class... Policies> int run(int n, names nodes = {}) {
    return launch(
        n, [](world& ranks) { return work<Transport, Policies...>(ranks); }, on(std::move(nodes)));
}

} // namespace

TEST_CASE("ofi over tcp: 1 to 5 ranks, small chunks and default ones") {
    for (int const n : {1, 2, 3, 5}) {
        CAPTURE(n);
        CHECK(run<transport::ofi<quick_tcp>>(n) == 0);
        CHECK(run<transport::ofi<provider::tcp>>(n) == 0);
    }
}

TEST_CASE("ofi over shm: 1 to 5 ranks, small chunks and default ones") {
    for (int const n : {1, 2, 3, 5}) {
        CAPTURE(n);
        CHECK(run<transport::ofi<quick_shm>>(n) == 0);
        CHECK(run<transport::ofi<provider::shm>>(n) == 0);
    }
}

TEST_CASE("ofi between nodes with shared memory within, and with a progress thread") {
    using memory = intra_node::shared_memory;
    CHECK(run<transport::ofi<quick_tcp>, memory>(4, {"a", "a", "b", "b"}) == 0);
    CHECK(run<transport::ofi<quick_tcp>, memory>(5, {"a", "a", "b", "c", "c"}) == 0);
    CHECK(run<transport::ofi<quick_shm>, memory>(4, {"a", "a", "b", "b"}) == 0);
    CHECK(run<transport::ofi<quick_tcp>, progress::thread>(3) == 0);
    CHECK(run<transport::ofi<quick_shm>, progress::thread, waiting::block>(3) == 0);
}

TEST_CASE("ofi: groups of a world side by side") {
    auto const in_groups = [](auto const& reduce) {
        return launch(
            4,
            [&](world& ranks) {
                world row = ranks.split(ranks.rank() / 2), column = ranks.split(ranks.rank() % 2);
                return reduce(row) + reduce(column);
            },
            on({}));
    };
    CHECK(in_groups(work<transport::ofi<quick_tcp>>) == 0);
    CHECK(in_groups(work<transport::ofi<quick_shm>>) == 0);
}
