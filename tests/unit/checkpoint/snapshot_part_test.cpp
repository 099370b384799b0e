// herring: tests of checkpoint/snapshot_part.hpp: block by block, the bytes are those of write_part, of the moment of the copy.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/snapshot_part.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

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
    for (char const* const name : {"herring-1-2.0", "herring-1-3.0"}) { // the second one in the same memory
        of.fill(1);
        part.take(of.owned, of.shape);
        part.open(where, name);
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
    part.take(of.owned, of.shape);
    part.open(where, "herring-1-1.0/none");
    CHECK(part.how().what == herring::errc::bad_argument);
    CHECK(part.how().reporter == 3);
    CHECK(part.done());
    CHECK(!part.next());
    part.finish();
    part.close();
    part.take(of.owned, of.shape);
    part.open(where, "herring-1-1.0");
    CHECK(part.how().what == herring::errc::ok);
    CHECK(!part.done());
    part.finish();
    CHECK(part.how().what == herring::errc::ok);
    CHECK(bytes_of(path.path() + "/herring-1-1.0").size() > 45'001 * 12);
}

TEST_CASE("snapshot_part: destroyed in the middle, or while the disk is waited for") {
    scratch_folder const path;
    folder const where(path.path(), 0, "save");
    memory of;
    for (int quanta : {0, 3, 10}) {
        snapshot_part part(0);
        part.take(of.owned, of.shape);
        part.open(where, "herring-1-1." + std::to_string(quanta));
        for (int i = 0; i < quanta; ++i) CHECK(part.next());
    }
    CHECK(herring::tests::files_of(path.path()).size() == 3);
}

} // namespace snapshot_part_test
