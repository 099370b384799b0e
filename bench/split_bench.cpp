// herring: what a split of a joined world takes, beside the join itself: both on one machine, over TCP.
// SPDX-License-Identifier: Apache-2.0
//
//   split_bench [--ranks 64] [--columns 8] [--rounds 9]     medians of rounds; of each the last rank's time, from a common start
#include "harness.hpp"

#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/world.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

/// A port that was free a moment ago.
int free_port() {
    int const socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof any;
    (void)::bind(socket, reinterpret_cast<sockaddr*>(&any), size);
    (void)::getsockname(socket, reinterpret_cast<sockaddr*>(&any), &size);
    ::close(socket);
    return ntohs(any.sin_port);
}

/// Milliseconds that `work` takes until the last rank is done with it, from a barrier of `all` on.
template <class Work> double timed(herring::world& all, Work&& work) {
    all.barrier();
    auto const start = std::chrono::steady_clock::now();
    work();
    double const mine =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    double last = 0;
    for (std::span<std::byte const> const each : all.all_gather(std::as_bytes(std::span(&mine, 1)))) {
        double theirs = 0;
        std::memcpy(&theirs, each.data(), sizeof theirs);
        last = std::max(last, theirs);
    }
    return last;
}

double median(std::vector<double> all) {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
    return all[all.size() / 2];
}

void run(herring::world& launched, int columns, int rounds) {
    std::vector<double> joins, splits, launched_splits;
    for (int round = 0; round < rounds; ++round) {
        int port = launched.rank() == 0 ? free_port() : 0;
        herring::gather_result const ports = launched.all_gather(std::as_bytes(std::span(&port, 1)));
        std::memcpy(&port, ports[0].data(), sizeof port);
        herring::join_options options;
        options.rank = launched.rank();
        options.size = launched.size();
        options.address = "127.0.0.1:" + std::to_string(port);
        herring::world joined, row;
        joins.push_back(timed(launched, [&] { joined = herring::join(options); }));
        int const colour = launched.rank() / columns;
        splits.push_back(timed(launched, [&] { row = joined.split(colour, launched.rank()); }));
        launched_splits.push_back(timed(launched, [&] { row = launched.split(colour, launched.rank()); }));
        row = herring::world();
        launched.barrier();
    }
    if (launched.rank() != 0) return;
    std::printf("%d ranks, groups of %d, ms: join %.2f, split %.2f (%.2f of the join), split of a launched "
                "world %.2f\n",
                launched.size(), columns, median(joins), median(splits), median(splits) / median(joins),
                median(launched_splits));
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    int const columns = static_cast<int>(opt.number("columns", 8)),
              rounds = static_cast<int>(opt.number("rounds", 9));
    return herring::launch(static_cast<int>(opt.number("ranks", 64)),
                           [&](herring::world& launched) { run(launched, columns, rounds); });
}
