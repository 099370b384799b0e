// herring: tests of trace/timeline.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/trace/timeline.hpp"

#include "doctest/doctest.h"

#include "file_limit.hpp"

#include <cstdio>
#include <string>

#include <sys/stat.h>

using herring::detail::timeline_memory;

TEST_CASE("timeline memory: a file has its size at once, replaces an older one, and stays") {
    std::string const path = "/tmp/herring-timeline-memory-" + std::to_string(::getpid());
    std::string why;
    {
        timeline_memory const old = timeline_memory::file(path, 100, why);
        REQUIRE(old.data() != nullptr);
        timeline_memory const made = timeline_memory::file(path, 5000, why);
        REQUIRE(made.data() != nullptr);
        CHECK(made.is_file());
        CHECK(made.data()[4999] == std::byte{0});
        made.data()[4999] = std::byte{7};
        old.data()[0] = std::byte{1}; // is not in the new one
        CHECK(made.data()[0] == std::byte{0});
    }
    struct stat found {};
    REQUIRE(::stat(path.c_str(), &found) == 0);
    CHECK(found.st_size == 5000);
    ::unlink(path.c_str());
}

TEST_CASE("timeline memory: a file that cannot be had leaves nothing, and the system's word") {
    std::string why;
    CHECK(timeline_memory::file("/nowhere/at/all", 100, why).data() == nullptr);
    CHECK(why.find("No such file") != std::string::npos);
    {
        std::string const path = "/tmp/herring-timeline-limit-" + std::to_string(::getpid());
        herring::tests::file_limit const small(4'999);
        CHECK(timeline_memory::file(path, 5000, why).data() == nullptr);
        CHECK(why == "File too large");
        CHECK(::access(path.c_str(), F_OK) != 0);
    }
    timeline_memory const none = timeline_memory::anonymous(4096);
    REQUIRE(none.data() != nullptr);
    CHECK_FALSE(none.is_file());
    CHECK(none.size() == 4096);
}
