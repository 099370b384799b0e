// herring: tests of checkpoint/file.hpp: what is written is read, and what was changed is named.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/file.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace file_writer_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::file_entry;
using checkpoints::folder;
using checkpoints::tensor_memory;
using herring::errc;
using herring::tests::scratch_folder;

std::vector<std::byte> some_bytes(std::size_t size) {
    std::vector<std::byte> all(size);
    std::uint32_t state = 1;
    for (std::byte& one : all) one = static_cast<std::byte>((state = state * 1664525 + 1013904223) >> 24);
    return all;
}
template <class Call> std::string corrupted(Call const& call) {
    try {
        call();
    } catch (herring::error const& why) {
        CHECK_MESSAGE(why.code() == errc::corrupted, why.what());
        return why.what();
    }
    return "no error";
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

constexpr std::size_t block = checkpoints::file_table::block_bytes;

} // namespace file_writer_test

using namespace file_writer_test;

TEST_CASE("file_writer: plain bytes of any size, in any pieces") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "save");
    for (std::size_t const size :
         {std::size_t{0}, std::size_t{1}, block - 1, block, block + 1, 3 * block + 77}) {
        auto const data = some_bytes(size);
        std::string const name = "f" + std::to_string(size);
        file_entry const entry = checkpoints::write_bytes(where, name, data);
        CHECK(entry.data_bytes == size);
        CHECK(checkpoints::read_bytes(where, entry) == data);
        std::string const file = herring::tests::bytes_of(scratch.path() + "/" + name);
        CHECK(file.size() == entry.data_bytes + entry.table_bytes);
        CHECK(std::ranges::equal(std::as_bytes(std::span(file)).first(size), data)); // as it is
        checkpoints::file_writer in_pieces(where, name + "p");
        for (std::size_t at = 0; at < size; at += 997)
            in_pieces.append(std::span(data).subspan(at, std::min<std::size_t>(997, size - at)));
        file_entry const other = in_pieces.finish({});
        CHECK(herring::tests::bytes_of(scratch.path() + "/" + name + "p") == file);
        CHECK(other.table_crc == entry.table_crc);
        checkpoints::file_reader reader(where, entry);
        for (std::size_t at = size; at-- > 0;) { // backwards, a byte here and there
            at -= std::min<std::size_t>(at, 1000);
            std::byte one;
            reader.read(at, {&one, 1});
            REQUIRE(one == data[at]);
        }
        for (std::uint64_t const at : {(size / block + 1) * block, ~std::uint64_t{0} - 5}) {
            std::byte one;
            CHECK(has(corrupted([&] { reader.read(at, {&one, 1}); }), "there is no byte"));
        }
    }
}

TEST_CASE("file_reader: a change of any byte, or of the size, is named") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "load");
    auto const data = some_bytes(2 * block + 100);
    file_entry const entry = checkpoints::write_bytes(where, "f", data);
    std::string const sound = herring::tests::bytes_of(scratch.path() + "/f");
    for (std::size_t at = 0; at < sound.size(); at += at < sound.size() - 60 ? 4099 : 1) {
        std::string other = sound;
        other[at] ^= 4;
        herring::tests::put_bytes(scratch.path() + "/f", other);
        std::string const said = corrupted([&] { (void)checkpoints::read_bytes(where, entry); });
        std::size_t const begin = at < data.size() ? at / block * block : data.size();
        CHECK_MESSAGE(has(said, "f: the "), said);
        CHECK_MESSAGE(has(said, "at byte " + std::to_string(begin) + " has another"), said);
    }
    for (std::size_t const size : {std::size_t{0}, std::size_t{1}, data.size(), sound.size() - 1}) {
        herring::tests::put_bytes(scratch.path() + "/f", sound.substr(0, size));
        CHECK(has(corrupted([&] { (void)checkpoints::read_bytes(where, entry); }), "f: it has "));
    }
    herring::tests::put_bytes(scratch.path() + "/f", sound + "x");
    CHECK(has(corrupted([&] { (void)checkpoints::read_bytes(where, entry); }), "f: it has "));
    where.remove("f");
    CHECK(has(corrupted([&] { (void)checkpoints::read_bytes(where, entry); }), "f: the file is missing"));
}

TEST_CASE("file_reader: an entry with other sizes asks for no memory") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "load");
    file_entry const entry = checkpoints::write_bytes(where, "f", some_bytes(100));
    std::uint64_t const huge = ~std::uint64_t{0};
    for (std::uint64_t const data : {huge, std::uint64_t{1} << 60, entry.data_bytes + 4, std::uint64_t{0}})
        for (std::uint64_t const table : {huge, std::uint64_t{1} << 60, entry.table_bytes}) {
            file_entry other = entry;
            other.data_bytes = data;
            other.table_bytes = table;
            CHECK(
                has(corrupted([&] { (void)checkpoints::read_bytes(where, other); }), "f: it has 120 bytes"));
        }
}

TEST_CASE("file_reader: parts of a model, cut in one way and read in another") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "save");
    // Two tensors of 40,000 and 3 elements of 4 bytes, and two numbers of state for each.
    std::vector<std::uint32_t> weights(40'003), state(80'006), read_weights(40'003), read_state(80'006);
    std::iota(weights.begin(), weights.end(), 1u);
    std::iota(state.begin(), state.end(), 1'000'000u);
    checkpoints::state_shape const shape{4, 4, 2, 40'003 * 4};
    auto const piece = [&](std::size_t tensor, std::size_t offset, std::size_t elements, auto& of_weights,
                           auto& of_state) {
        std::size_t const at = tensor * 40'000 + offset;
        return tensor_memory{tensor, offset, elements, reinterpret_cast<std::byte*>(&of_weights[at]),
                             reinterpret_cast<std::byte*>(&of_state[at])};
    };
    std::vector<tensor_memory> const first{piece(0, 0, 10, weights, state),
                                           piece(0, 30'000, 10'000, weights, state),
                                           piece(1, 1, 2, weights, state)};
    std::vector<tensor_memory> const second{piece(0, 10, 29'990, weights, state),
                                            piece(1, 0, 1, weights, state)};
    std::vector<file_entry> const parts{checkpoints::write_part(where, "a", first, shape),
                                        checkpoints::write_part(where, "b", second, shape)};
    std::vector<std::uint64_t> const elements{40'000, 3};
    checkpoints::check_parts(where, parts, elements, shape);
    std::vector<tensor_memory> to;
    for (std::size_t at = 0; at < 40'000; at += 7'777)
        to.push_back(piece(0, at, std::min<std::size_t>(7'777, 40'000 - at), read_weights, read_state));
    to.push_back(piece(1, 0, 3, read_weights, read_state));
    for (file_entry const& part : parts) checkpoints::read_part(where, part, to, shape, 0, 3);
    CHECK(read_weights == weights);
    CHECK(read_state == state);

    SUBCASE("weights alone, and then state alone") {
        std::ranges::fill(read_weights, 0u);
        std::ranges::fill(read_state, 0u);
        for (file_entry const& part : parts) checkpoints::read_part(where, part, to, shape, 0, 1);
        CHECK(read_weights == weights);
        CHECK(std::ranges::count(read_state, 0u) == 80'006);
        std::ranges::fill(read_weights, 0u);
        for (file_entry const& part : parts) checkpoints::read_part(where, part, to, shape, 1, 3);
        CHECK(std::ranges::count(read_weights, 0u) == 40'003);
        CHECK(read_state == state);
    }
    SUBCASE("parts that are not the whole, not once, or of another shape") {
        auto const said = [&](std::vector<file_entry> const& of, std::vector<std::uint64_t> const& tensors,
                              checkpoints::state_shape const& as) {
            return corrupted([&] { checkpoints::check_parts(where, of, tensors, as); });
        };
        CHECK(has(said({parts[0]}, elements, shape), "every element"));
        CHECK(has(said({parts[0], parts[1], parts[1]}, elements, shape), "every element"));
        CHECK(has(said(parts, {40'000, 4}, shape), "every element"));
        CHECK(has(said(parts, elements, {4, 1, 4}), "a: its table has 10012 elements"));
        CHECK(has(said(parts, elements, {8, 2, 4}), "a: its table"));
        // A table whose sizes overflow, with a checksum that fits.
        checkpoints::file_writer file(where, "c");
        file.append(std::vector<std::byte>(12));
        std::uint64_t const half = std::uint64_t{1} << 63;
        file_entry const hostile = file.finish({{0, 0, half}, {0, half, half}, {0, 0, 1}});
        CHECK(has(said({hostile}, {1}, shape), "c: its table has more elements"));
    }
}
