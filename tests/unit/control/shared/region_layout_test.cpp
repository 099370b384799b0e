// herring: tests of control/shared/region_layout.hpp: what is shown is read, whole or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/shared/region_layout.hpp"

#include "doctest/doctest.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

using herring::detail::blocked_report;
using herring::detail::shown_report;

namespace {
blocked_report report_of(std::uint64_t number) {
    blocked_report made;
    made.waits = made.waits_of_process = 1;
    made.channels = blocked_report::most_channels;
    made.waiting[0] = {number, number};
    for (auto& one : made.begun) one = {number, number};
    return made;
}
} // namespace

TEST_CASE("shown_report: memory of zeroes holds none; the last one shown is read") {
    alignas(shown_report) std::byte memory[sizeof(shown_report)] = {};
    auto& shown = *reinterpret_cast<shown_report*>(memory);
    blocked_report read;
    shown.read(read);
    CHECK(read == blocked_report{});
    for (std::uint64_t n : {3u, 4u}) {
        shown.show(report_of(n));
        shown.read(read);
        CHECK(read == report_of(n));
    }
}

TEST_CASE("shown_report: one that makes no sense is none") {
    shown_report shown;
    blocked_report wrong = report_of(1);
    wrong.channels = blocked_report::most_channels + 1;
    shown.show(wrong);
    blocked_report read;
    shown.read(read);
    CHECK(read == blocked_report{});
}

TEST_CASE("shown_report: never parts of two") {
    shown_report shown;
    shown.show(report_of(1));
    std::atomic<bool> done{false};
    std::thread writer([&] {
        for (std::uint64_t n = 2; n < 20'000; ++n) shown.show(report_of(n));
        done.store(true);
    });
    std::uint64_t torn = 0;
    while (!done.load()) {
        blocked_report read = report_of(0);
        shown.read(read);
        torn += read == report_of(read.waiting[0].number) ? 0 : 1;
    }
    writer.join();
    CHECK(torn == 0);
}
