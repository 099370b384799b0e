// herring: prints a hash of the bits that two processes reduce. Compiled with headers alone and with set-up code apart,
// which must print the same; -DSECOND is the program's second file, so that what is defined twice is seen.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

std::uint64_t of_doubles(herring::world& world);

template <class Reducer> std::uint64_t bits_of(herring::world& world) {
    Reducer reduce(world, herring::layout{{"weights", 100'000}, {"bias", 7}});
    std::uint64_t hash = 0xcbf29ce484222325;
    for (int step = 0; step < 3; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            double next = 0.1 + world.rank();
            for (auto& x : reduce.tensor(i)) {
                x = static_cast<typename Reducer::element_type>(next);
                next = 3.99 * next * (1 - next / 8);
            }
            reduce.ready(i);
        }
        reduce.wait();
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (auto const x : reduce.tensor(i)) {
                std::uint64_t bits = 0;
                std::memcpy(&bits, &x, sizeof x);
                hash = (hash ^ bits) * 0x100000001b3;
            }
    }
    return hash;
}

#ifdef SECOND
std::uint64_t of_doubles(herring::world& world) {
    return bits_of<herring::reducer<double, herring::transport::tcp, herring::intra_node::shared_memory>>(
        world);
}
#else
int main() {
    herring::launch_options nodes; // two nodes of one rank, then one of two: over TCP, and in shared memory
    for (auto const& names : {std::vector<std::string>{"a", "b"}, {}}) {
        nodes.nodes = names;
        int const status = herring::launch(
            2,
            [](herring::world& world) {
                using floats =
                    herring::reducer<float, herring::transport::tcp, herring::intra_node::shared_memory>;
                std::uint64_t const one = bits_of<floats>(world), other = of_doubles(world);
                if (world.rank() == 0)
                    std::printf("%016llx %016llx\n", static_cast<unsigned long long>(one),
                                static_cast<unsigned long long>(other));
            },
            nodes);
        if (status != 0) return status;
    }
    herring::world alone = herring::join();
    std::printf("%d\n", alone.size());
}
#endif
