// herring: tests of machine/local_socket.hpp: packets with no descriptor, one and more.
// SPDX-License-Identifier: Apache-2.0
#include "herring/machine/local_socket.hpp"

#include "herring/base/text.hpp"
#include "herring/machine/identity.hpp"

#include "doctest/doctest.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

namespace local_socket_test {

using herring::detail::descriptor;
using herring::detail::dial_locally;
using herring::detail::listen_locally;
using herring::detail::packet;
using herring::detail::receive_packet;
using herring::detail::same_user;
using herring::detail::send_packet;

struct pair {
    std::string name = herring::detail::text({"herring-test-", herring::detail::random_bits()});
    descriptor listener = listen_locally(name);
    descriptor dialled = dial_locally(name);
    descriptor accepted{::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)};
};

int open_descriptors() {
    int count = 0;
    DIR* const all = ::opendir("/proc/self/fd");
    while (::readdir(all) != nullptr) ++count;
    ::closedir(all);
    return count;
}

std::array<std::byte, 4> const word{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

TEST_CASE("local_socket: packets keep their borders, and bring at most the one descriptor") {
    pair ends;
    REQUIRE(ends.accepted.get() >= 0);
    CHECK(same_user(ends.accepted.get()));
    CHECK(same_user(ends.dialled.get()));
    std::array<std::byte, 16> into{};
    CHECK(receive_packet(ends.accepted.get(), into).bytes == -1);
    CHECK(send_packet(ends.dialled.get(), word, -1));
    CHECK(send_packet(ends.dialled.get(), word, ends.listener.get()));
    packet first = receive_packet(ends.accepted.get(), into);
    CHECK(first.bytes == 4);
    CHECK(first.descriptors == 0);
    packet second = receive_packet(ends.accepted.get(), into);
    CHECK(second.descriptors == 1);
    REQUIRE(second.passed.get() >= 0);
    CHECK((::fcntl(second.passed.get(), F_GETFD) & FD_CLOEXEC) != 0);
    ends.dialled = descriptor();
    { descriptor const gone = std::move(ends.dialled); }
    CHECK(receive_packet(ends.accepted.get(), into).bytes == 0);
}

TEST_CASE("local_socket: of several descriptors none is kept, and none leaks") {
    pair ends;
    int const before = open_descriptors();
    std::array<std::byte, 4> bytes = word;
    iovec part{bytes.data(), bytes.size()};
    constexpr std::size_t count = 3;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int) * count)] = {};
    msghdr out{};
    out.msg_iov = &part;
    out.msg_iovlen = 1;
    out.msg_control = room;
    out.msg_controllen = sizeof room;
    cmsghdr* const head = CMSG_FIRSTHDR(&out);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * count);
    int const passed[count] = {0, 1, 2};
    std::memcpy(CMSG_DATA(head), passed, sizeof passed);
    REQUIRE(::sendmsg(ends.dialled.get(), &out, 0) == 4);
    std::array<std::byte, 16> into{};
    packet const found = receive_packet(ends.accepted.get(), into);
    CHECK(found.descriptors == count);
    CHECK(found.passed.get() == -1);
    CHECK(open_descriptors() == before);
}

TEST_CASE("local_socket: a packet larger than the room is known as such") {
    pair ends;
    std::array<std::byte, 2> into{};
    CHECK(send_packet(ends.dialled.get(), word, -1));
    CHECK_FALSE(receive_packet(ends.accepted.get(), into).whole);
}

TEST_CASE("local_socket: a name that nobody listens on") {
    CHECK(dial_locally("herring-test-nobody").get() == -1);
    pair ends;
    CHECK(listen_locally(ends.name).get() == -1); // taken
}

} // namespace local_socket_test
