// herring: streams, events and copies of a device of PyTorch's, by its guards of every kind of device.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_STREAMS_HPP
#define HERRING_TORCH_STREAMS_HPP

#include "herring/torch/device.hpp"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace herring::torch {

/// A device for `device_order` and `host_memory`. Compiled without CUDA's headers: a module is one for
/// PyTorch with CUDA and without.
class torch_device {
  public:
    using stream = c10::Stream;
    using event = c10::Event;

    explicit torch_device(at::Device of) : of_(of) {}

    stream current() const { return guard().getStream(of_); }
    stream side() const { return guard().getStreamFromGlobalPool(of_); }
    c10::StreamGuard enter(stream const& one) const { return c10::StreamGuard(one); }
    event record(stream const& in) const {
        event made(of_.type());
        made.record(in);
        return made;
    }
    void wait(stream const& in, event const& before) const { before.block(in); }
    /// From the cache that PyTorch keeps: locking pages anew takes longer than all else of a call.
    std::shared_ptr<std::byte> pinned(std::size_t bytes) const {
        auto const size = static_cast<std::int64_t>(bytes > 0 ? bytes : 1);
        auto const made =
            std::make_shared<at::Tensor>(at::empty({size}, at::TensorOptions(at::kByte).pinned_memory(true)));
        return {made, static_cast<std::byte*>(made->data_ptr())};
    }
    void to_host(void* host, void const* device, std::size_t bytes) const {
        bytes_at(host, bytes, at::kCPU).copy_(bytes_at(const_cast<void*>(device), bytes, of_));
    }
    void to_device(void* device, void const* host, std::size_t bytes) const {
        bytes_at(device, bytes, of_).copy_(bytes_at(const_cast<void*>(host), bytes, at::kCPU));
    }
    at::Device of() const noexcept { return of_; }

  private:
    c10::impl::VirtualGuardImpl guard() const { return c10::impl::VirtualGuardImpl(of_.type()); }
    static at::Tensor bytes_at(void* at, std::size_t bytes, at::Device on) {
        return at::from_blob(at, {static_cast<std::int64_t>(bytes)}, at::TensorOptions(at::kByte).device(on));
    }

    at::Device of_;
};

/// The device of a call's tensors; none for those of the CPU.
inline std::optional<torch_device> device_of(at::Device one) {
    return one.is_cpu() ? std::nullopt : std::optional<torch_device>(one);
}
inline std::vector<at::Device> devices_of(std::optional<torch_device> const& device) {
    return device ? std::vector<at::Device>{device->of()} : std::vector<at::Device>{};
}
inline memory_of_tensor memory_of(at::Tensor const& tensor) {
    return {tensor.data_ptr(), tensor.nbytes(), tensor.is_cpu()};
}

} // namespace herring::torch

#endif // HERRING_TORCH_STREAMS_HPP
