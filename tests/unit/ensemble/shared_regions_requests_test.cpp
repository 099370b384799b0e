// herring: tests of ensemble/shared_regions.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/shared_regions.hpp"

#include "shared_lane_pair.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstring>
#include <random>
#include <string>

namespace ensemble_request_region_test {

using herring::errc;
using herring::detail::ensembles::request_layout;
using herring::detail::ensembles::request_region;
using herring::detail::ensembles::request_view;
using herring::detail::ensembles::ring_cell;
using herring::detail::ensembles::sealed_memory;
using shared_lane_pair::copy_of;

constexpr request_layout small{.in_flight = 3, .request_bytes = 100, .peers = 5, .credits = 6};

std::string refusal(sealed_memory const& memory, std::uint32_t peer) {
    try {
        request_view const taken(copy_of(memory.descriptor()), peer);
        return "";
    } catch (herring::error const& e) {
        CHECK(e.code() == errc::protocol);
        return e.why().text;
    }
}
void write_facts(sealed_memory& memory, std::array<std::uint64_t, 5> facts) {
    std::memcpy(memory.data(), facts.data(), sizeof facts);
}

TEST_CASE("request_region: its parts do not overlap, and begin at lines and pages") {
    for (request_layout const l :
         {small, request_layout{1, 0, 1, 1}, {64, 600 * 1024, 1024, 64}, {5, 4096, 3, 1000}}) {
        REQUIRE(l.is_sound());
        for (std::uint64_t s = 0; s < l.in_flight; ++s) {
            CHECK(l.slot_at(s) % 128 == 0);
            CHECK(l.slot_at(s) + request_layout::slot_head + l.request_bytes <= l.slot_at(s + 1));
        }
        CHECK(l.slot_at(l.in_flight) <= l.sections_at());
        CHECK(l.sections_at() % 4096 == 0);
        CHECK(l.section_bytes() % 4096 == 0);
        CHECK(request_layout::section_head + l.cells() * sizeof(ring_cell) <= l.section_bytes());
        CHECK(l.cells() >= l.credits);
        CHECK(l.bytes() == l.section_at(l.peers - 1) + l.section_bytes());
    }
}

TEST_CASE("request_region: numbers of which a sum could overflow are refused") {
    constexpr std::uint64_t most = ~std::uint64_t{0};
    for (request_layout const l : {request_layout{0, 1, 1, 1},
                                   {1, 1, 0, 1},
                                   {1, 1, 1, 0},
                                   {most, 1, 1, 1},
                                   {1, most, 1, 1},
                                   {1, most - 200, 1, 1},
                                   {1, 1, most, 1},
                                   {1, 1, 1, most},
                                   {1u << 20, request_layout::most - 1, 1, 1}}) {
        CHECK_FALSE(l.is_sound());
        CHECK_THROWS_AS(request_region{l}, herring::error);
    }
}

TEST_CASE("request_region: members read a slot's bytes in place, and can tell whose they are") {
    request_region region(small);
    region.open_section(2);
    request_view const view(copy_of(region.descriptor()), 2);
    CHECK(view.layout() == small);
    CHECK_FALSE(view.holds(1, 40));
    auto const slot = region.slot(1);
    CHECK(slot.size() == 100);
    std::memset(slot.data(), 5, slot.size());
    CHECK_FALSE(view.holds(1, 40));
    region.put(1, 40, slot.first(70));
    CHECK(view.holds(1, 40));
    CHECK(shared_lane_pair::filled(view.bytes_of(1), 5));
    CHECK(view.bytes_of(1).size() == 100);
    region.put(1, 40, slot.first(70)); // for the next member
    CHECK(view.holds(1, 40));
    CHECK_FALSE(view.holds(0, 40));

    auto const next = region.slot(1);
    CHECK(next.data() == slot.data());
    CHECK_FALSE(view.holds(1, 40));
}

TEST_CASE("request_region: a request that lies elsewhere is copied once") {
    request_region region(small);
    region.open_section(0);
    request_view const view(copy_of(region.descriptor()), 0);
    std::array<std::byte, 30> elsewhere;
    elsewhere.fill(std::byte{6});
    region.put(2, 9, elsewhere);
    CHECK(view.holds(2, 9));
    CHECK(shared_lane_pair::filled(view.bytes_of(2).first(30), 6));
    elsewhere.fill(std::byte{7});
    region.put(2, 9, elsewhere);
    CHECK(shared_lane_pair::filled(view.bytes_of(2).first(30), 6));
    region.put(2, 10, elsewhere);
    CHECK(shared_lane_pair::filled(view.bytes_of(2).first(30), 7));
}

TEST_CASE("request_region: memory that is no frontend's is refused, whatever is in it") {
    constexpr request_layout large{.in_flight = 3, .request_bytes = 9000, .peers = 5, .credits = 6};
    sealed_memory file(large.bytes());
    file.allocate(0, large.bytes());
    CHECK(refusal(file, 0).find("not that of a frontend") != std::string::npos);
    write_facts(file, {request_layout::magic, 3, 9000, 5, 6});
    CHECK(refusal(file, 0).empty());
    CHECK(refusal(file, 4).empty());
    CHECK(refusal(file, 5).find("not that of a frontend") != std::string::npos);
    for (std::size_t fact = 0; fact < 5; ++fact)
        for (std::uint64_t const value : {std::uint64_t{0}, std::uint64_t{1} << 12, std::uint64_t{1} << 40,
                                          std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
            std::array<std::uint64_t, 5> facts{request_layout::magic, 3, 9000, 5, 6};
            facts[fact] = value;
            write_facts(file, facts);
            CHECK_FALSE(refusal(file, 0).empty());
        }
    std::mt19937_64 random(3);
    for (int i = 0; i < 2000; ++i) {
        write_facts(file, {request_layout::magic, random() >> (random() & 63), random() >> (random() & 63),
                           random() >> (random() & 63), random() >> (random() & 63)});
        (void)refusal(file, 0); // a layout that happens to have the file's size is one
    }
    sealed_memory const tiny(100);
    CHECK(refusal(tiny, 0) == "the shared memory that it passed has 100 bytes, fewer than 4096");
}

} // namespace ensemble_request_region_test
