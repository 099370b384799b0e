// herring: messages and bytes that an all-reduce of each size sends, as one JSON line a size; compiles with older headers too.
// SPDX-License-Identifier: Apache-2.0
//
//   counters --ranks 4 --sizes 8,1024 [--memory in_place|callers] [--out FILE]     rank by rank over TCP
//
// What is counted is one call behind two others: what only the first call of a reducer sends does not count.
#include "harness.hpp"

#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <cstring>

namespace {

using reducer = herring::reducer<float, herring::transport::tcp, herring::update::average>;

double counted(std::byte const* from, std::size_t i) {
    double x;
    std::memcpy(&x, from + i * sizeof x, sizeof x);
    return x;
}

/// Lets rank 0 append what all ranks together sent in the third of three calls.
template <class Call>
void count(herring::world& world, bench::options const& opt, std::size_t bytes, reducer& reduce, Call call) {
    call();
    call();
    world.barrier();
    auto const before = reduce.counters();
    call();
    world.barrier();
    auto const after = reduce.counters();
    double const mine[] = {static_cast<double>(after.messages_sent - before.messages_sent),
                           static_cast<double>(after.bytes_sent - before.bytes_sent),
                           static_cast<double>(after.operations - before.operations)};
    double all[] = {0, 0, 0};
    for (auto const& one : world.all_gather(std::as_bytes(std::span(mine))))
        for (std::size_t i = 0; i < 3; ++i) all[i] += counted(one.data(), i);
    if (world.rank() != 0) return;
    if (std::FILE* out = std::fopen(opt.text("out", "/dev/stdout").c_str(), "a")) {
        std::fprintf(
            out,
            "{\"ranks\":%d,\"memory\":\"%s\",\"bytes\":%zu,\"messages_sent\":%.0f,\"bytes_sent\":%.0f,"
            "\"operations\":%.0f}\n",
            world.size(), opt.text("memory", "in_place").c_str(), bytes, all[0], all[1], all[2]);
        std::fclose(out);
    }
}

int run(herring::world& world, bench::options const& opt) {
    for (auto bytes : opt.sizes()) {
        std::size_t const n = bytes / sizeof(float);
        if (opt.text("memory", "in_place") == "in_place") {
            reducer reduce{world, herring::layout{{"tensor", n}}};
            count(world, opt, bytes, reduce, [&] {
                reduce.ready(0);
                reduce.wait();
            });
        } else {
            reducer reduce{world};
            std::vector<float> memory(n);
            count(world, opt, bytes, reduce, [&] { reduce.all_reduce(std::span<float>(memory)); });
        }
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    return herring::launch(static_cast<int>(opt.number("ranks", 4)),
                           [&](herring::world& world) { return run(world, opt); });
}
