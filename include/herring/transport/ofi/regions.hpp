// herring: memory that is registered with libfabric, and the descriptors by which posts name it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_REGIONS_HPP
#define HERRING_TRANSPORT_OFI_REGIONS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/transport/ofi/handle.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail {

/// What was registered, each once, for one endpoint. A domain that asks for no registration gets none.
///
/// Threads: as the endpoint's.
/// Cost: a descriptor takes one comparison a region.
class ofi_regions {
  public:
    ofi_regions() = default;
    /// `modes`: the `mr_mode` that the domain grants.
    explicit ofi_regions(int modes) noexcept : modes_(modes) {}

    /// Whether posts need a descriptor of the memory that they use.
    bool needed() const noexcept { return (modes_ & (FI_MR_LOCAL | FI_MR_HMEM)) != 0; }

    /// Registers memory of the host, or (`device` ≥ 0) of that CUDA device.
    ///
    /// Errors: `no_resources`, `unsupported` with the size and libfabric's text; what was registered before stays.
    HERRING_SETUP void add(fid_domain* domain, fid_ep* endpoint, std::span<std::byte> memory, int device,
                           int rank) {
        if (!needed() || memory.empty()) return;
        iovec const where{memory.data(), memory.size()};
        fi_mr_attr asked{};
        asked.mr_iov = &where;
        asked.iov_count = 1;
        asked.access = FI_SEND | FI_RECV;
        asked.requested_key = held_.size(); // distinct, which is asked of who chooses
        if (device >= 0) {
            asked.iface = FI_HMEM_CUDA;
            asked.device.cuda = device;
        }
        ofi_handle<fid_mr> handle;
        int rc = fi_mr_regattr(domain, &asked, 0, handle.out());
        if (rc == 0 && (modes_ & FI_MR_ENDPOINT) != 0) {
            rc = fi_mr_bind(handle.get(), &endpoint->fid, 0);
            if (rc == 0) rc = fi_mr_enable(handle.get());
        }
        if (rc != 0)
            throw error(rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP ? errc::unsupported : errc::no_resources,
                        rank, -1, "libfabric",
                        {"cannot register ", memory.size(), " bytes", device >= 0 ? " of a device" : "", ": ",
                         ofi_text(rc), "; raise the limit of locked memory (ulimit -l unlimited)"});
        fixed_array<ofi_handle<fid_mr>> held(held_.size() + 1);
        fixed_array<region> regions(held.size());
        for (std::size_t i = 0; i < regions_.size(); ++i) {
            held[i] = std::move(held_[i]);
            regions[i] = regions_[i];
        }
        regions[regions_.size()] = {memory.data(), memory.size(), fi_mr_desc(handle.get())};
        held[regions_.size()] = std::move(handle);
        held_ = std::move(held);
        regions_ = std::move(regions);
    }

    /// Of memory that lies in a region, or nullptr.
    void* descriptor_of(void const* memory) const noexcept {
        for (region const& r : regions_)
            if (static_cast<std::size_t>(static_cast<std::byte const*>(memory) - r.begin) < r.size)
                return r.descriptor;
        return nullptr;
    }

    void close() noexcept {
        for (ofi_handle<fid_mr>& one : held_) one.close();
    }

  private:
    struct region {
        std::byte const* begin = nullptr;
        std::size_t size = 0;
        void* descriptor = nullptr;
    };

    int modes_ = 0;
    fixed_array<ofi_handle<fid_mr>> held_;
    fixed_array<region> regions_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_REGIONS_HPP
