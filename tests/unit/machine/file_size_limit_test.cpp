// herring: tests of machine/files.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/files.hpp"

#include "doctest/doctest.h"

#include "file_limit.hpp"

#include <cstdio>
#include <limits>

#include <unistd.h>

using herring::detail::file_size_limit;
using herring::detail::may_write;
using herring::tests::file_limit;

TEST_CASE("file size limit: a file may grow up to it, from where it stands") {
    int pipe[2];
    REQUIRE(::pipe(pipe) == 0);
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    int const number = ::fileno(file);
    if (file_size_limit() == std::numeric_limits<std::uint64_t>::max())
        CHECK(may_write(number, std::numeric_limits<std::size_t>::max()));
    {
        file_limit const small(10'000);
        CHECK(file_size_limit() == 10'000);
        CHECK(may_write(number, 10'000));
        CHECK_FALSE(may_write(number, 10'001));
        char const bytes[100] = {};
        REQUIRE(::write(number, bytes, 100) == 100);
        CHECK(may_write(number, 9'900));
        CHECK_FALSE(may_write(number, 9'901));
        CHECK(may_write(pipe[1], 10'001)); // no file
        REQUIRE(::lseek(number, 20'000, SEEK_SET) == 20'000);
        CHECK_FALSE(may_write(number, 1));
    }
    std::fclose(file);
    ::close(pipe[0]);
    ::close(pipe[1]);
}
