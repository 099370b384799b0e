// herring: tensors on a device in a call of a backend of PyTorch: streams, events, and copies on the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_DEVICE_HPP
#define HERRING_TORCH_DEVICE_HPP

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <utility>
#include <vector>

namespace herring::torch {

/// The order between a call and the streams of its device. Without a device it does nothing.
///
/// Threads: constructed and waited for by callers, in whose current stream the tensors are written and read;
///          `run` by the thread that runs the call, in a stream of its own.
class device_order {
  public:
    device_order() = default;
    explicit device_order(at::Device device) {
        if (device.is_cpu()) return;
        device_ = device;
        written_.emplace(device.type());
        read_.emplace(device.type());
        written_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
    }
    std::vector<at::Device> devices() const {
        return device_ ? std::vector<at::Device>{*device_} : std::vector<at::Device>{};
    }
    /// Calls `call` where current work waits for what was in the caller's stream before the call.
    template <class Call> void run(Call&& call) {
        if (!device_) return call();
        c10::impl::VirtualGuardImpl const of(device_->type());
        c10::StreamGuard const side(of.getStreamFromGlobalPool(*device_));
        written_->block(side.current_stream());
        call();
        read_->record(side.current_stream());
    }
    /// The caller's current stream waits for the results.
    void wait() const {
        if (device_) read_->block(c10::impl::VirtualGuardImpl(device_->type()).getStream(*device_));
    }

  private:
    std::optional<at::Device> device_;
    std::optional<c10::Event> written_, read_;
};

/// The memory of a call's tensors: their own on the host, else a copy. On a device copies are ordered in the
/// current stream, and the host waits for those that it reads.
class host_memory {
  public:
    void const* read(at::Tensor const& tensor) { return on_host(tensor).data_ptr(); }
    void* write(at::Tensor const& tensor) {
        if (tensor.is_cpu()) return tensor.data_ptr();
        written_.emplace_back(at::empty(tensor.sizes(), tensor.options().device(at::kCPU)), tensor);
        return written_.back().first.data_ptr();
    }
    void* change(at::Tensor const& tensor) {
        if (tensor.is_cpu()) return tensor.data_ptr();
        written_.emplace_back(on_host(tensor), tensor);
        return written_.back().first.data_ptr();
    }
    /// Copies what was written to the device.
    void finish() {
        for (auto const& [host, tensor] : written_) tensor.copy_(host);
        written_.clear();
    }

  private:
    at::Tensor on_host(at::Tensor const& tensor) {
        if (tensor.is_cpu()) return tensor;
        copies_.push_back(tensor.to(at::kCPU));
        return copies_.back();
    }

    std::vector<at::Tensor> copies_;
    std::vector<std::pair<at::Tensor, at::Tensor>> written_;
};

} // namespace herring::torch

#endif // HERRING_TORCH_DEVICE_HPP
