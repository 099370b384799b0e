// herring: rows that have come to a frontend, until it is known whether they are good.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_LANDED_ROWS_HPP
#define HERRING_ENSEMBLE_LANDED_ROWS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/outcome.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Their values are looked at by one thread that does not hold the frontend's lock meanwhile, so that others can ask.
///
/// Lifetime: a link whose row is here is held, so that its bytes stay.
/// Threads:  under the frontend's lock, `check` excepted: it is between `begin_check` and `end_check`, and no row is taken in then.
template <class Link> class landed_rows {
  public:
    struct row {
        Link* from = nullptr;
        std::uint64_t id = 0;
        place_index place = 0;
        std::span<std::byte const> bytes{};
        row_check is = row_check::good;
    };

    /// Some wait, and nobody checks them.
    bool any() const noexcept { return count_ != 0 && !checking_; }
    /// False: it is full, or they are being checked.
    bool push(Link& from, std::uint64_t id, place_index place, std::span<std::byte const> bytes) noexcept {
        if (checking_ || count_ == most) return false;
        rows_[count_++] = {&from, id, place, bytes, row_check::good};
        return true;
    }

    void begin_check() noexcept { checking_ = true; }
    template <class Check> void check(Check&& check) noexcept {
        for (row& each : taken()) each.is = check(each.bytes);
    }
    /// Calls `take(row)` for each, in the order in which they came.
    template <class Take> void end_check(Take&& take) noexcept {
        for (row const& each : taken()) take(each);
        count_ = 0;
        checking_ = false;
    }

  private:
    static constexpr std::size_t most = 64;

    std::span<row> taken() noexcept { return {rows_, count_}; }

    row rows_[most];
    std::size_t count_ = 0;
    bool checking_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_LANDED_ROWS_HPP
