// herring: device memory and events of the host's model that ranks of a node share; they are threads, so by pointers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_PEERS_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_PEERS_HPP

#include "gpu_model/host_device.hpp"
#include "gpu_model/host_machine.hpp"
#include "gpu_model/host_objects.hpp"
#include "gpu_model/host_queue.hpp"
#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/gpu/node_devices.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace HERRING_NAMESPACE::gpu {

/// Device memory as it is named to other ranks of the node, and an event.
struct exported_host_memory {
    std::byte* data;
    int device;
    bool openable = true;
    std::uint64_t id = 0;
    int rank = -1; // that it was lent by; −1: it is a reducer's own
    std::byte* first() const noexcept { return data; }
};
struct exported_host_event {
    std::shared_ptr<detail::host_mark> const* state;
};

/// Another rank's, as this device sees it: itself. What was lent is counted as long as it is open.
class imported_host_memory {
  public:
    imported_host_memory(host_device& on, exported_host_memory const& of, int peer)
        : data_(of.data), counted_in_(of.rank >= 0 ? &on.machine() : nullptr) {
        if (counted_in_ != nullptr && on.machine().refuses == on.rank())
            throw error(errc::device, on.rank(), peer, "construction", "it was made to fail");
        if (counted_in_ != nullptr && on.machine().around(of.data).id != of.id)
            throw error(errc::device, on.rank(), peer, "construction", "it opened memory that is freed");
        if (!on.machine().options.peers && of.device != on.number())
            throw error(peer_access_error({on.rank(), on.number(), "model of a device"},
                                          {peer, of.device, "model of a device"}));
        if (counted_in_ != nullptr) ++counted_in_->opened, ++counted_in_->openings;
    }
    imported_host_memory(imported_host_memory&& other) noexcept
        : data_(other.data_), counted_in_(std::exchange(other.counted_in_, nullptr)) {}
    imported_host_memory& operator=(imported_host_memory&&) = delete;
    ~imported_host_memory() {
        if (counted_in_ != nullptr) --counted_in_->opened;
    }
    std::byte* data() const noexcept { return data_; }

  private:
    std::byte* data_;
    host_machine* counted_in_;
};
class imported_host_event : public host_event {
  public:
    imported_host_event(host_device& on, exported_host_event const& of, int) : host_event(on, true) {
        state = *of.state;
    }
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_PEERS_HPP
