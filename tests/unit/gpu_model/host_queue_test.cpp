// herring: the model of a stream: work in order, waits that hold, and what a capture keeps.
// SPDX-License-Identifier: Apache-2.0
#include "gpu_model/host_queue.hpp"

#include "doctest/doctest.h"

using namespace herring::gpu;
using detail::host_mark;
using detail::host_queue;
using detail::host_work;
using kind = host_work::kind;

namespace {
host_work count(int& ran) {
    return {.what = kind::call, .call = [](void* to) { ++*static_cast<int*>(to); }, .argument = &ran};
}
} // namespace

TEST_CASE("host_queue: one piece of work a turn, in order, and none behind a wait that holds") {
    host_queue queue;
    host_mark mark;
    int ran = 0;
    CHECK_FALSE(queue.turn());
    CHECK(queue.put(count(ran)));
    auto const record = mark.renew();
    CHECK(queue.put({.what = kind::wait, .mark = record}));
    CHECK(queue.put(count(ran)));
    CHECK(ran == 0);
    CHECK(queue.turn());
    CHECK(ran == 1);
    CHECK_FALSE(queue.turn());
    (void)mark.renew(); // a later record is another
    record->store(true);
    CHECK(queue.turn());
    CHECK(queue.turn());
    CHECK(ran == 2);
    CHECK(queue.empty());
}

TEST_CASE("host_queue: what is captured is kept and not done, and events cannot be") {
    host_queue queue;
    host_mark mark;
    int ran = 0;
    queue.capture();
    CHECK(queue.capturing());
    CHECK(queue.put(count(ran)));
    CHECK_FALSE(queue.put({.what = kind::wait, .mark = mark.last()}));
    CHECK_FALSE(queue.put({.what = kind::record, .mark = mark.last()}));
    CHECK_FALSE(queue.turn());
    CHECK(queue.captured().size() == 1);
    CHECK_FALSE(queue.capturing());
    CHECK(queue.empty());
    CHECK(ran == 0);
}
