// herring: gathers bytes of the ranks of a process group of PyTorch through its store, to join a world.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_GATHERING_HPP
#define HERRING_TORCH_GATHERING_HPP

#include "herring/torch/table.hpp"

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace herring::torch {

/// Gathers bytes of all ranks through a store. Rank 0 collects what the ranks write, and writes it for all:
/// two requests a rank.
class gathering {
  public:
    /// `prefix`: of the group's keys in the store, which nothing else has used. `timeout`: of all rounds.
    gathering(::c10d::Store& store, std::string prefix, int rank, int size, std::chrono::milliseconds timeout)
        : store_(store), prefix_(std::move(prefix)), rank_(rank), size_(size),
          end_(std::chrono::steady_clock::now() + timeout) {}

    /// Lifetime: this object outlives what it returns.
    gather_function function() noexcept {
        return {this,
                [](void* self, void const* mine, std::size_t bytes, void* to,
                   void (*reply)(void*, void const*, std::size_t)) -> char const* {
                    return static_cast<gathering*>(self)->all(mine, bytes, to, reply);
                }};
    }

  private:
    char const* all(void const* mine, std::size_t bytes, void* to,
                    void (*reply)(void*, void const*, std::size_t)) {
        std::string const round = prefix_ + std::to_string(rounds_++) + "/";
        auto const key = [&](int rank) { return round + std::to_string(rank); };
        auto const first = static_cast<std::uint8_t const*>(mine);
        std::string missing = "this rank";
        try {
            store_.set(key(rank_), std::vector<std::uint8_t>(first, first + bytes));
            std::vector<std::uint8_t> all;
            if (rank_ == 0) {
                for (int r = 0; r < size_; ++r) {
                    missing = "rank " + std::to_string(r);
                    store_.wait({key(r)}, left());
                    auto const one = store_.get(key(r));
                    auto const length = static_cast<std::uint64_t>(one.size());
                    for (int byte = 0; byte < 8; ++byte)
                        all.push_back(static_cast<std::uint8_t>(length >> 8 * byte));
                    all.insert(all.end(), one.begin(), one.end());
                }
                store_.set(round + "all", all);
            } else {
                missing = "rank 0";
                store_.wait({round + "all"}, left());
                all = store_.get(round + "all");
            }
            return split(all, to, reply);
        } catch (std::exception const& e) {
            fault_ = missing + " has written nothing to the store of the process group: " +
                     std::string(e.what()).substr(0, 200);
            return fault_.c_str();
        }
    }
    /// Until the end of all rounds; at least 1 ms, for 0 is no timeout to a store.
    std::chrono::milliseconds left() const noexcept {
        auto const time =
            std::chrono::duration_cast<std::chrono::milliseconds>(end_ - std::chrono::steady_clock::now());
        return time.count() < 1 ? std::chrono::milliseconds(1) : time;
    }
    /// `all`: for each rank the length in 8 bytes, little-endian, and its bytes.
    char const* split(std::vector<std::uint8_t> const& all, void* to,
                      void (*reply)(void*, void const*, std::size_t)) const {
        std::size_t at = 0;
        for (int r = 0; r < size_; ++r) {
            if (all.size() - at < 8) return "what the store holds of rank 0 is cut off";
            std::uint64_t length = 0;
            for (unsigned byte = 0; byte < 8; ++byte)
                length |= static_cast<std::uint64_t>(all[at + byte]) << 8 * byte;
            at += 8;
            if (all.size() - at < length) return "what the store holds of rank 0 is cut off";
            reply(to, all.data() + at, static_cast<std::size_t>(length));
            at += static_cast<std::size_t>(length);
        }
        return nullptr;
    }

    ::c10d::Store& store_;
    std::string const prefix_;
    int const rank_, size_;
    std::chrono::steady_clock::time_point const end_;
    int rounds_ = 0;
    std::string fault_;
};

} // namespace herring::torch

#endif // HERRING_TORCH_GATHERING_HPP
