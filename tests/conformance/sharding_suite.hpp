// herring: what every sharding policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_SHARDING_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_SHARDING_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/sharding/sharding.hpp"

namespace herring::conformance {

/// Cuts buckets of many shapes for many servers, with equal shares and others. Empty: every element has one server, the same each time.
template <class P> findings sharding_suite() {
    static_assert(sharding_policy<P>);
    findings all;
    auto const find = [&](char const* test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };
    struct range {
        std::size_t offset, elements;
        server_id server;
        bool operator==(range const&) const = default;
    };
    if (P::name == nullptr || P::name[0] == 0) find("facts", "name is empty");

    dice random(11);
    auto const check = [&](std::vector<std::size_t> const& sizes, std::size_t line_elements,
                           std::size_t first, roles const& nodes) {
        // Tensors as a plan places them: padded to a cache line, one behind the other. A buffer of all_reduce's is one
        // "tensor" of any length.
        std::vector<bucket_tensor> tensors;
        std::size_t end = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            tensors.push_back({first + i, end, sizes[i]});
            end += sizes[i];
        }
        bucket_view const bucket{end, line_elements, tensors};
        std::string const about = std::to_string(end) + " elements in " + std::to_string(sizes.size()) +
                                  " tensors, line_elements " + std::to_string(line_elements) + ", " +
                                  std::to_string(nodes.server_count()) + " servers" +
                                  (nodes.shares.empty() ? ": " : " with shares: ");
        std::vector<range> made, again;
        P::shard(bucket, nodes, [&](std::size_t offset, std::size_t elements, server_id server) {
            made.push_back({offset, elements, server});
        });
        P::shard(bucket, nodes, [&](std::size_t offset, std::size_t elements, server_id server) {
            again.push_back({offset, elements, server});
        });
        if (made != again) find("pure", about + "another answer the second time");
        std::size_t at = 0;
        for (range const& r : made) {
            if (r.offset > at)
                find("covers", about + "elements " + std::to_string(at) + " to " + std::to_string(r.offset) +
                                   " have no server");
            if (r.offset < at)
                find("covers",
                     about + "element " + std::to_string(r.offset) + " comes twice, or out of order");
            if (r.elements > end - std::min(end, r.offset))
                return find("covers", about + "a range ends behind the bucket");
            if (r.server.value < 0 || r.server.value >= nodes.server_count())
                find("servers", about + "server " + std::to_string(r.server.value));
            if (r.elements > 0 && r.offset % line_elements != 0)
                find("line_elements",
                     about + "a cut at " + std::to_string(r.offset) + ", within a cache line");
            at = r.offset + r.elements;
        }
        if (at != end) find("covers", about + "elements from " + std::to_string(at) + " on have no server");
    };
    std::vector<roles> worlds;
    for (int const servers : {1, 2, 3, 4, 5, 7, 8, 16, 31, 64}) {
        worlds.push_back(roles::both(servers));
        if (servers % 2 == 0) continue;
        for (int s = 0; s < servers; ++s) worlds.back().shares.push_back(1 + static_cast<int>(random(9)));
    }
    for (roles const& servers : worlds)
        for (std::size_t const line_elements : {1u, 8u, 16u, 32u}) {
            check({}, line_elements, 0, servers);
            check({0}, line_elements, 0, servers);
            check({0, 0, 0}, line_elements, 3, servers);
            for (std::size_t const whole : {1u, 2u, 7u, 15u, 16u, 17u, 100u, 1023u, 4096u, 1'000'003u})
                check({whole}, line_elements, 0, servers);
            for (int i = 0; i < 20; ++i) {
                std::vector<std::size_t> sizes(1 + random(12));
                for (std::size_t& s : sizes) s = random(4) == 0 ? 0 : random(200) * line_elements;
                check(sizes, line_elements, random(1000), servers);
            }
        }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_SHARDING_SUITE_HPP
