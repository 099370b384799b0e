// herring: a step that each rank tries, after which all ranks go on or all throw the same failure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_ALL_OR_NONE_HPP
#define HERRING_CONTROL_ALL_OR_NONE_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/control.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/wire/messages.hpp"

#include <cstddef>
#include <exception>
#include <span>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Returns the exception of `step()` as a failure of this rank; without an error code where it returns.
template <class Step> failure failure_of(int rank, std::string_view operation, Step&& step) {
    try {
        step();
    } catch (error const& why) {
        failure mine = why.why();
        mine.reporter = rank;
        return mine;
    } catch (std::exception const& why) {
        return failure::make(errc::no_resources, rank, -1, operation, why.what());
    }
    return {};
}

/// The bytes of every rank, once all have succeeded.
///
/// Lifetime: the spans point into it.
class given_by_all {
  public:
    explicit given_by_all(gather_result&& all) noexcept : all_(std::move(all)) {}
    std::size_t size() const noexcept { return all_.size(); }
    std::span<std::byte const> operator[](std::size_t rank) const noexcept { return all_[rank].subspan(1); }

  private:
    gather_result all_; // behind the first byte, which is went_well or has_failed
};

/// Exchanges how the step went. Where a rank has failed, all throw the failure of the lowest such rank, each
/// rank in its own words.
///
/// Shape:  `mine`: bytes, any number of them → the bytes of each rank. `gather(bytes)` → gather_result: an
///         all_gather.
/// Errors: `mismatch` naming a rank whose bytes cannot be read. They are read with bounds.
template <class Gather>
HERRING_SETUP given_by_all all_or_none(int rank, std::string_view operation, failure const& how,
                                       std::span<std::byte const> mine, Gather&& gather) {
    constexpr std::byte went_well{0}, has_failed{1};
    byte_buffer message;
    bool const well = how.what == errc::ok;
    message.append({well ? &went_well : &has_failed, 1});
    if (well)
        message.append(mine);
    else
        message.append(wire::write_failure(how));
    gather_result all = gather(std::span<std::byte const>(message));
    for (std::size_t r = 0; r < all.size(); ++r) {
        std::span<std::byte const> const said = std::as_const(all)[r];
        if (!said.empty() && said[0] == went_well) continue;
        failure theirs;
        if (said.empty() || said[0] != has_failed || !wire::read_failure(said.subspan(1), all.size(), theirs))
            throw error(errc::mismatch, rank, static_cast<int>(r), operation,
                        "it is in another collective; let every rank make the same calls in the same order");
        theirs.reporter = static_cast<int>(r);
        throw error(as_seen_by(theirs, rank));
    }
    return given_by_all(std::move(all));
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_ALL_OR_NONE_HPP
