// herring: a program of somebody else's, as small as it can be: threads of one process average a number.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/launch.hpp>
#include <herring/transport/inproc.hpp>

#include <cstdio>

int main() {
    herring::launch_threads(2, [](herring::world& world) {
        herring::reducer<float, herring::transport::inproc, herring::update::average> reduce(world);
        float x[] = {static_cast<float>(world.rank())};
        reduce.all_reduce(x);
        if (world.rank() == 0)
            std::printf("herring %s: the average of 0 and 1 is %.1f\n", herring::version_string,
                        static_cast<double>(x[0]));
    });
}
