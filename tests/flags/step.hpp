// flags: one reduction, and one error, as a translation unit compiles them with its own flags. The functions' names begin
// with PART.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/join.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include "flags/parts.hpp"

#include <cstring>

namespace flags {

template <class Reducer> std::uint64_t reduced(herring::world& world) {
    Reducer reduce(world, {{"odd", 1'003}, {"even", 64'000}});
    std::uint64_t digest = 14695981039346656037u;
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        float at = 1.0f + static_cast<float>(world.rank());
        for (auto& x : reduce.tensor(i)) x = static_cast<std::remove_reference_t<decltype(x)>>(at *= 0.999f);
        reduce.ready(i);
    }
    reduce.wait();
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (std::byte const b : std::as_bytes(reduce.tensor(i)))
            digest = (digest ^ static_cast<std::uint64_t>(b)) * 1099511628211u;
    return digest;
}

} // namespace flags

std::uint64_t PART(_step)() {
    using namespace herring;
    world all = join();
    return flags::reduced<reducer<float, transport::tcp, intra_node::shared_memory>>(all) * 3 +
           flags::reduced<reducer<bfloat16, transport::tcp, update::sum>>(all);
}

void PART(_throw)() {
    herring::world alone;
    herring::reducer<float, herring::transport::tcp> reduce(alone, {{"only", 3}});
    (void)reduce.tensor(1);
}
