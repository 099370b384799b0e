// herring: the jobs that a member's program holds: each with its request, where that came from, and room for a row.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_MEMBER_JOBS_HPP
#define HERRING_ENSEMBLE_MEMBER_JOBS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/member_link.hpp"
#include "herring/ensemble/places.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail::ensembles {

/// `concurrency` of them at most.
///
/// Memory:  (concurrency + 1) · elements · sizeof(Element).
/// Threads: the member's.
template <class Element, class Link> class member_jobs {
  public:
    enum class row_state : std::uint8_t { open, encoded, bad };
    struct held {
        waiting_request request{};
        Link* from = nullptr;
        row_state row = row_state::open;
    };

    HERRING_SETUP member_jobs(std::size_t elements, std::size_t concurrency)
        : elements_(elements), slots_(concurrency), free_(0, concurrency),
          rows_(concurrency + 1, elements * sizeof(Element)) {}

    std::size_t size() const noexcept { return slots_.size(); }
    bool any_free() const noexcept { return free_.count() != 0; }

    /// Puts a request where it stays until `give`. One is free.
    place_index take(waiting_request const& request, Link& from) noexcept {
        place_index slot = 0;
        (void)free_.take(slot);
        slots_[slot] = {request, &from};
        ++from.jobs;
        return slot;
    }
    /// Returns the link that the job was of.
    Link& give(place_index slot) noexcept {
        Link& from = *slots_[slot].from;
        slots_[slot].from = nullptr;
        free_.give(slot);
        --from.jobs;
        return from;
    }

    held& operator[](place_index slot) noexcept { return slots_[slot]; }
    held const& operator[](place_index slot) const noexcept { return slots_[slot]; }
    /// Where the program writes its row.
    std::span<Element> row(place_index slot) const noexcept {
        return {reinterpret_cast<Element*>(rows_[slot].data()), elements_};
    }
    /// For a row of no job.
    std::span<Element> spare_row() const noexcept { return row(static_cast<place_index>(slots_.size())); }

  private:
    std::size_t elements_;
    fixed_array<held> slots_;
    free_places free_;
    place_memory rows_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_MEMBER_JOBS_HPP
