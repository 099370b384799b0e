// herring: what the engine's seams have to carry, with programs of the test's own: an operation with state, servers of their own,
// a step in two phases, and an execution of one node's ranks in a plan of several.
// SPDX-License-Identifier: Apache-2.0
#include "herring/engine/engine.hpp"

#include "doctest/doctest.h"

#include "unit/engine/mesh.hpp"

#include "herring/update/rules.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

// ---- an operation with state: the sum of the contributions goes into weights, which travel back, and lie elsewhere ----------------

/// Parts as of an all-reduce; results land in the weights of the rank, not on its contribution.
class descent_traffic : public herring::detail::reduce_traffic {
  public:
    static constexpr herring::lending lends = herring::lending::none;

    explicit descent_traffic(herring::detail::engine_state& state) noexcept
        : reduce_traffic(state), state_(state) {}

    std::byte const* result(herring::execution const& e, herring::chunk const& c) const noexcept {
        return landing(e, c);
    }
    std::byte* landing(herring::execution const& e, herring::chunk const& c) const noexcept {
        return weights_of(e, state_.who.local, c.offset);
    }
    void take_result(herring::execution const& e, herring::chunk const& c) const noexcept {
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l != state_.who.local)
                std::memcpy(weights_of(e, l, c.offset), landing(e, c), c.elements * sizeof(float));
    }

    /// Element `offset` of the bucket's weights at a local rank.
    std::byte* weights_of(herring::execution const& e, int l, std::size_t offset) const noexcept {
        return weights[static_cast<std::size_t>(l)] + (first[e.label] + offset) * sizeof(float);
    }
    std::vector<std::byte*> weights; ///< local rank → its copy
    std::vector<std::size_t> first;  ///< bucket → its first element in them

  private:
    herring::detail::engine_state& state_;
};

/// weights -= rate · sum of the contributions, at the server, once.
class descent {
  public:
    using traffic = descent_traffic;
    static constexpr float rate = 0.5f;

    descent(herring::detail::engine_state& state, traffic& of)
        : state_(state), traffic_(of), all_(state), sum_(4096) {}

    void make_part(herring::execution const& e, herring::chunk const& c, std::byte* stage) noexcept {
        all_.make_part(e, c, stage);
    }
    void combine(herring::execution const& e, herring::chunk const& c,
                 herring::parts_view const& parts) noexcept {
        all_.combine(e, c.range(), parts, c.offset, reinterpret_cast<std::byte*>(sum_.data()));
        apply(e, state_.who.local, c.offset, c.elements);
        for (int l = 0; l < state_.who.local_size; ++l)
            if (l != state_.who.local)
                std::memcpy(traffic_.weights_of(e, l, c.offset), traffic_.landing(e, c),
                            c.elements * sizeof(float));
    }
    void combine_mailboxes(herring::execution const& e, std::byte* const* boxes) noexcept {
        all_.combine_local(
            e, [boxes](int l) { return boxes[l]; }, reinterpret_cast<std::byte*>(sum_.data()), e.elements);
        apply(e, state_.who.local, 0, e.elements); // every rank has its own weights
    }
    void combine_lent(herring::execution const&) noexcept {}

  private:
    void apply(herring::execution const& e, int l, std::size_t offset, std::size_t count) noexcept {
        auto* const weights = reinterpret_cast<float*>(traffic_.weights_of(e, l, offset));
        for (std::size_t i = 0; i < count; ++i) weights[i] -= rate * sum_[i];
    }
    herring::detail::engine_state& state_;
    traffic& traffic_;
    herring::detail::combiner<float, herring::update::sum> all_;
    std::vector<float> sum_;
};

// ---- servers of their own -----------------------------------------------------------------------------------------------------------

/// The last node serves, and the others contribute.
struct last_serves {
    using axis = herring::axes::placement;
    static constexpr char const* name = "last_serves";
    static constexpr herring::placement_facts facts{.dedicated_servers = true};
    static constexpr herring::roles assign(herring::topology const& map) {
        herring::roles made;
        for (int n = 0; n + 1 < map.nodes(); ++n) made.contributors.push_back(n);
        made.servers.push_back(map.nodes() - 1);
        return made;
    }
};

float value(int rank, std::size_t which, std::size_t i) {
    return static_cast<float>((static_cast<std::size_t>(rank) * 13 + which * 7 + i) % 97);
}

} // namespace

TEST_CASE(
    "carry: an operation with state, whose weights lie elsewhere, by mailbox, local, one hop and two hops") {
    std::vector<std::size_t> const sizes{16, 32, 48, 64, 333, 1000};
    using world = mesh::world_of<float, herring::update::sum, herring::placement::colocated, descent>;
    for (auto const& shape : std::vector<std::vector<int>>{{3}, {2}, {1, 1, 1}, {2, 2}, {1, 2, 1}}) {
        world all(shape, sizes, mesh::small_tuning(), 11, 10);
        std::size_t const total = all.made.elements;
        std::vector<std::vector<float>> weights(all.ranks.size(), std::vector<float>(total, 100.0f));
        for (auto& r : all.ranks) {
            descent_traffic& of = r->runs->traffic_of<descent>();
            for (int const other : all.map.members(all.map.node(r->number)))
                of.weights.push_back(
                    reinterpret_cast<std::byte*>(weights[static_cast<std::size_t>(other)].data()));
            for (herring::bucket const& b : all.made.buckets) of.first.push_back(b.offset);
        }
        std::vector<float> due(total, 100.0f);
        for (int step = 0; step < 5; ++step) {
            for (auto& r : all.ranks)
                for (std::size_t b = 0; b < sizes.size(); ++b) {
                    auto const mine = all.memory(*r, b);
                    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r->number, b, i);
                    all.submit_as<descent>(*r, b);
                }
            REQUIRE(all.settle());
            for (std::size_t b = 0; b < sizes.size(); ++b)
                for (std::size_t i = 0; i < all.made.buckets[b].elements; ++i) {
                    float sum = 0;
                    for (int r = 0; r < all.map.size(); ++r) sum += value(r, b, i);
                    due[all.made.buckets[b].offset + i] -= descent::rate * sum;
                }
            for (auto const& of_rank : weights) REQUIRE(of_rank == due);
            for (auto& r : all.ranks) CHECK(all.memory(*r, 5)[7] == value(r->number, 5, 7)); // is what it was
        }
    }
}

TEST_CASE("carry: a node that only serves, with two ranks: the bits of nodes that do both") {
    std::vector<std::size_t> const sizes{1, 16, 17, 100, 333, 2047};
    for (auto const& shape : std::vector<std::vector<int>>{{1, 1, 2}, {2, 2, 2}, {1, 3, 2}}) {
        using world = mesh::world_of<float, herring::update::average, last_serves>;
        world all(shape, sizes, mesh::small_tuning(), 5, 10);
        std::vector<int> workers = shape;
        workers.pop_back();
        mesh::world_of<float, herring::update::average> twin(workers, sizes, mesh::small_tuning(), 6, 0);
        auto const run = [&](auto& on, auto const& number_of) {
            for (auto& r : on.ranks)
                for (std::size_t b = 0; b < sizes.size(); ++b) {
                    auto const mine = on.memory(*r, b);
                    for (std::size_t i = 0; i < mine.size(); ++i)
                        mine[i] = value(number_of(r->number), b, i) * 0.3f;
                    on.submit(*r, b);
                }
            return on.settle();
        };
        // A worker is known by its place on its node: ranks are numbered otherwise where there are servers.
        auto const place = [](auto& of) {
            return [&of](int rank) { return of.map.node(rank) * 10 + of.map.local_rank(rank); };
        };
        REQUIRE(run(all, place(all)));
        REQUIRE(run(twin, place(twin)));
        for (herring::bucket const& b : all.made.buckets) CHECK(b.path == herring::route::two_hop);
        for (auto& r : all.ranks) {
            if (all.map.node(r->number) + 1 == all.map.nodes()) {
                CHECK(r->runs->counters().bytes_sent > 0);
                continue;
            }
            int const same = twin.map.rank_of(all.map.node(r->number), all.map.local_rank(r->number));
            for (std::size_t b = 0; b < sizes.size(); ++b) {
                auto const got = all.memory(*r, b);
                auto const due = twin.memory(*twin.ranks[static_cast<std::size_t>(same)], b);
                REQUIRE(std::memcmp(got.data(), due.data(), got.size_bytes()) == 0);
            }
        }
    }
}

TEST_CASE("carry: a step in two phases: every range is summed, a norm of all goes round, then the ranges are "
          "gathered") {
    for (auto const& shape : std::vector<std::vector<int>>{{2}, {4}, {1, 1, 1}, {2, 1}}) {
        std::vector<std::size_t> const sizes{1000, 16};
        mesh::world_of<float> all(shape, sizes, mesh::small_tuning(), 9, 10);
        using scatter = herring::operations::reduce_scatter<float, herring::update::sum>;
        using reduce = herring::operations::reduce<float, herring::update::sum>;
        for (auto& r : all.ranks) {
            auto const mine = all.memory(*r, 0);
            for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r->number, 0, i);
            all.submit_as<scatter>(*r, 0);
        }
        REQUIRE(all.settle());
        for (auto& r : all.ranks) {
            herring::range const own = all.owned(0, r->number);
            float part = 0;
            for (float const x : all.memory(*r, 0).subspan(own.offset, own.elements)) part += x;
            for (float& x : all.memory(*r, 1)) x = part;
            all.submit_as<reduce>(*r, 1);
        }
        REQUIRE(all.settle());
        float norm = all.memory(*all.ranks[0], 1)[0];
        for (auto& r : all.ranks) {
            REQUIRE(all.memory(*r, 1)[0] == norm);
            herring::range const own = all.owned(0, r->number);
            for (float& x : all.memory(*r, 0).subspan(own.offset, own.elements)) x /= norm;
            all.submit_as<herring::operations::all_gather>(*r, 0);
        }
        REQUIRE(all.settle());
        for (auto& r : all.ranks)
            for (std::size_t i = 0; i < all.memory(*r, 0).size(); ++i) {
                float sum = 0;
                for (int n = 0; n < all.map.size(); ++n) sum += value(n, 0, i);
                REQUIRE(all.memory(*r, 0)[i] == sum / norm);
            }
    }
}

TEST_CASE("carry: executions of one node's ranks, in a plan of several, while nodes drift apart") {
    mesh::world_of<float, herring::update::average> all({2, 2}, {64, 64, 1000}, mesh::small_tuning(), 3, 10);
    herring::shard const whole{.offset = 0, .elements = 64, .chunk_elements = 16, .chunks = 4, .server = {0}};
    auto const on_node = [&](auto& r, std::size_t which) {
        auto const mine = all.memory(r, which);
        for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r.number, which, i);
        r.runs->submit({.shards = &whole,
                        .shard_count = 1,
                        .path = herring::route::local,
                        .own = r.node.memory() + all.made.buckets[which].offset * sizeof(float),
                        .elements = 64,
                        .fingerprint = 77,
                        .label = 0});
        ++r.submitted;
    };
    for (int turn = 0; turn < 6; ++turn) {
        // Node 0 runs some of its own before each bucket of all, node 1 none, or one.
        for (auto& r : all.ranks) {
            bool const first = all.map.node(r->number) == 0;
            on_node(*r, 0);
            if (first) on_node(*r, 1);
            auto const mine = all.memory(*r, 2);
            for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = value(r->number, 2, i);
            all.submit(*r, 2);
        }
        REQUIRE(all.settle());
        for (auto& r : all.ranks) {
            auto const& node = all.map.members(all.map.node(r->number));
            for (std::size_t i = 0; i < 64; ++i)
                REQUIRE(all.memory(*r, 0)[i] == (value(node[0], 0, i) + value(node[1], 0, i)) / 2);
            for (std::size_t i = 0; i < 1000; ++i) {
                float sum = 0;
                for (int n = 0; n < 2; ++n)
                    sum += value(all.map.rank_of(n, 0), 2, i) + value(all.map.rank_of(n, 1), 2, i);
                REQUIRE(all.memory(*r, 2)[i] == sum / 4);
            }
        }
    }
}
