// herring: a rank's device of the host's model: which it is, and how its errors are told.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_DEVICE_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_DEVICE_HPP

#include "gpu_model/host_machine.hpp"
#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/gpu/node_devices.hpp"
#include "herring/world.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <span>

namespace HERRING_NAMESPACE::gpu {

/// The rank's device on the machine that there is, and the first error of a call.
class host_device {
  public:
    /// Collective where a node's ranks may share devices.
    explicit host_device(world& ranks) : rank_(ranks.rank()), machine_(host_machine::current()) {
        if (machine_ == nullptr)
            throw error(errc::unsupported, rank_, -1, "host_runtime",
                        "there is no host_machine; make one before the reducer");
        int const devices = machine_->options.devices;
        number_ = devices > 0 ? ranks.local_rank() % devices : ranks.local_rank();
        if (devices > 0 &&
            warn_if_shared(ranks, std::as_bytes(std::span(&number_, 1)), number_, "model of a device"))
            ++machine_->shared_devices;
    }
    host_device(host_device const&) = delete;
    host_device& operator=(host_device const&) = delete;

    int rank() const noexcept { return rank_; }
    int number() const noexcept { return number_; }
    host_machine& machine() const noexcept { return *machine_; }

    /// The first failure, or nullptr.
    failure const* failed() const noexcept {
        return failing_.load(std::memory_order_acquire) ? &why_ : nullptr;
    }

    /// Counts a call. True: it fails, or one before it has; it is to do nothing.
    bool refused() noexcept {
        if (failed() != nullptr) return true;
        if (!machine_->fails(rank_)) return false;
        refuse("a call was made to fail");
        return true;
    }
    void refuse(char const* why) noexcept {
        std::lock_guard const lock(guard_);
        if (failed() != nullptr) return;
        char text[200];
        std::snprintf(text, sizeof text, "device %d: %s", number_, why);
        why_ = failure::make(errc::device, rank_, -1, "host_runtime", text);
        failing_.store(true, std::memory_order_release);
    }

    void keep(failure const& why) noexcept {
        std::lock_guard const lock(guard_);
        if (failed() != nullptr) return;
        why_ = why;
        failing_.store(true, std::memory_order_release);
    }

    bool stuck() const noexcept { return false; }

  private:
    int rank_;
    int number_ = 0;
    host_machine* machine_;
    std::mutex guard_;
    std::atomic<bool> failing_{false};
    failure why_{};
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_DEVICE_HPP
