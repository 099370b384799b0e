// herring: tests of sync/selective.hpp: the decisions of SelSync, held against a reference in Python; buckets; bad gradients.
// SPDX-License-Identifier: Apache-2.0
#include "herring/sync/selective.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <unistd.h>

using herring::sync::ballot;
using herring::sync::selective;
using herring::sync::selective_tuning;

namespace {

using norms = std::vector<std::vector<double>>; // step → rank

/// What ranks that vote do in each step, as a reducer runs their policies.
template <class Policy> std::vector<bool> decisions(norms const& all) {
    std::vector<Policy> ranks(all[0].size());
    std::vector<bool> result;
    for (std::vector<double> const& step : all) {
        if (Policy::facts.ahead == 1) result.push_back(ranks[0].due(0));
        ballot any;
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            ranks[r].observe(0, step[r] / 4); // the model's signal is the sum over buckets
            ranks[r].observe(1, step[r] * 3 / 4);
            ballot const vote = ranks[r].vote();
            for (std::size_t w = 0; w < ballot::bits / 64; ++w) any.words[w] |= vote.words[w];
        }
        for (Policy& one : ranks) one.agreed(any);
        if (Policy::facts.ahead == 0) result.push_back(ranks[0].due(0));
    }
    return result;
}

/// Gradients that shrink, with noise and a jump now and then; powers of two beside a fraction, so that quarters are exact.
norms training(std::size_t ranks, std::size_t steps, std::uint64_t seed) {
    norms result(steps, std::vector<double>(ranks));
    std::uint64_t state = seed;
    auto const next = [&] {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return static_cast<double>(state >> 40) / (1 << 24);
    };
    for (std::size_t t = 0; t < steps; ++t)
        for (std::size_t r = 0; r < ranks; ++r)
            result[t][r] = 4 * (std::exp2(-static_cast<double>(t / 16)) * (1 + next()) *
                                ((t + 5 * r) % 37 == 0 ? 8 : 1)) +
                           1e-3;
    return result;
}

std::string beside(char const* file) {
    std::string const here = __FILE__;
    return here.substr(0, here.find_last_of('/') + 1) + file;
}

/// The reference's decisions; empty where there is no python3.
std::vector<bool> referenced(norms const& all, selective_tuning const& how) {
    char path[] = "/tmp/herring_selective_XXXXXX";
    int const file = ::mkstemp(path);
    REQUIRE(file >= 0);
    std::FILE* const out = ::fdopen(file, "w");
    std::fprintf(out, "%d %.17g %.17g %d\n", how.window, static_cast<double>(how.smoothing),
                 static_cast<double>(how.threshold), how.ahead);
    for (auto const& step : all) {
        for (double const one : step) std::fprintf(out, "%.17g ", one);
        std::fputs("\n", out);
    }
    std::fclose(out);
    std::string const command = "python3 '" + beside("selsync_reference.py") + "' " + path;
    std::FILE* const in = ::popen(command.c_str(), "r");
    REQUIRE(in != nullptr);
    std::vector<bool> result;
    for (int c; (c = std::fgetc(in)) != EOF;)
        if (c == '0' || c == '1') result.push_back(c == '1');
    CHECK(::pclose(in) == 0);
    ::unlink(path);
    return result;
}

template <selective_tuning Tuning> void as_referenced() {
    for (std::size_t const ranks : {std::size_t{1}, std::size_t{4}}) {
        norms const all = training(ranks, 200, ranks);
        std::vector<bool> const own = decisions<selective<Tuning>>(all), theirs = referenced(all, Tuning);
        CHECK(own == theirs);
        std::size_t exchanged = 0;
        for (bool const one : own) exchanged += one;
        INFO("exchanged ", exchanged, " of 200, window ", Tuning.window, ", ranks ", ranks);
        if (Tuning.threshold > 0 && Tuning.threshold < 100)
            CHECK((exchanged > static_cast<std::size_t>(Tuning.window) && exchanged < 200));
    }
}

} // namespace

TEST_CASE("selective: the decisions of an independent reference, from the same norms, now and a step ahead") {
    if (std::system("python3 -c '' >/dev/null 2>&1") != 0) {
        MESSAGE("there is no python3: not compared");
        return;
    }
    as_referenced<selective_tuning{.threshold = 0.3f, .window = 2, .smoothing = 0.16f, .ahead = 0}>();
    as_referenced<selective_tuning{.threshold = 0.05f, .window = 25, .smoothing = 0.01f, .ahead = 0}>();
    as_referenced<selective_tuning{.threshold = 0.05f, .window = 25, .smoothing = 0.16f, .ahead = 1}>();
    as_referenced<selective_tuning{.threshold = 0.1f, .window = 8, .smoothing = 0.5f, .ahead = 1}>();
    as_referenced<selective_tuning{.threshold = 0, .window = 4}>();
    as_referenced<selective_tuning{.threshold = 1000, .window = 4, .ahead = 0}>();
}

TEST_CASE(
    "selective: the first window exchanges; a threshold of 0 is every step, a large one is local for good") {
    norms const flat(40, std::vector<double>{1.0, 1.0});
    using always = selective<selective_tuning{.threshold = 0, .ahead = 0}>;
    using hardly = selective<selective_tuning{.threshold = 1e9f, .window = 5, .ahead = 0}>;
    using later = selective<selective_tuning{.threshold = 1e9f, .window = 5, .ahead = 1}>;
    for (bool const one : decisions<always>(flat)) CHECK(one);
    auto const now = decisions<hardly>(flat), ahead = decisions<later>(flat);
    for (std::size_t t = 0; t < flat.size(); ++t) {
        CHECK(now[t] == (t < 5));
        CHECK(ahead[t] == (t < 6));
    }
}

TEST_CASE("selective: by bucket, each by its own gradient") {
    selective<selective_tuning{.threshold = 0.3f, .window = 1, .ahead = 0, .per_bucket = true}> one;
    auto const step = [&](double first, double second) {
        one.observe(0, first);
        one.observe(1, second);
        one.agreed(one.vote());
    };
    step(1, 1);
    CHECK((one.due(0) && one.due(1)));
    step(1.25, 1.5);
    CHECK((!one.due(0) && one.due(1)));
    step(0.5, 1.5);
    CHECK((one.due(0) && !one.due(1)));
    CHECK(one.due(ballot::bits)); // it shares the bit of bucket 0
}

TEST_CASE(
    "selective: a gradient that is not finite is a vote, and no sample; one of zeros changes to anything") {
    using one_sample = selective<selective_tuning{.threshold = 0.3f, .window = 1, .ahead = 0}>;
    one_sample one;
    auto const wants = [&](double squares) {
        one.observe(0, squares);
        return one.vote().any();
    };
    CHECK(wants(1));
    CHECK_FALSE(wants(1));
    CHECK(wants(std::numeric_limits<double>::quiet_NaN()));
    CHECK(wants(std::numeric_limits<double>::infinity()));
    CHECK_FALSE(wants(1.25));
    CHECK(wants(0));
    CHECK(wants(1e-300));
}
