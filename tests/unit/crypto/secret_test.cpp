// herring: tests of crypto/secret.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/secret.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include "herring/crypto/sha256.hpp"
#include "herring/error.hpp"

#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using herring::detail::bytes_of;
using herring::detail::read_secrets;
using herring::detail::secret;
using herring::detail::secret_fault;
using herring::detail::secrets;

static_assert(!std::is_copy_constructible_v<secret> && !std::is_copy_assignable_v<secret>);

namespace {

std::string const digits = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF";
auto const salt = counted(0, 32);

std::string const one_key(64, '1'), other_key(64, '2');

std::string key_of(secret const& s) { return hex(s.key(salt).bytes()); }
std::string key_of(std::string_view text) { return key_of(secret(text)); }

/// A file of these contents, and what reading it says.
struct file_of {
    std::string path = "/tmp/herring-test-XXXXXX";

    explicit file_of(std::string_view contents, mode_t mode = 0600) {
        int const opened = ::mkstemp(path.data());
        REQUIRE(opened >= 0);
        ::close(opened);
        std::ofstream(path, std::ios::binary) << contents;
        ::chmod(path.c_str(), mode); // last, as it may forbid to write
    }
    file_of(file_of const&) = delete;
    ~file_of() { ::unlink(path.c_str()); }

    secrets read() const { return read_secrets(path, "HERRING_SECRET_FILE"); }
};

std::string refusal(std::string const& path) {
    try {
        read_secrets(path, "HERRING_SECRET_FILE");
    } catch (herring::error const& e) {
        CHECK(e.code() == herring::errc::bad_argument);
        CHECK(std::string(e.what()).find("HERRING_SECRET_FILE is '" + path + "', which ") !=
              std::string::npos);
        return e.what();
    }
    return "it was read";
}
std::string refusal(file_of const& file) { return refusal(file.path); }
bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::string mode_words(mode_t mode) {
    char octal[24];
    std::snprintf(octal, sizeof octal, "(mode 0%03o)", static_cast<unsigned>(mode));
    return octal;
}

} // namespace

TEST_CASE("secret: what is none, in words") {
    CHECK(secret_fault(digits).empty());
    CHECK(secret_fault("") ==
          "is empty, and a secret has 64 hexadecimal digits; make one by: openssl rand -hex 32");
    CHECK(secret_fault("1234567") ==
          "has 7 characters, and a secret has 64 hexadecimal digits; make one by: openssl rand -hex 32");
    CHECK(secret_fault("correct horse battery").starts_with("has 21 characters, "));
    CHECK(secret_fault(digits.substr(1)).starts_with("has 63 characters, "));
    CHECK(secret_fault(digits + "0").starts_with("has 65 characters, "));
    CHECK(secret_fault(digits + "\n").starts_with("has 65 characters, "));
    for (char const odd : {'g', 'G', '/', ':', '@', '`', ' ', '\0', '\xff'})
        for (unsigned const at : {0u, 31u, 63u}) {
            std::string nearly = digits;
            nearly[at] = odd;
            CHECK(secret_fault(nearly) ==
                  "has a character that is no hexadecimal digit, and a secret has 64 of these; "
                  "make one by: openssl rand -hex 32");
        }
}

TEST_CASE("secret: 64 hexadecimal digits are a key, in either case") {
    CHECK(key_of(digits) == "185fef9af252633d3ed47eef4294a3939e56c7341b9c6f74039726fe8343c567");
    std::string lower = digits;
    for (char& c : lower)
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    CHECK(key_of(lower) == key_of(digits));
    CHECK(hex(herring::detail::hkdf_key(secret(digits).key(salt), "herring rank", bytes_of("ctx")).bytes()) ==
          "b42d25ebb93e58ca417f11f0303f53437eb1ce39ffe79bbdfb80e70a692d01c2");
}

TEST_CASE("secret: another salt is another key, and so is another secret") {
    CHECK(hex(secret(digits).key(counted(1, 32)).bytes()) != key_of(digits));
    CHECK(key_of(one_key) != key_of(digits));
}

TEST_CASE("secret: moves, and leaves nothing where it was") {
    std::string const zeroes(64, '0');
    secret from(one_key);
    secret to = std::move(from);
    CHECK(key_of(to) == key_of(one_key));
    CHECK(key_of(from) == key_of(zeroes)); // erased
    from = std::move(to);
    CHECK(key_of(from) == key_of(one_key));
    CHECK(key_of(to) == key_of(zeroes));
}

TEST_CASE("secret: a file has one, with or without an end of the line, or two") {
    for (std::string const& contents :
         {one_key, one_key + "\n", one_key + "\r\n", "# of job 7\n\n" + one_key + "\n"}) {
        secrets const found = file_of(contents).read();
        CHECK(key_of(found.proves) == key_of(one_key));
        CHECK_FALSE(found.also.has_value());
        CHECK(found.warning.empty());
    }
    secrets const both = file_of(other_key + "\n#the old one:\n" + one_key + "\n\n").read();
    CHECK(key_of(both.proves) == key_of(other_key));
    REQUIRE(both.also.has_value());
    CHECK(key_of(*both.also) == key_of(one_key));
}

TEST_CASE("secret: a file that every user has rights to is refused, with the mode and what to do") {
    for (mode_t const mode : {mode_t{0644}, mode_t{0604}, mode_t{0602}, mode_t{0666}, mode_t{0601}}) {
        file_of const file(one_key + "\n", mode);
        std::string const words = refusal(file);
        CAPTURE(words);
        CHECK(has(words, "every user of the machine has rights to " + mode_words(mode)));
        CHECK(has(words, "chmod 600 " + file.path + " "));
        CHECK(has(words, "defaultMode: 0400"));
        CHECK_FALSE(has(words, "1111111"));
        // Through a link, as Kubernetes mounts it: the file's mode counts.
        std::string const link = file.path + ".link";
        REQUIRE(::symlink(file.path.c_str(), link.c_str()) == 0);
        CHECK(has(refusal(link), mode_words(mode)));
        ::unlink(link.c_str());
    }
}

TEST_CASE("secret: a file that its group has rights to is read, with a warning in words") {
    for (mode_t const mode : {mode_t{0640}, mode_t{0620}, mode_t{0610}}) {
        file_of const file(one_key + "\n", mode);
        std::string const warning = file.read().warning;
        CHECK(has(warning, "which its group has rights to " + mode_words(mode)));
        CHECK(has(warning, "chmod 600 " + file.path));
        CHECK_FALSE(has(warning, "1111111"));
    }
    CHECK(file_of(one_key + "\n", 0400).read().warning.empty());
}

TEST_CASE("secret: a file of root's may be its group's to read; one of another user's is warned of") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: not root, so no file is another user's");
        return;
    }
    // A process of another user and of the file's group, which is told by its status.
    auto const as_nobody = [](auto const& what) {
        pid_t const child = ::fork();
        if (child == 0) ::_exit(::setgid(65534) == 0 && ::setuid(65534) == 0 && what() ? 0 : 1);
        int status = -1;
        ::waitpid(child, &status, 0);
        return status == 0;
    };
    file_of const of_root(one_key + "\n", 0440);
    REQUIRE(::chown(of_root.path.c_str(), 0, 65534) == 0);
    CHECK(as_nobody([&] { return of_root.read().warning.empty(); }));
    file_of const writable(one_key + "\n", 0460);
    REQUIRE(::chown(writable.path.c_str(), 0, 65534) == 0);
    CHECK(as_nobody([&] { return has(writable.read().warning, "its group has rights to (mode 0460)"); }));
    file_of const others(one_key + "\n", 0440);
    REQUIRE(::chown(others.path.c_str(), 12345, 65534) == 0);
    CHECK(as_nobody([&] { return has(others.read().warning, "belongs to user 12345"); }));
    CHECK(has(others.read().warning, "belongs to user 12345"));
}

TEST_CASE("secret: a file that is none says what is wrong, and nothing of what is in it") {
    CHECK(has(refusal(std::string("/nowhere/at/all")), "cannot be read: No such file or directory"));
    CHECK(has(refusal(std::string("/tmp")), "is a directory"));
    CHECK(has(refusal(std::string("/dev/zero")), "is not an ordinary file"));
    CHECK(has(refusal(file_of("")), "has no secret in it"));
    CHECK(has(refusal(file_of("\n# nothing\n\r\n")), "has no secret in it"));
    CHECK(has(
        refusal(file_of("# one\n" + one_key + "\nshort\n")),
        "has a secret in line 3 that has 5 characters, and a secret has 64 hexadecimal digits; make one by: "
        "openssl rand -hex 32"));
    CHECK(has(refusal(file_of(one_key.substr(1) + '\0')),
              "has a secret in line 1 that has a character that is no"));
    CHECK(has(refusal(file_of(' ' + one_key)),
              "has a secret in line 1 that has 65 characters")); // spaces count
    CHECK(has(refusal(file_of(one_key + ' ' + other_key)), "has a secret in line 1 that has 129 characters"));
    CHECK(has(refusal(file_of(one_key + "\n" + one_key + "\n" + one_key + "\n")),
              "has a third secret in line 3"));
    CHECK(has(refusal(file_of(std::string(4097, '#'))), "has more than 4096 bytes"));
    CHECK(key_of(file_of(std::string(4096 - 65, '#') + "\n" + one_key).read().proves) == key_of(one_key));
    for (std::string const& contents :
         {std::string("hushhush\nhush\n"), one_key + "\n" + std::string(64, 'u'),
          one_key + "\n" + one_key + "\n" + one_key})
        for (char const* const part : {"hush", "uuuuuuu", "1111111"})
            CHECK_FALSE(has(refusal(file_of(contents)), part));
    std::string pipe = "/tmp/herring-test-pipe-XXXXXX";
    REQUIRE(::mkdtemp(pipe.data()) != nullptr);
    std::string const name = pipe + "/p";
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
    CHECK(has(refusal(name), "is not an ordinary file")); // and nobody waits for somebody to write to it
    ::unlink(name.c_str());
    ::rmdir(pipe.c_str());
}
