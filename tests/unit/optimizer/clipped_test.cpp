// herring: tests of optimizer/clipped.hpp and on_nonfinite.hpp: facts, names and hyper values of what they decorate.
// SPDX-License-Identifier: Apache-2.0
#include "herring/optimizer/clipped.hpp"

#include "doctest/doctest.h"

#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/lamb.hpp"
#include "herring/optimizer/on_nonfinite.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/training.hpp"

#include <string_view>

namespace optimizer = herring::optimizer;
using herring::nonfinite;
template <class Inner> using skipping = optimizer::on_nonfinite<Inner, nonfinite::skip_step>;

static_assert(herring::optimizer_policy<optimizer::clipped<optimizer::adamw>>);
static_assert(herring::optimizer_policy<optimizer::clipped<skipping<optimizer::lamb>>>);
static_assert(herring::optimizer_policy<skipping<optimizer::clipped<optimizer::sgd>>>);

static_assert(!optimizer::adamw::facts.two_phases());
static_assert(!optimizer::on_nonfinite<optimizer::adamw, nonfinite::pass>::facts.two_phases());
static_assert(optimizer::clipped<optimizer::adamw>::facts.two_phases());
static_assert(skipping<optimizer::adamw>::facts.two_phases());
static_assert(optimizer::lamb::facts.two_phases());

TEST_CASE("clipped: facts of the inner optimizer and one more; its hyper values, and clip") {
    using both = optimizer::clipped<skipping<optimizer::adamw>>;
    static_assert(both::facts.states == 2 && both::facts.takes_vectors && both::facts.clips);
    static_assert(both::facts.on_nonfinite == nonfinite::skip_step && !both::facts.tensor_norms);
    CHECK(std::string_view(both::name) == "clipped<nonfinite_skips_step<adamw>>");
    both::hyper values;
    CHECK(values.clip == 1);
    CHECK(values.rate == optimizer::adamw::hyper{}.rate);
    values.rate = 0.5;
    CHECK(both::prepare<float>(values, 1000000).rate == doctest::Approx(0.5));
    CHECK(sizeof(both::hyper) == sizeof(optimizer::adamw::hyper) + sizeof(double));
}
