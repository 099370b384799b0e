// herring: tests of control/shared/failure_watch.hpp: called once, in a thread, with the failure as its rank sees it; or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/shared/failure_watch.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

using herring::errc;
using herring::failure;
using herring::detail::failure_handler;
using herring::detail::failure_news;
using herring::detail::failure_watch;

namespace {
struct mapping {
    std::atomic<std::uint32_t> changes{0}, first{0};
    failure cells[3]{};
    failure_news news() { return {changes, first, cells, false}; }
    void fail(std::uint32_t by) {
        cells[by] = failure::make(errc::timeout, static_cast<int>(by), 0, "wait", "too late");
        first.store(by + 1);
        news().notify();
    }
};
} // namespace

TEST_CASE("failure_watch: without a handler nobody wants news") {
    mapping memory;
    failure_watch const watch(memory.news(), 0, {});
    CHECK_FALSE(memory.news().wanted());
}

TEST_CASE("failure_watch: its handler is called once, in another thread") {
    mapping memory;
    std::atomic<int> calls{0};
    std::string text;
    auto const caller = std::this_thread::get_id();
    bool elsewhere = false;
    failure_handler const handler = [&](failure const& why) {
        text = why.message();
        elsewhere = std::this_thread::get_id() != caller;
        calls.fetch_add(1);
    };
    {
        failure_watch const watch(memory.news(), 1, handler);
        CHECK(memory.news().wanted());
        memory.news().notify(); // for nothing
        CHECK(calls.load() == 0);
        memory.fail(2);
        while (calls.load() == 0) std::this_thread::yield();
        memory.news().notify();
    }
    CHECK(calls.load() == 1);
    CHECK(elsewhere);
    CHECK(text.find("rank 1: wait") != std::string::npos);
}

TEST_CASE("failure_watch: no failure, no call") {
    mapping memory;
    int calls = 0;
    {
        failure_watch const watch(memory.news(), 0, [&calls](failure const&) { ++calls; });
    }
    CHECK(calls == 0);
}
