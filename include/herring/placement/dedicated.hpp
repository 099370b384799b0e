// herring: placements with dedicated servers: `dedicated`, and `optimal`, where workers serve too.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PLACEMENT_DEDICATED_HPP
#define HERRING_PLACEMENT_DEDICATED_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/placement/placement.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace HERRING_NAMESPACE::placement {

/// The ranks whose role is `server` hold all shards. Workers push to servers and get results from them;
/// workers exchange nothing with each other.
///
/// Shape:   n nodes of workers, k servers, each a node of its own → n contributors, k servers with equal
///          shares. A machine may run several servers, one a core.
/// Cost:    M bytes out and in of a node of workers, nM/k of a server, for M bytes of gradients: M/B seconds
///          with k ≥ n networks of B, where colocated takes 2(n−1)/n · M/B. With fewer servers it pays only
///          if k > n²/(2(n−1)), more than half as many as nodes. Servers are additional machines.
/// Errors:  `bad_argument` on every rank, at construction, in a world without servers.
/// Source:  Parameter Hub, SoCC'18 (NCC: non-colocated sharded); BytePS, OSDI'20 (the two extremes of its
///          formula).
struct dedicated {
    using axis = axes::placement;
    static constexpr char const* name = "dedicated";

    static constexpr placement_facts facts{.dedicated_servers = true};

    static constexpr roles assign(topology const& map) {
        roles all;
        for (int n = 0; n < map.nodes(); ++n)
            (map.is_server_node(n) ? all.servers : all.contributors).push_back(n);
        return all;
    }
};
static_assert(placement_policy<dedicated>);

/// Every node of workers serves the share that its network has capacity for, beside the ranks whose role is
/// `server`.
///
/// For M bytes of gradients a node of workers that serves the share x sends, and receives, (1 + (n−2)·x)·M
/// bytes; a server that serves the share y, n·y·M. In time t a network of rate b allows
///     x = max(0, (t·b/M − 1)/(n−2))  and  y = t·b/(n·M).
/// The solution is the least t for which all shares add up to 1.
///
/// Reduce-scatter and all-gather do not use the servers: the owner of a range combines it, and a worker
/// sends, or gets, the (n−1)/n·M bytes that it has to with any placement.
///
/// Shape:   n nodes of workers, k servers → n contributors and n + k servers, or k servers where workers have
///          no capacity left; without servers as colocated. Rates: HERRING_RATE, `join_options::rate`,
///          `launch_options::rates`; none declared: all networks are alike.
/// Cost:    with networks of one rate B: 2n(n−1)/(n² + kn − 2k) · M/B, which is colocated's time at k = 0 and
///          M/B at k ≥ n; 4 + 2 nodes: 1.2 M/B. Shares are exact to 2^−20.
/// Errors:  `bad_argument` on every rank, at construction, where some nodes declare a rate and others do not.
/// Source:  BytePS, OSDI'20, section 4.1: the optimum with equal rates.
struct optimal {
    using axis = axes::placement;
    static constexpr char const* name = "optimal";

    static constexpr placement_facts facts{.dedicated_servers = true};

    /// The shares of the workers' nodes and of the servers, each in the order of nodes, and the time of a
    /// step's exchange.
    struct solution {
        std::vector<double> workers, servers;
        double time = 0; ///< in M / rate; where no rate is declared, in M/B
    };

    /// Cost: O(nodes · log nodes), usable in a constant expression.
    static constexpr solution solve(topology const& map) {
        solution best;
        read_rates(map, best);
        if (best.workers.empty()) return best; // the caller refuses it
        std::vector<double> const rates = best.workers;
        auto const nodes = static_cast<double>(rates.size());
        // Whatever its share, a node of workers sends all of its gradients; a single node sends nothing.
        for (double const rate : rates) best.time = std::max(best.time, nodes > 1 ? 1 / rate : 0);
        double of_servers = 0; // rate of all servers
        for (double const rate : best.servers) of_servers += rate;
        if (rates.size() > 2) best.time = std::max(best.time, filled(rates, of_servers));

        double carried = 0, given = 0; // shares of all servers in that time; of all workers
        for (double& server : best.servers) carried += server = best.time * server / nodes;
        for (double& server : best.servers) server /= std::max(carried, 1.0);
        double const rest = 1 - carried;
        for (double& worker : best.workers)
            given += worker = rates.size() > 2 ? std::max(0.0, (best.time * worker - 1) / (nodes - 2)) : 1;
        for (double& worker : best.workers) worker = rest > 0 && given > 0 ? worker * rest / given : 0;
        return best;
    }

    static constexpr roles assign(topology const& map) {
        roles all;
        if (map.servers() == map.size()) { // no workers: the plan refuses these roles
            for (int n = 0; n < map.nodes(); ++n) all.servers.push_back(n);
            return all;
        }
        solution const best = solve(map);
        bool workers_serve = map.servers() == 0;
        for (double const share : best.workers) workers_serve = workers_serve || in_units(share) > 0;
        std::size_t worker = 0, server = 0;
        for (int n = 0; n < map.nodes(); ++n) {
            bool const of_workers = !map.is_server_node(n);
            double const share = of_workers ? best.workers[worker++] : best.servers[server++];
            if (of_workers) all.contributors.push_back(n);
            if (of_workers && !workers_serve) continue;
            all.servers.push_back(n);
            all.shares.push_back(std::max(in_units(share), 1));
        }
        return all;
    }

  private:
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): shares are positive, and std::lround is not constexpr
    static constexpr int in_units(double share) noexcept { return static_cast<int>(share * (1 << 20) + 0.5); }

    /// Puts the rates of nodes where `solve` puts their shares.
    static constexpr void read_rates(topology const& map, solution& into) {
        int declared = 0;
        for (int n = 0; n < map.nodes(); ++n) declared += map.rate(n) > 0;
        if (declared > 0 && declared < map.nodes()) refuse(map);
        for (int n = 0; n < map.nodes(); ++n)
            (map.is_server_node(n) ? into.servers : into.workers).push_back(declared == 0 ? 1 : map.rate(n));
    }

    /// The time in which the networks carry all bytes, for more than two nodes of workers. Nodes start to
    /// serve in order of their rates: a node has capacity left once t·b > 1.
    static constexpr double filled(std::vector<double> rates, double of_servers) {
        auto const nodes = static_cast<double>(rates.size());
        std::sort(rates.begin(), rates.end(), [](double a, double b) { return a > b; });
        double of_workers = 0, serving = 0, time = 0;
        for (double const rate : rates) {
            if (serving > 0 && time * rate <= 1) break;
            of_workers += rate;
            ++serving;
            time = (1 + serving / (nodes - 2)) / (of_workers / (nodes - 2) + of_servers / nodes);
        }
        return time;
    }

    [[noreturn]] static void refuse(topology const& map) {
        int silent = 0;
        while (map.rate(silent) > 0) ++silent;
        throw error(
            errc::bad_argument, -1, -1, "make_plan",
            {"placement 'optimal': some nodes declare the rate of their network, and that of rank ",
             map.rank_of(silent, 0),
             " does not; set HERRING_RATE, join_options::rate or launch_options::rates on every node, "
             "or on none"});
    }
};
static_assert(placement_policy<optimal>);

} // namespace HERRING_NAMESPACE::placement

#endif // HERRING_PLACEMENT_DEDICATED_HPP
