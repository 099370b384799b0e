// herring: tests of step/session_base.hpp: peers, agreement, limits, and the division of a buffer.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/session_base.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/launch.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace herring;

namespace {

std::size_t no_local_bytes(std::size_t, std::size_t) noexcept { return 0; }

/// A session without links.
struct bare : detail::session_base {
    bare(world& ranks, layout tensors, bool joins_ranks)
        : session_base(ranks, std::move(tensors), joins_ranks) {
        std::vector<std::size_t> elements;
        for (std::size_t i = 0; i < tensors_.size(); ++i) elements.push_back(tensors_[i].elements);
        plan_ = make_plan<fusion::per_tensor, sharding::balanced>(elements, topology_, 4, 4,
                                                                  {.chunk_bytes = 4096});
    }
    void settle() { session_base::settle("float", {}, {}, no_local_bytes, false); }
    std::vector<int> const& peers() const { return peers_; }
    std::size_t staging() {
        make_staging(0);
        return staging_.bytes().size();
    }
    void pretend_buckets(std::size_t count) { plan_.buckets.resize(count); }
};

/// One answer a rank, ranks on the nodes of these names.
template <class Answer> std::vector<std::string> answers(std::vector<std::string> nodes, Answer const& of) {
    std::vector<std::string> all(nodes.size());
    int const ranks = static_cast<int>(nodes.size());
    CHECK(launch_threads(ranks,
                         [&](world& w) {
                             std::string& mine = all[static_cast<std::size_t>(w.rank())];
                             try {
                                 mine = of(w);
                             } catch (error const& why) {
                                 mine = std::string(to_string(why.why().what)) + " " +
                                        std::to_string(why.why().peer);
                             }
                             return 0;
                         },
                         {.nodes = std::move(nodes)}) == 0);
    return all;
}
std::string peers_of_session(world& ranks, bool joins) {
    bare session(ranks, layout{{"a", 1000}}, joins);
    session.settle();
    std::string list = std::to_string(session.local_rank()) + ":";
    for (int const peer : session.peers()) list += " " + std::to_string(peer);
    return list;
}

/// Names a server that does not exist.
struct wrong {
    using axis = axes::sharding;
    static constexpr char const* name = "wrong";
    template <class Assign>
    static constexpr void shard(bucket_view const& of, roles const& nodes, Assign const& assign) noexcept {
        assign(std::size_t{0}, of.elements, server_id{nodes.server_count()});
    }
};

} // namespace

TEST_CASE("session_base: peers are the ranks of other nodes that share chunks") {
    auto const joined = [](world& w) { return peers_of_session(w, true); };
    using texts = std::vector<std::string>;
    CHECK(answers({"a", "b", "a", "b"}, joined) == texts{"0: 1", "0: 0", "1: 3", "1: 2"});
    CHECK(answers({"a", "a", "b"}, joined) == texts{"0: 2", "1: 2", "0: 0 1"});
    CHECK(answers({"a", "a"}, joined) == texts{"0:", "1:"});
}

TEST_CASE("session_base: where ranks are not joined, each is a node, and all others are peers") {
    auto const apart = [](world& w) { return peers_of_session(w, false); };
    CHECK(answers({"a", "a", "a"}, apart) == std::vector<std::string>{"0: 1 2", "0: 0 2", "0: 0 1"});
}

TEST_CASE("session_base: ranks that differ in their layout learn who does") {
    auto const all = answers({"a", "b", "c"}, [](world& w) {
        bare session(w, layout{{"a", w.rank() == 1 ? 999u : 1000u}}, true);
        session.settle();
        return std::string("agreed");
    });
    std::string const differs = to_string(errc::mismatch);
    CHECK(all == std::vector<std::string>{differs + " 1", differs + " 0", differs + " 1"});
}

TEST_CASE("session_base: more executions than a message's number can name are refused") {
    world alone;
    bare most(alone, layout{{"a", 10}}, true);
    constexpr std::size_t at_most = (1u << 20) - 1 - memory_map::bounce_slots;
    most.pretend_buckets(at_most);
    most.settle();
    CHECK(most.memory().executions == at_most);
    bare more(alone, layout{{"a", 10}}, true);
    more.pretend_buckets(at_most + 1);
    std::optional<failure> why;
    try {
        more.settle();
    } catch (error const& refused) {
        why = refused.why();
    }
    REQUIRE(why.has_value());
    CHECK(why->what == errc::bad_argument);
    CHECK(std::string(why->text).find("1048572 buckets and 0 peers: at most 1048571 buckets") !=
          std::string::npos);
}

TEST_CASE("session_base: staging is as large as the memory map says") {
    auto const all = answers({"a", "b"}, [](world& w) {
        bare session(w, layout{{"a", 100'000}}, true);
        session.settle();
        bool const right = session.staging() == session.plan().staging_bytes(1) && session.staging() > 0;
        return std::string(right ? "right" : "wrong");
    });
    CHECK(all == std::vector<std::string>{"right", "right"});
}

TEST_CASE("session_base: a buffer is divided into shards that cover it once, whatever was there before") {
    auto const all = answers({"a", "b", "c"}, [](world& w) {
        bare session(w, layout{{"a", 1000}}, true);
        bucket buffer{.shards = 77};
        std::vector<shard> shards(9);
        for (std::size_t const elements : {std::size_t{100'003}, std::size_t{16}, std::size_t{5000}}) {
            session.divide<sharding::balanced>(elements, buffer, shards, "all_reduce", false, true,
                                               session.plan());
            std::size_t next = 0;
            for (shard const& s : shards) {
                if (s.offset != next) return std::string("a gap");
                next += s.elements;
            }
            if (next != elements || buffer.elements != elements) return std::string("not covered");
            if (buffer.first_shard != 0 || buffer.shards != shards.size()) return std::string("shards");
            if (buffer.path != route::two_hop) return std::string("another route");
        }
        return std::string("divided");
    });
    CHECK(std::count(all.begin(), all.end(), "divided") == 3);
}

TEST_CASE("session_base: a sharding policy that does not cover a buffer is named by the rank that called") {
    auto const all = answers({"a", "b"}, [](world& w) {
        bare session(w, layout{{"a", 1000}}, true);
        bucket buffer;
        std::vector<shard> shards;
        try {
            session.divide<wrong>(5000, buffer, shards, "all_reduce", false, true, session.plan());
        } catch (error const& why) {
            std::string const text = why.what();
            bool const named = why.why().what == errc::bad_argument && why.why().reporter == w.rank() &&
                               text.find("'wrong'") != std::string::npos &&
                               text.find("all_reduce") != std::string::npos;
            return std::string(named ? "named" : text);
        }
        return std::string("taken");
    });
    CHECK(all == std::vector<std::string>{"named", "named"});
}
