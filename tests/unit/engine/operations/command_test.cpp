// herring: tests of engine/operations/command.hpp: a server compares the commands of workers, and says who differs in what.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/operations/command.hpp"

#include "doctest/doctest.h"
#include "unit/engine/operations/server_of_three.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <vector>

using namespace herring;
using detail::command;

namespace {

// Behind a command: of each of two groups one member of hyper and whether it is frozen, and the loss scale.
using all_values = std::array<double, 5>;
constexpr std::size_t bytes = command::bytes + sizeof(all_values);
using message = std::array<std::byte, bytes>;

message said(command what, all_values const& values = {1, 0, 2, 0, 8}) {
    message made;
    what.set_name("all_reduce");
    what.write(std::span(made).first<command::bytes>());
    std::memcpy(made.data() + command::bytes, values.data(), sizeof values);
    return made;
}

struct server : tests::server_of_three {
    detail::command_traffic traffic{state};
    operations::command operation{state, traffic};
    message kept{};

    server() { operation.keep(kept, 3); }
    void take(message const& a, message const& b, message const& c) {
        combine(operation, {}, {}, a.data(), b.data(), c.data());
    }
    std::string text() const { return announced.text; }
};

bool has(std::string const& text, char const* words) { return text.find(words) != std::string::npos; }

} // namespace

TEST_CASE("operations::command: what all workers say is kept, with what follows it") {
    server here;
    CHECK_FALSE(here.operation.has_come());
    message const all = said({.what = command::kind::step, .number = 3}, {0.5, 0, 7, 1, 8});
    here.take(all, all, all);
    REQUIRE(here.operation.has_come());
    CHECK(here.operation.what().number == 3);
    all_values values{};
    REQUIRE(here.operation.values().size() == sizeof values);
    std::memcpy(values.data(), here.operation.values().data(), sizeof values);
    CHECK(values == all_values{0.5, 0, 7, 1, 8});
    here.operation.forget();
    CHECK_FALSE(here.operation.has_come());
}

TEST_CASE("operations::command: a worker in another call, or with other values, is named") {
    message const step = said({});
    {
        server here;
        here.take(step, step, said({.what = command::kind::collective, .elements = 17}));
        CHECK_FALSE(here.operation.has_come());
        CHECK(here.announced.what == errc::mismatch);
        CHECK(here.announced.reporter == 1);
        CHECK(here.announced.peer == 3);
        CHECK(has(here.text(), "it is in all_reduce of 17 elements, and rank 0 is in a step"));
    }
    struct {
        all_values values;
        std::vector<char const*> members;
        char const* words;
    } const others[] = {
        {{1.5, 0, 2, 0, 8}, {"rate"}, "hyper::rate of group 0 is 1.5 on rank 2 and 1 on rank 0"},
        {{1, 0, 2.5, 0, 8}, {nullptr}, "member 0 of hyper of group 1 is 2.5 on rank 2 and 2 on rank 0"},
        {{1, 0, 2.5, 0, 8}, {"a", "b", "c"}, "hyper::c is 2.5 on rank 2 and 2 on rank 0"},
        {{1, 0, 2, 1, 8}, {"rate"}, "whether group 1 is frozen (0 or 1) is 1 on rank 2 and 0 on rank 0"},
        {{1, 0, 2, 0, 4}, {"rate"}, "the loss scale is 4 on rank 2 and 8 on rank 0"},
        {{1, 0, 2, 0, 4}, {}, "value 4 behind the command is 4 on rank 2"}};
    for (auto const& other : others) {
        server here;
        if (!other.members.empty()) here.state.values = {other.values, other.members};
        here.take(step, said({}, other.values), step);
        CHECK(here.announced.peer == 2);
        CHECK(std::string(here.announced.operation) == "wait"); // what workers have called
        INFO(here.text());
        CHECK(has(here.text(), other.words));
    }
    {
        server here;
        message junk{};
        here.take(junk, junk, junk);
        CHECK_FALSE(here.operation.has_come());
        CHECK(has(here.text(), "a command that no worker sends"));
    }
}

TEST_CASE("operations::command: a part has all bytes whatever the elements are, and a result has none") {
    server here;
    message const own = said({});
    here.traffic.place(own);
    CHECK(here.traffic.format({}, 0).bytes(here.traffic.sends({}, {}, 0, 1).elements) == bytes);
    CHECK(here.traffic.part({}, {}, {}, nullptr) == own.data());
    CHECK(!here.traffic.returns({}, {}, 0));
    static_assert(operation<operations::command>);
}
