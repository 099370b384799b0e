// herring: tests of engine/command.hpp: a command comes back as it was, and what no worker says is refused.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/command.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <span>
#include <string>

using herring::detail::command;

namespace {

using bytes = std::array<std::byte, command::bytes>;

bytes written(command const& what) {
    bytes made;
    what.write(made);
    return made;
}
command gather() {
    command what{.what = command::kind::collective,
                 .operation = 2,
                 .gives = 1,
                 .takes = 3,
                 .twofold = true,
                 .rule = 200,
                 .root = 4,
                 .moved_bytes = 24,
                 .elements = 1'000'000'007,
                 .number = 1u << 20};
    what.set_name("all_gather");
    return what;
}

} // namespace

TEST_CASE("command: it comes back as it was") {
    command read;
    REQUIRE(read.read(written(gather()), 5, 5));
    CHECK(read.what == command::kind::collective);
    CHECK(read.operation == 2);
    CHECK(read.gives == 1);
    CHECK(read.takes == 3);
    CHECK(read.twofold);
    CHECK(read.rule == 200);
    CHECK(read.root == 4);
    CHECK(read.moved_bytes == 24);
    CHECK(read.elements == 1'000'000'007);
    CHECK(read.number == 1u << 20);
    CHECK(std::string(read.name.data()) == "all_gather");
    CHECK(written(read) == written(gather()));
    for (auto const kind : {command::kind::step, command::kind::start, command::kind::save,
                            command::kind::load, command::kind::leave})
        CHECK(read.read(written({.what = kind}), 1, 1));
}

TEST_CASE("command: what no worker says is refused") {
    command read;
    bytes const sound = written(gather());
    for (std::size_t size = 0; size < sound.size(); ++size)
        CHECK_FALSE(read.read(std::span(sound).first(size), 5, 5));
    CHECK_FALSE(read.read(sound, 2, 5)); // no such operation
    CHECK_FALSE(read.read(sound, 5, 4)); // no such rank
    struct {
        std::size_t at;
        int value;
    } const wrong[] = {{0, 0},  {0, 7},  {2, 4},     {3, 4},  {7, 0x80}, {15, 1},
                       {24, 2}, {26, 1}, {31, 0x80}, {32, 1}, {39, 1},   {63, 'x'}};
    for (auto const& one : wrong) {
        CAPTURE(one.at);
        bytes other = sound;
        other[one.at] = static_cast<std::byte>(one.value);
        CHECK_FALSE(read.read(other, 5, 5));
    }
}

TEST_CASE("command: its words, and a name that is too long or moves a cursor") {
    CHECK(std::string(gather().text({}, 24).text) == "in all_gather of 1000000007 elements from rank 4");
    CHECK(std::string(gather().text({}, 4).text) ==
          "in all_gather of 1000000007 elements of 24 bytes from rank 4");
    CHECK(std::string(command{}.text().text) == "in a step");
    char const* const rules[] = {"sum", "a_rule_whose_name_is_longer_than_there_is_room"};
    command by{.what = command::kind::collective, .rule = 1, .elements = 7};
    by.set_name("all_reduce");
    CHECK(std::string(by.text(rules).text) == "in all_reduce by sum of 7 elements");
    by.rule = 2;
    CHECK(std::string(by.text(rules).text) == "in all_reduce by a_rule_whose_name_is of 7 elements");
    by.rule = 3; // that no list has
    CHECK(std::string(by.text(rules).text) == "in all_reduce of 7 elements");
    CHECK(std::string(command{.what = command::kind::leave}.text().text).find("destroyed") !=
          std::string::npos);
    command named{.what = command::kind::collective};
    named.set_name("a name of a call that is longer than there is room");
    bytes raw = written(named);
    raw[41] = std::byte{0x1b};
    command read;
    REQUIRE(read.read(raw, 5, 5));
    CHECK(std::string(read.name.data()) == "a?name of a call that i");
}
