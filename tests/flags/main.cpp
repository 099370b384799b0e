// flags: reduces by code for every machine, by code with AVX2, and between a rank of one and a rank of the other.
// SPDX-License-Identifier: Apache-2.0
#include "flags/parts.hpp"
#include "free_port.hpp"

#include <herring/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

namespace {

/// Two ranks, each a process, with these functions. Their digests must be the same.
std::uint64_t two(std::uint64_t (*first)(), std::uint64_t (*second)()) {
    ::setenv("HERRING_ADDR", ("127.0.0.1:" + std::to_string(free_port())).c_str(), 1);
    ::setenv("HERRING_SIZE", "2", 1);
    int ends[2][2];
    std::uint64_t digests[2] = {1, 2};
    for (int rank = 0; rank < 2; ++rank) {
        if (::pipe(ends[rank]) != 0) std::exit(2);
        if (::fork() != 0) continue;
        ::setenv("HERRING_RANK", rank == 0 ? "0" : "1", 1);
        try {
            std::uint64_t const digest = (rank == 0 ? first : second)();
            ::_exit(::write(ends[rank][1], &digest, sizeof digest) == sizeof digest ? 0 : 1);
        } catch (std::exception const& e) {
            std::printf("%s\n", e.what());
            std::fflush(stdout);
            ::_exit(1);
        }
    }
    for (int rank = 0; rank < 2; ++rank) {
        ::close(ends[rank][1]);
        if (::read(ends[rank][0], &digests[rank], sizeof digests[rank]) != sizeof digests[rank])
            digests[rank] += 10;
        ::close(ends[rank][0]);
        ::wait(nullptr);
    }
    return digests[0] == digests[1] ? digests[0] : 0;
}

bool caught(void (*thrower)()) {
    try {
        thrower();
    } catch (herring::error const& e) {
        return e.code() == herring::errc::bad_argument && std::strstr(e.what(), "tensor") != nullptr;
    } catch (std::exception const&) {
    }
    return false;
}

} // namespace

int main() {
    int failed = 0;
    auto const check = [&](bool holds, char const* what) {
        if (!holds) std::printf("FAILED: %s\n", what), ++failed;
    };
    std::uint64_t const plain = two(plain_step, plain_step);
    check(plain != 0, "two ranks of plain code reduce");
    check(two(fast_step, fast_step) == plain, "two ranks of AVX2 code have the bits of plain code");
    check(two(plain_step, fast_step) == plain, "a rank of plain code and one of AVX2 code agree");
    check(caught(plain_throw), "herring::error of plain code is caught");
    check(caught(fast_throw), "herring::error of AVX2 code is caught by plain code");
    return failed == 0 ? 0 : 1;
}
