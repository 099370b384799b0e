// herring: what a frontend keeps for each request in flight, beside the rules' own state: memory that is allocated once.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_REQUESTS_IN_FLIGHT_HPP
#define HERRING_ENSEMBLE_REQUESTS_IN_FLIGHT_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_set.hpp"
#include "herring/ensemble/outcome.hpp"
#include "herring/machine/private_memory.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// One request in flight, or an answer that still exists.
struct in_flight {
    static constexpr std::uint32_t asleep = 0, called = 1;

    std::atomic<std::uint32_t> word{asleep}; ///< the thread that waits for it sleeps on this
    bool decided = false;
    bool waits = false;    ///< a thread waits for it, and does not drive
    bool is_async = false; ///< is fetched by `next_done`
    bool weighted = false;
    bool shared = false; ///< a row that counted lies in memory that its member can write to
    bool hedged = false; ///< lanes other than those of `asked` may have its bytes
    outcome how = outcome::busy;
    std::uint64_t id = 0;
    std::uint64_t cookie = 0; ///< the program's, of an asynchronous request
    std::int64_t deadline = 0;
    std::span<std::byte const> bytes{}; ///< of the request, while lanes may send them
    std::size_t rows = 0;               ///< that counted
    member_set contributors{};
    slot_index before = 0, after = 0; ///< in the list that it is in
};

/// A list through requests in flight, each in one list at most. Oldest first.
class request_list {
  public:
    bool empty() const noexcept { return first_ == none; }
    slot_index first() const noexcept { return first_; }

    void append(fixed_array<in_flight>& of, slot_index at) noexcept {
        of[at].before = last_;
        of[at].after = none;
        (last_ == none ? first_ : of[last_].after) = at;
        last_ = at;
    }
    void remove(fixed_array<in_flight>& of, slot_index at) noexcept {
        in_flight const& r = of[at];
        (r.before == none ? first_ : of[r.before].after) = r.after;
        (r.after == none ? last_ : of[r.after].before) = r.before;
    }

  private:
    static constexpr slot_index none = ~slot_index{0};

    slot_index first_ = none, last_ = none;
};

/// Sizes of the memory of requests in flight.
struct in_flight_sizes {
    std::size_t requests = 0;
    std::size_t members = 0;      ///< to which the roster may grow
    std::size_t result_bytes = 0; ///< of a combined row and its statistics

    /// Shape:  requests · (members · 24 + result_bytes in cache lines + a record).
    constexpr std::size_t bytes() const noexcept {
        return requests * (members * (sizeof(std::span<std::byte const>) + 2 * sizeof(float)) + stride() +
                           sizeof(in_flight));
    }
    constexpr std::size_t stride() const noexcept { return round_up(result_bytes, 64); }
};

/// Every request's record, rows, weights and result.
///
/// Lifetime: a request's row spans point into lanes; those are kept while rows are held (`link`).
class requests_in_flight {
  public:
    HERRING_SETUP explicit requests_in_flight(in_flight_sizes const& sizes)
        : sizes_(sizes), records_(sizes.requests), rows_(sizes.requests * sizes.members),
          weights_(sizes.requests * sizes.members), chosen_(sizes.requests * sizes.members),
          results_(results(sizes)) {}

    std::size_t size() const noexcept { return records_.size(); }
    fixed_array<in_flight>& records() noexcept { return records_; }
    in_flight& operator[](slot_index at) noexcept { return records_[at]; }
    in_flight const& operator[](slot_index at) const noexcept { return records_[at]; }

    /// Of all members of the roster, as they were given.
    std::span<float> weights(slot_index at) noexcept { return {&weights_[first(at)], sizes_.members}; }
    /// Of the rows that counted, in roster order, and the rows: `in_flight::rows` of them are filled.
    std::span<float> chosen(slot_index at) noexcept { return {&chosen_[first(at)], sizes_.members}; }
    std::span<std::span<std::byte const>> rows(slot_index at) noexcept {
        return {&rows_[first(at)], sizes_.members};
    }
    std::span<std::byte> result(slot_index at) noexcept {
        return {results_.data() + at * sizes_.stride(), sizes_.result_bytes};
    }

  private:
    std::size_t first(slot_index at) const noexcept { return at * sizes_.members; }
    HERRING_SETUP static private_memory results(in_flight_sizes const& sizes) {
        std::size_t all = 0;
        if (__builtin_mul_overflow(sizes.requests, sizes.stride(), &all))
            throw error(errc::no_resources, -1, -1, "frontend",
                        {sizes.requests, " results of ", sizes.result_bytes,
                         " bytes are more than there are addresses; lower in_flight"});
        return private_memory(all > 0 ? all : 64, -1);
    }

    in_flight_sizes sizes_;
    fixed_array<in_flight> records_;
    fixed_array<std::span<std::byte const>> rows_;
    fixed_array<float> weights_, chosen_;
    private_memory results_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_REQUESTS_IN_FLIGHT_HPP
