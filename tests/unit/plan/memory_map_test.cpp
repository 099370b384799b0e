// herring: tests of plan/memory_map.hpp: what lies where, and the path of a call, by topology, size and policy.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/memory_map.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

using namespace herring;

namespace {

constexpr std::size_t shown(std::size_t executions, std::size_t mailbox_bytes) noexcept {
    return executions * 100 + mailbox_bytes;
}

/// The map of three tensors of 4-byte elements.
constexpr memory_map of(topology const& where, memory_traits const& traits, std::size_t peers = 0) {
    std::size_t const tensors[] = {1000, 0, 50'000};
    exchange_tuning tuning{.chunk_bytes = 64_KiB, .window_bytes = 256_KiB, .mailbox_bytes = 512};
    if (traits.on_device) tuning.piece_bytes = 64_KiB;
    tuning.split_bytes = splits_buckets(traits, where) ? 40'000 : 0;
    return make_memory_map(
        make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(tensors, where, 4, 4, tuning),
        traits, peers, shown);
}
} // namespace

TEST_CASE("memory_map: which path a call takes is known at compile time") {
    struct row {
        int nodes, local;
        memory_traits traits;
        memory_path tensors, large, small;
    };
    using enum memory_path;
    constexpr row rows[] = {
        // What is not shared is reduced where it lies.
        {1, 1, {}, in_place, in_place, in_place},
        {4, 1, {}, in_place, in_place, in_place},
        // But what would be touched between calls is no tensor of the caller's.
        {4, 1, {.works_between_calls = true}, copied, in_place, in_place},
        {4, 1, {.background = true}, copied, in_place, in_place},
        // An adapter sees registered memory alone; without another node there is none.
        {1, 1, {.registers_memory = true}, in_place, in_place, in_place},
        {4, 1, {.registers_memory = true}, copied, bounced, bounced},
        // A node of several ranks shares memory of its own.
        {1, 2, {}, bounced, bounced, mailbox},
        {1, 8, {.registers_memory = true}, bounced, bounced, mailbox},
        {4, 2, {}, copied, bounced, bounced},
        // Another thread than the caller's moves the engine: it does not turn the slots of a step.
        {1, 2, {.background = true}, copied, bounced, mailbox},
        {4, 2, {.background = true}, copied, bounced, bounced},
        // Devices.
        {1, 1, {.on_device = true}, device, device, device},
        {1, 8, {.on_device = true, .sums_on_device = true}, device, device, device},
        {4, 2, {.on_device = true, .registers_memory = true}, device, device, device}};
    constexpr bool fine = [](auto const& all) {
        for (row const& r : all) {
            memory_map const map = of(topology::uniform(r.nodes, r.local), r.traits);
            if (map.tensors != r.tensors || map.path_of_buffer(1 << 20) != r.large ||
                map.path_of_buffer(512) != r.small || map.path_of_buffer(513) != r.large)
                return false;
        }
        return true;
    }(rows);
    static_assert(fine);
    CHECK(std::strcmp(to_string(bounced), "bounced") == 0);
    CHECK(std::strcmp(to_string(mailbox), "mailbox") == 0);
}

TEST_CASE("memory_map: buckets are split where they pass several stages in turn") {
    CHECK_FALSE(splits_buckets({}, topology::uniform(1, 1)));
    CHECK(splits_buckets({}, topology::uniform(1, 2)));
    CHECK_FALSE(splits_buckets({}, topology::uniform(4, 2))); // the network works by chunks
    CHECK(splits_buckets({.on_device = true}, topology::uniform(1, 1)));
    CHECK(splits_buckets({.on_device = true}, topology::uniform(4, 2)));
    CHECK_FALSE(splits_buckets({.on_device = true, .sums_on_device = true}, topology::uniform(1, 8)));
    CHECK(splits_buckets({.on_device = true, .sums_on_device = true}, topology::uniform(4, 8)));
}

TEST_CASE("memory_map: a region holds tensors, bounce slots and what local ranks look at, in this order") {
    for (auto const& shape : std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 8}, {4, 1}, {4, 2}})
        for (bool const background : {false, true})
            for (bool const registers : {false, true}) {
                int const nodes = shape.first, local = shape.second; // what a lambda takes
                CAPTURE(nodes);
                CAPTURE(local);
                memory_map const map = of(topology::uniform(nodes, local),
                                          {.registers_memory = registers, .background = background});
                CHECK(map.bounce_offset >= 51'008 * 4); // three tensors, each padded to a cache line
                CHECK(map.bounce_offset % 4096 == 0);
                CHECK(map.slot_elements >= map.piece_elements);
                CHECK(map.piece_elements % 16 == 0); // whole cache lines
                CHECK(map.local_offset == map.bounce_offset + 4 * map.slot_elements * 4);
                CHECK(map.executions >= memory_map::bounce_slots);
                CHECK(map.executions_kept == map.executions + 4);
                std::size_t const others = local > 1 ? shown(map.executions_kept, 512) : 0;
                CHECK(map.region_bytes == (map.local_offset + others + 63) / 64 * 64);
                CHECK((map.piece_elements > 0) == (map.buffers == memory_path::bounced));
                CHECK(map.device_bytes == 0);
                CHECK(map.device_loads == 0);
            }
}

TEST_CASE("memory_map: a bounce slot has two chunks for each rank, and the slots of a rank 64 MiB at most") {
    auto const bytes_of_piece = [](int nodes, int local) {
        memory_map const map = of(topology::uniform(nodes, local), {}, static_cast<std::size_t>(nodes) - 1);
        CHECK(map.slot_elements == map.piece_elements);
        CHECK(map.local_offset - map.bounce_offset == 4 * 4 * map.slot_elements);
        return map.piece_elements * 4;
    };
    CHECK(bytes_of_piece(2, 2) == 2 * 4 * 64_KiB);
    CHECK(bytes_of_piece(64, 2) == 2 * 128 * 64_KiB); // all worlds of up to 128 ranks, with these chunks
    CHECK(bytes_of_piece(65, 2) == 16_MiB);
    CHECK(bytes_of_piece(256, 8) == 16_MiB);
}

TEST_CASE("memory_map: commands and norms lie behind what local ranks look at, and add executions") {
    memory_map const plain = of(topology::uniform(3, 1), {}),
                     commands = of(topology::uniform(3, 1), {.command_bytes = 80}),
                     norms = of(topology::uniform(3, 1), {.command_bytes = 80, .norms_bytes = 24});
    CHECK(commands.command_offset == plain.region_bytes);
    CHECK(commands.region_bytes == plain.region_bytes + 128);
    CHECK(norms.command_offset == commands.command_offset);
    CHECK(norms.norms_offset == commands.region_bytes);
    CHECK(norms.region_bytes == commands.region_bytes + 64);
    CHECK(commands.executions == plain.executions + 1);
    CHECK(norms.executions == plain.executions + 2);
    CHECK(norms.executions_kept == 2 * norms.executions + 4);
}

TEST_CASE("memory_map: progress changes no region: the ranks of a node have theirs at the same places") {
    memory_map const mine = of(topology::uniform(1, 2), {});
    memory_map const others = of(topology::uniform(1, 2), {.background = true});
    CHECK(mine.tensors != others.tensors);
    CHECK(mine.bounce_offset == others.bounce_offset);
    CHECK(mine.local_offset == others.local_offset);
    CHECK(mine.region_bytes == others.region_bytes);
}

TEST_CASE("memory_map: a split bucket counts its tensors, and a slot holds the largest bucket") {
    memory_map const map = of(topology::uniform(1, 2), {});
    CHECK(map.bucket_segments == 1);
    CHECK(map.slot_elements == std::max<std::size_t>(map.piece_elements, 10'000));
    std::vector<std::size_t> const many(40, 10);
    plan const together = make_plan<fusion::whole_model, sharding::balanced, placement::colocated>(
        many, topology::uniform(1, 2), 4, 4, {});
    CHECK(make_memory_map(together, {}, 0, shown).bucket_segments == 40);
    // Slots begin at cache lines, whatever the last tensor of the largest bucket has.
    std::vector<std::size_t> const odd(1, 100'003);
    plan const alone = make_plan<fusion::whole_model, sharding::balanced, placement::colocated>(
        odd, topology::uniform(1, 2), 4, 4, {.split_bytes = 1_MiB});
    CHECK(alone.buckets[0].elements == 100'003);
    CHECK(make_memory_map(alone, {}, 0, shown).slot_elements == 100'016);
    CHECK(make_memory_map(alone, {.on_device = true}, 0, shown).device_bucket % 64 == 0);
}

TEST_CASE("memory_map: for_each_tensor_in visits every element of a bucket once, without padding") {
    std::size_t const tensors[] = {10, 0, 30'000, 7};
    plan const made = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
        tensors, topology::uniform(1, 2), 4, 4, {.split_bytes = 4096});
    REQUIRE(made.buckets.size() > 8);
    std::vector<std::size_t> seen(4);
    for (bucket const& b : made.buckets)
        detail::for_each_tensor_in(made, b, [&](std::size_t i, std::size_t from, std::size_t count) {
            CHECK(from == seen[i]);
            CHECK(made.tensors[i].offset + from >= b.offset);
            CHECK(made.tensors[i].offset + from + count <= b.offset + b.elements);
            seen[i] += count;
        });
    CHECK(seen == std::vector<std::size_t>{10, 0, 30'000, 7});
}

TEST_CASE("memory_map: on devices tensors lie in device memory, and slots where devices read other ranks'") {
    memory_map const map = of(topology::uniform(4, 2), {.on_device = true}, 3);
    CHECK(map.bounce_offset >= 51'008 * 4);
    CHECK(map.bounce_offset % 256 == 0);
    CHECK(map.piece_elements * 4 == 40'000); // as buckets are split
    CHECK(map.device_bytes == map.bounce_offset);
    CHECK(map.device_bucket == 40'000);
    memory_map const summed =
        of(topology::uniform(4, 2), {.on_device = true, .sums_on_device = true, .reads_peers = true}, 3);
    CHECK(summed.device_bytes == map.bounce_offset + 4 * 40'000);
    memory_map const one =
        of(topology::uniform(1, 2), {.on_device = true, .sums_on_device = true, .reads_peers = true});
    CHECK(one.piece_elements * 4 == 64_KiB); // nothing is split there
    CHECK(one.device_bytes == map.bounce_offset + 4 * 64_KiB);
    CHECK(map.device_loads == 4); // parts of a split bucket come in together
    CHECK(map.local_offset == 0);
    CHECK(map.region_bytes == (shown(map.executions_kept, 512) + 63) / 64 * 64);
    CHECK(map.staging_bytes > 0);
}

TEST_CASE("memory_map: a buffer on a device is cut into as many pieces as there are slots, neither tiny nor "
          "too large") {
    auto const piece_of = [](std::initializer_list<std::size_t> tensors, int nodes, std::size_t elements) {
        memory_traits const traits{.on_device = true, .sums_on_device = true, .reads_peers = true};
        topology const where = topology::uniform(nodes, 2);
        exchange_tuning tuning{.piece_bytes = 16_MiB};
        tuning.split_bytes = splits_buckets(traits, where) ? 8_MiB : 0;
        std::vector<std::size_t> const sizes(tensors);
        plan const made = make_plan<fusion::per_tensor, sharding::balanced, placement::colocated>(
            sizes, where, 4, 4, tuning);
        CHECK(to_string(made).find(nodes == 1
                                       ? "pieces of at most 16777216 bytes, 4 at once"
                                       : "pieces of at most 8388608 bytes, 4 at once") != std::string::npos);
        memory_map const map = make_memory_map(made, traits, nodes == 1 ? 0 : 1, shown);
        CHECK(map.device_bytes == map.bounce_offset + 4 * map.piece_elements * 4);
        return map.piece_of(elements) * 4;
    };
    for (std::initializer_list<std::size_t> const& layout :
         {std::initializer_list<std::size_t>{}, {1024}, {100'000'000, 3}}) {
        CHECK(piece_of(layout, 1, 1) == 4_MiB);
        CHECK(piece_of(layout, 1, 1_MiB) == 4_MiB);
        CHECK(piece_of(layout, 1, 4_MiB) == 4_MiB);
        CHECK(piece_of(layout, 1, 4_MiB + 1) == 4_MiB + 256);
        CHECK(piece_of(layout, 1, 16_MiB) == 16_MiB);
        CHECK(piece_of(layout, 1, 64_MiB) == 16_MiB);
        CHECK(piece_of(layout, 2, 1) == 256_KiB);
        CHECK(piece_of(layout, 2, 256_KiB) == 256_KiB);
        CHECK(piece_of(layout, 2, 1_MiB) == 1_MiB);
        CHECK(piece_of(layout, 2, 64_MiB) == 8_MiB);
    }
}
