// herring: a frontend's link: one of two lanes, and the rows that are held.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/lane.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace ensemble_link_test {

namespace ensembles = herring::detail::ensembles;

template <int Kind> struct lane {
    explicit lane(int& released) : released_(&released) {}
    bool ask(ensembles::slot_index, std::uint64_t, std::uint64_t, std::span<std::byte const>) { return true; }
    void detach(ensembles::slot_index) {}
    template <class Sink> bool poll(Sink&) { return Kind == 1; }
    std::span<std::byte const> row(ensembles::place_index) const { return {}; }
    void release(ensembles::place_index) { ++*released_; }
    void keep(ensembles::place_index) {}
    int descriptor() const { return Kind; }
    void rung() { ++rings; }
    bool wants_write() const { return false; }
    bool try_sleep() { return Kind == 2; }
    void awake() {}
    std::string_view error() const { return "broken"; }
    int* released_;
    static inline int rings = 0;
};
using either = ensembles::link<lane<1>, lane<2>>;

TEST_CASE("ensemble link: goes to the lane that was opened") {
    int released = 0;
    either tcp(3, 7, 1), shared(4, 8, 2);
    tcp.open_tcp(released);
    shared.open_shared(released);
    CHECK(!tcp.is_shared());
    CHECK(shared.is_shared());
    CHECK(tcp.descriptor() == 1);
    CHECK(shared.descriptor() == 2);
    int sink = 0;
    CHECK(tcp.poll(sink));
    CHECK(!shared.poll(sink));
    CHECK(!tcp.try_sleep());
    CHECK(shared.try_sleep());
    shared.rung();
    CHECK(lane<1>::rings == 0);
    CHECK(lane<2>::rings == 1);
    CHECK(tcp.peer() == 3);
    CHECK(shared.incarnation() == 8);
    CHECK(shared.serial() == 2);
    CHECK(tcp.ask(0, 1, 2, {}));
    CHECK(tcp.error() == "broken");
}

TEST_CASE("ensemble link: is held by the rows that count") {
    int released = 0;
    either l(0, 1, 1);
    l.open_tcp(released);
    CHECK(!l.is_held());
    l.hold();
    l.hold();
    l.give_back(0);
    CHECK(l.is_held());
    l.give_back(1);
    CHECK(!l.is_held());
    l.release(2);
    CHECK(released == 3);
}

} // namespace ensemble_link_test
