// herring: tests of control/variables.hpp: HERRING_SECRET is read once, and then nobody else reads it.
// SPDX-License-Identifier: Apache-2.0
#include "herring/control/variables.hpp"

#include "doctest/doctest.h"
#include "sanitizers.hpp"
#include "unit/crypto/hex.hpp"
#include "unit/crypto/memory_of_process.hpp"

#include "herring/crypto/random.hpp"
#include "herring/error.hpp"
#include "herring/join/environment.hpp"

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace secret_variable_test {

using herring::detail::secret_variable;
using herring::detail::variables;

constexpr char const* masked_name = "HERRING_TEST_MASKED";

/// This program again, with the variables of a started process, for one test case; its status.
int start(char const* test_case, std::vector<std::string> const& entries) {
    pid_t const child = ::fork();
    if (child == 0) {
        std::vector<char*> environment;
        for (std::string const& each : entries) environment.push_back(const_cast<char*>(each.c_str()));
        environment.push_back(nullptr);
        std::string const only = std::string("-tc=") + test_case;
        char program[] = "/proc/self/exe", skipped[] = "--no-skip";
        char* const arguments[] = {program, const_cast<char*>(only.c_str()), skipped, nullptr};
        ::execve(program, arguments, environment.data());
        ::_exit(1);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
}

std::string environ_of_kernel() {
    std::ifstream file("/proc/self/environ", std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

/// 64 digits of HERRING_TEST_MASKED, each written as two: its byte xor mask_of_needle.
std::vector<std::byte> masked_digits() { return from_hex(std::getenv(masked_name)); }
bool is_secret(std::string_view text) {
    std::vector<std::byte> const masked = masked_digits();
    if (text.size() != masked.size()) return false;
    for (std::size_t i = 0; i < masked.size(); ++i)
        if ((static_cast<std::byte>(text[i]) ^ mask_of_needle) != masked[i]) return false;
    return true;
}
std::string key_of(std::optional<herring::detail::secrets> const& given) {
    std::array<std::byte, 32> const salt{};
    return given ? hex(given->proves.key(salt).bytes()) : "none";
}

TEST_CASE("secret_variable: another process reads it, and leaves nothing for others") {
    std::string const digits = hex(herring::detail::random_nonce());
    std::vector<std::byte> masked;
    for (char const c : digits) masked.push_back(static_cast<std::byte>(c) ^ mask_of_needle);
    CHECK(start("secret_variable of a started process: *",
                {"BEFORE=1", "HERRING_SECRET=" + digits, std::string(masked_name) + "=" + hex(masked),
                 "AFTER=2"}) == 0);
}

// Only where the one above starts it.
TEST_CASE("secret_variable of a started process: it is read again and again, and is nowhere else" *
          doctest::skip()) {
    REQUIRE(std::getenv(masked_name) != nullptr);
    REQUIRE(is_secret(std::getenv("HERRING_SECRET")));
    char const* const entry = std::getenv("HERRING_SECRET");
    bool one = false, other = false; // two at once, as a frontend and a member are made
    std::thread first([&] { one = is_secret(secret_variable(variables::of_process())); });
    std::thread second([&] { other = is_secret(secret_variable(variables::of_process())); });
    first.join();
    second.join();
    CHECK(one);
    CHECK(other);
    // What others see: the pointer is as it was, and empty.
    CHECK(std::getenv("HERRING_SECRET") == entry);
    CHECK(std::string(entry).empty());
    CHECK(std::string(std::getenv("BEFORE")) == "1");
    CHECK(std::string(std::getenv("AFTER")) == "2");
    std::string const seen = environ_of_kernel();
    CHECK(seen.find(std::string("HERRING_SECRET=\0", 16)) != std::string::npos);
    for (std::size_t i = 0; i + 64 <= seen.size(); ++i)
        REQUIRE_FALSE(is_secret(std::string_view(seen).substr(i, 64)));
#if !HERRING_TEST_ASAN && !HERRING_TEST_TSAN // which keep a copy of all variables
    CHECK(times_in_dump(masked_digits()) == 0);
#endif
    // One join after the other has the same.
    auto const read = [] {
        return herring::detail::read_secret({}, {}, false, "join_options", variables::of_process());
    };
    CHECK(key_of(read()) == key_of(read()));
    CHECK(key_of(read()) != "none");
    // A child without exec has it, as the ranks of `launch` do.
    pid_t const child = ::fork();
    if (child == 0) ::_exit(is_secret(secret_variable(variables::of_process())) ? 0 : 1);
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
    // One with exec gets it empty, and is told why that is.
    pid_t const executed = ::fork();
    if (executed == 0) {
        char shell[] = "/bin/sh", command[] = "-c",
             words[] = "test \"${HERRING_SECRET+set}:$HERRING_SECRET\" = set:";
        char* const arguments[] = {shell, command, words, nullptr};
        ::execve(shell, arguments, ::environ);
        ::_exit(1);
    }
    ::waitpid(executed, &status, 0);
    CHECK(status == 0);
    // What the program sets itself is read, and left to it.
    std::string const own(64, '7');
    ::setenv("HERRING_SECRET", own.c_str(), 1);
    CHECK(secret_variable(variables::of_process()) == own);
    CHECK(std::string(std::getenv("HERRING_SECRET")) == own);
    CHECK(key_of(read()) ==
          key_of(herring::detail::read_secret(own, {}, false, "join_options", variables::of_process())));
}

TEST_CASE("secret_variable: an empty one, as the child of a process that has read it inherits, is refused by "
          "name") {
    char const* const entries[] = {"HERRING_SECRET=", nullptr};
    CHECK(secret_variable(variables(entries)).empty());
    std::string words;
    try {
        (void)herring::detail::read_secret({}, {}, false, "join_options", variables(entries));
    } catch (herring::error const& why) {
        words = why.what();
    }
    CHECK(words.find("HERRING_SECRET is empty") != std::string::npos);
    CHECK(words.find("HERRING_SECRET_FILE") != std::string::npos);
    // What the error asks for: with a file the empty one does not count, and one that is not empty does.
    auto const with_file = [&](char const* text) -> std::string {
        char const* const both[] = {text, "HERRING_SECRET_FILE=/nowhere/herring.secret", nullptr};
        try {
            (void)herring::detail::read_secret({}, {}, false, "join_options", variables(both));
        } catch (herring::error const& why) {
            return why.what();
        }
        return {};
    };
    CHECK(with_file("HERRING_SECRET=").find("/nowhere/herring.secret") != std::string::npos);
    CHECK(with_file("HERRING_SECRET=0123456789abcdef").find("are both given") != std::string::npos);
    // A constant is not written to.
    char const* const constants[] = {"HERRING_SECRET=a constant of the program", nullptr};
    CHECK(secret_variable(variables(constants)) == "a constant of the program");
    CHECK(secret_variable(variables(constants)) == "a constant of the program");
}

} // namespace secret_variable_test
