// herring: tests of plan/plan.hpp by example; tests/plan has all shapes, and the costs.
// SPDX-License-Identifier: Apache-2.0
#include "herring/plan/plan.hpp"

#include "herring/fusion/fusion.hpp"
#include "herring/sharding/sharding.hpp"

#include "doctest/doctest.h"

#include <functional>
#include <string>
#include <vector>

using namespace herring;

namespace {
constexpr exchange_tuning sizes{.chunk_bytes = 4096,
                                .window_bytes = 8192,
                                .one_hop_bytes = 256,
                                .one_hop_bytes_two_nodes = 1024,
                                .local_chunk_bytes = 4096,
                                .mailbox_bytes = 128};
plan of(std::vector<std::size_t> const& elements, topology const& map) {
    return make_plan<fusion::per_tensor, sharding::balanced>(elements, map, 4, 4, sizes);
}

/// What make_plan throws; "" if nothing.
template <class Fusion, class Sharding>
std::string refusal(std::vector<std::size_t> const& elements, topology const& map,
                    exchange_tuning const& tuning = sizes, std::size_t element_bytes = 4) {
    try {
        (void)make_plan<Fusion, Sharding>(elements, map, element_bytes, 4, tuning);
    } catch (error const& why) {
        CHECK(why.code() == errc::bad_argument);
        return why.what();
    }
    return "";
}

using assign = std::function<void(std::size_t, std::size_t, int)>;
/// Assigns what a test says, `noexcept` as a user's policy may be.
struct told {
    using axis = axes::sharding;
    static constexpr char const* name = "told";
    static inline std::function<void(bucket_view const&, int, assign const&)> ranges;
    template <class Assign>
    static void shard(bucket_view const& bucket, roles const& nodes, Assign const& to) noexcept {
        ranges(bucket, nodes.server_count(), [&](std::size_t offset, std::size_t elements, int server) {
            to(offset, elements, server_id{server});
        });
    }
};
static_assert(sharding_policy<told>);

std::string refusal_of(std::function<void(std::size_t, int, assign const&)> ranges) {
    told::ranges = [=](bucket_view const& b, int servers, assign const& to) {
        ranges(b.elements, servers, to);
    };
    return refusal<fusion::per_tensor, told>({32, 1600}, topology::uniform(3, 1));
}
bool says(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

/// Closes every third time that it is asked.
struct counting {
    using axis = axes::fusion;
    static constexpr char const* name = "counting";
    static inline int asked = 0;
    static bool closes(fusion_state const&) noexcept { return ++asked % 3 == 0; }
};

/// One server, all other nodes contribute; −2: no server.
template <int Server> struct fixed_roles {
    using axis = axes::placement;
    static constexpr char const* name = "fixed_roles";
    static constexpr placement_facts facts{.dedicated_servers = true};
    static roles assign(topology const& map) {
        roles all;
        for (int n = 0; n < map.nodes(); ++n)
            if (n != Server) all.contributors.push_back(n);
        if (Server != -2) all.servers.push_back(Server);
        return all;
    }
};
struct says_both : fixed_roles<1> {
    static constexpr placement_facts facts{};
};
} // namespace

TEST_CASE(
    "plan: a sharding policy that does not give every element one server is refused, with bucket and range") {
    CHECK(refusal_of([](std::size_t n, int, assign const& to) { to(0, 800, 0), to(800, n - 800, 2); }) == "");
    CHECK(refusal_of([](std::size_t n, int, assign const& to) { to(0, 0, 0), to(0, n, 1), to(n, 0, 2); }) ==
          "");

    std::string const absent = refusal_of(
        [](std::size_t n, int servers, assign const& to) { to(0, 800, 0), to(800, n - 800, servers); });
    CHECK(says(absent,
               "sharding policy 'told', bucket 1 of 1600 elements: assign(800, 800, 3) goes to a server that "
               "does not exist"));
    CHECK(says(absent, "name a server of 0 to 2"));
    CHECK(says(refusal_of([](std::size_t n, int, assign const& to) { to(0, n, -1); }),
               "assign(0, 1600, -1) goes"));

    std::string const gap =
        refusal_of([](std::size_t n, int, assign const& to) { to(0, 320, 0), to(640, n - 640, 1); });
    CHECK(says(gap, "assign(640, 960, 1) leaves out the elements before it"));
    std::string const overlap =
        refusal_of([](std::size_t n, int, assign const& to) { to(0, 800, 0), to(640, n - 640, 1); });
    CHECK(says(overlap, "assign(640, 960, 1) overlaps, or is out of order"));
    CHECK(says(refusal_of([](std::size_t n, int, assign const& to) { to(800, n - 800, 0), to(0, 800, 1); }),
               "assign(800, 800, 0) leaves out"));
    std::string const off =
        refusal_of([](std::size_t n, int, assign const& to) { to(0, 801, 0), to(801, n - 801, 1); });
    CHECK(says(off, "assign(801, 799, 1) begins within a cache line"));
    CHECK(says(off, "begin at multiples of 16"));
    CHECK(says(refusal_of([](std::size_t n, int, assign const& to) { to(0, n + 16, 0); }),
               "assign(0, 1616, 0) ends behind the bucket"));
    CHECK(says(refusal_of([](std::size_t, int, assign const& to) { to(0, ~std::size_t{0}, 0); }),
               "ends behind"));
    CHECK(says(refusal_of([](std::size_t n, int, assign const& to) { to(0, n - 16, 0); }),
               "leaves elements 1584 to 1600 without a server"));
    CHECK(says(refusal_of([](std::size_t, int, assign const&) {}), "leaves elements 0 to 1600 without"));
}

TEST_CASE("plan: a fusion policy that answers a question in two ways is refused") {
    std::string const text = refusal<counting, sharding::balanced>({32, 1600, 5}, topology::uniform(3, 1));
    CHECK(says(text, "make_plan: bad argument: fusion policy 'counting', bucket 0"));
    CHECK(says(text, "yes and no to the same question"));
}

TEST_CASE("plan: a placement policy that assigns impossible roles is refused, with the policy and the node") {
    auto const refusal_by = [](auto placement, topology const& map) -> std::string {
        try {
            (void)make_plan<fusion::per_tensor, sharding::balanced, decltype(placement)>(
                std::vector<std::size_t>{1600}, map, 4, 4, sizes);
        } catch (error const& why) {
            CHECK(why.code() == errc::bad_argument);
            return why.what();
        }
        return "";
    };
    std::string const absent = refusal_by(fixed_roles<3>{}, topology::uniform(3, 2));
    CHECK(says(absent,
               "make_plan: bad argument: placement policy 'fixed_roles', topology of nodes 0 to 2: server "
               "node 3 does not exist"));
    CHECK(refusal_by(fixed_roles<0>{}, topology::uniform(3, 2)) == "");
    CHECK(says(refusal_by(fixed_roles<-2>{}, topology::uniform(3, 2)), "names no server;"));
    CHECK(says(refusal_by(says_both{}, topology::uniform(3, 2)), "contributor node 0 has one role only"));
}

TEST_CASE(
    "plan: with dedicated servers, buckets are divided among the servers, and contributors set the width") {
    topology const map({0, 0, 1, 2}); // node 0, with two ranks, serves only
    plan const p = make_plan<fusion::per_tensor, sharding::balanced, fixed_roles<0>>(
        std::vector<std::size_t>{16'000}, map, 2, 4, sizes);
    REQUIRE(p.shards.size() == 1);
    CHECK(p.shards[0].server == server_id{0});
    CHECK(p.roles.node_of(p.shards[0].server) == 0);
    CHECK(p.roles.contributors == std::vector<int>{1, 2});
    CHECK(p.contributing_ranks == 2);
    CHECK(p.parts.element_bytes == 2); // no ranks of a contributor are combined first
    plan const both =
        make_plan<fusion::per_tensor, sharding::balanced>(std::vector<std::size_t>{16'000}, map, 2, 4, sizes);
    CHECK(both.shards.size() == 3);
    CHECK(both.contributing_ranks == 4);
    CHECK(both.parts.element_bytes == 4);
    CHECK(both.digest != p.digest);
}

TEST_CASE("plan: the default tuning is one that works; what does not is refused") {
    for (topology const& map : {topology::uniform(1, 1), topology::uniform(1, 4), topology::uniform(3, 2)}) {
        plan const p = make_plan<fusion::whole_model, sharding::balanced>(
            std::vector<std::size_t>{3, 100'000}, map, 4, 4, exchange_tuning{});
        CHECK(p.buckets.size() == 1);
        CHECK(p.buckets[0].chunks >= 7);
        CHECK(p.window() == 4);
    }
    auto const with = [](topology const& map, exchange_tuning const& tuning) {
        return refusal<fusion::per_tensor, sharding::balanced>({1000}, map, tuning);
    };
    CHECK(says(with(topology::uniform(2, 1), {.chunk_bytes = 0}), "chunk_bytes of the tuning is 0"));
    CHECK(says(with(topology::uniform(2, 1), {.chunk_bytes = 63}), "is 63"));
    CHECK(says(with(topology::uniform(1, 2), {.local_chunk_bytes = 0}),
               "local_chunk_bytes of the tuning is 0"));
    CHECK(with(topology::uniform(1, 2), {.chunk_bytes = 0}) == "");
    auto const of_bytes = [](std::size_t bytes) {
        return refusal<fusion::per_tensor, sharding::balanced>({1000}, topology::uniform(2, 1), sizes, bytes);
    };
    CHECK(says(of_bytes(0), "elements of 0 bytes"));
    CHECK(says(of_bytes(257), "elements of 257 bytes"));
    for (std::size_t const huge : {std::size_t{1} << 41, ~std::size_t{0}, ~std::size_t{0} - 63})
        CHECK(says(refusal<fusion::per_tensor, sharding::balanced>({1000, huge}, topology::uniform(2, 1)),
                   "more than 8 TiB"));
}

TEST_CASE("plan: the route of a bucket follows from its size and the world") {
    plan const alone = of({16, 10000}, topology::uniform(1, 1));
    CHECK(alone.buckets[0].path == route::local);
    plan const two = of({16, 10000}, topology::uniform(1, 2)); // for two, in place costs no turn more
    CHECK(two.buckets[0].path == route::local);
    plan const four = of({16, 10000}, topology::uniform(1, 4));
    CHECK(four.buckets[0].path == route::mailbox);
    CHECK(four.buckets[1].path == route::local);
    plan const pair = of({64, 256, 257}, topology::uniform(2, 1));
    CHECK(pair.buckets[1].path == route::one_hop); // up to one_hop_bytes_two_nodes
    CHECK(pair.buckets[2].path == route::two_hop);
    plan const net = of({0, 64, 65}, topology::uniform(3, 1));
    CHECK(net.buckets[0].path == route::one_hop);
    CHECK(net.buckets[1].path == route::one_hop); // up to one_hop_bytes
    CHECK(net.buckets[2].path == route::two_hop);
    plan const three = of({32, 33}, topology::uniform(1, 3));
    CHECK(three.buckets[0].path == route::mailbox); // up to mailbox_bytes
    CHECK(three.buckets[1].path == route::local);
}

TEST_CASE("plan: tensors lie on cache lines, empty ones take no room") {
    plan const p = make_plan<fusion::whole_model, sharding::balanced>(std::vector<std::size_t>{1, 0, 17, 3},
                                                                      topology::uniform(2, 1), 4, 4, sizes);
    CHECK(p.tensors[0].offset == 0);
    CHECK(p.tensors[1].offset == 16);
    CHECK(p.tensors[2].offset == 16);
    CHECK(p.tensors[3].offset == 48);
    CHECK(p.elements == 64);
    CHECK(p.buckets.size() == 1);
    CHECK(p.tensor_bytes() == 256);
}

TEST_CASE("plan: parts of a node are wide only where ranks share one") {
    topology const shared = topology::uniform(2, 2);
    std::vector<std::size_t> const one{1000};
    CHECK(make_plan<fusion::per_tensor, sharding::balanced>(one, shared, 2, 4, sizes).parts.element_bytes ==
          4);
    CHECK(make_plan<fusion::per_tensor, sharding::balanced>(one, shared.flat(), 2, 4, sizes)
              .parts.element_bytes == 2);
    topology const mixed({0, 1, 1}); // the same on both sides of a wire
    CHECK(make_plan<fusion::per_tensor, sharding::balanced>(one, mixed, 2, 4, sizes).parts.element_bytes ==
          4);
}

TEST_CASE("plan: the same input gives the same plan, and the digest tells others apart") {
    topology const map({0, 1, 0, 1, 1});
    std::vector<std::size_t> const tensors{100'000, 20};
    plan const one = of(tensors, map), again = of(tensors, map);
    CHECK(one.digest == again.digest);
    REQUIRE(one.shards.size() == again.shards.size());
    for (std::size_t i = 0; i < one.shards.size(); ++i) {
        CHECK(one.shards[i].offset == again.shards[i].offset);
        CHECK(one.shards[i].server == again.shards[i].server);
        CHECK(one.shards[i].chunk_elements == again.shards[i].chunk_elements);
    }
    CHECK(one.digest != of({20, 100'000}, map).digest);
    CHECK(one.digest != of({100'000, 21}, map).digest);
    CHECK(one.digest !=
          make_plan<fusion::per_tensor, sharding::whole_tensor>(tensors, map, 4, 4, sizes).digest);
}

TEST_CASE("plan: a bucket that is too large is cut into even ones, of which the first has the tensors") {
    exchange_tuning cut = sizes;
    cut.split_bytes = 4096;
    auto const whole = [&]<class Sharding>(Sharding, std::vector<std::size_t> const& tensors, int nodes) {
        return make_plan<fusion::whole_model, Sharding>(tensors, topology::uniform(nodes, 1), 4, 4, cut);
    };
    plan const p = whole(sharding::balanced{}, {10, 2500, 0}, 2);
    REQUIRE(p.buckets.size() == 3);
    std::size_t const offsets[] = {0, 848, 1696},
                      elements[] = {848, 848, 820}; // not the padding behind the last
    for (std::size_t b = 0; b < 3; ++b) {
        CHECK(p.buckets[b].offset == offsets[b]);
        CHECK(p.buckets[b].elements == elements[b]);
        CHECK(p.buckets[b].first_tensor == (b == 0 ? 0 : 1));
        CHECK(p.buckets[b].tensors == (b == 0 ? 3 : 0));
        CHECK(p.buckets[b].shards == 2); // every server has work in each
    }
    for (placed_tensor const& t : p.tensors) CHECK(t.bucket == 0);
    CHECK(whole(sharding::balanced{}, {1024}, 2).buckets.size() == 1);
    CHECK(whole(sharding::balanced{}, {1025}, 2).buckets.size() == 2);
    CHECK(whole(sharding::balanced{}, {0, 0}, 2).buckets.size() == 1);

    std::size_t const huge = std::size_t{1} << 32;
    for (int const nodes : {1, 2}) {
        plan const large = whole(sharding::balanced{}, {huge, 1000}, nodes);
        CHECK(large.buckets.size() <= large.max_splits() + 1);
        CHECK(large.buckets.size() > large.max_splits() / 2);
    }

    // A tensor keeps its server in all parts.
    plan const by_tensor = whole(sharding::whole_tensor{}, {600, 1500, 300}, 2);
    REQUIRE(by_tensor.buckets.size() == 3);
    std::vector<int> servers;
    for (shard const& s : by_tensor.shards) servers.push_back(s.server.value);
    CHECK(servers == std::vector<int>{0, 1, 1, 1, 0});

    cut.split_bytes = 1; // no less than a cache line
    CHECK(whole(sharding::balanced{}, {40}, 2).buckets.size() == 3);
    cut.split_bytes = 0;
    CHECK(whole(sharding::balanced{}, {10, 2500, 0}, 2).buckets.size() == 1);
}

TEST_CASE("plan: a value that a constant expression can make") {
    constexpr bool fine = [] {
        std::size_t const tensors[] = {1000, 0, 24};
        plan const p = make_plan<fusion::per_tensor, sharding::balanced>(
            tensors, topology::uniform(3, 2), 4, 4,
            {.chunk_bytes = 1024, .window_bytes = 4096, .one_hop_bytes = 128, .local_chunk_bytes = 1024});
        return p.buckets.size() == 3 && p.buckets[0].path == route::two_hop && p.buckets[1].elements == 0 &&
               p.buckets[2].path == route::one_hop && p.elements == 1008 + 32 && p.buckets[0].shards == 3 &&
               p.shards[0].elements == 336 && p.shards[2].server == server_id{2} &&
               p.tensors[2].offset == 1008;
    }();
    static_assert(fine);
    static_assert(to_string(route::two_hop)[0] == 't');
}

TEST_CASE("plan: in words") {
    CHECK(to_string(of({16, 10000}, topology::uniform(1, 1))) ==
          "2 tensors, 40064 bytes; 2 buckets, 2 shards, 11 chunks; 1 nodes of at most 1 ranks; 2 by local");
    CHECK(to_string(of({10000}, topology::uniform(4, 1))).find("; 1 by two hops; staging ") !=
          std::string::npos);
    CHECK(to_string(of({10000}, topology::uniform(4, 1))).find("for all") == std::string::npos);
    std::size_t const tiny[] = {16};
    plan const p = make_plan<fusion::per_tensor, sharding::balanced>(
        tiny, topology::uniform(5, 1), 4, 4,
        {.message_ns = 1000, .latency_ns = 100, .dissemination_bytes = 64});
    std::string const text = to_string(p); // four buffers for the parts of five nodes
    CHECK(text.find("; 1 by dissemination; staging ") != std::string::npos);
    CHECK(text.find(", and 1280 for all, of which 4 x 320 for dissemination") != std::string::npos);
    std::size_t const large[] = {3 * 4096};
    plan const served = make_plan<fusion::per_tensor, sharding::balanced, fixed_roles<1>>(
        large, topology::uniform(4, 1), 4, 4, {});
    CHECK(to_string(served).find("servers combine") != std::string::npos);
    CHECK(to_string(served).find("optimizer") == std::string::npos);
    plan trained = served;
    trained.least_optimizer_bytes = 800;
    trained.most_optimizer_bytes = 960;
    CHECK(to_string(trained).find(
              "; the optimizer keeps 800 to 960 bytes on each rank that combines; staging ") !=
          std::string::npos);
    trained.most_optimizer_bytes = 800;
    CHECK(to_string(trained).find("; the optimizer keeps 800 bytes on") != std::string::npos);
}
