// herring: tests of machine/private_memory.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/private_memory.hpp"

#include "doctest/doctest.h"

#include "herring/machine/descriptor.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

using herring::detail::mapped_pages;
using herring::detail::private_memory;

TEST_CASE("mapped_pages: what one mapping of a file has another one shows, until its owner is gone") {
    herring::detail::descriptor const file(::memfd_create("test", MFD_CLOEXEC));
    REQUIRE(::ftruncate(file.get(), 8192) == 0);
    mapped_pages writer(file.get(), 8192);
    mapped_pages const reader(file.get(), 8192, false);
    REQUIRE(writer.data() != nullptr);
    writer.data()[8191] = std::byte{7};
    mapped_pages moved(std::move(writer));
    CHECK(writer.data() == nullptr);
    moved = mapped_pages(-1, 4096); // of this process alone
    CHECK(moved.data()[4095] == std::byte{0});
    CHECK(reader.data()[8191] == std::byte{7});
    CHECK(mapped_pages(file.get(), 0).data() == nullptr);
    CHECK(errno == EINVAL);
}

TEST_CASE("private_memory: zeroed, page aligned, moved") {
    private_memory one(10'000, 0);
    CHECK(one.bytes().size() == 10'000);
    CHECK(reinterpret_cast<std::uintptr_t>(one.data()) % 4096 == 0);
    CHECK(std::all_of(one.bytes().begin(), one.bytes().end(), [](std::byte b) { return b == std::byte{0}; }));
    one.bytes()[9'999] = std::byte{7};
    std::byte* const where = one.data();
    private_memory two(std::move(one));
    CHECK(two.data() == where);
    CHECK(one.data() == nullptr);
    CHECK(one.bytes().empty());
    private_memory three;
    three = std::move(two);
    CHECK(three.bytes()[9'999] == std::byte{7});
    CHECK(private_memory(0, 0).bytes().empty());
}

TEST_CASE("private_memory: what is large begins where a huge page can") {
    constexpr std::size_t huge = std::size_t{1} << 21;
    for (std::size_t const bytes : {huge, 2 * huge - 1, 2 * huge, 3 * huge + 12'345}) {
        private_memory one(bytes, 0);
        CAPTURE(bytes);
        CHECK(one.bytes().size() == bytes);
        CHECK((reinterpret_cast<std::uintptr_t>(one.data()) % huge == 0 || bytes < 2 * huge));
        one.bytes().front() = one.bytes().back() = std::byte{9}; // both ends are there
        private_memory const two(std::move(one));
        CHECK(two.bytes().back() == std::byte{9});
    }
}

TEST_CASE("private_memory: too much is an error that says how much") {
    try {
        private_memory const made(std::size_t{1} << 62, 3);
        FAIL("an error");
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::no_resources);
        CHECK(why.reported_by() == 3);
        CHECK(std::string(why.what()).find("4611686018427387904 bytes") != std::string::npos);
    }
}
