// herring: how much memory is free, asked of files that a test can write.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/free_memory.hpp"

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <stdlib.h>
#include <unistd.h>

#include "doctest/doctest.h"

using namespace herring::detail;

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

struct folder {
    std::string path = "/tmp/herring-test-XXXXXX";
    folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
    ~folder() {
        for (char const* name : {"/memory.max", "/memory.current", "/memory.stat"})
            ::unlink((path + name).c_str());
        ::rmdir(path.c_str());
    }
    void write(char const* name, std::string const& text) const { std::ofstream(path + "/" + name) << text; }
    std::uint64_t free() const { return free_in_group(path, "/memory.max", "/memory.current", ""); }
};

} // namespace

TEST_CASE("numbers are found at the start of a line only") {
    std::string const text =
        "MemTotal:  10 kB\nMemAvailable:    7 kB\ntotal_inactive_file 5\ninactive_file 3\n";
    CHECK(number_after(text, "MemTotal:", 1024) == 10240);
    CHECK(number_after(text, "MemAvailable:", 1024) == 7168);
    CHECK(number_after(text, "inactive_file ") == 3);
    CHECK(number_after(text, "SwapFree:") == 0);
    CHECK(number_after("", "SwapFree:") == 0);
}

TEST_CASE("a control group's limit, less what it holds, and clean files do not count") {
    folder const group;
    CHECK(group.free() == unlimited); // no such controller
    group.write("memory.max", "max\n");
    CHECK(group.free() == unlimited);
    group.write("memory.max", "1000\n");
    group.write("memory.current", "700\n");
    CHECK(group.free() == 300);
    group.write("memory.stat", "anon 1\ninactive_file 150\nactive_file 50\nshmem 400\n");
    CHECK(group.free() == 500);
    group.write("memory.current", "1300\n");
    CHECK(group.free() == 0);
    group.write("memory.max", "9223372036854771712\n"); // how version 1 says «no limit»
    CHECK(group.free() == unlimited);
}

TEST_CASE("of this machine: something, and not more than it has with its swap") {
    std::string const machine = small_file("/proc/meminfo");
    std::uint64_t const most =
        number_after(machine, "MemTotal:", 1024) + number_after(machine, "SwapTotal:", 1024);
    std::uint64_t const free = free_memory();
    CHECK(free > 0);
    if (most != 0) CHECK(free <= most);
    CHECK(small_file("/no/such/file").empty());
}

TEST_CASE("ranks of one group need their memory together, and the first that is short is found") {
    std::uint64_t together = 0;
    auto const poor = [&](std::vector<memory_need> const& all) { return short_of_memory(all, together); };
    CHECK(poor({}) == -1);
    CHECK(poor({{60, 1, 200}, {60, 1, 190}, {60, 1, 180}}) == -1);
    CHECK(poor({{60, 1, 200}, {60, 1, 190}, {60, 1, 179}}) == 2);
    CHECK(together == 180);
    CHECK(poor({{60, 1, 100}, {60, 2, 100}, {60, 3, 100}}) == -1); // each has a group of its own
    CHECK(poor({{60, 1, 100}, {60, 2, 40}, {60, 1, 200}}) == 0);
    CHECK(together == 120);
    CHECK(poor({{60, 1, 130}, {60, 2, 40}, {60, 1, 200}}) == 1);
    CHECK(together == 60);
    CHECK(poor({{0, 1, 0}, {0, 1, 0}}) == -1); // nothing is asked for
    CHECK(memory_group() == memory_group());
    CHECK(bytes_text(1536) == "1536 bytes");
    CHECK(bytes_text(99'300'000) == "94.7 MiB");
}

TEST_CASE("groups of memory in any text: those that start at the root, with their ancestors, and an end") {
    std::vector<std::string> found;
    auto const all = [&](std::string_view groups) {
        found.clear();
        for_memory_groups(groups, [&](std::string_view path, bool unified) {
            found.push_back(std::string(unified ? "2:" : "1:") + std::string(path));
        });
        return found;
    };
    CHECK(all("0::/a/b\n") == std::vector<std::string>{"2:/a/b", "2:/a", "2:"});
    CHECK(all("7:cpu,memory:/c\n3:cpu:/d\n0::/") == std::vector<std::string>{"1:/c", "1:", "2:/"});
    for (char const* const none :
         {"", "\n\n", "0", "0:", "0:memory", "0::no/root\n", "0::.\n", ":::", "0::\r"})
        for (std::string const& path : all(none)) CHECK(path == "2:");
}

TEST_CASE("numbers beyond 64 bits are the largest one") {
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    CHECK(number_after("MemTotal: 99999999999999999999 kB", "MemTotal:", 1024) == most);
    CHECK(number_after("MemTotal: 18446744073709551 kB", "MemTotal:", 1024) == most);
    CHECK(number_after("MemTotal: 18014398509481983 kB", "MemTotal:", 1024) == most - 1023);
    std::uint64_t together = 0;
    std::vector<memory_need> const all{{most, 1, most}, {1, 1, most - 1}};
    CHECK(short_of_memory(all, together) == 1);
    CHECK(together == most);
}
