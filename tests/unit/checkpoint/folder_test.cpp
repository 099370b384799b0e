// herring: tests of checkpoint/folder.hpp: what is in force, what is removed and when, and what errors say.
// SPDX-License-Identifier: Apache-2.0
#include "herring/checkpoint/folder.hpp"

#include "doctest/doctest.h"

#include "checkpoint_files.hpp"
#include "file_limit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include <sys/stat.h>

namespace folder_test {

namespace checkpoints = herring::detail::checkpoints;
using checkpoints::folder;
using checkpoints::manifest;
using herring::errc;
using herring::tests::scratch_folder;

void put(folder const& where, std::string const& name, std::string const& text = "x") {
    auto const file = where.create(name);
    where.write(file, name, std::as_bytes(std::span(text)));
    where.sync(file, name);
}
template <class Call> std::string refused(errc code, Call const& call) {
    try {
        call();
    } catch (herring::error const& why) {
        CHECK_MESSAGE(why.code() == code, why.what());
        return why.what();
    }
    return "no error";
}
std::vector<std::string> sorted(std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
}
bool has(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

} // namespace folder_test

using namespace folder_test;

TEST_CASE("folder: a manifest is in force once it is published, and what it names stays") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "save");
    CHECK(!checkpoints::find_manifest(where));
    CHECK(checkpoints::tidy(where) == 0);
    put(where, "herring-5-1.0");
    std::vector<std::string> const others{"notes.txt",         "herring-5-1.bak",      "herring-5-1.old",
                                          "herring-5-1.0copy", "herring-5-1.sync0old", "herring-5-1.00",
                                          "herring-05-1.0"};
    for (std::string const& name : others) put(where, name);
    manifest one{.generation = 1, .steps = 5, .parts = {{"herring-5-1.0", 1, 0, 0}}};
    bool in_force = false;
    checkpoints::publish(where, one, in_force);
    CHECK(in_force);
    CHECK(checkpoints::find_manifest(where) == one);
    put(where, "herring-9-2.0"); // of a save that did not end
    put(where, "herring-9-3.0");
    CHECK(checkpoints::tidy(where, 3) == 2);
    CHECK(sorted(where.files()) == std::vector<std::string>{"herring-5-1.0", "herring-9-2.0"});
    CHECK(checkpoints::tidy(where) == 1);
    CHECK(where.files() == std::vector<std::string>{"herring-5-1.0"});
    put(where, "herring-9-2.user");
    manifest two{.generation = 2, .sections = {{"user", {"herring-9-2.user", 1, 0, 0}}}};
    checkpoints::publish(where, two, in_force);
    CHECK(checkpoints::find_manifest(where) == two);
    CHECK(checkpoints::tidy(where) == 2);
    CHECK(where.files() == std::vector<std::string>{"herring-9-2.user"});
    for (std::string const& name : others) CHECK_MESSAGE(where.open(name).get() >= 0, name); // not ours
}

TEST_CASE("folder: beside a manifest that cannot be read nothing is removed") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "save");
    put(where, "herring-5-4.0");
    std::ofstream(scratch.path() + "/herring.manifest") << "herring checkpoint 1\nrubbish\n";
    CHECK(
        has(refused(errc::corrupted, [&] { (void)checkpoints::find_manifest(where); }), "herring.manifest"));
    CHECK(checkpoints::tidy(where) == 4);
    CHECK(where.files().size() == 1);
}

TEST_CASE("folder: what it has created is removed, and nothing else") {
    scratch_folder const scratch;
    folder const earlier(scratch.path(), 0, "save");
    put(earlier, "herring-5-1.0");
    folder const where(scratch.path(), 0, "save");
    put(where, "herring-6-2.0");
    put(where, "herring-6-2.sync0");
    CHECK(has(refused(errc::bad_argument, [&] { (void)where.create("herring-5-1.0"); }), "File exists"));
    where.remove_created();
    CHECK(where.files() == std::vector<std::string>{"herring-5-1.0"});
    put(earlier, "herring-6-2.0"); // of somebody else
    where.remove_created();
    CHECK(where.files().size() == 2);
}

TEST_CASE("folder: a manifest may be in force from the moment that it gets its name, and not before") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "save");
    bool in_force = false;
    manifest const one{.generation = 1, .steps = 5};
    put(where, "herring-5-1.manifest");
    (void)refused(errc::bad_argument, [&] { checkpoints::publish(where, one, in_force); });
    CHECK(!in_force);
    where.remove("herring-5-1.manifest");
    REQUIRE(::mkdir((scratch.path() + "/" + manifest::name).c_str(), 0700) == 0); // the name is taken
    (void)refused(errc::bad_argument, [&] { checkpoints::publish(where, one, in_force); });
    CHECK(in_force);
}

TEST_CASE("folder: a pipe in the place of a file is refused, and not waited for") {
    scratch_folder const scratch;
    folder const where(scratch.path(), 0, "load");
    REQUIRE(::mkfifo((scratch.path() + "/" + manifest::name).c_str(), 0600) == 0);
    CHECK(has(refused(errc::corrupted, [&] { (void)checkpoints::find_manifest(where); }),
              "it is no plain file"));
}

TEST_CASE("folder: errors name the file, the folder and the reason") {
    std::string said = refused(errc::bad_argument, [] { folder("/no/such/folder", 3, "save"); });
    CHECK(has(said, "rank 3: save"));
    CHECK(has(said, "/no/such/folder"));
    CHECK(has(said, "No such file"));
    scratch_folder const scratch;
    folder const where(scratch.path(), 3, "load");
    put(where, "a");
    CHECK(has(refused(errc::bad_argument, [&] { (void)where.create("a"); }),
              "a: it cannot be created: File exists; the rank that numbers saves has not seen it"));
    CHECK(where.open("b").get() < 0);
    std::byte room[2];
    auto const file = where.open("a");
    CHECK(where.size(file, "a") == 1);
    CHECK(has(refused(errc::corrupted, [&] { where.read(file, "a", 0, room); }), "a: it ends at byte 1"));
    CHECK(has(refused(errc::bad_argument, [&] { where.rename("b", "c"); }), "b: it cannot be renamed"));
    CHECK(has(refused(errc::corrupted, [&] { (void)where.size(where.open("."), "."); }), "no plain file"));
    CHECK(has(refused(errc::bad_argument, [&] { folder(scratch.path() + "/a", 0, "save"); }),
              "Not a directory"));
    herring::tests::file_limit const small(1'000);
    put(where, "c", std::string(1'000, 'x'));
    CHECK(has(refused(errc::no_resources, [&] { put(where, "d", std::string(1'001, 'x')); }),
              "d: it cannot be written: File too large; raise the limit of file sizes (ulimit -f)"));
}
