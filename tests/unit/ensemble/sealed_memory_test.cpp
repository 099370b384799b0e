// herring: tests of ensemble/sealed_memory.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/sealed_memory.hpp"

#include "doctest/doctest.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ensemble_sealed_memory_test {

using herring::errc;
using herring::detail::descriptor;
using herring::detail::mapped_pages;
using herring::detail::ensembles::foreign_memory;
using herring::detail::ensembles::sealed_memory;

descriptor copy_of(int file) { return descriptor(::fcntl(file, F_DUPFD_CLOEXEC, 0)); }

descriptor memfd(std::size_t bytes, int seals) {
    descriptor file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
    REQUIRE(::fcntl(file.get(), F_ADD_SEALS, seals) == 0);
    return file;
}

std::string refusal(descriptor file, std::size_t least, std::size_t most, bool all_allocated) {
    try {
        foreign_memory const taken(std::move(file), least, most, all_allocated);
        return "";
    } catch (herring::error const& e) {
        CHECK(e.code() == errc::protocol);
        return e.why().text;
    }
}

TEST_CASE("sealed_memory: its owner writes, another reads it and can neither write nor change the file") {
    sealed_memory mine(3 * 4096);
    mine.allocate(4096, 8192);
    mine.data()[5000] = std::byte{7};
    int const file = mine.descriptor();
    CHECK(::ftruncate(file, 4096) != 0);
    CHECK(::ftruncate(file, 1 << 20) != 0);
    CHECK(::fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096, 4096) != 0);
    CHECK(::fcntl(file, F_ADD_SEALS, F_SEAL_WRITE) != 0);
    CHECK(mapped_pages(file, 4096, true).data() == nullptr);
    std::byte const other{9};
    CHECK(::pwrite(file, &other, 1, 5000) < 0);

    foreign_memory const read(copy_of(file), 3 * 4096, 3 * 4096, false);
    CHECK(read.size() == 3 * 4096);
    CHECK(read.data()[5000] == std::byte{7});
    mine.data()[5000] = std::byte{8};
    CHECK(read.data()[5000] == std::byte{8});
}

TEST_CASE("sealed_memory: lives as long as it is mapped; moves") {
    sealed_memory mine(4096);
    mine.allocate(0, 4096);
    foreign_memory read(copy_of(mine.descriptor()), 4096, 4096, true);
    sealed_memory moved(std::move(mine));
    moved.data()[1] = std::byte{3};
    foreign_memory other(std::move(read));
    moved = sealed_memory();
    CHECK(other.data()[1] == std::byte{3});
}

TEST_CASE("sealed_memory: more than there is is an error with the size") {
    try {
        sealed_memory mine(std::size_t{1} << 44); // addresses for it are there, but under ThreadSanitizer
        mine.allocate(0, std::size_t{1} << 44);
        FAIL("it was allocated");
    } catch (herring::error const& e) {
        CHECK(e.code() == errc::no_resources);
        CHECK(std::string(e.why().text).find("16777216.0 MiB of shared memory") != std::string::npos);
    }
}

TEST_CASE("foreign_memory: a file that could shrink under a reader is refused") {
    constexpr int sizes = F_SEAL_SHRINK | F_SEAL_GROW, future = 0x10;
    CHECK(refusal(memfd(4096, 0), 4096, 4096, false) ==
          "the shared memory that it passed is no sealed memfd");
    CHECK(refusal(memfd(4096, sizes), 4096, 4096, false).find("no sealed memfd") != std::string::npos);
    CHECK(refusal(memfd(4096, F_SEAL_GROW | future), 4096, 4096, false).find("no sealed memfd") !=
          std::string::npos);
    CHECK(refusal(memfd(4096, sizes | future), 4096, 4096, false).empty());

    descriptor pipe_ends[2];
    int both[2];
    REQUIRE(::pipe2(both, O_CLOEXEC) == 0);
    pipe_ends[0] = descriptor(both[0]);
    pipe_ends[1] = descriptor(both[1]);
    CHECK(refusal(std::move(pipe_ends[0]), 0, 4096, false).find("no sealed memfd") != std::string::npos);
    CHECK(refusal(descriptor(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC)), 0, 1 << 30, false)
              .find("no sealed memfd") != std::string::npos);
    CHECK(refusal(descriptor(), 0, 4096, false).find("no sealed memfd") != std::string::npos);
}

TEST_CASE("foreign_memory: another size, or pages that reading would have to allocate, are refused") {
    sealed_memory mine(2 * 4096);
    mine.allocate(0, 4096);
    CHECK(refusal(copy_of(mine.descriptor()), 3 * 4096, 3 * 4096, false) ==
          "the shared memory that it passed has 8192 bytes, fewer than 12288");
    CHECK(refusal(copy_of(mine.descriptor()), 4096, 4096, false) ==
          "the shared memory that it passed has 8192 bytes, more than 4096");
    CHECK(refusal(copy_of(mine.descriptor()), 4096, 8192, true) ==
          "not all of the 8192 bytes of shared memory that it passed are allocated");
    mine.allocate(4096, 4096);
    CHECK(refusal(copy_of(mine.descriptor()), 4096, 8192, true).empty());
}

} // namespace ensemble_sealed_memory_test
