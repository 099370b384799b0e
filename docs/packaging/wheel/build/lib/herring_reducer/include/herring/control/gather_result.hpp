// herring: the bytes of all ranks, as all_gather returns them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_GATHER_RESULT_HPP
#define HERRING_CONTROL_GATHER_RESULT_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"

#include <cstddef>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE {

/// Bytes of every rank, rank after rank in one buffer.
///
/// Shape:    `size()` ranks; `[rank]` are the bytes of that rank, which may be none.
/// Lifetime: a value that is moved, not copied; the spans point into it.
class gather_result {
  public:
    gather_result() = default;
    /// For backends: has room for `sizes[rank]` bytes of each rank, zeroed.
    HERRING_SETUP explicit gather_result(detail::fixed_array<std::size_t> sizes) : ends_(std::move(sizes)) {
        std::size_t end = 0;
        for (std::size_t& size : ends_) size = end += size;
        bytes_ = detail::fixed_array<std::byte>(end);
    }

    std::size_t size() const noexcept { return ends_.size(); }
    std::span<std::byte const> operator[](std::size_t rank) const noexcept {
        return {bytes_.data() + begin_of(rank), ends_[rank] - begin_of(rank)};
    }
    std::span<std::byte> operator[](std::size_t rank) noexcept {
        return {bytes_.data() + begin_of(rank), ends_[rank] - begin_of(rank)};
    }

    /// Goes from rank to rank.
    class iterator {
      public:
        iterator(gather_result const& of, std::size_t rank) noexcept : of_(&of), rank_(rank) {}
        std::span<std::byte const> operator*() const noexcept { return (*of_)[rank_]; }
        iterator& operator++() noexcept {
            ++rank_;
            return *this;
        }
        bool operator==(iterator const& other) const noexcept { return rank_ == other.rank_; }

      private:
        gather_result const* of_;
        std::size_t rank_;
    };
    iterator begin() const noexcept { return {*this, 0}; }
    iterator end() const noexcept { return {*this, size()}; }

  private:
    std::size_t begin_of(std::size_t rank) const noexcept { return rank == 0 ? 0 : ends_[rank - 1]; }

    detail::fixed_array<std::size_t> ends_; // rank → the end of its bytes
    detail::fixed_array<std::byte> bytes_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_CONTROL_GATHER_RESULT_HPP
