// herring: tests of checkpoint/replica.hpp: sections come back, and nothing shorter, longer or foreign does.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/replica.hpp"

#include "doctest/doctest.h"

#include "herring/base/byte_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace replica_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::replica;

std::vector<std::byte> written(replica const& from, std::size_t own) {
    auto const head = checkpoints::write_replica(from);
    std::span<std::byte const> const all(head);
    std::vector<std::byte> bytes(all.begin(), all.end());
    bytes.insert(bytes.end(), own, std::byte{9});
    return bytes;
}
replica const sound{.policy = "every<3>",
                    .steps = 7,
                    .outer_steps = 2,
                    .groups = ~std::uint64_t{0},
                    .state = {std::byte{1}, std::byte{2}},
                    .exchanged = {std::byte{0}, std::byte{1}, std::byte{1}},
                    .own_bytes = 5};

} // namespace replica_test

using namespace replica_test;

TEST_CASE("replica: it comes back, with a rank's own weights and without") {
    for (std::uint64_t const own : {0u, 5u}) {
        replica from = sound;
        from.own_bytes = own;
        std::vector<std::byte> const bytes = written(from, own);
        replica to;
        REQUIRE(checkpoints::read_replica(bytes, to) == nullptr);
        CHECK(to.policy == from.policy);
        CHECK(to.steps == 7);
        CHECK(to.outer_steps == 2);
        CHECK(to.groups == from.groups);
        CHECK(to.state == from.state);
        CHECK(to.exchanged == from.exchanged);
        CHECK(to.own.size() == own);
        if (own != 0) CHECK(to.own[4] == std::byte{9});
    }
}

TEST_CASE("replica: what is cut, longer or foreign is refused, and changes nothing") {
    std::vector<std::byte> const bytes = written(sound, 5);
    replica to{.policy = "as it was"};
    for (std::size_t size = 0; size < bytes.size(); ++size)
        CHECK(checkpoints::read_replica(std::span(bytes).first(size), to) != nullptr);
    std::vector<std::byte> longer = bytes;
    longer.push_back(std::byte{0});
    CHECK(checkpoints::read_replica(longer, to) ==
          std::string_view("its sizes are not those of what it has"));
    std::vector<std::byte> other = bytes;
    other[0] = std::byte{2};
    CHECK(checkpoints::read_replica(other, to) ==
          std::string_view("it is no state of a sync policy of this version"));
    for (std::size_t const of_size : {28u, 36u, 44u, 52u}) { // own weights, name, state, what was exchanged
        other = bytes;
        for (std::size_t i = 0; i < 8; ++i) other[of_size + i] = std::byte{0xff};
        CHECK(checkpoints::read_replica(other, to) == std::string_view("it ends too soon"));
    }
    other = bytes;
    other[60 + 8 + 2] = std::byte{2};
    CHECK(checkpoints::read_replica(other, to) ==
          std::string_view("what was exchanged is neither so nor not"));
    CHECK(to.policy == "as it was");
}
