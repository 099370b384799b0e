// herring: tests of machine/forks.hpp: whose an object is, and what a forked child has of its parent's sockets.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/forks.hpp"

#include "doctest/doctest.h"

#include <cerrno>
#include <string>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace forks_test {

using herring::detail::forks;
using herring::detail::owner_process;

/// The status of a child that runs `body`.
template <class Body> int in_child(Body&& body) {
    pid_t const child = ::fork();
    if (child == 0) ::_exit(body());
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("forks: an object is its process's, and a child has objects of its own") {
    owner_process const made;
    CHECK(made.is_this());
    pid_t const parent = ::getpid();
    CHECK(in_child([&] {
              owner_process const own;
              if (made.is_this() || !own.is_this()) return 1;
              herring::error const why = made.refusal(3, "wait", "world");
              std::string const words =
                  "forked off after the world was made (process " + std::to_string(parent) + ")";
              if (why.code() != herring::errc::bad_state || why.reported_by() != 3) return 2;
              if (std::string(why.what()).find(words) == std::string::npos) return 3;
              return in_child([&] {
                  owner_process const third;
                  return made.is_this() || own.is_this() || !third.is_this() ? 4 : 0;
              });
          }) == 0);
    CHECK(made.is_this());
}

TEST_CASE("forks: a child that lives on does not keep a connection of its parent's") {
    owner_process const watched;
    int ends[2], gate[2], other[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, other) == 0); // the program's
    REQUIRE(::pipe(gate) == 0);
    CHECK(forks::own(ends[0]) == ends[0]);
    pid_t const child = ::fork();
    if (child == 0) {
        ::close(gate[1]);
        char byte = 0;
        bool const good = ::send(ends[0], "x", 1, MSG_NOSIGNAL) < 0 // its number is taken, and reaches nobody
                          && ::fcntl(ends[0], F_GETFD) == FD_CLOEXEC && ::write(other[0], "y", 1) == 1 &&
                          ::read(gate[0], &byte, 1) == 0;
        ::_exit(good ? 0 : 1);
    }
    char byte = 0;
    CHECK(::read(other[1], &byte, 1) == 1); // the child is there
    CHECK(::write(ends[0], "z", 1) == 1);   // nothing has changed here
    CHECK(::read(ends[1], &byte, 1) == 1);
    CHECK(byte == 'z');
    ::close(ends[0]);
    pollfd ended{ends[1], POLLIN, 0};
    CHECK(::poll(&ended, 1, 10'000) == 1);
    CHECK(::read(ends[1], &byte, 1) == 0);
    for (int const each : {gate[1], gate[0], ends[1], other[0], other[1]}) ::close(each);
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
}

TEST_CASE(
    "forks: a number that was a socket of Herring's, and is the program's since, stays open in a child") {
    owner_process const watched;
    int ours[2], theirs[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ours) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, theirs) == 0);
    CHECK(forks::own(ours[0]) == ours[0]);
    REQUIRE(::dup2(theirs[0], ours[0]) == ours[0]);
    CHECK(in_child([&] { return ::send(ours[0], "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 1; }) == 0);
    char byte = 0;
    CHECK(::read(theirs[1], &byte, 1) == 1);
    for (int const each : {ours[0], ours[1], theirs[0], theirs[1]}) ::close(each);
}

TEST_CASE("forks: no socket stays none, and errno stays") {
    errno = EMFILE;
    CHECK(forks::own(-1) == -1);
    CHECK(errno == EMFILE);
}

} // namespace forks_test
