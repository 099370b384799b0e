// herring: what the fold kernels cost beside memcpy and beside the loop that one would write by hand, and what checks cost.
// SPDX-License-Identifier: Apache-2.0
//
// Build it alone:  mkdir -p build && g++ -std=c++20 -O2 -Iinclude bench/kernel_bench.cpp -o build/kernel_bench
// GB/s counts every byte read from a source and every byte written to a target, 1e9 bytes a GB; best of the
// repeats, the contenders taken in turn. In the rows "in place" the target is the first source.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "herring/base/crc32c.hpp"
#include "herring/crypto/sha256.hpp"
#include "herring/kernel/fold.hpp"
#include "herring/update/rules.hpp"

namespace {

using herring::kernel::source;

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

template <class T> using accumulator = herring::accumulator<T>;

// What one would write by hand: k pointers in the innermost loop, one element at a time.
template <class T>
[[gnu::noinline]] void plain_loop(T const* const* from, int k, T* to, std::size_t count, bool average) {
    for (std::size_t i = 0; i < count; ++i) {
        auto total = static_cast<accumulator<T>>(from[0][i]);
        for (int s = 1; s < k; ++s) total += static_cast<accumulator<T>>(from[s][i]);
        if (average) total /= static_cast<accumulator<T>>(k);
        to[i] = static_cast<T>(total);
    }
}
#if defined(__clang__)
#define HERRING_BENCH_O3 [[gnu::noinline]]
#else
#define HERRING_BENCH_O3 [[gnu::noinline, gnu::optimize("O3")]]
#endif
// The best one can hope for without a library: a loop written for this very k, vectorised by the compiler.
template <int K, class T>
HERRING_BENCH_O3 void fixed_loop_in_place(T const* const* from, T* __restrict to, std::size_t count) {
    T const* __restrict p[K];
    for (int s = 1; s < K; ++s) p[s] = from[s];
    for (std::size_t i = 0; i < count; ++i) {
        auto total = static_cast<accumulator<T>>(to[i]);
        for (int s = 1; s < K; ++s) total += static_cast<accumulator<T>>(p[s][i]);
        to[i] = static_cast<T>(total);
    }
}
template <int K, class T>
HERRING_BENCH_O3 void fixed_loop(T const* const* from, T* __restrict to, std::size_t count) {
    T const* __restrict p[K];
    for (int s = 0; s < K; ++s) p[s] = from[s];
    for (std::size_t i = 0; i < count; ++i) {
        auto total = static_cast<accumulator<T>>(p[0][i]);
        for (int s = 1; s < K; ++s) total += static_cast<accumulator<T>>(p[s][i]);
        to[i] = static_cast<T>(total);
    }
}
template <int K, class T> void fixed_one(T const* const* from, T* to, std::size_t count) {
    from[0] == to ? fixed_loop_in_place<K>(from, to, count) : fixed_loop<K>(from, to, count);
}
template <class T> void fixed(T const* const* from, int k, T* to, std::size_t count) {
    if (k == 1) fixed_one<1>(from, to, count);
    if (k == 2) fixed_one<2>(from, to, count);
    if (k == 4) fixed_one<4>(from, to, count);
    if (k == 8) fixed_one<8>(from, to, count);
    if (k == 16) fixed_one<16>(from, to, count);
}

template <class Function> double best_of(int repeats, std::size_t inner, Function&& run) {
    double best = 1e9;
    for (int r = 0; r < repeats; ++r) {
        auto const start = std::chrono::steady_clock::now();
        for (std::size_t i = 0; i < inner; ++i) {
            run();
            asm volatile("" ::: "memory");
        }
        best = std::min(best, seconds_since(start) / static_cast<double>(inner));
    }
    return best;
}

template <class T> void table(char const* where, std::size_t bytes_in_all) {
    for (int k : {1, 2, 4, 8, 16, 64}) {
        std::size_t const bytes = bytes_in_all / static_cast<std::size_t>(k + 1) / 4096 * 4096;
        std::size_t const count = bytes / sizeof(T);
        if (count == 0) continue;
        std::vector<std::unique_ptr<T[]>> buffers;
        for (int s = 0; s <= k; ++s) {
            // Shifted against each other, so that the streams do not meet in the same cache sets.
            buffers.push_back(
                std::make_unique<T[]>(count + 2048 / sizeof(T) * static_cast<std::size_t>(s % 7)));
            for (std::size_t i = 0; i < count; ++i)
                buffers.back()[i] =
                    static_cast<T>(static_cast<float>((i * 7 + static_cast<std::size_t>(s)) % 61));
        }
        std::vector<T const*> from;
        std::vector<source> sources;
        for (int s = 0; s < k; ++s) {
            from.push_back(buffers[static_cast<std::size_t>(s)].get());
            sources.push_back({from.back()});
        }
        T* const to = buffers.back().get();
        T* const targets[1] = {to};
        double const moved = static_cast<double>(bytes) * (k + 1) * 1e-9;
        std::size_t const inner = std::max<std::size_t>(1, std::size_t{1} * 16 * 1024 * 1024 / bytes_in_all);
        for (bool const in_place : {false, true}) {
            if (in_place) {
                if (k == 1) continue; // nothing to add
                from[0] = to;
                sources[0] = {to};
            }
            using herring::kernel::fold;
            double sum = 1e9, divided = 1e9, plain = 1e9, exact = 1e9, copy = 1e9;
            for (int turn = 0; turn < 5; ++turn) {
                // In place every repeat adds the others once more: anew each turn, so that nothing overflows.
                if (in_place) std::memcpy(to, buffers.front().get(), bytes);
                sum = std::min(sum, best_of(2, inner, [&] {
                                   fold<herring::update::sum, T>(sources, targets, count, k);
                               }));
                if constexpr (!std::is_integral_v<T>)
                    divided = std::min(divided, best_of(2, inner, [&] {
                                           fold<herring::update::average, T>(sources, targets, count, 3);
                                       }));
                plain = std::min(plain,
                                 best_of(2, inner, [&] { plain_loop<T>(from.data(), k, to, count, false); }));
                exact = std::min(exact, best_of(2, inner, [&] { fixed<T>(from.data(), k, to, count); }));
                if (!in_place)
                    copy = std::min(copy, best_of(2, inner, [&] {
                                        for (int s = 0; s < k; s += 2)
                                            std::memcpy(to, from[static_cast<std::size_t>(s)], bytes);
                                    }));
            }
            double const copied = static_cast<double>(bytes) * 2 * ((k + 1) / 2) * 1e-9;
            auto const cell = [](char const* name, double rate) {
                if (rate > 0.0)
                    std::printf(" | %s %6.1f", name, rate);
                else
                    std::printf(" | %s %6s", name, "");
            };
            std::printf("%-10s %-6s k=%-3d %-8s",
                        herring::element<T>::name +
                            (std::strncmp(herring::element<T>::name, "herring::", 9) == 0 ? 9 : 0),
                        where, k, in_place ? "in place" : "");
            cell("fold sum", moved / sum);
            cell("fold average of 3", divided < 1e8 ? moved / divided : 0.0);
            cell("plain loop", moved / plain);
            cell("loop for this k, -O3", k <= 16 ? moved / exact : 0.0);
            cell("memcpy", in_place ? 0.0 : copied / copy);
            std::printf(" GB/s\n");
        }
    }
}

/// GB/s here count the bytes that are checked.
void checks() {
    using namespace herring::detail;
    for (std::size_t const bytes :
         {std::size_t{40}, std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 26}) {
        std::vector<std::byte> from(bytes, std::byte{0x5b}), to(bytes);
        std::span<std::byte const> const data = from;
        std::size_t const inner = std::max<std::size_t>(1, (std::size_t{1} << 22) / bytes);
        double crc = 1e9, table = 1e9, copy = 1e9, two = 1e9;
        std::uint32_t volatile kept = 0;
        for (int turn = 0; turn < 7; ++turn) {
            crc = std::min(crc, best_of(2, inner, [&] { kept = crc32c(data); }));
            table = std::min(table, best_of(2, inner, [&] { kept = crc32c_by_table(data); }));
            copy = std::min(copy, best_of(2, inner, [&] { kept = crc32c_copy(to.data(), data); }));
            two = std::min(two, best_of(2, inner, [&] {
                               std::memcpy(to.data(), from.data(), bytes);
                               asm volatile("" ::: "memory");
                               kept = crc32c(data);
                           }));
        }
        double const rate = static_cast<double>(bytes) * 1e-9;
        std::printf(
            "crc32c %8zu bytes | check %6.1f | by table %6.1f | crc32c_copy %6.1f | memcpy, then check "
            "%6.1f GB/s\n",
            bytes, rate / crc, rate / table, rate / copy, rate / two);
    }

    std::vector<std::byte> const data(65536, std::byte{0x5b});
    std::array<std::byte, 32> const key{};
    hmac_sha256 mac(key);
    sha256_digest digest{};
    double large = 1e9, small = 1e9;
    for (int turn = 0; turn < 5; ++turn) {
        large = std::min(large, best_of(2, 50, [&] { digest = mac.update(data).finish(); }));
        small = std::min(
            small, best_of(2, 10'000, [&] { digest = mac.update(std::span(data).first(128)).finish(); }));
    }
    std::printf("hmac-sha256 | 64 KiB %.2f GB/s | 128 bytes %.2f us\n", 65536e-9 / large, 1e6 * small);
}

} // namespace

int main() {
    checks();
    for (auto const& [where, bytes] :
         {std::pair<char const*, std::size_t>{"512KiB", 512 << 10}, {"64MiB", 64 << 20}}) {
        table<float>(where, bytes);
        table<double>(where, bytes);
        table<herring::bfloat16>(where, bytes);
        table<herring::float16>(where, bytes);
        table<std::int32_t>(where, bytes);
    }
}
