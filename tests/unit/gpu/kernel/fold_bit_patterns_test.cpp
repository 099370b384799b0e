// herring: the values that the test of the device's kernel feeds: what a wrong kernel would do to them is seen.
// SPDX-License-Identifier: Apache-2.0
#include "cuda/bit_patterns.hpp"

#include "herring/gpu/kernel/fold.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

using namespace herring;

namespace {

// As a device that flushes subnormal numbers to zero: what goes in and what comes out.
struct flushing {
    static constexpr update_facts facts{};
    template <class Acc> static constexpr Acc flushed(Acc a) noexcept {
        return a < std::numeric_limits<Acc>::min() && a > -std::numeric_limits<Acc>::min() ? a * Acc(0) : a;
    }
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept {
        return flushed(flushed(a) + flushed(b));
    }
    template <class Acc> static constexpr Acc finish(Acc total, int) noexcept { return total; }
};

template <class T> bool same(T const& a, T const& b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

constexpr std::size_t count = 20000;

template <class T> struct sums {
    std::vector<std::vector<T>> from;
    std::vector<T> want = std::vector<T>(count), flushed = want;
    std::vector<accumulator<T>> wide = std::vector<accumulator<T>>(count);

    explicit sums(int k) {
        std::vector<kernel::source> sources;
        gpu::fold_args work;
        for (int s = 0; s < k; ++s) {
            from.emplace_back(count);
            for (std::size_t i = 0; i < count; ++i) from.back()[i] = bit_patterns::value<T>(i, s);
        }
        for (int s = 0; s < k; ++s) {
            T const* const at = from[static_cast<std::size_t>(s)].data();
            sources.push_back({at});
            work.sources[s] = at;
        }
        work.source_count = k;
        work.target_count = 1;
        work.where = {0, count, count, 0, 1};
        T* const to = want.data();
        kernel::fold<update::sum, T>(sources, std::span<T* const>(&to, 1), count, 0);
        std::vector<T> got(count);
        work.targets[0] = got.data();
        gpu::fold_on_host<update::sum, T>(work);
        CHECK(std::memcmp(got.data(), want.data(), count * sizeof(T)) == 0);
        work.targets[0] = flushed.data();
        gpu::fold_on_host<flushing, T>(work);
        work.in_accumulator = true;
        work.targets[0] = wide.data();
        gpu::fold_on_host<update::sum, T>(work);
    }
};

template <class T> void every_slip_is_seen() {
    for (int const k : {2, 3, 8}) {
        sums<T> const all(k);
        std::size_t flushed = 0, payloads = 0, overflows = 0, minus_zeroes = 0, ties[2] = {};
        for (std::size_t i = 0; i < count; ++i) {
            using number = accumulator<T>;
            number const total = all.wide[i];
            auto const result = static_cast<number>(all.want[i]);
            bool finite = true;
            for (auto const& one : all.from) finite = finite && std::isfinite(static_cast<number>(one[i]));
            flushed += !same(all.flushed[i], all.want[i]);
            payloads += std::isnan(total) && !same(static_cast<T>(total), all.want[i]);
            overflows += finite && std::isinf(result);
            minus_zeroes += result == 0 && std::signbit(result);
            if (sizeof(T) == 2 && std::isfinite(result) && total != result) {
                // In the middle: what is a little less goes down, and what is a little more goes up.
                auto const less = static_cast<number>(static_cast<T>(std::nextafter(total, number(0))));
                auto const more = static_cast<number>(static_cast<T>(std::nextafter(total, 2 * total)));
                if (less != more) ++ties[result == more];
            }
        }
        CAPTURE(k);
        // Of 16-bit floats only bfloat16 has numbers that are subnormal as floats.
        CHECK((flushed > count / 20) == !std::is_same_v<T, float16>);
        CHECK(payloads > count / 50);
        CHECK(overflows > count / 50);
        CHECK(minus_zeroes > count / 1000);
        if (sizeof(T) == 2) {
            CHECK(ties[0] > count / 50);
            CHECK(ties[1] > count / 50);
        }
    }
}

} // namespace

TEST_CASE("bit_patterns: flushed subnormals, kept payloads, overflows and halves rounded wrongly are seen") {
    every_slip_is_seen<float>();
    every_slip_is_seen<double>();
    every_slip_is_seen<bfloat16>();
    every_slip_is_seen<float16>();
}

TEST_CASE("bit_patterns: elements are of every kind, and all their sources of the same") {
    std::size_t of[bit_patterns::kinds] = {};
    for (std::uint64_t e = 0; e < count; ++e) {
        auto const kind = bit_patterns::kind_of(e);
        ++of[static_cast<std::size_t>(kind)];
        if (kind == bit_patterns::kind::zero)
            for (int s = 0; s < 9; ++s) REQUIRE(bit_patterns::value<float>(e, s) == 0);
    }
    for (std::size_t const n : of) CHECK(n > count / 10);
}
