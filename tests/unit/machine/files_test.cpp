// herring: tests of machine/files.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/files.hpp"

#include "doctest/doctest.h"
#include "file_limit.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include <unistd.h>

using herring::detail::write_whole_file, herring::detail::try_write_whole_file;

TEST_CASE("whole file: a file is replaced as a whole, and one that cannot be leaves nothing") {
    char folder[] = "/tmp/herring_whole_file_XXXXXX";
    REQUIRE(::mkdtemp(folder) != nullptr);
    std::string const path = std::string(folder) + "/herring.prom";
    auto const content = [&] {
        std::ifstream in(path);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    write_whole_file(path, "one\n", "write_it");
    CHECK(content() == "one\n");
    std::string const large(std::size_t{1} << 20, 'x');
    write_whole_file(path, large, "write_it");
    CHECK(content() == large);
    auto const files = [&] {
        return std::distance(std::filesystem::directory_iterator(folder),
                             std::filesystem::directory_iterator());
    };
    CHECK(files() == 1);
    std::filesystem::create_directory(std::string(folder) + "/taken");
    CHECK_THROWS_AS(write_whole_file(std::string(folder) + "/taken", "x", "write_it"), herring::error);
    CHECK(files() == 2); // nothing beside them
    std::string const nowhere = std::string(folder) + "/no/such/folder";
    CHECK_THROWS_WITH_AS(
        write_whole_file(nowhere, "x", "write_it"),
        ("herring: write_it: unreachable: cannot create " + nowhere + ": No such file or directory").c_str(),
        herring::error);
    {
        herring::tests::file_limit const small(1'000'000);
        CHECK_THROWS_WITH_AS(
            write_whole_file(path, large, "write_it"),
            ("herring: write_it: unreachable: cannot write " + path + ": File too large").c_str(),
            herring::error);
        CHECK(content() == large); // the old one
        CHECK(files() == 2);
    }
    CHECK(try_write_whole_file(path, "two\n", "write_it"));
    CHECK(content() == "two\n");
    CHECK_FALSE(try_write_whole_file(nowhere, "x", "write_it"));
    std::filesystem::remove_all(folder);
}

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
