// herring: which request in flight has something to be done next, and when.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_DUE_QUEUE_HPP
#define HERRING_ENSEMBLE_DUE_QUEUE_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/hedging.hpp"
#include "herring/ensemble/ids.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Slots ordered by time; those of one time in the order of their requests.
///
/// Cost:    a binary heap that knows where each slot is: O(log slots) a change, the first at once.
class due_queue {
  public:
    explicit due_queue(std::size_t slots) : where_(slots, absent) { heap_.reserve(slots); }

    bool empty() const noexcept { return heap_.empty(); }
    std::int64_t time() const noexcept { return heap_.empty() ? never_ns : heap_.front().time; }
    slot_index first() const noexcept { return heap_.front().slot; } ///< requires !empty()

    /// Puts a slot in, or changes its time. `order`: of its request, unique.
    void set(slot_index slot, std::int64_t time, std::uint64_t order) noexcept {
        std::size_t at = where_[slot];
        if (at == absent) {
            at = heap_.size();
            heap_.push_back({}); // reserved
        }
        put(at, {time, order, slot});
        down(up(at));
    }
    void erase(slot_index slot) noexcept {
        std::size_t const at = where_[slot];
        if (at == absent) return;
        where_[slot] = absent;
        entry const last = heap_.back();
        heap_.pop_back();
        if (at == heap_.size()) return;
        put(at, last);
        down(up(at));
    }

  private:
    struct entry {
        std::int64_t time = 0;
        std::uint64_t order = 0;
        slot_index slot = 0;

        friend bool operator<(entry const& a, entry const& b) noexcept {
            return a.time != b.time ? a.time < b.time : a.order < b.order;
        }
    };
    static constexpr std::size_t absent = ~std::size_t{0};

    void put(std::size_t at, entry const& e) noexcept {
        heap_[at] = e;
        where_[e.slot] = at;
    }
    std::size_t up(std::size_t at) noexcept {
        entry const moved = heap_[at];
        for (; at > 0 && moved < heap_[(at - 1) / 2]; at = (at - 1) / 2) put(at, heap_[(at - 1) / 2]);
        put(at, moved);
        return at;
    }
    void down(std::size_t at) noexcept {
        entry const moved = heap_[at];
        for (std::size_t child = 2 * at + 1; child < heap_.size(); child = 2 * at + 1) {
            if (child + 1 < heap_.size() && heap_[child + 1] < heap_[child]) ++child;
            if (!(heap_[child] < moved)) break;
            put(at, heap_[child]);
            at = child;
        }
        put(at, moved);
    }

    std::vector<entry> heap_;
    std::vector<std::size_t> where_; // slot → place in heap_
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_DUE_QUEUE_HPP
