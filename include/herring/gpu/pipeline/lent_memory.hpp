// herring: memory that a local rank lends the others for a call: what it shows them of it, and what they have open.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_LENT_MEMORY_HPP
#define HERRING_GPU_PIPELINE_LENT_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/gpu/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace HERRING_NAMESPACE::gpu {

/// A piece of a call, as its rank shows it to local ranks in shared memory.
template <class Runtime> struct offer {
    typename Runtime::export_of_memory allocation; ///< that the piece lies in
    std::byte* at = nullptr;                       ///< the piece, as its rank sees it
    bool lent = false;                             ///< false: it is copied to the rank's bounce slot
};

/// What this rank has open of one local rank's allocations. An allocation is known by its first address and its number, which
/// a device gives once: memory that was freed and comes back at the same address is another.
///
/// Cost:     a comparison for each allocation that is open; opening one, once, about 0.1 ms.
/// Memory:   at most `most` allocations, which their rank can free meanwhile: their memory comes free when they are closed.
/// Threads:  one at a time.
template <class Runtime> class lent_memory {
  public:
    static constexpr std::size_t most = 16;

    /// The piece as this device sees it. `quiet()`: nothing that was enqueued uses what is open, so that it may be closed.
    /// nullptr: ask again when it is. An allocation that cannot be opened is a failure of the device.
    template <class Quiet>
    std::byte* see(Runtime& device, offer<Runtime> const& what, int peer, std::uint64_t number,
                   Quiet const& quiet) noexcept {
        if (device.here(what.allocation)) return what.at;
        std::byte* const first = what.allocation.first();
        opened* place = &open_[0];
        for (opened& one : open_) {
            if (one.as && one.first == first && one.id == what.allocation.id) {
                one.used = number;
                return one.as->data() + (what.at - first);
            }
            if (one.as && one.first == first) { // freed since
                place = &one;
                break;
            }
            if (place->as && (!one.as || one.used < place->used)) place = &one;
        }
        if (place->as && !quiet()) return nullptr;
        place->as.reset();
        try {
            place->as.emplace(device, what.allocation, peer);
        } catch (error const& why) {
            failure const& of = why.why();
            device.keep(failure::make(of.what, of.reporter, of.peer, "all_reduce", of.text));
            return what.at; // nothing is enqueued any more
        }
        place->first = first;
        place->id = what.allocation.id;
        place->used = number;
        return place->as->data() + (what.at - first);
    }
    /// Closes what begins there. Nothing that was enqueued uses it.
    void close(std::byte* first) noexcept {
        for (opened& one : open_)
            if (one.as && one.first == first) one.as.reset();
    }

  private:
    struct opened {
        std::optional<typename Runtime::imported_memory> as;
        std::byte* first = nullptr;
        std::uint64_t id = 0;
        std::uint64_t used = 0; // by this execution, the last one
    };
    opened open_[most];
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_LENT_MEMORY_HPP
