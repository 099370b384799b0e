// herring: a range of device memory, which the host may pass on but not access.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_DEVICE_SPAN_HPP
#define HERRING_BASE_DEVICE_SPAN_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE {

/// `size` elements in the memory of a device. No operator[]: kernels take `data()`, copies take `data()` and
/// `size()`.
///
/// Lifetime: owns nothing.
template <class Element> class device_span {
  public:
    using element_type = Element;

    device_span() = default;
    HERRING_HOST_DEVICE constexpr device_span(Element* data, std::size_t size) noexcept
        : data_(data), size_(size) {}

    /// Refuses a span of host memory.
    template <class Other, std::size_t Extent> device_span(std::span<Other, Extent>) {
        static_assert(sizeof(Other) == 0,
                      "[HRG-D01] device_span: needs device memory; a common slip is std::span, which is "
                      "memory of the host; name the device's pointer and the size: device_span(pointer, n)");
    }

    HERRING_HOST_DEVICE constexpr Element* data() const noexcept { return data_; }
    HERRING_HOST_DEVICE constexpr std::size_t size() const noexcept { return size_; }
    HERRING_HOST_DEVICE constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(Element); }
    HERRING_HOST_DEVICE constexpr bool empty() const noexcept { return size_ == 0; }
    HERRING_HOST_DEVICE constexpr device_span subspan(std::size_t from, std::size_t count) const noexcept {
        return {data_ + from, count};
    }

  private:
    Element* data_ = nullptr;
    std::size_t size_ = 0;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_BASE_DEVICE_SPAN_HPP
