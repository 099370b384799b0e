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

using namespace herring;
using detail::command;

namespace {

constexpr std::size_t bytes = command::bytes + 2 * sizeof(double);
using message = std::array<std::byte, bytes>;

message said(command what, double first = 1, double second = 2) {
    message made;
    what.set_name("all_reduce");
    what.write(std::span(made).first<command::bytes>());
    std::memcpy(made.data() + command::bytes, &first, sizeof first);
    std::memcpy(made.data() + command::bytes + sizeof first, &second, sizeof second);
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
    message const all = said({.what = command::kind::step, .number = 3}, 0.5, 7);
    here.take(all, all, all);
    REQUIRE(here.operation.has_come());
    CHECK(here.operation.what().number == 3);
    double values[2];
    REQUIRE(here.operation.values().size() == sizeof values);
    std::memcpy(values, here.operation.values().data(), sizeof values);
    CHECK(values[0] == 0.5);
    CHECK(values[1] == 7);
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
    {
        server here;
        here.take(step, said({}, 1, 2.5), step);
        CHECK(here.announced.peer == 2);
        CHECK(has(here.text(), "its hyper value 1 is 2.5, that of rank 0 is 2"));
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
    CHECK(here.traffic.part_bytes({}, {}, 0, 1) == bytes);
    CHECK(here.traffic.part({}, {}, 1, nullptr).data() == own.data());
    CHECK(here.traffic.result_bytes({}, {}, 0) == 0);
    CHECK(here.traffic.result({}, {}).empty());
    static_assert(operation<operations::command>);
}
