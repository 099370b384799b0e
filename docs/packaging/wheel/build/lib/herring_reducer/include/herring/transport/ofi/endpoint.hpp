// herring: an endpoint of libfabric with its queue, addresses and registered memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_ENDPOINT_HPP
#define HERRING_TRANSPORT_OFI_ENDPOINT_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/machine/identity.hpp"
#include "herring/transport/ofi/handle.hpp"
#include "herring/transport/ofi/select.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <sys/stat.h>
#include <sys/uio.h>

namespace HERRING_NAMESPACE::detail {

/// The registered memory of one endpoint, each region once. A domain that asks for no registration gets none.
///
/// Threads: as the endpoint.
/// Cost:    `descriptor_of` takes one comparison a region.
class ofi_regions {
  public:
    ofi_regions() = default;
    /// `modes`: the mr_mode that the domain grants.
    explicit ofi_regions(int modes) noexcept : modes_(modes) {}

    /// True if posts need a descriptor of the memory that they use.
    bool needed() const noexcept { return (modes_ & (FI_MR_LOCAL | FI_MR_HMEM)) != 0; }

    /// Registers memory of the host, or, if `device` ≥ 0, of that CUDA device.
    ///
    /// Errors: `no_resources`, `unsupported`, with the size and libfabric's text; earlier regions stay
    ///         registered.
    HERRING_SETUP void add(fid_domain* domain, fid_ep* endpoint, std::span<std::byte> memory, int device,
                           int rank) {
        if (!needed() || memory.empty()) return;
        iovec const where{memory.data(), memory.size()};
        fi_mr_attr asked{};
        asked.mr_iov = &where;
        asked.iov_count = 1;
        asked.access = FI_SEND | FI_RECV;
        asked.requested_key = held_.size(); // distinct, as the chooser of keys must ensure
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

    /// Returns the descriptor of memory that lies in a region, or nullptr.
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

/// The address of a rank's endpoint, as ranks exchange it over the control connection.
struct ofi_address {
    static constexpr std::size_t most = 216;

    std::uint64_t machine = 0; ///< equal where ranks see one /dev/shm
    std::uint64_t process = 0; ///< equal for threads of one process
    std::uint32_t format = 0;  ///< FI_SOCKADDR_IN, ...
    std::uint32_t size = 0;    ///< bytes of `name`
    char name[most] = {};
};
static_assert(sizeof(ofi_address) <= 256);

/// Throws unless the address vector took the addresses of all `peers`; `to` marks the addresses that it did
/// not take.
HERRING_SETUP inline void ofi_entered(int rank, int taken, std::span<fi_addr_t const> to,
                                      std::span<int const> peers) {
    if (taken == static_cast<int>(peers.size())) return;
    std::size_t first = 0;
    while (taken > 0 && first + 1 < peers.size() && to[first] != FI_ADDR_NOTAVAIL) ++first;
    throw error(errc::no_resources, rank, peers[first], "libfabric",
                {"the address vector took ", taken < 0 ? 0 : taken, " of ", peers.size(),
                 " addresses, and not that rank's: ",
                 taken < 0 ? ofi_text(taken) : "it is full, or the address cannot be resolved"});
}

/// An endpoint, open and enabled.
///
/// Threads: one at a time (FI_THREAD_DOMAIN).
/// Errors:  `unsupported`, `no_resources`, `unreachable`, with the call that failed and libfabric's text.
class ofi_endpoint {
  public:
    ofi_endpoint() = default;
    HERRING_SETUP ofi_endpoint(ofi_facts const& tag, ofi_info granted, std::size_t posts, std::size_t peers,
                               int rank)
        : rank_(rank), granted_(std::move(granted)), regions_(granted_->domain_attr->mr_mode) {
        fi_info* const info = granted_.get();
        must(fi_fabric(info->fabric_attr, fabric_.out(), nullptr), "fi_fabric");
        must(fi_domain(fabric_.get(), info, domain_.out(), nullptr), "fi_domain");
        fi_cq_attr queue{};
        queue.size = posts;
        queue.format = FI_CQ_FORMAT_TAGGED;
        queue.wait_obj = tag.waits_on_descriptor ? FI_WAIT_FD : FI_WAIT_NONE;
        int const opened = fi_cq_open(domain_.get(), &queue, queue_.out(), nullptr);
        if (opened == 0 && tag.waits_on_descriptor)
            if (fi_control(&queue_.get()->fid, FI_GETWAIT, &descriptor_) != 0) descriptor_ = -1;
        if (tag.waits_on_descriptor && (opened == -FI_ENOSYS || (opened == 0 && descriptor_ < 0)))
            throw error(
                errc::unsupported, rank_, -1, "libfabric",
                {"provider '", tag.libfabric, "' of libfabric ", ofi_version_text(fi_version()),
                 " has no descriptor to wait on (FI_WAIT_FD), and its tag says that it has: use a tag "
                 "with waits_on_descriptor = false"});
        must(opened, "fi_cq_open");
        fi_av_attr book{};
        book.type = info->domain_attr->av_type;
        book.count = peers;
        must(fi_av_open(domain_.get(), &book, book_.out(), nullptr), "fi_av_open");
        must(fi_endpoint(domain_.get(), info, endpoint_.out(), nullptr), "fi_endpoint");
        must(fi_ep_bind(endpoint_.get(), &queue_.get()->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        must(fi_ep_bind(endpoint_.get(), &book_.get()->fid, 0), "fi_ep_bind");
        must(fi_enable(endpoint_.get()), "fi_enable");
    }

    fid_ep* get() const noexcept { return endpoint_.get(); }
    fid_cq* queue() const noexcept { return queue_.get(); }
    fid_fabric* fabric() const noexcept { return fabric_.get(); }
    /// Returns a descriptor that is readable when the queue may have completions; −1: there is none.
    int descriptor() const noexcept { return descriptor_; }

    /// Closes the endpoint. Afterwards libfabric neither reads nor writes posted memory.
    void close() noexcept {
        endpoint_.close(); // before the memory that is registered with it
        regions_.close();
    }

    /// Keeps an endpoint open until the process ends, where closing it would do harm. Progress is manual: no
    /// byte moves.
    static void leak_until_exit(ofi_endpoint* left) noexcept {
        static std::atomic<ofi_endpoint*> kept{nullptr};
        left->next_kept_ = kept.load();
        while (!kept.compare_exchange_weak(left->next_kept_, left)) {
        }
    }

    /// Returns the address of this rank.
    HERRING_SETUP ofi_address address() const {
        ofi_address result;
        result.machine = machine();
        result.process = this_process();
        result.format = granted_->addr_format;
        std::size_t size = sizeof result.name;
        int const rc = fi_getname(&endpoint_.get()->fid, result.name, &size);
        if (rc == -FI_ETOOSMALL || size > sizeof result.name)
            throw error(errc::unsupported, rank_, -1, "libfabric",
                        {"the provider's addresses have ", size, " bytes, and at most ", sizeof result.name,
                         " are exchanged"});
        must(rc, "fi_getname");
        result.size = static_cast<std::uint32_t>(size);
        return result;
    }

    /// Enters the addresses of the peers; calls name `peers[i]` by `to[i]`.
    ///
    /// Errors: `mismatch` for an address of another kind, `unsupported` where the provider cannot reach a
    ///         rank, `no_resources` where the address vector is full; each names the rank.
    HERRING_SETUP void enter(gather_result const& addresses, std::span<int const> peers, ofi_facts const& tag,
                             std::span<fi_addr_t> to) {
        ofi_address const mine = address();
        fixed_array<ofi_address> others(peers.size());
        std::size_t length = 0;
        for (std::size_t i = 0; i < peers.size(); ++i) {
            ofi_address& one = others[i];
            if (!wire::read_value(addresses[static_cast<std::size_t>(peers[i])], one) || one.size == 0 ||
                one.size > sizeof one.name || one.format != mine.format ||
                (mine.format != FI_ADDR_STR && one.size != mine.size))
                throw error(
                    errc::mismatch, rank_, peers[i], "libfabric",
                    {"its address is of another kind (format ", one.format, ", ", one.size,
                     " bytes) than this rank's (format ", mine.format, ", ", mine.size,
                     " bytes): do all ranks have the same provider and the same family of addresses?"});
            if (tag.one_machine && one.machine != mine.machine)
                throw error(errc::unsupported, rank_, peers[i], "libfabric",
                            {"that rank does not share this one's /dev/shm, and provider '", tag.libfabric,
                             "' joins processes of one machine: use transport::tcp or another provider"});
            if (tag.one_machine && one.process == mine.process)
                throw error(errc::unsupported, rank_, peers[i], "libfabric",
                            {"that rank is a thread of this process, and provider '", tag.libfabric,
                             "' joins processes: use transport::inproc for threads"});
            length += one.size;
        }
        // One by one: texts differ in size, and providers in how they take several at once.
        if (mine.format == FI_ADDR_STR) {
            for (std::size_t i = 0; i < peers.size(); ++i) {
                char name[2 * sizeof(ofi_address)] = {}; // providers read more than the text
                std::memcpy(name, others[i].name, others[i].size);
                ofi_entered(rank_, fi_av_insert(book_.get(), name, 1, &to[i], 0, nullptr), {&to[i], 1},
                            {&peers[i], 1});
            }
            return;
        }
        fixed_array<std::byte> packed(length);
        for (std::size_t i = 0; i < peers.size(); ++i)
            std::memcpy(packed.data() + i * mine.size, others[i].name, mine.size);
        ofi_entered(rank_, fi_av_insert(book_.get(), packed.data(), peers.size(), to.data(), 0, nullptr), to,
                    peers);
    }

    /// True if posts need a descriptor of the memory that they use.
    bool registers() const noexcept { return regions_.needed(); }
    /// Registers memory until `close`; `device` ≥ 0: of that CUDA device.
    ///
    /// Errors: `no_resources`, `unsupported`.
    HERRING_SETUP void register_memory(std::span<std::byte> memory, int device = -1) {
        regions_.add(domain_.get(), endpoint_.get(), memory, device, rank_);
    }
    /// Returns the descriptor of registered memory, or nullptr.
    void* descriptor_of(void const* memory) const noexcept { return regions_.descriptor_of(memory); }

    /// Returns a number that is equal for processes that share one /dev/shm.
    HERRING_SETUP static std::uint64_t machine() {
        struct ::stat about {};
        std::string const boot = boot_id();
        std::uint64_t const mount = ::stat("/dev/shm", &about) == 0 ? about.st_dev : 0;
        return hash_of(boot.data(), boot.size()) ^ mount;
    }
    HERRING_SETUP static std::uint64_t this_process() noexcept {
        // A forked child has its parent's number, but its own process id.
        static std::uint64_t const number = random_bits();
        return number ^ static_cast<std::uint64_t>(::getpid()) * 0x9E3779B97F4A7C15u;
    }

  private:
    HERRING_SETUP void must(long rc, char const* call) const {
        if (rc == 0) return;
        errc what = errc::no_resources;
        if (rc == -FI_ENOSYS || rc == -FI_EOPNOTSUPP || rc == -FI_ENODATA || rc == -FI_EINVAL)
            what = errc::unsupported;
        if (rc == -FI_EADDRNOTAVAIL || rc == -FI_ENETUNREACH || rc == -FI_ENODEV) what = errc::unreachable;
        throw error(
            what, rank_, -1, "libfabric",
            {call, ": ", ofi_text(rc),
             "; check the device, HERRING_INTERFACE, the limits of open files, of locked memory and of "
             "/dev/shm, and see FI_LOG_LEVEL=warn"});
    }

    ofi_endpoint* next_kept_ = nullptr;
    int rank_ = -1;
    int descriptor_ = -1;
    ofi_info granted_{};
    // In the order of opening.
    ofi_handle<fid_fabric> fabric_;
    ofi_handle<fid_domain> domain_;
    ofi_handle<fid_cq> queue_;
    ofi_handle<fid_av> book_;
    ofi_regions regions_;
    ofi_handle<fid_ep> endpoint_;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_OFI_ENDPOINT_HPP
