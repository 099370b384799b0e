// herring: tests of checkpoint/snapshot_part.hpp: block by block, the bytes are those of write_part, of the moment of the copy.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/snapshot_part.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/syscall.h>
#include <unistd.h>

namespace {
std::atomic<bool> disk_fails{false};
}
extern "C" int fsync(int file) {
    if (!disk_fails) return static_cast<int>(::syscall(SYS_fsync, file));
    errno = EIO;
    return -1;
}

namespace snapshot_part_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::folder;
using checkpoints::snapshot_part;
using checkpoints::tensor_memory;
using herring::tests::bytes_of;
using herring::tests::scratch_folder;

/// Weights and two numbers of state of 50,000 elements, of which two ranges are owned.
struct memory {
    std::vector<float> weights = std::vector<float>(50'000), state = std::vector<float>(100'000);
    checkpoints::state_shape shape{
        .weight_bytes = 4, .number_bytes = 4, .states = 2, .stride_bytes = 200'000};
    std::vector<tensor_memory> owned{range(0, 10, 20'000), range(1, 0, 25'001)};

    memory() { fill(1); }
    void fill(float with) {
        for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = with + static_cast<float>(i);
        for (std::size_t i = 0; i < state.size(); ++i) state[i] = with - static_cast<float>(i);
    }
    tensor_memory range(std::size_t tensor, std::size_t offset, std::size_t elements) {
        std::size_t const place = tensor * 24'000 + offset;
        return {.tensor = tensor,
                .offset = offset,
                .elements = elements,
                .weights = reinterpret_cast<std::byte*>(&weights[place]),
                .state = reinterpret_cast<std::byte*>(&state[place])};
    }
};

TEST_CASE("snapshot_part: what was copied is written, whatever happens to the memory meanwhile") {
    scratch_folder const path;
    folder const where(path.path(), 0, "save");
    memory of;
    auto const entry = checkpoints::write_part(where, "herring-1-1.0", of.owned, of.shape);
    snapshot_part part(0);
    CHECK(part.done());
    CHECK(!part.next());
    for (std::uint64_t const generation : {2u, 3u}) { // the second one in the same memory
        std::string const name = "herring-1-" + std::to_string(generation) + ".0";
        of.fill(1);
        part.open(of.owned, of.shape, where, 1, generation);
        int quanta = 0;
        while (part.next()) {
            of.fill(static_cast<float>(++quanta));
            CHECK((!part.done() || quanta == 10)); // 9 blocks and the table
        }
        CHECK(quanta == 10);
        part.finish();
        REQUIRE(part.how().what == herring::errc::ok);
        CHECK(part.done());
        CHECK(part.entry().data_bytes == entry.data_bytes);
        CHECK(part.entry().table_bytes == entry.table_bytes);
        CHECK(part.entry().table_crc == entry.table_crc);
        CHECK(part.entry().name == name);
        CHECK(bytes_of(path.path() + "/" + name) == bytes_of(path.path() + "/herring-1-1.0"));
        part.close();
    }
}

TEST_CASE("snapshot_part: a file that cannot be made is kept as an error, until the next one") {
    scratch_folder const path;
    folder const where(path.path(), 3, "save");
    memory of;
    snapshot_part part(3);
    herring::tests::put_bytes(path.path() + "/herring-1-1.3", "of another");
    part.open(of.owned, of.shape, where, 1, 1);
    CHECK(part.how().what == herring::errc::bad_argument);
    CHECK(part.how().reporter == 3);
    CHECK(part.done());
    CHECK(!part.next());
    part.finish();
    part.close();
    part.open(of.owned, of.shape, where, 1, 2);
    CHECK(part.how().what == herring::errc::ok);
    CHECK(!part.done());
    part.finish();
    CHECK(part.how().what == herring::errc::ok);
    CHECK(bytes_of(path.path() + "/herring-1-2.3").size() > 45'001 * 12);
}

TEST_CASE("snapshot_part: memory that is not to be had is kept as an error, until the next one") {
    scratch_folder const path;
    folder const where(path.path(), 3, "save");
    memory of;
    tensor_memory more_than_there_is = of.owned[0];
    more_than_there_is.elements = std::size_t{1} << 50;
    snapshot_part part(3);
    for (std::uint64_t generation = 1; generation < 4; generation += 2) {
        part.open({&more_than_there_is, 1}, of.shape, where, 1, generation);
        CHECK(part.how().what == herring::errc::no_resources);
        CHECK(part.how().reporter == 3);
        CHECK(!part.has_file()); // nor that of the one before
        CHECK(part.done());
        part.finish();
        CHECK(part.how().what == herring::errc::no_resources);
        part.open(of.owned, of.shape, where, 1, generation + 1);
        CHECK(part.how().what == herring::errc::ok);
        CHECK(part.has_file());
        part.finish();
        CHECK(part.how().what == herring::errc::ok);
    }
}

TEST_CASE("snapshot_part: once it is done it is known whether the disk has it") {
    scratch_folder const path;
    folder const where(path.path(), 3, "save");
    memory of;
    snapshot_part part(3);
    disk_fails = true;
    part.open(of.owned, of.shape, where, 1, 1);
    for (int quanta = 0; quanta < 10; ++quanta) CHECK(part.next());
    CHECK(part.has_file());
    while (!part.done()) ::usleep(100); // without a call that collects it
    CHECK(part.how().what == herring::errc::bad_argument);
    CHECK(part.how().reporter == 3);
    part.finish();
    CHECK(part.how().what == herring::errc::bad_argument);
    part.close();
    disk_fails = false;
    part.open(of.owned, of.shape, where, 1, 2);
    CHECK(part.how().what == herring::errc::ok);
    part.finish();
    CHECK(part.how().what == herring::errc::ok);
}

TEST_CASE("snapshot_part: destroyed in the middle, or while the disk is waited for") {
    scratch_folder const path;
    folder const where(path.path(), 0, "save");
    memory of;
    for (int quanta : {0, 3, 10}) {
        snapshot_part part(quanta);
        part.open(of.owned, of.shape, where, 1, 1);
        for (int i = 0; i < quanta; ++i) CHECK(part.next());
    }
    CHECK(herring::tests::files_of(path.path()).size() == 3);
}

} // namespace snapshot_part_test
