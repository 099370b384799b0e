// herring: tests of optimizer/adamw.hpp and the other ready-made ones: hyper values that cannot be meant are refused by `set`.
// SPDX-License-Identifier: Apache-2.0
#include "herring/optimizer/adamw.hpp"

#include "doctest/doctest.h"

#include "herring/herring.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/lamb.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/sync/periodic.hpp"
#include "herring/training.hpp"
#include "herring/transport/inproc.hpp"

#include <limits>
#include <string>

namespace optimizers = herring::optimizer;

namespace {

template <class Policy, class Change> std::string said_by(Change const& change) {
    herring::world alone;
    herring::reducer<float, herring::transport::inproc, Policy> train(alone, herring::layout{{"a", 4}});
    auto const before = train.hyper();
    auto values = before;
    change(values);
    try {
        train.set(values);
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::bad_argument);
        CHECK(train.hyper().rate == before.rate);
        return why.what();
    }
    CHECK(train.hyper().rate == values.rate);
    return "";
}
bool says(std::string const& text, char const* words) { return text.find(words) != text.npos; }

} // namespace

TEST_CASE("optimizers: hyper values that cannot be meant are refused, by name") {
    using optimizers::adamw, optimizers::lamb, optimizers::sgd;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(says(said_by<adamw>([](auto& h) { h.rate = -0.5; }),
               "set: bad argument: hyper::rate is -0.5; it must be 0 or more"));
    CHECK(says(said_by<adamw>([](auto& h) { h.beta1 = 1; }),
               "hyper::beta1 is 1; it must be 0 or more, and less than 1"));
    CHECK(says(said_by<adamw>([](auto& h) { h.beta2 = -0.1; }), "hyper::beta2 is -0.1"));
    CHECK(says(said_by<adamw>([](auto& h) { h.epsilon = -1; }), "hyper::epsilon is -1"));
    CHECK(
        says(said_by<adamw>([](auto& h) { h.epsilon = 0; }), "hyper::epsilon is 0; it must be more than 0"));
    CHECK(says(said_by<adamw>([=](auto& h) { h.decay = nan; }),
               "hyper::decay is nan; it must be a finite float"));
    CHECK(says(said_by<adamw>([](auto& h) { h.rate = 1e39; }), "hyper::rate is 1e+39"));
    CHECK(says(said_by<lamb>([](auto& h) { h.epsilon = 1e-50; }), "hyper::epsilon is 1e-50"));
    CHECK(says(said_by<sgd>([](auto& h) { h.decay = -1e40; }), "hyper::decay is -1e+40"));
    CHECK(says(said_by<optimizers::nesterov>([=](auto& h) { h.decay = nan; }), "hyper::decay is nan"));
    CHECK(says(said_by<optimizers::momentum>([=](auto& h) { h.decay = nan; }), "hyper::decay is nan"));
    CHECK(says(said_by<lamb>([](auto& h) { h.beta2 = 1.5; }), "hyper::beta2 is 1.5"));
    CHECK(says(said_by<sgd>([=](auto& h) { h.rate = nan; }), "hyper::rate is nan"));
    CHECK(says(said_by<optimizers::momentum>([](auto& h) { h.momentum = 1; }), "hyper::momentum is 1;"));
    CHECK(says(said_by<optimizers::nesterov>([](auto& h) { h.momentum = 2; }), "hyper::momentum is 2;"));
    CHECK(says(said_by<optimizers::clipped<sgd>>([](auto& h) { h.rate = -1; }), "hyper::rate is -1"));
    CHECK(says(said_by<optimizers::clipped<sgd>>([](auto& h) { h.clip = 0; }),
               "hyper::clip is 0; it must be more than 0"));
    CHECK(says(said_by<herring::sync::diloco<4, optimizers::nesterov>>([](auto& h) { h.rate = -1; }),
               "hyper::rate is -1"));
    // What is meant.
    CHECK(said_by<adamw>([](auto& h) {
              h.rate = h.beta1 = h.beta2 = 0;
              h.decay = -1;
          }) == "");
    CHECK(said_by<optimizers::clipped<sgd>>(
              [](auto& h) { h.clip = std::numeric_limits<double>::infinity(); }) == "");
    CHECK(said_by<herring::sync::diloco<4, optimizers::nesterov>>([](auto& h) { h.rate = 0.7; }) == "");
}
