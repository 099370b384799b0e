// herring: real processes that join through a gather over sockets: jobs side by side, and ranks that are killed.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/gather.hpp"

#include "doctest/doctest.h"
#include "herring/herring.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

/// A gather as launchers have one: each rank is connected to rank 0, which sends the bytes of all to each.
///
/// Lifetime: made before the ranks are forked; `of(rank)` connects.
class star {
  public:
    explicit star(int size) : size_(static_cast<std::size_t>(size)) {
        at_.sun_family = AF_UNIX;
        socklen_t length = sizeof(sa_family_t); // the system draws a name
        if (::bind(listener_, reinterpret_cast<sockaddr*>(&at_), length) != 0 ||
            ::listen(listener_, size) != 0)
            throw std::runtime_error("no socket");
        length_ = sizeof at_;
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at_), &length_);
    }
    star(star const&) = delete;
    ~star() { ::close(listener_); }

    star& of(int rank) {
        sockets_.resize(rank == 0 ? size_ : 1);
        for (std::size_t n = 1; rank == 0 && n < size_; ++n) {
            int const from = ::accept(listener_, nullptr, nullptr);
            sockets_[std::stoul(receive(from, n))] = from;
        }
        if (rank == 0) return *this;
        sockets_[0] = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (::connect(sockets_[0], reinterpret_cast<sockaddr const*>(&at_), length_) != 0)
            throw std::runtime_error("rank 0 is gone");
        send(sockets_[0], std::to_string(rank), 0);
        return *this;
    }

    std::vector<std::string> operator()(std::span<std::byte const> given) const {
        std::vector<std::string> all{{reinterpret_cast<char const*>(given.data()), given.size()}};
        if (sockets_.size() == 1) {
            send(sockets_[0], all[0], 0);
            for (all.clear(); all.size() < size_;) all.push_back(receive(sockets_[0], 0));
            return all;
        }
        for (std::size_t r = 1; r < size_; ++r) all.push_back(receive(sockets_[r], r));
        for (std::size_t r = 1; r < size_; ++r)
            for (std::string const& each : all) send(sockets_[r], each, r);
        return all;
    }

  private:
    static void send(int to, std::string const& bytes, std::size_t rank) {
        if (::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
            throw std::runtime_error("rank " + std::to_string(rank) + " is gone");
    }
    static std::string receive(int from, std::size_t rank) {
        std::string bytes(1 << 16, '\0');
        ssize_t const got = ::recv(from, bytes.data(), bytes.size(), 0);
        if (got <= 0) throw std::runtime_error("rank " + std::to_string(rank) + " is gone");
        bytes.resize(static_cast<std::size_t>(got));
        return bytes;
    }

    std::size_t size_;
    sockaddr_un at_{};
    socklen_t length_ = 0;
    int listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    std::vector<int> sockets_; // of rank 0: by rank; of others: to rank 0
};

/// The error of `join`, or one with the code `ok`.
template <class Join> herring::failure error_of(Join&& join) {
    try {
        join();
    } catch (herring::error const& why) {
        return why.why();
    }
    return {};
}

bool says(herring::failure const& why, std::string_view words) {
    return why.message().find(words) != std::string::npos;
}

} // namespace

TEST_CASE("gather: processes of two jobs join side by side, each its own, and reduce") {
    star even(2), odd(3);
    int const status = herring::launch(5, [&](herring::world& started) {
        int const job = started.rank() % 2 == 0 ? 1 : 0; // ranks 0, 2, 4: three; 1, 3: two
        int const rank = started.rank() / 2, size = job == 1 ? 3 : 2;
        star& by = (job == 1 ? odd : even).of(rank);
        herring::world world = herring::join(by, rank, size);
        herring::reducer<std::int64_t, herring::transport::tcp, herring::update::sum> reduce(world);
        std::int64_t const total = reduce.all_reduce(std::int64_t{100} * job + 1);
        return total == size * (100 * job + 1) && world.size() == size ? 0 : 1;
    });
    CHECK(status == 0);
}

TEST_CASE("gather: a rank that is killed before its first call is the gather's to name, one behind the last "
          "Herring's") {
    void* const memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    auto& named = *new (memory) std::atomic<int>(0); // ranks that name rank 2
    for (int const calls : {0, 1, 2}) {              // that rank 2 makes
        CAPTURE(calls);
        named = 0;
        star by(3);
        int const status = herring::launch(
            3,
            [&](herring::world& started) {
                int const rank = started.rank();
                star& all = by.of(rank);
                int made = 0;
                auto const gather = [&](std::span<std::byte const> mine) {
                    if (rank == 2 && made++ == calls) ::raise(SIGKILL);
                    auto replies = all(mine);
                    if (rank == 2 && calls == 2 && made == 2) ::raise(SIGKILL);
                    return replies;
                };
                herring::join_options options;
                options.timeout = std::chrono::milliseconds(1'500);
                herring::failure const why = error_of([&] { herring::join(gather, rank, 3, options); });
                bool const good = calls == 2 ? why.what == herring::errc::timeout && why.peer == 2
                                             : why.what == herring::errc::unreachable &&
                                                   says(why, rank == 0 ? "rank 2 is gone" : "is gone");
                if (good)
                    ++named;
                else
                    std::fprintf(stderr, "not so: %s\n", why.message().c_str());
                ::_exit(0); // a rank of `started` is dead: its goodbye is not waited for
            },
            {.grace = std::chrono::milliseconds(20'000)});
        CHECK(status == 128 + SIGKILL);
        CHECK(named == 2);
    }
    ::munmap(memory, 4096);
}
