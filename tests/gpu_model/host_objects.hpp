// herring: what a rank owns on its device of the host's model, each released by its owner: memory, streams, events, lists, graphs.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_GPU_MODEL_HOST_OBJECTS_HPP
#define HERRING_TESTS_GPU_MODEL_HOST_OBJECTS_HPP

#include "gpu_model/host_device.hpp"
#include "gpu_model/host_machine.hpp"
#include "gpu_model/host_queue.hpp"
#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/gpu/kernel/inspection.hpp"
#include "herring/gpu/runtime.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// Memory of the device, zeroed.
class host_memory {
  public:
    host_memory() = default;
    /// `openable`: by other ranks.
    host_memory(host_device& on, std::size_t bytes, bool openable = true)
        : machine_(&on.machine()), bytes_(bytes) {
        if (bytes == 0) return;
        if (machine_->device_used.fetch_add(bytes) + bytes > machine_->options.device_bytes) {
            machine_->device_used -= bytes;
            throw error(errc::no_resources, on.rank(), -1, "construction",
                        {"no ", bytes, " bytes of device memory; use a smaller layout"});
        }
        data_ = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
        std::memset(data_, 0, bytes);
        machine_->enter(data_, bytes, on.number(), openable);
    }
    host_memory(host_memory&& other) noexcept
        : machine_(other.machine_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    host_memory& operator=(host_memory&&) = delete;
    ~host_memory() {
        if (data_ == nullptr) return;
        machine_->erase(data_);
        ::operator delete (data_, std::align_val_t{256});
        machine_->device_used -= bytes_;
    }
    std::byte* data() const noexcept { return data_; }
    /// It is not freed before the machine ends.
    void leave() noexcept {
        if (data_ != nullptr) machine_->keep(std::exchange(data_, nullptr));
    }

  private:
    host_machine* machine_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

/// Pages of the host's that are locked.
class host_pinned {
  public:
    host_pinned(host_device& on, std::span<std::byte> pages) : machine_(&on.machine()), pages_(pages) {
        if (machine_->pinned_used.fetch_add(pages.size()) + pages.size() > machine_->options.pinned_bytes) {
            machine_->pinned_used -= pages.size();
            throw error(errc::no_resources, on.rank(), -1, "construction",
                        {"no ", pages.size(), " bytes of pinned memory; use smaller buckets"});
        }
    }
    host_pinned(host_pinned const&) = delete;
    host_pinned& operator=(host_pinned const&) = delete;
    ~host_pinned() { machine_->pinned_used -= pages_.size(); }
    /// As a kernel sees a place in it.
    std::byte* on_device(std::byte* place) const noexcept { return place; }
    bool holds(std::byte const* place, std::size_t bytes) const noexcept {
        return place >= pages_.data() && place + bytes <= pages_.data() + pages_.size();
    }

  private:
    host_machine* machine_;
    std::span<std::byte> pages_;
};

/// A queue. Ends with what is in it.
class host_stream {
  public:
    explicit host_stream(host_device& on) : machine_(&on.machine()), queue_(machine_->make_queue()) {}
    host_stream(host_stream const&) = delete;
    host_stream& operator=(host_stream const&) = delete;
    ~host_stream() {
        machine_->drain(*queue_);
        machine_->drop(queue_);
    }
    detail::host_queue* handle() const noexcept { return queue_.get(); }

  private:
    host_machine* machine_;
    std::shared_ptr<detail::host_queue> queue_;
};

class host_event {
  public:
    host_event(host_device&, bool) : state(std::make_shared<detail::host_mark>()) {}
    void leave() noexcept {}
    std::shared_ptr<detail::host_mark> state;
};

/// Lists of copies: as they are written, and as kernels read them.
class host_batch {
  public:
    host_batch(host_device&, std::size_t copies) : written(copies), on_device(copies), fresh(copies) {}
    void leave() noexcept {}
    std::vector<listed_copy> written, on_device;
    std::vector<std::size_t> fresh; // entries of the list from there that are not on the device yet
};

/// What results were found to be.
class host_counter {
  public:
    explicit host_counter(host_device&) {}
    inspection_result value() const noexcept {
        return {count.load(std::memory_order_acquire), squares.load(std::memory_order_acquire)};
    }
    std::atomic<std::uint64_t> count{0};
    std::atomic<double> squares{0};
};

/// What was captured.
class host_graph {
  public:
    std::vector<detail::host_work> work;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_TESTS_GPU_MODEL_HOST_OBJECTS_HPP
