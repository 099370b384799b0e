// herring: tests of checkpoint/manifest.hpp: what is written is read again, to the byte, and nothing else is.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/manifest.hpp"

#include "doctest/doctest.h"

#include "herring/base/crc32c.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace manifest_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::manifest;

manifest sample() {
    manifest one{
        .generation = 7,
        .steps = 1'200,
        .element = "float",
        .optimizer = "adamw",
        .states = 2,
        .groups = {{1e-3, 0.9, 0.999, 1e-8, 0.01}, {}},
        .tensors = {{"fc.weight", 4'096, 0}, {"a name\nof \\ its own\x7f\xc3\xa4", 0, 1}, {"", ~0ull, 0}},
        .parts = {{"herring-1200-7.0", 123'456, 88, 0x00c0ffee}},
        .sections = {{"user", {"herring-1200-7.user", 5, 20, 0xffffffff}}}};
    return one;
}
/// The same text with a checksum that fits.
std::string with_checksum(std::string text) {
    text.resize(text.size() - 16);
    char line[24];
    std::snprintf(line, sizeof line, "crc32c %08x\n",
                  herring::detail::crc32c(std::as_bytes(std::span(text))));
    return text + line;
}
std::string replaced(std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    return with_checksum(text);
}

} // namespace manifest_test

using namespace manifest_test;

TEST_CASE("manifest: it is text, a line an entry") {
    CHECK(checkpoints::write_manifest(sample()) == "herring checkpoint 1\n"
                                                   "generation 7\n"
                                                   "steps 1200\n"
                                                   "element float\n"
                                                   "optimizer 2 adamw\n"
                                                   "hyper 0.001 0.9 0.999 1e-08 0.01\n"
                                                   "hyper\n"
                                                   "tensor 4096 0 fc.weight\n"
                                                   "tensor 0 1 a name\\x0aof \\x5c its own\\x7f\xc3\xa4\n"
                                                   "tensor 18446744073709551615 0 \n"
                                                   "part 123456 88 00c0ffee herring-1200-7.0\n"
                                                   "section user 5 20 ffffffff herring-1200-7.user\n"
                                                   "crc32c 52faee12\n");
}

TEST_CASE("manifest: what is written is read again, every double to its bits") {
    manifest one = sample();
    for (double const value :
         {0.1, -0.0, 5e-324, 1.7976931348623157e308, 1.0 / 3, 1e23, std::numeric_limits<double>::infinity(),
          -std::numeric_limits<double>::infinity()})
        one.groups[1].push_back(value);
    manifest again;
    CHECK(checkpoints::read_manifest(checkpoints::write_manifest(one), again) == nullptr);
    CHECK(again == one);
    CHECK(std::signbit(again.groups[1][1]));
    one = {};
    CHECK(checkpoints::read_manifest(checkpoints::write_manifest(one), again) == nullptr);
    CHECK(again == one);
    one.groups = {{std::numeric_limits<double>::quiet_NaN()}};
    CHECK(checkpoints::read_manifest(checkpoints::write_manifest(one), again) == nullptr);
    CHECK(std::isnan(again.groups[0][0]));
}

TEST_CASE("manifest: every bit counts, and every byte") {
    std::string const sound = checkpoints::write_manifest(sample());
    manifest untouched = sample(), read = sample();
    for (std::size_t at = 0; at < sound.size(); ++at) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string other = sound;
            other[at] = static_cast<char>(other[at] ^ 1 << bit);
            CHECK(checkpoints::read_manifest(other, read) != nullptr);
        }
        CHECK(checkpoints::read_manifest(sound.substr(0, at), read) != nullptr);
    }
    CHECK(checkpoints::read_manifest(sound + "\n", read) != nullptr);
    CHECK(read == untouched);
    CHECK(std::string_view(checkpoints::read_manifest("herring checkpoint 2\n", read)).find("version") !=
          std::string_view::npos);
    CHECK(std::string_view(checkpoints::read_manifest("#!/bin/sh", read)).find("no manifest") !=
          std::string_view::npos);
}

TEST_CASE("manifest: lines that nobody writes are refused, though their checksum fits") {
    std::string const sound = checkpoints::write_manifest(sample());
    manifest read;
    REQUIRE(checkpoints::read_manifest(with_checksum(sound), read) == nullptr);
    for (auto const& change : std::initializer_list<std::pair<char const*, char const*>>{
             {"steps 1200", "steps  1200"},
             {"steps 1200", "steps 01200"},
             {"steps 1200", "steps -1"},
             {"steps 1200", "steps 18446744073709551616"},
             {"steps 1200\n", ""},
             {"0.001", "1e-3"},
             {"0.001", "0.001x"},
             {"\\x0a", "\\x0A"},
             {"\\x0a", "\\x"},
             {"\\x5c", "\\"},
             {"\\x5c", "\\x61"},
             {"hyper\n", "hypher\n"},
             {"part 123456", "part"},
             {"00c0ffee", "c0ffee"},
             {" herring-1200-7.0", " ../passwd"},
             {" herring-1200-7.0", " herring-1200-7./x"},
             {" herring-1200-7.0", " herring.manifest"},
             {" herring-1200-7.0", ""},
             {"section user", "sections user"},
             {"7.user\n", "7.user\nmore\n"},
             {"7.user\n", "7.user"}})
        CHECK_MESSAGE(checkpoints::read_manifest(replaced(sound, change.first, change.second), read) !=
                          nullptr,
                      change.second);
}

TEST_CASE("manifest: names of files") {
    CHECK(checkpoints::file_name(12, 3, "user") == "herring-12-3.user");
    std::uint64_t generation = 0;
    CHECK(checkpoints::is_file_name("herring-12-3.user", generation));
    CHECK(generation == 3);
    for (char const* other :
         {"", "herring-", "herring-12", "herring-12-3", "herring-12-3.", "herring-12-3.A", "herring-12-3.a/b",
          "herring-12.3.a", "herring--3.a", "herring.manifest", "herring-12-99999999999999999999.a"})
        CHECK_MESSAGE(!checkpoints::is_file_name(other, generation), other);
}

TEST_CASE("manifest: names of files that a save writes, and no others, are removed with it") {
    for (char const* what : {"0", "7", "10", "123456", "user", "manifest", "sync", "sync0", "sync20"}) {
        std::uint64_t generation = 0;
        CHECK_MESSAGE(checkpoints::is_saved_file(checkpoints::file_name(12, 3, what), generation), what);
        CHECK(generation == 3);
    }
    std::uint64_t generation = 0;
    for (char const* other :
         {"herring-12-3.bak", "herring-12-3.old", "herring-12-3.user2", "herring-12-3.manifest1",
          "herring-12-3.0bak", "herring-12-3.00", "herring-12-3.sync01", "herring-12-3.syncs",
          "herring-12-3.users", "herring-012-3.0", "herring-12-03.0", "herring.manifest", "herring-12-3.",
          "herring-12-3"})
        CHECK_MESSAGE(!checkpoints::is_saved_file(other, generation), other);
    CHECK(checkpoints::is_saved_file("herring-0-1.0", generation));
    // What another version's section has is read, and left out.
    manifest one = sample(), read;
    one.sections.push_back({"later", {"herring-1200-7.later", 1, 20, 1}});
    CHECK(checkpoints::read_manifest(checkpoints::write_manifest(one), read) == nullptr);
    CHECK(read == one);
}
