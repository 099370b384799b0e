// herring: what every fusion policy must do, for whoever writes one.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_FUSION_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_FUSION_SUITE_HPP

#include "conformance/suite.hpp"

#include "herring/fusion/fusion.hpp"
#include "herring/plan/plan.hpp"
#include "herring/sharding/sharding.hpp"

namespace herring::conformance {

/// Asks about many states, in two orders, and makes plans of many layouts. Empty: the policy is sound.
template <class P> findings fusion_suite() {
    static_assert(fusion_policy<P>);
    findings all;
    auto const find = [&](char const* test, std::string const& what) {
        if (all.size() < 20) all.push_back({test, -1, what});
    };
    if (P::name == nullptr || P::name[0] == 0) find("facts", "name is empty");

    // Pure: the answer depends on nothing but the question.
    std::vector<fusion_state> asked;
    std::vector<bool> answers;
    for (std::size_t const bytes : {std::size_t{0}, std::size_t{4}, std::size_t{1} << 12,
                                    std::size_t{1} << 20, std::size_t{25} << 20, std::size_t{1} << 32})
        for (std::size_t const tensors : {1u, 2u, 100u})
            for (std::size_t const next : {std::size_t{0}, std::size_t{64}, std::size_t{1} << 26})
                for (int const servers : {1, 2, 64})
                    for (int const local : {1, 8}) asked.push_back({bytes, tensors, next, servers, local});
    for (fusion_state const& s : asked) answers.push_back(P::closes(s));
    for (std::size_t i = asked.size(); i-- > 0;)
        if (P::closes(asked[i]) != answers[i]) {
            find("pure", "another answer the second time");
            break;
        }

    // Plans: every tensor in one bucket, in order, whatever the policy says.
    dice random(5);
    for (int nodes : {1, 2, 5})
        for (int i = 0; i < 40; ++i) {
            std::vector<std::size_t> sizes(random(30));
            for (std::size_t& s : sizes) s = random(5) == 0 ? 0 : random(1 << (4 + random(14)));
            topology const map = topology::uniform(nodes, 2);
            exchange_tuning const tuning{.chunk_bytes = 4096,
                                         .window_bytes = 8192,
                                         .one_hop_bytes = 1024,
                                         .one_hop_bytes_two_nodes = 0,
                                         .local_chunk_bytes = 4096};
            plan one, two;
            try {
                one = make_plan<P, sharding::balanced>(sizes, map, 4, 4, tuning);
                two = make_plan<P, sharding::balanced>(sizes, map, 4, 4, tuning);
            } catch (error const& why) {
                find("plan", why.what());
                continue;
            }
            if (one.buckets.size() != two.buckets.size()) {
                find("pure", "another plan the second time");
                continue;
            }
            std::size_t tensor = 0;
            for (std::size_t b = 0; b < one.buckets.size(); ++b) {
                if (one.buckets[b].tensors != two.buckets[b].tensors)
                    find("pure", "another plan the second time");
                if (one.buckets[b].first_tensor != tensor || one.buckets[b].tensors == 0)
                    find("plan", "tensors out of order, or an empty bucket");
                for (std::size_t k = 0; k < one.buckets[b].tensors; ++k, ++tensor)
                    if (one.tensors[tensor].bucket != b)
                        find("plan", "a tensor that thinks that it is in another bucket");
            }
            if (tensor != sizes.size()) find("plan", "a tensor in no bucket");
        }
    return all;
}

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_FUSION_SUITE_HPP
