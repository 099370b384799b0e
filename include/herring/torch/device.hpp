// herring: tensors on a device in a call of a backend of PyTorch: order between streams, copies on the host.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_DEVICE_HPP
#define HERRING_TORCH_DEVICE_HPP

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

// Knows neither torch nor CUDA. A `Device` has types `stream` and `event`, and
//     current() → stream                of the calling thread
//     side() → stream                   for a call
//     enter(stream) → guard             while it lives, that stream is the thread's current one
//     record(stream) → event
//     wait(stream, event const&)        what the stream does from now on comes after the event
//     pinned(bytes) → shared_ptr<byte>  page-locked memory of the host, never null
//     to_host(host, device, bytes)      both in the current stream; return when they are done
//     to_device(device, host, bytes)
namespace herring::torch {

/// The order between a call and the streams of its device. Without a device it does nothing.
///
/// Threads: constructed and waited for by callers, in whose current stream the tensors are written and read;
///          `run` by the thread that runs the call, in a stream of its own.
template <class Device> class device_order {
  public:
    device_order() = default;
    explicit device_order(std::optional<Device> device) : device_(std::move(device)) {
        if (device_) written_.emplace(device_->record(device_->current()));
    }
    std::optional<Device> const& device() const noexcept { return device_; }

    /// Calls `call` where current work waits for what was in the caller's stream before the call.
    template <class Call> void run(Call&& call) {
        if (!device_) return call();
        auto const side = device_->side();
        [[maybe_unused]] auto const entered = device_->enter(side);
        device_->wait(side, *written_);
        call();
        read_.emplace(device_->record(side));
    }
    /// The caller's current stream waits for the results.
    void wait() const {
        if (read_) device_->wait(device_->current(), *read_);
    }

  private:
    std::optional<Device> device_;
    std::optional<typename Device::event> written_, read_;
};

/// Memory of a tensor, which the host reaches or not.
struct memory_of_tensor {
    void* at = nullptr;
    std::size_t bytes = 0;
    bool on_host = true;
};

/// The memory of a call's tensors: their own on the host, else a copy in page-locked memory there.
template <class Device> class host_memory {
  public:
    explicit host_memory(std::optional<Device> const& device) : device_(device) {}

    void const* read(memory_of_tensor const& tensor) { return tensor.on_host ? tensor.at : copy_of(tensor); }
    void* write(memory_of_tensor const& tensor) {
        if (tensor.on_host) return tensor.at;
        written_.emplace_back(room_for(tensor), tensor);
        return written_.back().first;
    }
    void* change(memory_of_tensor const& tensor) {
        if (tensor.on_host) return tensor.at;
        written_.emplace_back(copy_of(tensor), tensor);
        return written_.back().first;
    }
    /// Copies what was written to the device.
    void finish() {
        for (auto const& [host, tensor] : written_)
            if (tensor.bytes != 0) device_->to_device(tensor.at, host, tensor.bytes);
        written_.clear();
        copies_.clear();
    }

  private:
    std::byte* room_for(memory_of_tensor const& tensor) {
        return copies_.emplace_back(device_->pinned(tensor.bytes)).get();
    }
    std::byte* copy_of(memory_of_tensor const& tensor) {
        std::byte* const host = room_for(tensor);
        if (tensor.bytes != 0) device_->to_host(host, tensor.at, tensor.bytes);
        return host;
    }

    std::optional<Device> const& device_;
    std::vector<std::shared_ptr<std::byte>> copies_;
    std::vector<std::pair<std::byte*, memory_of_tensor>> written_;
};

} // namespace herring::torch

#endif // HERRING_TORCH_DEVICE_HPP
