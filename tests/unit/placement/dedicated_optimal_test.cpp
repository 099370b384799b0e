// herring: tests of placement/dedicated.hpp: its times and shares against BytePS's formula, and against what networks carry.
// SPDX-License-Identifier: Apache-2.0
#include "herring/placement/dedicated.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

using herring::role;
using herring::topology;
using herring::placement::optimal;

namespace {

/// n nodes of one worker, then k servers; rates of all, or none.
constexpr topology cluster(int n, int k, std::vector<int> const& rates = {}) {
    std::vector<int> ids;
    std::vector<role> roles;
    for (int i = 0; i < n + k; ++i) {
        ids.push_back(i);
        roles.push_back(i < n ? role::worker : role::server);
    }
    return topology(ids, roles, rates);
}

/// The time of the busiest network, in M / rate, with the shares that are assigned: what a node sends, which is what it receives.
double busiest(topology const& map, herring::roles const& all) {
    double const sum = static_cast<double>(all.all_shares()), n = all.contributor_count();
    double most = 0;
    for (int node = 0; node < map.nodes(); ++node) {
        herring::server_id const server = all.server(node);
        double const share = server.value < 0 ? 0 : static_cast<double>(all.share(server)) / sum;
        double const rate = map.rate(node) == 0 ? 1 : map.rate(node);
        bool const contributes = all.contributor(node).value >= 0;
        most = std::max(most, (contributes ? 1 - share + (n - 1) * share : n * share) / rate);
    }
    return most;
}

} // namespace

TEST_CASE("optimal: with equal rates the time is BytePS's, from colocated's to M/B") {
    for (int n = 3; n <= 32; ++n)
        for (int k = 0; k <= n + 2; ++k) {
            CAPTURE(n);
            CAPTURE(k);
            double const due = k >= n ? 1.0 : 2.0 * n * (n - 1) / (n * n + k * n - 2 * k);
            CHECK(optimal::solve(cluster(n, k)).time == doctest::Approx(due).epsilon(1e-12));
            CHECK(busiest(cluster(n, k), optimal::assign(cluster(n, k))) ==
                  doctest::Approx(due).epsilon(1e-4));
        }
    static_assert(optimal::solve(cluster(4, 2)).time > 1.2 - 1e-12 &&
                  optimal::solve(cluster(4, 2)).time < 1.2 + 1e-12);
    CHECK(optimal::solve(cluster(8, 0)).time == doctest::Approx(2.0 * 7 / 8));
}

TEST_CASE("optimal: where nobody works, nobody has a share") {
    auto const best = optimal::solve(cluster(0, 2));
    CHECK(best.time == 0);
    CHECK(best.workers.empty());
    // Rates are no shares.
    herring::roles const assigned = optimal::assign(cluster(0, 2, {10'000, 1'000'000'000}));
    CHECK(assigned.servers == std::vector<int>{0, 1});
    CHECK(assigned.shares.empty());
}

TEST_CASE("optimal: shares are BytePS's") {
    for (int n = 3; n <= 16; ++n)
        for (int k = 1; k < n; ++k) {
            auto const best = optimal::solve(cluster(n, k));
            double const all = n * n + k * n - 2 * k;
            for (double const share : best.servers) CHECK(share == doctest::Approx(2.0 * (n - 1) / all));
            for (double const share : best.workers) CHECK(share == doctest::Approx((n - k) / all));
        }
}

TEST_CASE("optimal: workers serve where their networks have something left, and not otherwise") {
    CHECK(optimal::assign(cluster(4, 2)).server_count() == 6);
    CHECK(optimal::assign(cluster(4, 4)).server_count() == 4);
    CHECK(optimal::assign(cluster(4, 6)).server_count() == 6);
    CHECK(optimal::assign(cluster(4, 0)).server_count() == 4);
    CHECK(optimal::assign(cluster(2, 1)).server_count() == 3);
    CHECK(optimal::assign(cluster(1, 3)).server_count() == 4);
    CHECK(optimal::assign(cluster(4, 64)).all_shares() == doctest::Approx(1 << 20).epsilon(1e-3));
    for (int n = 1; n <= 5; ++n)
        for (int k = 0; k <= 64; ++k)
            CHECK(herring::detail::defect_of(optimal::assign(cluster(n, k)), cluster(n, k), true).what ==
                  nullptr);
}

TEST_CASE("optimal: with declared rates no network is busier than the time, and no shares do better") {
    for (unsigned seed = 1; seed <= 300; ++seed) {
        unsigned state = seed * 2654435761u;
        auto const pick = [&](int below) {
            state = state * 1664525u + 1013904223u;
            return static_cast<int>((state >> 16) % static_cast<unsigned>(below));
        };
        int const n = 3 + pick(5), k = pick(5);
        std::vector<int> rates;
        for (int i = 0; i < n + k; ++i) rates.push_back(1'000 + 1'000 * pick(25));
        topology const map = cluster(n, k, rates);
        herring::roles const best = optimal::assign(map);
        double const time = optimal::solve(map).time;
        CAPTURE(seed);
        CHECK(busiest(map, best) <= time * 1.001);
        if (best.shares.empty()) continue;
        // To move some of one server's share to another one makes the busiest network no less busy.
        for (std::size_t from = 0; from < best.shares.size(); ++from)
            for (std::size_t to = 0; to < best.shares.size(); ++to) {
                herring::roles other = best;
                int const moved = best.shares[from] / 4;
                other.shares[from] -= moved;
                other.shares[to] += moved;
                CHECK(busiest(map, other) >= time * 0.999);
            }
    }
}

TEST_CASE("optimal: a slow server gets little, and a rate that is missing is an error that names the rank") {
    herring::roles const all =
        optimal::assign(cluster(4, 2, {10'000, 10'000, 10'000, 10'000, 10'000, 1'000}));
    CHECK(all.share({4}) == doctest::Approx(10.0 * static_cast<double>(all.share({5}))).epsilon(1e-3));
    std::string what;
    try {
        (void)optimal::assign(cluster(2, 1, {10'000, 0, 10'000}));
    } catch (herring::error const& why) {
        what = why.what();
    }
    CHECK(what.find("that of rank 1 does not") != std::string::npos);
    CHECK(what.find("HERRING_RATE") != std::string::npos);
}

TEST_CASE("optimal: the ranks of a node share its network, whose rate is the highest that they declare") {
    topology const map({0, 0, 1, 1, 2},
                       {role::worker, role::worker, role::worker, role::worker, role::server},
                       {10, 0, 0, 20, 5});
    CHECK(map.rate(0) == 10);
    CHECK(map.rate(1) == 20);
    CHECK(map.rate(2) == 5);
    CHECK(optimal::solve(map).time == doctest::Approx(0.1)); // node 0 sends all of its gradients
}
