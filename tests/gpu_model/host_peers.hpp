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
#include "herring/gpu/peer_access.hpp"

#include <cstddef>
#include <memory>

namespace HERRING_NAMESPACE::gpu {

/// Device memory as it is named to other ranks of the node, and an event.
struct exported_host_memory {
    std::byte* data;
    int device;
};
struct exported_host_event {
    std::shared_ptr<detail::host_mark> const* state;
};

/// Another rank's, as this device sees it: itself.
class imported_host_memory {
  public:
    imported_host_memory(host_device& on, exported_host_memory const& of, int peer) : data_(of.data) {
        if (!on.machine().options.peers && of.device != on.number())
            throw error(peer_access_error({on.rank(), on.number(), "model of a device"},
                                          {peer, of.device, "model of a device"}));
    }
    std::byte* data() const noexcept { return data_; }

  private:
    std::byte* data_;
};
class imported_host_event : public host_event {
  public:
    imported_host_event(host_device& on, exported_host_event const& of, int) : host_event(on, true) {
        state = *of.state;
    }
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_PEERS_HPP
