// own_policy: a sharding policy of your own: a node with a faster link serves more.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>
#include <herring/intra_node/shared_memory.hpp>
#include <herring/launch.hpp>
#include <herring/transport/tcp.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

namespace mine {

/// Cuts every bucket in proportion to the speed of each node's link.
///
/// Shape:  bucket of B elements, speeds s0, s1, ... -> B * s0 / (s0 + s1 + ...) elements for server 0, and so
///         on, cut at multiples of a cache line. Nodes beyond the list take its speeds from the start again.
/// Why:    sharding::balanced gives every server the same; where links differ, the slowest sets the pace.
template <std::size_t... Speeds> struct in_proportion {
    static_assert(sizeof...(Speeds) > 0 && ((Speeds > 0) && ...), "give each node a speed above 0");

    using axis = herring::axes::sharding;                // what it is for
    static constexpr char const* name = "in_proportion"; // what messages call it

    /// Calls assign(offset, elements, server) for ranges in ascending order that cover the bucket once.
    template <class Assign>
    static constexpr void shard(herring::bucket_view const& bucket, herring::roles const& nodes,
                                Assign&& assign) {
        int const servers = nodes.server_count();
        std::size_t all = 0;
        for (int server = 0; server < servers; ++server) all += speed(server);
        std::size_t at = 0, so_far = 0;
        for (int server = 0; server < servers; ++server) {
            so_far += speed(server);
            std::size_t const exact = bucket.elements / all * so_far + bucket.elements % all * so_far / all;
            std::size_t const end =
                so_far == all ? bucket.elements : exact / bucket.line_elements * bucket.line_elements;
            if (end > at) assign(at, end - at, herring::server_id{server});
            at = end;
        }
    }

  private:
    static constexpr std::size_t speed(int server) noexcept {
        constexpr std::size_t speeds[] = {Speeds...};
        return speeds[static_cast<std::size_t>(server) % sizeof...(Speeds)];
    }
};

// A slip is one sentence here, not a page of templates at the reducer.
static_assert(herring::checked_policy<in_proportion<10, 25>>);

} // namespace mine

using herring::intra_node::shared_memory;
using herring::transport::tcp;

// Averages one tensor and tells how many elements each node serves. Returns how many elements are wrong.
template <class Reducer> std::size_t try_out(herring::world& world, char const* name) {
    Reducer reduce(world, {{"weight", 1'000'000}});
    for (float& x : reduce.tensor(0)) x = static_cast<float>(world.rank());
    reduce.ready(0);
    reduce.wait();

    std::size_t wrong = 0;
    for (float const x : reduce.tensor(0)) wrong += x != 1.5f; // (0 + 1 + 2 + 3) / 4
    std::vector<std::size_t> served(static_cast<std::size_t>(world.nodes()));
    for (herring::shard const& part : reduce.plan().shards)
        if (part.server.value >= 0) served[part.server.place()] += part.elements;
    if (world.rank() == 0) {
        std::printf("%-24s", name);
        for (std::size_t node = 0; node < served.size(); ++node)
            std::printf("   node %zu serves %7zu", node, served[node]);
        std::printf("   wrong elements: %zu\n", wrong);
    }
    return wrong;
}

int compare(herring::world& world) {
    using balanced = herring::reducer<float, tcp, shared_memory>;
    using proportional = herring::reducer<float, tcp, shared_memory, mine::in_proportion<10, 25>>;
    std::size_t const wrong =
        try_out<balanced>(world, "balanced") + try_out<proportional>(world, "in_proportion<10, 25>");
    return wrong == 0 ? 0 : 1;
}

int main() { return herring::launch(4, compare, {.nodes = {"slow", "slow", "fast", "fast"}}); }
