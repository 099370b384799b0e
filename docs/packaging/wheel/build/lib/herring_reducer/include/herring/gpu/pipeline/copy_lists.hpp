// herring: lists of copies that a device reads asynchronously: two per bucket, so that the host never waits.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_COPY_LISTS_HPP
#define HERRING_GPU_PIPELINE_COPY_LISTS_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/gpu/runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// Enqueues many copies within a device as one operation, whose list the device reads when the operation
/// runs. Each part (a bucket) has two lists. A list that already holds the copies is used again; else one
/// that the device has read is rewritten. If the device has read neither, copies are enqueued one by one: the
/// host never waits for a stream.
///
/// Cost:     one comparison if one of the two lists holds the copies; else one small copy to the device.
/// Memory:   2 lists and 2 events per part.
/// Threads:  one at a time. The caller orders streams that read lists of one object.
/// Lifetime: the destructor waits for the last use of every list, as that of a stream does
///           (`runtime_policy`).
template <class Runtime> class copy_lists {
  public:
    using stream_handle = typename Runtime::stream_handle;
    struct chosen {
        std::size_t list; ///< 0 or 1, of the part's two lists
        bool same;        ///< `put` will enqueue the same copies as the last time with this list
    };

    /// `copies`: upper bound for all parts together.
    HERRING_SETUP copy_lists(Runtime& device, std::size_t copies, std::size_t parts)
        : device_(device), copies_(copies), written_(2 * copies), parts_(parts), lists_(device, 2 * copies) {
        used_.reserve(2 * parts);
        for (std::size_t i = 0; i < 2 * parts; ++i) used_.emplace_back(device, false);
    }
    copy_lists(copy_lists const&) = delete;
    copy_lists& operator=(copy_lists const&) = delete;
    ~copy_lists() {
        bool ended = !unmarked_;
        for (event& mark : used_) ended = ended && device_.ended(mark);
        if (!ended) lists_.leave();
    }

    /// Chooses the list that the next `put` of this part reads. `at`: index of the part's first copy among
    /// all parts, the same in every call; the part's copies end before the next part's first.
    chosen prepare(std::size_t part, std::size_t at, std::span<copy_item const> items) noexcept {
        which& now = parts_[part];
        now.by_list = items.size() > 1;
        auto const other = static_cast<std::uint8_t>(1 - now.last);
        if (!holds(part, now.last, at, items)) {
            if (!holds(part, other, at, items) && !write(part, other, at, items)) {
                now.by_list = false; // the device has read neither list
                now.put[now.last] = 0;
                return {now.last, false};
            }
            now.last = other;
        }
        bool const same = now.put[now.last] == items.size();
        now.put[now.last] = items.size();
        return {now.last, same};
    }
    /// Enqueues the prepared copies. May be captured.
    void put(stream_handle in, std::size_t part, std::size_t at, std::span<copy_item const> items) noexcept {
        if (parts_[part].by_list) {
            unmarked_ = true;
            return device_.copy_many(in, lists_, place(parts_[part].last, at), items.size());
        }
        for (copy_item const& one : items) device_.copy(in, one);
    }
    /// Records the use of the part's list: to be called after `put`, or its replay.
    void used(stream_handle in, std::size_t part) noexcept {
        if (!parts_[part].by_list) return;
        device_.record(used_[2 * part + parts_[part].last], in);
        unmarked_ = device_.failed() != nullptr;
    }

  private:
    using event = typename Runtime::event;
    struct which {
        std::uint8_t last = 0; // the list used last
        bool by_list = false;
        std::size_t listed[2] = {}; // copies that each list holds
        std::size_t put[2] = {};    // copies in the last put of each list; 0: the next put differs from it
        copy_item only[2] = {};     // a single copy needs no list on the device
    };
    std::size_t place(std::uint8_t list, std::size_t at) const noexcept { return list * copies_ + at; }
    bool holds(std::size_t part, std::uint8_t list, std::size_t at,
               std::span<copy_item const> items) const noexcept {
        if (items.size() == 1) return parts_[part].only[list] == items[0];
        return items.size() <= parts_[part].listed[list] &&
               std::equal(items.begin(), items.end(), written_.begin() + place(list, at));
    }
    bool write(std::size_t part, std::uint8_t list, std::size_t at,
               std::span<copy_item const> items) noexcept {
        if (items.size() == 1) {
            parts_[part].only[list] = items[0];
        } else {
            if (!device_.done(used_[2 * part + list])) return false;
            std::copy(items.begin(), items.end(), written_.begin() + place(list, at));
            device_.list(lists_, place(list, at), items);
            parts_[part].listed[list] = items.size();
        }
        parts_[part].put[list] = 0;
        return true;
    }

    Runtime& device_;
    std::size_t copies_;
    herring::detail::fixed_array<copy_item> written_; // the contents of the lists
    herring::detail::fixed_array<which> parts_;
    typename Runtime::batch lists_;
    std::vector<event> used_; // part p: events 2 p and 2 p + 1
    bool unmarked_ = false;   // a stream has a list whose event is not recorded behind it
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_COPY_LISTS_HPP
