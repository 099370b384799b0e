// herring: the lines of the device's kernel, run by the host: the bits of the host's fold, at any size and alignment.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/fold.hpp"

#include "herring/kernel/fold.hpp"
#include "herring/update/rules.hpp"

#include "doctest/doctest.h"

#include <cstdint>
#include <cstring>
#include <vector>

using namespace herring;

namespace {

struct dice {
    std::uint64_t state;
    std::uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }
    std::size_t below(std::size_t n) { return next() % n; }
};

// By many threads, as a kernel runs: any number of them, each its share.
template <class Update, class T> void by_threads(gpu::fold_args const& work, std::size_t threads) {
    gpu::detail::choose_share<Update, T>(work, [&](auto const& share) {
        for (std::size_t thread = threads; thread-- > 0;)
            for (std::size_t j = 0; j < work.where.count(); ++j) share.run(j, thread, threads);
    });
}

// Not an update rule of Herring's: has no with_finish.
struct halved {
    template <class Acc> static constexpr Acc combine(Acc a, Acc b) noexcept { return a * Acc(0.5) + b; }
    template <class Acc> static constexpr Acc finish(Acc total, int ranks) noexcept {
        return total + static_cast<Acc>(ranks);
    }
    static constexpr herring::update_facts facts{};
};

template <class T, class Update> void compare(std::uint64_t seed) {
    dice roll{seed * 0x9e3779b97f4a7c15u + 1};
    for (int round = 0; round < 60; ++round) {
        CAPTURE(seed);
        CAPTURE(round);
        int const k = 1 + static_cast<int>(roll.below(10));
        bool const in_place = roll.below(2) == 0, wide = roll.below(3) == 0;
        int const ranks = wide ? 0 : static_cast<int>(roll.below(9));
        std::size_t const elements = roll.below(600), chunk = 1 + roll.below(200);
        std::uint32_t const stride = 1 + static_cast<std::uint32_t>(roll.below(4));
        gpu::slices const where{roll.below(40), elements, chunk,
                                static_cast<std::uint32_t>(roll.below(stride)), stride};
        std::size_t const room = where.offset + elements + 8;
        // Mostly alike in alignment, sometimes not.
        std::size_t const shift = roll.below(9);
        std::vector<std::vector<T>> from(static_cast<std::size_t>(k));
        std::vector<T*> at;
        for (auto& one : from) {
            one.resize(room + 16);
            for (T& v : one) {
                auto const bits = roll.next();
                std::memcpy(static_cast<void*>(&v), &bits, sizeof v);
            }
            at.push_back(one.data() + (roll.below(4) == 0 ? roll.below(9) : shift));
        }
        int const targets = wide ? 1 : 1 + static_cast<int>(roll.below(3));
        std::vector<std::vector<T>> to(static_cast<std::size_t>(targets), std::vector<T>(room + 16, T{}));
        std::vector<accumulator<T>> partial(room + 16), want_partial(room + 16);
        std::vector<T> want(room + 16, T{});

        std::vector<kernel::source> sources;
        for (T* const s : at) sources.push_back({s});
        for (std::size_t j = 0; j < where.count(); ++j) {
            std::vector<kernel::source> here = sources;
            for (kernel::source& s : here) s.data = static_cast<T const*>(s.data) + where.begin(j);
            T* const target = want.data() + where.begin(j);
            if (wide)
                kernel::fold_partial<Update, T>(here, want_partial.data() + where.begin(j), where.size(j));
            else
                kernel::fold<Update, T>(here, std::span<T* const>(&target, 1), where.size(j), ranks);
        }

        gpu::fold_args work;
        for (int s = 0; s < k; ++s) work.sources[s] = at[static_cast<std::size_t>(s)];
        work.source_count = k;
        work.target_count = targets;
        work.in_accumulator = wide;
        work.ranks = ranks;
        work.where = where;
        for (int t = 0; t < targets; ++t) work.targets[t] = to[static_cast<std::size_t>(t)].data();
        if (wide) work.targets[0] = partial.data();
        if (in_place && !wide) work.targets[0] = at[roll.below(at.size())];
        by_threads<Update, T>(work, 1 + roll.below(70));
        if (wide) {
            // Partial sums need not agree in a NaN's bits: they are no result yet.
            std::size_t different = 0;
            for (std::size_t i = 0; i < partial.size(); ++i)
                different += !(partial[i] == want_partial[i]) &&
                             (partial[i] == partial[i] || want_partial[i] == want_partial[i]);
            CHECK(different == 0);
            continue;
        }
        for (int t = 0; t < targets; ++t) {
            auto const* const got = static_cast<T const*>(work.targets[t]);
            std::size_t different = 0;
            for (std::size_t j = 0; j < where.count(); ++j)
                for (std::size_t i = where.begin(j); i < where.begin(j) + where.size(j); ++i)
                    different += std::memcmp(&got[i], &want[i], sizeof(T)) != 0;
            CHECK(different == 0);
        }
        // Beside its slices it wrote nothing.
        if (!(in_place && !wide))
            for (auto const& one : to) {
                std::vector<T> blank(one.size(), T{});
                for (std::size_t j = 0; j < where.count(); ++j)
                    std::memcpy(static_cast<void*>(blank.data() + where.begin(j)),
                                one.data() + where.begin(j), where.size(j) * sizeof(T));
                CHECK(std::memcmp(one.data(), blank.data(), one.size() * sizeof(T)) == 0);
            }
    }
}

} // namespace

TEST_CASE("gpu fold: the bits of the host's fold") {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        compare<float, update::sum>(seed);
        compare<float, update::average>(seed);
        compare<double, update::average>(seed);
        compare<bfloat16, update::average>(seed);
        compare<float16, update::sum>(seed);
        compare<std::int32_t, update::sum>(seed);
        compare<std::uint32_t, update::sum>(seed);
        compare<std::int64_t, update::max>(seed);
        compare<float16, update::max>(seed);
        compare<float, halved>(seed);
    }
}
