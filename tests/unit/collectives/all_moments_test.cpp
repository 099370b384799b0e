// herring: tests of collectives/all_moments.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/collectives/all_moments.hpp"

#include "unit/collectives/collectives.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace all_moments_test {

using herring::moments_result;
using flat = herring::reducer<float, herring::transport::inproc, herring::update::moments>;
using nodes = herring::reducer<float, herring::transport::inproc, herring::intra_node::shared_memory,
                               herring::update::moments>;
using sample = herring::reducer<double, herring::transport::inproc, herring::intra_node::shared_memory,
                                herring::update::sample_moments>;

inline double deviation_of(int ranks, std::size_t i, int divisor) {
    double const mean = static_cast<double>(collectives::sum(ranks, i)) / ranks;
    double squares = 0;
    for (int r = 0; r < ranks; ++r) {
        double const off = static_cast<double>(collectives::value(r, i)) - mean;
        squares += off * off;
    }
    return std::sqrt(squares / divisor);
}

/// 0: both results are those of `n` elements, and so is what is told of the largest.
template <class T>
int wrong(int ranks, int divisor, std::span<T const> mean, std::span<T const> deviation,
          moments_result<T> const& told) {
    T largest = 0;
    std::size_t index = 0;
    double means[collectives::period], deviations[collectives::period];
    for (std::size_t i = 0; i < collectives::period; ++i) {
        means[i] = static_cast<double>(collectives::sum(ranks, i)) / ranks;
        deviations[i] = deviation_of(ranks, i, divisor);
    }
    T const *const m = mean.data(), *const d = deviation.data();
    for (std::size_t i = 0, k = 0, n = mean.size(); i < n; ++i) {
        T const one = d[i];
        double const off = static_cast<double>(m[i]) - means[k],
                     other = static_cast<double>(one) - deviations[k];
        if (!(off <= 1e-3 && off >= -1e-3)) return 1;
        if (!(other <= 1e-3 && other >= -1e-3)) return 2;
        if (one > largest) largest = one, index = i;
        if (++k == collectives::period) k = 0;
    }
    if (told != moments_result<T>{largest, index}) return 3;
    return 0;
}

template <class Reducer, class T = typename Reducer::element_type> int of_every_size(herring::world& world) {
    Reducer reduce(world);
    int const ranks = world.size(), divisor = Reducer::pack::update::divisor_of_squares(ranks);
    for (std::size_t const size : collectives::sizes) {
        std::size_t const n =
            size > 100'000 ? (size * sizeof(float) / sizeof(T)) | 1 : size; // of doubles as many bytes
        std::vector<float> const values = collectives::filled(world.rank(), n);
        std::vector<T> const given(values.begin(), values.end()), unset(n, -1);
        std::vector<T> in = given, mean = unset, deviation = unset;
        moments_result<T> const told = herring::all_moments(reduce, in, mean, deviation);
        if (!same_bytes(in, given)) return 10;
        if (int const why = wrong<T>(ranks, divisor, mean, deviation, told); why != 0) return why;
        // In place of the input: the means, and then the deviations; between them another collective.
        std::vector<T> averaged = given;
        reduce.all_reduce(averaged);
        if (!same_bytes(averaged, mean)) return 11;
        std::vector<T> other = unset;
        if (herring::all_moments(reduce, in, in, other) != told || !same_bytes(in, mean) ||
            !same_bytes(other, deviation))
            return 12;
        moments_result<T> again;
        in = given;
        if (!herring::all_moments(reduce, in, other, in, again, std::chrono::seconds(20)).ok()) return 13;
        if (again != told || !same_bytes(other, mean) || !same_bytes(in, deviation)) return 14;
        if (!herring::all_moments(reduce, given, mean, deviation, again,
                                  herring::clock::now() + std::chrono::seconds(20))
                 .ok() ||
            again != told)
            return 15;
    }
    return 0;
}

template <class Function> bool refused(Function&& call, char const* word) {
    try {
        call();
    } catch (herring::error const& why) {
        return why.code() == herring::errc::bad_argument && std::strstr(why.what(), word) != nullptr;
    }
    return false;
}

} // namespace all_moments_test

TEST_CASE("all_moments: mean, deviation and the largest, on every shape and size") {
    using namespace all_moments_test;
    for (auto const& shape : collectives::shapes) {
        CAPTURE(shape.size());
        CAPTURE(shape.back());
        CHECK(collectives::run(shape, of_every_size<flat>) == 0);
        CHECK(collectives::run(shape, of_every_size<nodes>) == 0);
        if (shape.size() > 1) CHECK(collectives::run(shape, of_every_size<sample>) == 0);
    }
}

TEST_CASE("all_moments: what is no number passes every threshold, on every rank") {
    using namespace all_moments_test;
    for (auto const& shape : collectives::shapes)
        CHECK(collectives::run(shape, [](herring::world& world) {
                  nodes reduce(world);
                  for (std::size_t const n : {7u, 5000u}) {
                      std::vector<float> in(n, 1.0f), mean(n), deviation(n);
                      auto const still = herring::all_moments(reduce, in, mean, deviation);
                      if (still.exceeds(0) || still.index != 0 || still.largest_deviation != 0) return 1;
                      if (world.rank() == world.size() - 1) {
                          in[n - 3] = std::numeric_limits<float>::infinity();
                          in[n - 1] = std::nanf("");
                      }
                      auto const told = herring::all_moments(reduce, in, mean, deviation);
                      if (!told.exceeds(1e30f) || told.index != n - 3) return 2;
                      if (told.largest_deviation == told.largest_deviation) return 3;
                      if (mean[n - 3] != std::numeric_limits<float>::infinity()) return 4;
                      if (mean[n - 1] == mean[n - 1] || deviation[n - 1] == deviation[n - 1]) return 5;
                      if (mean[n - 2] != 1.0f || deviation[n - 2] != 0.0f) return 6;
                  }
                  return 0;
              }) == 0);
}

TEST_CASE("all_moments: sizes and buffers that do not fit are refused, and nothing is lost") {
    using namespace all_moments_test;
    CHECK(collectives::run({"a", "b"}, [](herring::world& world) {
              nodes reduce(world);
              std::vector<float> in(100, 1.0f), mean(100), deviation(100), few(99);
              std::span<float> const all(mean);
              if (!refused([&] { herring::all_moments(reduce, in, few, deviation); }, "one size")) return 1;
              if (!refused([&] { herring::all_moments(reduce, in, mean, few); }, "one size")) return 2;
              if (!refused([&] { herring::all_moments(reduce, in, mean, mean); }, "give two")) return 3;
              if (!refused([&] { herring::all_moments(reduce, in, all.first(60), all.subspan(40)); },
                           "one size"))
                  return 4;
              if (!refused(
                      [&] {
                          herring::all_moments(reduce, std::span(in).first(60), all.first(60),
                                               all.subspan(40));
                      },
                      "overlap"))
                  return 5;
              herring::all_moments(reduce, in, mean, deviation);
              return mean[99] == 1.0f && deviation[99] == 0.0f ? 0 : 6;
          }) == 0);
    CHECK(collectives::run({"a"}, [](herring::world& world) {
              sample reduce(world);
              std::vector<double> in(10, 1.0), mean(10), deviation(10);
              return refused([&] { herring::all_moments(reduce, in, mean, deviation); }, "divided by 0") ? 0
                                                                                                         : 1;
          }) == 0);
}

TEST_CASE("all_moments: the largest deviation, wherever it lies, and the first of several") {
    using herring::detail::largest_of;
    using result = herring::moments_result<float>;
    CHECK(largest_of<float>({}) == result{});
    for (std::size_t const n : {1u, 2u, 15u, 16u, 17u, 1023u, 1024u, 1025u, 5000u}) {
        std::vector<float> values(n, 0.5f);
        CHECK(largest_of<float>(values) == result{0.5f, 0});
        for (std::size_t const at : {std::size_t{0}, n / 2, n - 1}) {
            values[at] = 2.0f;
            CHECK(largest_of<float>(values) == result{2.0f, at});
            values[n - 1] = 2.0f;
            CHECK(largest_of<float>(values) == result{2.0f, at});
            values[n - 1] = std::nanf("");
            auto const none = largest_of<float>(values);
            CHECK(none.largest_deviation != none.largest_deviation);
            CHECK(none.index == n - 1);
            values[n / 3] = std::nanf("");
            CHECK(largest_of<float>(values).index == n / 3);
            values.assign(n, 0.5f);
        }
    }
    std::vector<herring::bfloat16> const halves{herring::bfloat16(1.0f), herring::bfloat16(3.0f)};
    CHECK(largest_of<herring::bfloat16>(halves) == result{3.0f, 1});
    CHECK(result{2.0f, 0}.exceeds(1.9f));
    CHECK(!result{2.0f, 0}.exceeds(2.0f));
}
