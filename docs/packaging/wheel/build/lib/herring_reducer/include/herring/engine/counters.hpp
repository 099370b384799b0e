// herring: what a reducer has done so far, in numbers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_COUNTERS_HPP
#define HERRING_ENGINE_COUNTERS_HPP

#include "herring/base/config.hpp"

#include <atomic>
#include <cstdint>

namespace HERRING_NAMESPACE {

/// A snapshot; all counts since construction.
struct counters {
    std::uint64_t operations = 0;    ///< buckets, and calls or pieces of all_reduce, that are complete
    std::uint64_t messages_sent = 0; ///< by the transport
    std::uint64_t messages_received = 0;
    std::uint64_t bytes_sent = 0; ///< payload
    std::uint64_t bytes_received = 0;
    std::uint64_t wait_ns = 0;    ///< in wait() and all_reduce() with nothing to do
    int slowest_rank = -1;        ///< contributor that the last wait() or all_reduce() waited for longest
    std::uint64_t slowest_ns = 0; ///< for how long
};

namespace detail {

/// A count that one thread raises and any thread reads.
class tally {
  public:
    void add(std::uint64_t more) noexcept { value_.store(get() + more, std::memory_order_relaxed); }
    void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::uint64_t> value_{0};
};

} // namespace detail
} // namespace HERRING_NAMESPACE

#endif // HERRING_ENGINE_COUNTERS_HPP
