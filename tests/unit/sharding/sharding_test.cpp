// herring: tests of sharding/sharding.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <vector>

namespace {
struct all_on_the_last {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "all_on_the_last";
    template <class Assign>
    static constexpr void shard(herring::bucket_view const& bucket, herring::roles const& nodes,
                                Assign&& assign) {
        if (bucket.elements > 0)
            assign(std::size_t{0}, bucket.elements, herring::server_id{nodes.server_count() - 1});
    }
};
struct returns_a_list {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "returns_a_list";
    static std::vector<std::size_t> shard(herring::bucket_view const&, herring::roles const&) { return {}; }
};
struct takes_a_number {
    using axis = herring::axes::sharding;
    static constexpr char const* name = "takes_a_number";
    template <class Assign> static void shard(herring::bucket_view const&, int, Assign&&) {}
};
struct nameless {
    using axis = herring::axes::sharding;
    template <class Assign> static void shard(herring::bucket_view const&, herring::roles const&, Assign&&) {}
};
} // namespace

TEST_CASE("sharding: the concept") {
    CHECK(herring::sharding_policy<all_on_the_last>);
    CHECK_FALSE(herring::sharding_policy<returns_a_list>);
    CHECK_FALSE(herring::sharding_policy<takes_a_number>);
    CHECK_FALSE(herring::sharding_policy<nameless>);
}

using herring::bucket_view;
using herring::roles;
using herring::server_id;
using herring::sharding::balanced;

namespace {
struct range {
    std::size_t offset, elements;
    int server;
    friend bool operator==(range const&, range const&) = default;
};
std::vector<range> cut(bucket_view const& bucket, roles const& nodes) {
    std::vector<range> made;
    balanced::shard(bucket, nodes, [&](std::size_t offset, std::size_t elements, server_id server) {
        made.push_back({offset, elements, server.value});
    });
    return made;
}
std::vector<range> cut(bucket_view const& bucket, int servers) { return cut(bucket, roles::both(servers)); }
} // namespace

TEST_CASE("balanced: whole lines, the first servers hold one more, the last range holds the rest") {
    CHECK(cut({.elements = 7 * 16, .line_elements = 16, .tensors = {}}, 3) ==
          std::vector<range>{{0, 48, 0}, {48, 32, 1}, {80, 32, 2}});
    CHECK(cut({.elements = 100, .line_elements = 16, .tensors = {}}, 3) ==
          std::vector<range>{{0, 48, 0}, {48, 32, 1}, {80, 20, 2}});
    CHECK(cut({.elements = 5, .line_elements = 16, .tensors = {}}, 4) == std::vector<range>{{0, 5, 0}});
    CHECK(cut({.elements = 17, .line_elements = 16, .tensors = {}}, 4) ==
          std::vector<range>{{0, 16, 0}, {16, 1, 1}});
    CHECK(cut({.elements = 0, .line_elements = 16, .tensors = {}}, 4).empty());
    CHECK(cut({.elements = 6, .line_elements = 1, .tensors = {}}, 1) == std::vector<range>{{0, 6, 0}});
    CHECK(balanced::name == std::string_view("balanced"));
    CHECK(std::is_empty_v<balanced>);
}

TEST_CASE("balanced: no two servers differ by more than a cache line") {
    for (int servers : {1, 2, 3, 5, 8, 13, 64})
        for (std::size_t const line_elements : {1u, 8u, 16u, 32u})
            for (std::size_t elements = 0; elements < 5000; elements += 1 + elements / 9) {
                std::vector<std::size_t> load(static_cast<std::size_t>(servers), 0);
                for (range const& r :
                     cut({.elements = elements, .line_elements = line_elements, .tensors = {}}, servers))
                    load[static_cast<std::size_t>(r.server)] += r.elements;
                auto const [least, most] = std::minmax_element(load.begin(), load.end());
                // The last range may be cut short within its line_elements.
                CHECK(*most - *least < 2 * line_elements);
                // max/mean < 1 + S/B, in lines
                double const lines = static_cast<double>((elements + line_elements - 1) / line_elements);
                if (elements > 0)
                    CHECK(static_cast<double>((*most + line_elements - 1) / line_elements) * servers <
                          lines + servers);
            }
}

TEST_CASE("balanced: a server has its share, within a line_elements, in buckets of any size") {
    roles nodes = roles::both(3);
    nodes.shares = {1, 4, 3};
    CHECK(cut({.elements = 8 * 16, .line_elements = 16, .tensors = {}}, nodes) ==
          std::vector<range>{{0, 16, 0}, {16, 64, 1}, {80, 48, 2}});
    CHECK(cut({.elements = 16, .line_elements = 16, .tensors = {}}, nodes) == std::vector<range>{{0, 16, 0}});
    nodes.shares = {7, 1, 1 << 23};
    std::size_t const huge = std::size_t{1} << 43; // no product overflows
    for (std::size_t const elements : {std::size_t{5}, std::size_t{1000}, std::size_t{123'457}, huge}) {
        std::vector<std::size_t> load(3, 0);
        for (range const& r : cut({.elements = elements, .line_elements = 16, .tensors = {}}, nodes))
            load[static_cast<std::size_t>(r.server)] += r.elements;
        CHECK(load[0] + load[1] + load[2] == elements);
        for (std::size_t s = 0; s < 3; ++s) {
            double const due =
                static_cast<double>(elements) * nodes.shares[s] / static_cast<double>(nodes.all_shares());
            CHECK(static_cast<double>(load[s]) > due - 2 * 16);
            CHECK(static_cast<double>(load[s]) < due + 2 * 16);
        }
    }
    nodes.shares = {5, 5, 5}; // as without shares
    CHECK(cut({.elements = 100, .line_elements = 16, .tensors = {}}, nodes) ==
          cut({.elements = 100, .line_elements = 16, .tensors = {}}, 3));
}

TEST_CASE("balanced: at compile time") {
    constexpr int servers = [] {
        int count = 0;
        balanced::shard({.elements = 1000, .line_elements = 16, .tensors = {}}, roles::both(5),
                        [&](std::size_t, std::size_t, server_id) { ++count; });
        return count;
    }();
    static_assert(servers == 5);
}

using herring::bucket_tensor;
using herring::sharding::whole_tensor;

TEST_CASE("whole_tensor: tensor i, whole, to server i mod S; empty ones to nobody") {
    std::vector<bucket_tensor> const tensors{{4, 0, 32}, {5, 32, 0}, {6, 32, 16}, {7, 48, 160}};
    std::vector<std::size_t> seen;
    whole_tensor::shard({.elements = 208, .line_elements = 16, .tensors = tensors}, herring::roles::both(3),
                        [&](std::size_t offset, std::size_t elements, herring::server_id server) {
                            seen.insert(seen.end(), {offset, elements, server.place()});
                        });
    CHECK(seen == std::vector<std::size_t>{0, 32, 1, 32, 16, 0, 48, 160, 1});
    CHECK(whole_tensor::name == std::string_view("whole_tensor"));
    CHECK(std::is_empty_v<whole_tensor>);
}
