// herring: ranks of a group of PyTorch as threads: what each gives to a gather lies in memory of all.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_TORCH_RANKS_HPP
#define HERRING_TESTS_TORCH_RANKS_HPP

#include "herring/torch/table.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace torch_ranks {

/// Gathers bytes of threads.
struct room {
    std::size_t ranks;
    std::mutex mutex{};
    std::condition_variable changed{};
    std::vector<std::vector<std::vector<std::byte>>> rounds{}; // of each rank, what it gave
    explicit room(std::size_t of) : ranks(of), rounds(of) {}
};
struct seat {
    room* in;
    std::size_t rank;
    char const* fault = nullptr;

    herring::torch::gather_function through() noexcept { return {this, all}; }

    static char const* all(void* self, void const* mine, std::size_t size, void* to,
                           void (*reply)(void*, void const*, std::size_t)) {
        auto& of = *static_cast<seat*>(self);
        if (of.fault != nullptr) return of.fault;
        std::unique_lock lock(of.in->mutex);
        auto& own = of.in->rounds[of.rank];
        auto const* const first = static_cast<std::byte const*>(mine);
        own.emplace_back(first, first + size);
        std::size_t const round = own.size();
        of.in->changed.notify_all();
        bool const all_are_here = of.in->changed.wait_for(lock, std::chrono::seconds(60), [&] {
            for (auto const& one : of.in->rounds)
                if (one.size() < round) return false;
            return true;
        });
        if (!all_are_here) return "a rank gave nothing within 60 s";
        for (auto const& one : of.in->rounds) reply(to, one[round - 1].data(), one[round - 1].size());
        return nullptr;
    }
};

/// Runs `rank(seat&)` in so many threads.
template <class Rank> void run(int size, Rank rank) {
    room here(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < here.ranks; ++r)
        threads.emplace_back([&, r] {
            seat mine{&here, r};
            rank(mine);
        });
    for (auto& one : threads) one.join();
}

} // namespace torch_ranks

#endif
