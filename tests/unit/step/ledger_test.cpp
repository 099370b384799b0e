// herring: tests of step/ledger.hpp: no network, no memory, just which bucket may leave.
// SPDX-License-Identifier: Apache-2.0
#include "herring/step/ledger.hpp"

#include "doctest/doctest.h"

#include "herring/fusion/fusion.hpp"
#include "herring/placement/placement.hpp"
#include "herring/sharding/sharding.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

using namespace herring;

namespace {
/// Closes a bucket after every third tensor.
struct by_three {
    using axis = axes::fusion;
    static constexpr char const* name = "by_three";
    static constexpr bool closes(fusion_state const& now) noexcept { return now.bucket_tensors == 3; }
};
template <class Fusion> plan of(std::vector<std::size_t> const& tensors, std::size_t split_bytes = 0) {
    return make_plan<Fusion, sharding::balanced, placement::colocated>(tensors, topology::uniform(1, 2), 4, 4,
                                                                       {.split_bytes = split_bytes});
}
} // namespace

TEST_CASE("step_ledger: a bucket leaves when its last tensor is ready and those before it have left") {
    plan const made = of<by_three>(std::vector<std::size_t>(7, 10));
    detail::step_ledger ledger(made);
    REQUIRE(ledger.buckets() == 3);
    REQUIRE(ledger.size() == 7);
    CHECK_FALSE(ledger.under_way());
    CHECK_FALSE(ledger.mark_ready(6)); // the third bucket is full, and waits
    CHECK(ledger.under_way());
    CHECK(ledger.full_buckets() == 0);
    CHECK(ledger.first_unready() == 0);
    CHECK_FALSE(ledger.mark_ready(0));
    CHECK_FALSE(ledger.mark_ready(2));
    CHECK(ledger.first_unready() == 1);
    CHECK(ledger.mark_ready(1));
    CHECK(ledger.full_buckets() == 1);
    CHECK_FALSE(ledger.mark_ready(3));
    CHECK_FALSE(ledger.mark_ready(4));
    CHECK_FALSE(ledger.all_ready());
    CHECK(ledger.mark_ready(5)); // and the third with it
    CHECK(ledger.full_buckets() == 3);
    CHECK(ledger.all_ready());
    CHECK(ledger.first_unready() == 7);
    CHECK(ledger.is_ready(4));
}

TEST_CASE("step_ledger: any order of tensors fills the buckets in the plan's order, step after step") {
    plan const made = of<by_three>({3, 0, 500, 7, 7, 7, 0, 0, 0, 12'000}, 4096);
    detail::step_ledger ledger(made);
    std::size_t const& ready = ledger.ready();
    std::mt19937 random(3);
    std::vector<std::size_t> order(10);
    std::iota(order.begin(), order.end(), 0);
    for (int step = 0; step < 50; ++step) {
        std::shuffle(order.begin(), order.end(), random);
        std::vector<bool> done(10);
        std::size_t count = 0;
        for (std::size_t const i : order) {
            std::size_t const before = ledger.full_buckets();
            CHECK_FALSE(ledger.is_ready(i));
            bool const more = ledger.mark_ready(i);
            done[i] = true;
            CHECK(more == (ledger.full_buckets() > before));
            CHECK(ready == ++count);
            // The tensors before the first bucket that is not full are ready, and one of that bucket's is not.
            std::size_t const full = ledger.full_buckets();
            bool missing = full == made.buckets.size();
            for (std::size_t t = 0; t < done.size(); ++t) {
                if (made.tensors[t].bucket < full) CHECK(done[t]);
                missing = missing || (made.tensors[t].bucket == full && !done[t]);
            }
            CHECK(missing);
        }
        CHECK(ledger.all_ready());
        ledger.begin_step();
        CHECK(ready == 0);
        CHECK(ledger.full_buckets() == 0);
        CHECK(ledger.first_unready() == 0);
    }
}

TEST_CASE("step_ledger: the parts of a split bucket are full together") {
    plan const made = of<fusion::per_tensor>({10'000, 10}, 4096);
    REQUIRE(made.buckets.size() > 3);
    detail::step_ledger ledger(made);
    CHECK(ledger.mark_ready(0));
    CHECK(ledger.full_buckets() == made.buckets.size() - 1);
    CHECK(ledger.mark_ready(1));
    CHECK(ledger.full_buckets() == made.buckets.size());
}

TEST_CASE("step_ledger: a layout of no tensors is ready at once, and no step is under way") {
    plan const made = of<fusion::per_tensor>({});
    detail::step_ledger ledger(made);
    CHECK(ledger.all_ready());
    CHECK_FALSE(ledger.under_way());
    CHECK(ledger.buckets() == 0);
    CHECK(ledger.first_unready() == 0);
}
