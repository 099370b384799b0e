// herring: the lists of copies that a device reads while the host goes on: two a part, by turns, and never waited for.
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

/// Puts many copies within a device into a stream at once, from a list that the device reads when it gets there. Each part
/// (a bucket) has two lists. What is in one of them already is used again; a list that is written anew is one that the
/// device is done with. While it is done with neither, copies go one by one: the host waits for no stream.
///
/// Cost:     of a list that is as before, or as the one before it: a comparison.
/// Memory:   2 lists, 2 events a part.
/// Threads:  one at a time. Streams that read lists of the same object follow each other.
/// Lifetime: waits for the last use of every list, as a stream's end does (see `runtime_policy`).
template <class Runtime> class copy_lists {
  public:
    using stream_handle = typename Runtime::stream_handle;
    struct chosen {
        std::size_t list; ///< which of the part's two
        bool same;        ///< `put` will do what it did with that list last time
    };

    /// `copies` in all parts together.
    HERRING_SETUP copy_lists(Runtime& device, std::size_t copies, std::size_t parts)
        : device_(device), copies_(copies), written_(2 * copies), parts_(parts), lists_(device, 2 * copies) {
        used_.reserve(2 * parts);
        for (std::size_t i = 0; i < 2 * parts; ++i) used_.emplace_back(device, false);
    }
    copy_lists(copy_lists const&) = delete;
    copy_lists& operator=(copy_lists const&) = delete;
    ~copy_lists() {
        bool ended = true;
        for (event& mark : used_) ended = ended && device_.ended(mark);
        if (!ended) lists_.leave();
    }

    /// Which list of this part the next `put` reads. `at`: the number of the part's first copy, the same each time; a part
    /// has at most as many copies as there are to the next one's first.
    chosen prepare(std::size_t part, std::size_t at, std::span<copy_item const> items) noexcept {
        which& now = parts_[part];
        now.by_list = items.size() > 1;
        auto const other = static_cast<std::uint8_t>(1 - now.last);
        if (!holds(part, now.last, at, items)) {
            if (!holds(part, other, at, items) && !write(part, other, at, items)) {
                now.by_list = false; // the device is done with neither
                now.put[now.last] = 0;
                return {now.last, false};
            }
            now.last = other;
        }
        bool const same = now.put[now.last] == items.size();
        now.put[now.last] = items.size();
        return {now.last, same};
    }
    /// The copies that were prepared. May be captured.
    void put(stream_handle in, std::size_t part, std::size_t at, std::span<copy_item const> items) noexcept {
        if (parts_[part].by_list)
            return device_.copy_many(in, lists_, place(parts_[part].last, at), items.size());
        for (copy_item const& one : items) device_.copy(in, one);
    }
    /// Behind `put`, or its replay.
    void used(stream_handle in, std::size_t part) noexcept {
        if (parts_[part].by_list) device_.record(used_[2 * part + parts_[part].last], in);
    }

  private:
    using event = typename Runtime::event;
    struct which {
        std::uint8_t last = 0; // of a part's two lists
        bool by_list = false;
        std::size_t put[2] = {}; // copies in the last put of each; 0: the next one is another
        copy_item only[2] = {};  // one copy needs no list of the device's
    };
    std::size_t place(std::uint8_t list, std::size_t at) const noexcept { return list * copies_ + at; }
    bool holds(std::size_t part, std::uint8_t list, std::size_t at,
               std::span<copy_item const> items) const noexcept {
        if (items.size() == 1) return parts_[part].only[list] == items[0];
        return std::equal(items.begin(), items.end(), written_.begin() + place(list, at));
    }
    bool write(std::size_t part, std::uint8_t list, std::size_t at,
               std::span<copy_item const> items) noexcept {
        if (items.size() == 1) {
            parts_[part].only[list] = items[0];
        } else {
            if (!device_.done(used_[2 * part + list])) return false;
            std::copy(items.begin(), items.end(), written_.begin() + place(list, at));
            device_.list(lists_, place(list, at), items);
        }
        parts_[part].put[list] = 0;
        return true;
    }

    Runtime& device_;
    std::size_t copies_;
    herring::detail::fixed_array<copy_item> written_; // what is in the lists
    herring::detail::fixed_array<which> parts_;
    typename Runtime::batch lists_;
    std::vector<event> used_; // of part p: 2 p and 2 p + 1
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_COPY_LISTS_HPP
