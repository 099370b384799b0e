// herring: the lanes of a frontend: which kinds there are, how one is opened, and where requests lie for all of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_FRONTEND_LANES_HPP
#define HERRING_ENSEMBLE_FRONTEND_LANES_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/manual_lifetime.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/lane.hpp"
#include "herring/ensemble/places.hpp"
#include "herring/ensemble/request_region.hpp"
#include "herring/ensemble/shared_lane.hpp"
#include "herring/ensemble/tcp_lane.hpp"
#include "herring/machine/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// The bytes of requests in flight: in memory that members of this host read, or in the process's own.
class request_store {
  public:
    /// Errors: `no_resources`; `unsupported`, of shared memory, where `lanes` allows nothing else.
    HERRING_SETUP request_store(std::size_t in_flight, std::size_t request_bytes, std::size_t peers,
                                std::size_t credits, lane lanes) {
        if (lanes != lane::tcp) {
            try {
                shared_.emplace(request_layout{in_flight, request_bytes, peers, credits});
                return;
            } catch (error const&) {
                if (lanes == lane::shared) throw;
            }
        }
        own_.emplace(in_flight, request_bytes);
    }

    /// What members of this host get; −1: nothing.
    int descriptor() const noexcept { return shared_ ? shared_->descriptor() : -1; }
    /// Where a request is to be written. Members that still read the slot's last one can tell.
    std::span<std::byte> slot(slot_index at) noexcept { return shared_ ? shared_->slot(at) : (*own_)[at]; }
    request_region* region() noexcept { return shared_ ? &*shared_ : nullptr; }

  private:
    manual_lifetime<request_region> shared_;
    manual_lifetime<place_memory> own_;
};

/// TCP, and shared memory.
struct frontend_lanes {
    using tcp = tcp_lane_frontend;
    using shared = shared_lane_frontend;
    using requests = request_store;

    /// Errors: `protocol`, `no_resources`: the member's memory is not as agreed, or there is none.
    template <class Link>
    HERRING_SETUP static void open(Link& into, lane_ends&& ends, requests& of, peer_index peer,
                                   std::uint32_t credits, std::size_t request_bytes, std::size_t row_bytes) {
        if (!ends.is_shared())
            into.open_tcp(detail::descriptor(std::exchange(ends.socket, -1)),
                          lane_sizes{credits, request_bytes, row_bytes});
        else if (of.region() != nullptr)
            into.open_shared(*of.region(), std::move(ends), peer, credits, row_bytes);
        else
            throw error(errc::protocol, -1, -1, "frontend", "it came by shared memory, and there is none");
    }
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_FRONTEND_LANES_HPP
