// herring: optimizers in two phases with servers of their own: norms, steps that are skipped, and the weights of colocated ranks.
// SPDX-License-Identifier: Apache-2.0
#include "conformance/dedicated_two_phases_suite.hpp"
#include "conformance/small_transports.hpp"

#include "doctest/doctest.h"

#include "herring/intra_node/shared_memory.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/lamb.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/on_nonfinite.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/placement/dedicated.hpp"
#include "herring/progress/progress.hpp"
#include "herring/training.hpp"

using namespace herring::conformance;

namespace served_in_two_phases {

namespace optimizer = herring::optimizer;
using herring::placement::dedicated;
using herring::placement::optimal;
using shared = herring::intra_node::shared_memory;
using per_tensor = herring::fusion::per_tensor;
template <class Inner> using skipping = optimizer::on_nonfinite<Inner, herring::nonfinite::skip_step>;

constexpr std::size_t most = 11 / HERRING_TEST_PART;
settings const processes{.start = ranks_as::processes};

template <bool Exact, class Placement, class Element, class... Policies>
findings as_without(settings const& how = {}, std::size_t count = most) {
    return same_on_all<steps_of_two_phases<Exact>,
                       herring::reducer<Element, herring::update::sum, Policies...>,
                       herring::reducer<Element, Placement, herring::update::sum, Policies...>>(how, count);
}

} // namespace served_in_two_phases

using namespace served_in_two_phases;

TEST_CASE("dedicated in two phases: clipped, and steps that are skipped") {
    CHECK(text(as_without<true, dedicated, float, small_inproc, shared,
                          optimizer::clipped<skipping<optimizer::adamw>>>()) == "");
    CHECK(text(as_without<true, optimal, float, small_inproc, shared, per_tensor,
                          skipping<optimizer::clipped<optimizer::momentum>>>()) == "");
    CHECK(text(as_without<true, dedicated, double, small_inproc, optimizer::clipped<optimizer::sgd>,
                          herring::progress::thread>({}, (most + 2) / 3)) == "");
}

TEST_CASE("dedicated in two phases: workers that share nodes and serve too, beside servers and without") {
    for (std::string const ranks : {"aabscc", "bsaabcas", "sabcdd", "aab"})
        for (auto const& found :
             {same_with_servers<steps_of_two_phases<true>,
                                herring::reducer<float, herring::update::sum, small_inproc, shared,
                                                 skipping<exact_by_norms>>,
                                herring::reducer<float, optimal, herring::update::sum, small_inproc, shared,
                                                 skipping<exact_by_norms>>>({ranks}),
              same_with_servers<
                  steps_of_two_phases<false>,
                  herring::reducer<float, herring::update::sum, small_tcp, shared, optimizer::lamb>,
                  herring::reducer<float, optimal, herring::update::sum, small_tcp, shared, optimizer::lamb>>(
                  {ranks}, processes)})
            CHECK(text(found) == "");
}

TEST_CASE("dedicated in two phases: norms of tensors") {
    CHECK(text(as_without<true, dedicated, float, small_inproc, shared, exact_by_norms>()) == "");
    CHECK(
        text(
            as_without<true, optimal, float, small_inproc, shared, per_tensor, skipping<exact_by_norms>>()) ==
        "");
    CHECK(text(as_without<false, dedicated, float, small_inproc, shared,
                          optimizer::clipped<skipping<optimizer::lamb>>>({}, most * 3 / 4)) == "");
    CHECK(text(as_without<false, optimal, herring::bfloat16, small_inproc, shared,
                          optimizer::clipped<optimizer::lamb>>({}, most * 3 / 4)) == "");
}

TEST_CASE("dedicated in two phases: between processes, and with messages in any order, refused and late") {
    CHECK(text(as_without<true, dedicated, float, small_tcp, shared,
                          optimizer::clipped<skipping<optimizer::adamw>>>(processes, most * 3 / 4)) == "");
    CHECK(
        text(as_without<false, optimal, float, small_tcp, shared, optimizer::lamb, herring::progress::thread>(
            processes, most * 3 / 4)) == "");
    CHECK(text(as_without<true, dedicated, float, rough, shared, skipping<exact_by_norms>>({}, (most + 1) /
                                                                                                   2)) == "");
}
