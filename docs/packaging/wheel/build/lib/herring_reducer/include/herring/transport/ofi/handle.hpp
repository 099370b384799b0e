// herring: owners of libfabric's objects: each closes its object, also when construction fails half way.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_HANDLE_HPP
#define HERRING_TRANSPORT_OFI_HANDLE_HPP

#include "herring/base/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

namespace HERRING_NAMESPACE::detail {

/// Owns one object of libfabric. Objects must be closed in the reverse order of opening: declare members in
/// that of opening.
template <class Fid> class ofi_handle {
  public:
    ofi_handle() = default;
    explicit ofi_handle(Fid* owned) noexcept : owned_(owned) {}
    ofi_handle(ofi_handle&& other) noexcept : owned_(std::exchange(other.owned_, nullptr)) {}
    ofi_handle& operator=(ofi_handle&& other) noexcept {
        std::swap(owned_, other.owned_);
        return *this;
    }
    ~ofi_handle() { close(); }

    Fid* get() const noexcept { return owned_; }
    explicit operator bool() const noexcept { return owned_ != nullptr; }
    /// Returns the place where a call that opens an object writes it.
    Fid** out() noexcept {
        close();
        return &owned_;
    }
    /// Closes the object. Returns 0 or libfabric's negative error; the object is no longer owned either way.
    int close() noexcept {
        Fid* const owned = std::exchange(owned_, nullptr);
        return owned == nullptr ? 0 : fi_close(&owned->fid);
    }

  private:
    Fid* owned_ = nullptr;
};

/// Owns a list from fi_getinfo, or one entry from fi_allocinfo or fi_dupinfo.
class ofi_info {
  public:
    explicit ofi_info(fi_info* owned = nullptr) noexcept : first_(owned) {}
    ofi_info(ofi_info&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
    ofi_info& operator=(ofi_info&& other) noexcept {
        std::swap(first_, other.first_);
        return *this;
    }
    ~ofi_info() {
        if (first_ != nullptr) fi_freeinfo(first_);
    }
    fi_info* get() const noexcept { return first_; }
    fi_info* operator->() const noexcept { return first_; }
    explicit operator bool() const noexcept { return first_ != nullptr; }

  private:
    fi_info* first_;
};

/// Returns libfabric's text for a negative return value.
inline char const* ofi_text(long rc) noexcept { return fi_strerror(static_cast<int>(rc < 0 ? -rc : rc)); }

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_HANDLE_HPP
