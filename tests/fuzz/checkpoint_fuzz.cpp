// herring: fuzz target of a checkpoint's texts and tables, as a disk or somebody else may have changed them.
// SPDX-License-Identifier: Apache-2.0
//
// Input: a byte, what follows: 0: a manifest; 1: one to which the checksum is added; 2: a table; 3: the number of tensors and their
// elements, 2 bytes each, and a table of ranges of them; 4: the section of a sync policy.
#include "fuzz.hpp"

#include "herring/base/crc32c.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/replica.hpp"

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace checkpoints = herring::detail::checkpoints;
using fuzz::require;

namespace {

void manifest(std::string const& text) {
    checkpoints::manifest found{.generation = 17};
    fuzz::memory::begin();
    char const* const wrong = checkpoints::read_manifest(text, found);
    fuzz::memory::require_below(4096 + 32 * text.size(), 16'384 + 256 * text.size());
    if (wrong != nullptr) {
        require(*wrong != 0, "it is said what is wrong");
        require(found == checkpoints::manifest{.generation = 17}, "what is wrong changes nothing");
        return;
    }
    require(checkpoints::write_manifest(found) == text, "what was read is written as it was");
    std::uint64_t generation = 0;
    for (auto const& one : found.parts)
        require(checkpoints::is_file_name(one.name, generation) && one.name.find('/') == std::string::npos,
                "a part is a file of the folder");
    for (auto const& one : found.sections)
        require(checkpoints::is_file_name(one.file.name, generation), "and so is a section");
}

bool table(std::span<std::byte const> bytes, checkpoints::file_table& found) {
    fuzz::memory::begin();
    bool const sound = checkpoints::read_table(bytes, found);
    fuzz::memory::require_below(bytes.size(), 2 * bytes.size());
    if (!sound) return false;
    auto const again = checkpoints::write_table(found);
    require(std::string_view(reinterpret_cast<char const*>(again.data()), again.size()) ==
                std::string_view(reinterpret_cast<char const*>(bytes.data()), bytes.size()),
            "a table is written as it was read");
    return true;
}

void replica(std::span<std::byte const> bytes) {
    checkpoints::replica found{.steps = 17};
    fuzz::memory::begin();
    char const* const wrong = checkpoints::read_replica(bytes, found);
    fuzz::memory::require_below(4096 + bytes.size(), 4096 + 2 * bytes.size());
    if (wrong != nullptr) {
        require(*wrong != 0, "it is said what is wrong");
        require(found.steps == 17 && found.state.empty(), "what is wrong changes nothing");
        return;
    }
    auto const head = checkpoints::write_replica(found);
    require(head.size() + found.own.size() == bytes.size() && found.own.size() == found.own_bytes &&
                std::memcmp(head.data(), bytes.data(), head.size()) == 0,
            "what was read is written as it was");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    fuzz::input in(data, size);
    auto const what = in.number(1) % 5;
    if (what < 2) {
        std::string text(in.text(size));
        if (what == 1) {
            char line[24];
            std::snprintf(line, sizeof line, "crc32c %08x\n",
                          herring::detail::crc32c(std::as_bytes(std::span(text))));
            text += line;
        }
        manifest(text);
        return 0;
    }
    checkpoints::file_table found;
    if (what == 2) {
        table(in.rest, found);
        return 0;
    }
    if (what == 4) {
        replica(in.rest);
        return 0;
    }
    std::vector<std::uint64_t> tensors(in.number(1) % 8);
    for (std::uint64_t& elements : tensors) elements = in.number(2);
    if (!table(in.rest, found) || !checkpoints::cover_once(found.ranges, tensors)) return 0;
    std::vector<std::uint64_t> next(tensors.size());
    for (auto const& one : found.ranges) {
        require(one.tensor < next.size() && one.offset == next[one.tensor], "ranges go on where one ended");
        next[one.tensor] += one.elements;
    }
    require(next == tensors, "and cover every element");
    return 0;
}
