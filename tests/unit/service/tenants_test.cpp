// herring: tests of service/tenants.hpp: the file of tenants, and what is wrong with one, by line.
// SPDX-License-Identifier: Apache-2.0
#include "herring/service/tenants.hpp"

#include "doctest/doctest.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/stat.h>
#include <unistd.h>

using namespace herring::detail::leasing;

namespace {

struct files {
    files() {
        char name[] = "/tmp/herring-tenants-XXXXXX";
        folder = ::mkdtemp(name);
        std::ofstream(key()) << std::string(64, 'a') << "\n";
        ::chmod(key().c_str(), 0600);
    }
    ~files() { std::filesystem::remove_all(folder); }
    std::string key() const { return folder + "/key"; }
    std::string table() const { return folder + "/tenants"; }
    std::vector<tenant> read(std::string const& text) const {
        std::ofstream(table()) << text;
        return read_tenants(table());
    }
    /// What is said of this text, behind the name of the file.
    std::string fault(std::string const& text) const {
        try {
            (void)read(text);
            return "nothing";
        } catch (herring::error const& why) {
            std::string const all = why.why().text;
            return all.starts_with(table()) ? all.substr(table().size()) : all;
        }
    }
    std::string folder;
};

} // namespace

TEST_CASE("tenants: a line each, with comments and empty lines between them") {
    files at;
    auto const all = at.read("# name key share ranks bytes jobs checkpoints\n\nalice " + at.key() +
                             " 3 8 16G 2 /srv/a # the first\r\n\tbob\t" + at.key() + " 1 2 512M 1 -");
    REQUIRE(all.size() == 2);
    CHECK(all[0].name == "alice");
    CHECK(all[0].share == 3);
    CHECK(all[0].ranks == 8);
    CHECK(all[0].bytes == std::uint64_t{16} << 30);
    CHECK(all[0].jobs == 2);
    CHECK(all[0].checkpoints == "/srv/a");
    CHECK(all[1].name == "bob");
    CHECK(all[1].bytes == std::uint64_t{512} << 20);
    CHECK(all[1].checkpoints == "");
}

TEST_CASE("tenants: what is wrong is named by line") {
    files at;
    std::string const key = at.key();
    auto const starts = [&](std::string const& text, std::string const& due) {
        std::string const said = at.fault(text);
        CHECK_MESSAGE(said.starts_with(due), said);
    };
    starts("", " is no file of tenants, or empty");
    starts("a b\n", ":1: 2 words; a tenant has 7");
    starts("\n#\na " + key + " 1 1 1G 1 - more\n", ":3: 8 words");
    starts("a " + key + " 0 1 1G 1 -\n", ":1: the share is '0', which is not a number from 1 to 1000");
    starts("a " + key + " 1 x 1G 1 -\n", ":1: the limit of ranks is 'x'");
    starts("a " + key + " 1 1 1X 1 -\n", ":1: bytes are '1X'; write for example 512M or 16G");
    starts("a " + key + " 1 1 1G 9999999 -\n", ":1: the limit of jobs is '9999999'");
    starts("a " + key + " 1 1 1G 1 here\n", ":1: the folder of checkpoints is 'here'");
    starts("a " + key + " 1 1 1G 1 -\na " + key + " 1 1 1G 1 -\n", ":2: there is a tenant 'a' before");
    starts(std::string(65, 'n') + " " + key + " 1 1 1G 1 -\n", ":1: the name has 65 characters");
    starts("a " + at.folder + "/none 1 1 1G 1 -\n", ":1: the key of 'a'");
    std::ofstream(key) << "no secret\n";
    starts("a " + key + " 1 1 1G 1 -\n", ":1: the key of 'a'");
}

TEST_CASE("tenants: sizes") {
    CHECK(bytes_of("4096") == 4096);
    CHECK(bytes_of("1K") == 1024);
    CHECK(bytes_of("1T") == std::uint64_t{1} << 40);
    for (char const* const wrong : {"", "G", "0", "-1G", "1.5G", "1 G", "99999999G"})
        CHECK(bytes_of(wrong) == 0);
}
