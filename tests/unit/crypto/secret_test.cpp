// herring: tests of crypto/secret.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/crypto/secret.hpp"

#include "doctest/doctest.h"
#include "unit/crypto/hex.hpp"

#include "herring/crypto/hkdf.hpp"
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

std::string key_of(std::string_view text, std::uint32_t rounds = 3) {
    return hex(secret(text).key(salt, rounds).bytes());
}
std::string key_of(secret const& s) { return hex(s.key(salt, 3).bytes()); }

/// A file of these contents, and what reading it says.
struct file_of {
    std::string path = "/tmp/herring-test-XXXXXX";

    explicit file_of(std::string_view contents, mode_t mode = 0600) {
        int const opened = ::mkstemp(path.data());
        REQUIRE(opened >= 0);
        ::fchmod(opened, mode);
        ::close(opened);
        std::ofstream(path, std::ios::binary) << contents;
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
    CHECK(secret_fault("").starts_with("is empty; "));
    CHECK(secret_fault("1234567").starts_with("has fewer than 8 characters"));
    CHECK(secret_fault(std::string_view("12345\00078901", 11)).starts_with("has a NUL byte"));
    CHECK(secret_fault("12345678").empty());
    CHECK(secret_fault(digits).empty());
}

TEST_CASE("secret: 64 hexadecimal digits are a key, in either case") {
    CHECK_FALSE(secret(digits).weak());
    CHECK(key_of(digits) == "185fef9af252633d3ed47eef4294a3939e56c7341b9c6f74039726fe8343c567");
    std::string lower = digits;
    for (char& c : lower)
        if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
    CHECK(key_of(lower) == key_of(digits));
    CHECK(hex(herring::detail::hkdf_key(secret(digits).key(salt), "herring rank", bytes_of("ctx")).bytes()) ==
          "b42d25ebb93e58ca417f11f0303f53437eb1ce39ffe79bbdfb80e70a692d01c2");
}

TEST_CASE("secret: every other text is weak, and dear to guess") {
    CHECK(secret("correct horse battery").weak());
    for (std::string text : {digits.substr(1), digits + "0", digits, digits}) {
        if (text == digits) text[63] = 'g';
        CHECK(secret(text).weak());
    }
    std::string nearly = digits;
    nearly[0] = ' ';
    CHECK(secret(nearly).weak());
    // Of PBKDF2 as others have it; the rounds that users get.
    CHECK(hex(secret("correct horse battery").key(salt).bytes()) ==
          "0f997a04052e374838c4e6ea3f98cf9dd6d6d79a5321d57c0629c092ce285d89");
    std::string longer; // than a block, so that HMAC hashes it
    for (int i = 0; i < 9; ++i) longer += "a long secret ";
    CHECK(key_of(longer) == "d467fef6075b7cc769ea01aa0d3474905b88e7eaf36a06a534aea2530fe893a6");
}

TEST_CASE("secret: another salt is another key, for either kind") {
    for (std::string const& text : {digits, std::string("correct horse")})
        CHECK(hex(secret(text).key(counted(1, 32), 3).bytes()) != key_of(text));
}

TEST_CASE("secret: moves, and leaves nothing where it was") {
    secret from("correct horse");
    secret to = std::move(from);
    CHECK(key_of(to) == key_of("correct horse"));
    CHECK(key_of(from) == key_of(std::string_view())); // erased
    from = std::move(to);
    CHECK(key_of(from) == key_of("correct horse"));
    CHECK(key_of(to) == key_of(std::string_view()));
}

TEST_CASE("secret: a file has one, with or without an end of the line, or two") {
    for (char const* const contents :
         {"correct horse", "correct horse\n", "correct horse\r\n", "# of job 7\n\ncorrect horse\n"}) {
        secrets const found = file_of(contents).read();
        CHECK(key_of(found.proves) == key_of("correct horse"));
        CHECK_FALSE(found.also.has_value());
        CHECK(found.warning.empty());
    }
    secrets const both = file_of("new secret\n#the old one:\nold secret\n\n").read();
    CHECK(key_of(both.proves) == key_of("new secret"));
    REQUIRE(both.also.has_value());
    CHECK(key_of(*both.also) == key_of("old secret"));
    // Spaces are of the secret.
    CHECK(key_of(file_of(" correct horse ").read().proves) == key_of(" correct horse "));
}

TEST_CASE("secret: a file that every user has rights to is refused, with the mode and what to do") {
    for (mode_t const mode : {mode_t{0644}, mode_t{0604}, mode_t{0602}, mode_t{0666}, mode_t{0601}}) {
        file_of const file("correct horse\n", mode);
        std::string const words = refusal(file);
        CAPTURE(words);
        CHECK(has(words, "every user of the machine has rights to " + mode_words(mode)));
        CHECK(has(words, "chmod 600 " + file.path + " "));
        CHECK(has(words, "defaultMode: 0400"));
        CHECK_FALSE(has(words, "correct"));
        // Through a link, as Kubernetes mounts it: the file's mode counts.
        std::string const link = file.path + ".link";
        REQUIRE(::symlink(file.path.c_str(), link.c_str()) == 0);
        CHECK(has(refusal(link), mode_words(mode)));
        ::unlink(link.c_str());
    }
}

TEST_CASE("secret: a file that its group has rights to is read, with a warning in words") {
    for (mode_t const mode : {mode_t{0640}, mode_t{0620}, mode_t{0610}}) {
        file_of const file("correct horse\n", mode);
        std::string const warning = file.read().warning;
        CHECK(has(warning, "which its group has rights to " + mode_words(mode)));
        CHECK(has(warning, "chmod 600 " + file.path));
        CHECK_FALSE(has(warning, "correct"));
    }
    CHECK(file_of("correct horse\n", 0400).read().warning.empty());
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
    file_of const of_root("correct horse\n", 0440);
    REQUIRE(::chown(of_root.path.c_str(), 0, 65534) == 0);
    CHECK(as_nobody([&] { return of_root.read().warning.empty(); }));
    file_of const writable("correct horse\n", 0460);
    REQUIRE(::chown(writable.path.c_str(), 0, 65534) == 0);
    CHECK(as_nobody([&] { return has(writable.read().warning, "its group has rights to (mode 0460)"); }));
    file_of const others("correct horse\n", 0440);
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
    CHECK(has(refusal(file_of("# one\ncorrect horse\nshort\n")),
              "has a secret in line 3 that has fewer than 8"));
    CHECK(has(refusal(file_of(std::string_view("correct\0horse\n", 14))),
              "has a secret in line 1 that has a NUL byte"));
    CHECK(has(refusal(file_of("secret 1\nsecret 2\nsecret 3\n")), "has a third secret in line 3"));
    CHECK(has(refusal(file_of(std::string(4097, 'x'))), "has more than 4096 bytes"));
    CHECK(key_of(file_of(std::string(4096, 'x')).read().proves) == key_of(std::string(4096, 'x')));
    for (auto const contents : {std::string_view("hushhush\nhush\n"), std::string_view("hushhush\0hush", 13),
                                std::string_view("hushhush\nhushhush\nhushhush")})
        CHECK_FALSE(has(refusal(file_of(contents)), "hush"));
    std::string pipe = "/tmp/herring-test-pipe-XXXXXX";
    REQUIRE(::mkdtemp(pipe.data()) != nullptr);
    std::string const name = pipe + "/p";
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
    CHECK(has(refusal(name), "is not an ordinary file")); // and nobody waits for somebody to write to it
    ::unlink(name.c_str());
    ::rmdir(pipe.c_str());
}
