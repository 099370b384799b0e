// herring: tests of ensemble/shared_regions.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/shared_regions.hpp"

#include "shared_lane_pair.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstring>
#include <set>
#include <string>

namespace ensemble_row_region_test {

using herring::errc;
using herring::detail::ensembles::ring_cell;
using herring::detail::ensembles::row_layout;
using herring::detail::ensembles::row_region;
using herring::detail::ensembles::row_view;
using herring::detail::ensembles::sealed_memory;
using herring::detail::ensembles::spare_places;
using shared_lane_pair::copy_of;

constexpr row_layout small{.peer = 2, .credits = 3, .row_bytes = 100};

std::string refusal(int file, row_layout const& due) {
    try {
        row_view const taken(copy_of(file), due);
        return "";
    } catch (herring::error const& e) {
        CHECK(e.code() == errc::protocol);
        return e.why().text;
    }
}

TEST_CASE("row_region: its parts do not overlap, and rows begin at lines") {
    for (std::uint64_t const bytes : {1u, 100u, 4000u, 4095u, 4096u, 5000u, 513024u})
        for (std::uint64_t const credits : {1u, 3u, 4u, 64u})
            for (std::uint64_t const peer : {0u, 1u, 63u, 64u, 1000u}) {
                row_layout const l{peer, credits, bytes};
                REQUIRE(l.is_sound());
                CHECK(l.places() == credits + spare_places);
                CHECK(l.cells() >= l.places());
                CHECK(4096 + l.cells() * sizeof(ring_cell) <= l.rows_at());
                CHECK(l.rows_at() % 64 == 0);
                CHECK(l.stride() >= bytes);
                CHECK(l.stride() % 128 == 0);
                CHECK(l.row_at(l.places()) <= l.bytes());
                CHECK(l.bytes() % 4096 == 0);
            }
}

TEST_CASE("row_region: rows that are folded together begin at different lines of a page") {
    std::set<std::uint64_t> lines;
    for (std::uint64_t peer = 0; peer < 64; ++peer) {
        row_layout const l{peer, 8, 256512};
        lines.insert(l.row_at(peer % 8) % 4096);
        CHECK(l.bytes() == row_layout{0, 8, 256512}.bytes());
    }
    CHECK(lines.size() == 64);
}

TEST_CASE("row_region: numbers of which a sum could overflow are refused") {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    for (row_layout const l : {row_layout{0, 0, 1}, {0, most, 1}, {0, 1, most}, {0, 1u << 20, 1ull << 45}}) {
        CHECK_FALSE(l.is_sound());
        CHECK_THROWS_AS(row_region{l}, herring::error);
    }
}

TEST_CASE("row_region: a frontend sees the rows of this incarnation") {
    row_region mine(small), other(small);
    CHECK(mine.origin() != other.origin());
    row_view const view(copy_of(mine.descriptor()), small);
    CHECK(view.origin() == mine.origin());
    for (std::uint32_t place = 0; place < small.places(); ++place) {
        CHECK(mine.row(place).size() == 100);
        std::memset(mine.row(place).data(), static_cast<int>(place + 1), 100);
    }
    for (std::uint32_t place = 0; place < small.places(); ++place)
        CHECK(shared_lane_pair::filled({view.row(place), 100}, place + 1));
}

TEST_CASE("row_region: memory of another shape, or that is no member's, is refused") {
    row_region const mine(small);
    CHECK(refusal(mine.descriptor(), small).empty());
    row_layout other = small;
    other.peer = 1;
    CHECK(refusal(mine.descriptor(), other).find("not that of a member") != std::string::npos);
    other = small;
    other.row_bytes = 101;
    CHECK(refusal(mine.descriptor(), other).find("not that of a member") != std::string::npos);
    other = {.peer = 2, .credits = 3, .row_bytes = 100000};
    CHECK(refusal(mine.descriptor(), other).find("bytes, fewer than") != std::string::npos);
    other = {.peer = 2, .credits = 3, .row_bytes = 1};
    CHECK_FALSE(refusal(mine.descriptor(), other).empty());

    sealed_memory file(small.bytes());
    CHECK(refusal(file.descriptor(), small).find("are allocated") != std::string::npos);
    file.allocate(0, small.bytes());
    CHECK(refusal(file.descriptor(), small).find("not that of a member") != std::string::npos);
}

} // namespace ensemble_row_region_test
