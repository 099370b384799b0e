// herring: tests of engine/device_memory.hpp: what an engine has devices do, when, and for whom it waits.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/device_memory.hpp"

#include "doctest/doctest.h"

#include "herring/engine/state.hpp"
#include "herring/fusion/fusion.hpp"
#include "herring/intra_node/intra_node.hpp"
#include "herring/placement/placement.hpp"
#include "herring/plan/plan.hpp"
#include "herring/sharding/sharding.hpp"
#include "herring/update/rules.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using herring::execution;
using herring::detail::engine_state;
using herring::detail::node_memory;

struct reduce_floats {
    using element = float;
    using update = herring::update::sum;
};

// A node whose devices do what the test says, and which keeps what it was asked.
struct calls {
    std::vector<std::string> heard{};
    herring::failure broken{};
    bool is_broken = false, here = true;
    int not_arrived = -1, slowest = 1;
    std::array<std::byte, 64> on_host{}, mirror{};

    herring::failure const* failed() const noexcept { return is_broken ? &broken : nullptr; }
    bool loaded(std::uint64_t e, std::uint64_t submitted) {
        heard.push_back("loaded " + std::to_string(e) + " of " + std::to_string(submitted));
        return here;
    }
    herring::time_point nap(herring::time_point until) { return until - std::chrono::milliseconds(1); }
    int first_not_arrived(std::uint64_t) const noexcept { return not_arrived; }
};

struct staging_node : calls {
    static constexpr herring::intra_node_facts facts{.device_memory = true, .host_staging = true};
    void store(std::uint64_t e) { heard.push_back("store " + std::to_string(e)); }
};

// The same, whose threads sum.
struct threaded_node : calls {
    static constexpr herring::intra_node_facts facts{
        .device_memory = true, .host_staging = true, .sums_in_threads = true};
    template <class At> bool summed(std::uint64_t e, std::uint64_t arrived, At const& at) {
        heard.push_back("sum " + std::to_string(e) + " below " + std::to_string(arrived) + ", label " +
                        std::to_string(at(e).label));
        return here;
    }
    bool is_summing(std::uint64_t e) const noexcept { return !here && e == 0; }
};

struct summing_node : calls {
    static constexpr herring::intra_node_facts facts{
        .device_memory = true, .host_staging = true, .sums_on_device = true, .leaves_parts = true};
    struct number_of_device {
        int number() const noexcept { return 5; }
    };
    number_of_device device() const noexcept { return {}; }

    template <class Update, class Element, class At>
    bool summed(std::uint64_t e, std::uint64_t arrived, int ranks, At const& at) {
        static_assert(std::is_same_v<Update, herring::update::sum> && std::is_same_v<Element, float>);
        heard.push_back("sum " + std::to_string(e) + " below " + std::to_string(arrived) + " of " +
                        std::to_string(ranks) + " ranks, label " + std::to_string(at(e).label));
        return here;
    }
    template <class Element> bool spread(std::uint64_t e, execution const& what) {
        heard.push_back("spread " + std::to_string(e) + ", label " + std::to_string(what.label));
        return !is_broken;
    }
    std::byte* part(std::byte* own) noexcept { return own + 16; }
    int slowest_local_rank(std::uint64_t) const noexcept { return slowest; }
    std::span<std::byte> parts() noexcept { return mirror; }
    template <class Byte> std::span<Byte> on_device(std::span<Byte> at) noexcept {
        return {mirror.data() + (at.data() - on_host.data()), at.size()};
    }
};

struct memory_facts {
    bool device_memory = false;
};
struct host_transport {
    static constexpr memory_facts facts{};
};
struct device_transport {
    static constexpr memory_facts facts{.device_memory = true};
    std::span<std::byte> registered{};
    int device = -1;
    void register_device_memory(std::span<std::byte> parts, int number) {
        registered = parts;
        device = number;
    }
};

// Rank 0 of a node of two, which has submitted two executions and arrived at the first.
struct rank_of_two {
    herring::topology map = herring::topology::uniform(1, 2);
    herring::plan made;
    engine_state state;

    rank_of_two()
        : made(
              herring::make_plan<herring::fusion::per_tensor, herring::sharding::balanced,
                                 herring::placement::colocated>(std::vector<std::size_t>{64}, map, 4, 4, {})),
          state({}, 0, map, made, {}, 4) {
        for (std::uint32_t label : {7u, 8u}) {
            execution e;
            e.label = label;
            state.ledger.request(e);
        }
        state.ledger.take_requests();
        state.ledger.arrive();
    }
};

using asked = std::vector<std::pair<int, std::uint64_t>>;
template <class Memory> asked awaited(Memory& memory, engine_state const& state) {
    asked found;
    memory.awaited(state.ledger, state.who.local, [&](int local, std::uint64_t number, char const* text) {
        CHECK(std::string(text) == "its device has not come to this operation");
        found.emplace_back(local, number);
    });
    return found;
}

} // namespace

TEST_CASE_TEMPLATE(
    "device_memory: the node says whether tensors are loaded, what failed, and how long to nap", Node,
    staging_node, summing_node) {
    Node node;
    node_memory<Node, host_transport> memory(node);
    CHECK(memory.is_loaded(3, 5));
    node.here = false;
    CHECK_FALSE(memory.is_loaded(4, 5));
    CHECK(node.heard == std::vector<std::string>{"loaded 3 of 5", "loaded 4 of 5"});
    CHECK(memory.failed() == nullptr);
    node.is_broken = true;
    CHECK(memory.failed() == &node.broken);
    herring::time_point const until = herring::clock::now();
    CHECK(memory.nap(until) < until);
}

TEST_CASE("device_memory: staged tensors are summed by the host, and stored once all have finished") {
    rank_of_two rank;
    staging_node node;
    node_memory<staging_node, device_transport> memory(node);
    static_assert(!decltype(memory)::parts_on_device);
    execution& e = rank.state.ledger.at(0);
    memory.place_sum(e);
    CHECK(e.device_sum == nullptr);
    CHECK(memory.sum<reduce_floats>(rank.state.ledger, 2));
    CHECK(memory.spread<reduce_floats>(rank.state.ledger));
    CHECK(node.heard.empty());
    memory.store(0);
    CHECK(node.heard == std::vector<std::string>{"store 0"});
    std::span<std::byte> const own(node.on_host);
    CHECK(memory.for_transport(own).data() == own.data());
    CHECK(awaited(memory, rank.state) == asked{{0, 1}}); // the next one that this rank arrives at
}

TEST_CASE("device_memory: while a rank's threads sum, it waits for nobody but itself") {
    rank_of_two rank;
    threaded_node node;
    node_memory<threaded_node, host_transport> memory(node);
    node.here = false;
    CHECK_FALSE(memory.sum<reduce_floats>(rank.state.ledger, 2));
    asked found;
    memory.awaited(rank.state.ledger, 0, [&](int local, std::uint64_t number, char const* text) {
        CHECK((number != 0 || std::string(text) == "it has not finished its share of the node's sum"));
        found.emplace_back(local, number);
    });
    CHECK(found == asked{{0, 1}, {0, 0}}); // what its device brings next, and the older sum
    node.here = true;
    CHECK(memory.sum<reduce_floats>(rank.state.ledger, 2));
    CHECK(node.heard == std::vector<std::string>{"sum 0 below 1, label 7", "sum 0 below 1, label 7"});
    CHECK(awaited(memory, rank.state) == asked{{0, 1}});
}

TEST_CASE("device_memory: devices sum what all have arrived at, and spread what has its results") {
    rank_of_two rank;
    summing_node node;
    node_memory<summing_node, host_transport> memory(node);
    execution& e = rank.state.ledger.at(0);
    e.own = node.on_host.data();
    memory.place_sum(e);
    CHECK(e.device_sum == node.on_host.data() + 16);

    node.here = false;
    CHECK_FALSE(memory.sum<reduce_floats>(rank.state.ledger, 2));
    node.here = true;
    CHECK(memory.sum<reduce_floats>(rank.state.ledger, 2));
    CHECK(memory.spread<reduce_floats>(rank.state.ledger));
    memory.store(0); // they have spread it
    CHECK(node.heard == std::vector<std::string>{"sum 0 below 1 of 2 ranks, label 7",
                                                 "sum 0 below 1 of 2 ranks, label 7", "spread 0, label 7"});
    node.is_broken = true;
    CHECK_FALSE(memory.spread<reduce_floats>(rank.state.ledger)); // nobody may take it for finished
}

TEST_CASE(
    "device_memory: of those whose devices sum, the slowest one is waited for once all ranks have arrived") {
    rank_of_two rank;
    summing_node node;
    node_memory<summing_node, host_transport> memory(node);
    CHECK(awaited(memory, rank.state) == asked{{0, 1}, {1, 0}});
    node.not_arrived = 1; // not its device
    CHECK(awaited(memory, rank.state) == asked{{0, 1}});
    node.not_arrived = -1;
    rank.state.ledger.arrive_all();
    CHECK(awaited(memory, rank.state) == asked{{0, 1}});
}

TEST_CASE("device_memory: the transport accesses parts on the device only if it takes memory of devices") {
    summing_node node;
    std::span<std::byte> const own = std::span<std::byte>(node.on_host).subspan(8, 4);

    using of_host = node_memory<summing_node, host_transport>;
    static_assert(!of_host::parts_on_device);
    host_transport host;
    of_host::register_parts(node, host); // asks for nothing that this transport has not
    CHECK(of_host(node).for_transport(own).data() == own.data());

    using of_device = node_memory<summing_node, device_transport>;
    static_assert(of_device::parts_on_device);
    device_transport transport;
    of_device::register_parts(node, transport);
    CHECK(transport.registered.data() == node.mirror.data());
    CHECK(transport.device == 5);
    CHECK(of_device(node).for_transport(own).data() == node.mirror.data() + 8);
    CHECK(of_device(node).for_transport(std::span<std::byte const>(own)).size() == 4);
}
