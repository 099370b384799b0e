// herring: memory of other local ranks: a trial of access at construction, and buffers lent for a call.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_PIPELINE_PEER_MEMORY_HPP
#define HERRING_GPU_PIPELINE_PEER_MEMORY_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/gpu/node_devices.hpp"
#include "herring/gpu/runtime.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace HERRING_NAMESPACE::gpu {

/// The trial of access between devices: each rank writes a token into its neighbours' memory and reads it
/// from there. With an IOMMU or a switch between two cards CUDA may report that they reach each other, and
/// data be lost without an error.
///
/// Shape:    `memory[l]`: memory of local rank l, as this device sees it; its first `bytes(L)` are zero
///           before and after.
/// Order:    `write`; `check` when all ranks have written; `clear` when all ranks have checked.
/// Cost:     3 copies of 64 bytes per neighbour; a few for this rank's own memory.
/// Blocks:   until the device has done the copies.
/// Errors:   `check` throws `unsupported`, naming the pair; all functions throw errors of the device.
template <class Runtime> class peer_trial {
  public:
    static constexpr std::size_t bytes(std::size_t ranks) noexcept { return 2 * token_bytes * ranks; }

    HERRING_SETUP peer_trial(Runtime& device, world& ranks, std::span<std::byte* const> memory)
        : device_(device), ranks_(ranks), memory_(memory),
          local_(static_cast<std::size_t>(ranks.local_rank())), batch_(device, memory.size()),
          mark_(device, false), host_(bytes(memory.size())), in_(device) {}

    HERRING_SETUP void write() {
        if (memory_.size() < 2) return;
        token const mine = token_of(local_);
        std::copy(mine.begin(), mine.end(), host_.begin());
        device_.to_device(in_.handle(), memory_[local_] + at(local_), host_.data(), token_bytes);
        to_neighbours([&](std::size_t l) {
            return copy_item{memory_[l] + at(local_), memory_[local_] + at(local_), token_bytes};
        });
    }
    HERRING_SETUP void check() {
        if (memory_.size() < 2) return;
        to_neighbours([&](std::size_t l) {
            return copy_item{memory_[local_] + at(memory_.size() + l), memory_[l] + at(l), token_bytes};
        });
        device_.to_host(in_.handle(), host_.data(), memory_[local_], host_.size());
        finish();
        for (std::size_t l = 0; l < memory_.size(); ++l) {
            if (l == local_) continue;
            int const other = ranks_.topology().rank_of(ranks_.node(), static_cast<int>(l));
            if (!is_token(l, at(l)))
                throw error(peer_loss_error(other, ranks_.rank(), "write", ranks_.rank()));
            if (!is_token(l, at(memory_.size() + l)))
                throw error(peer_loss_error(ranks_.rank(), other, "read", ranks_.rank()));
        }
    }
    HERRING_SETUP void clear() {
        if (memory_.size() < 2) return;
        std::fill(host_.begin(), host_.end(), std::byte{0});
        device_.to_device(in_.handle(), memory_[local_], host_.data(), host_.size());
        finish();
    }

  private:
    static constexpr std::size_t token_bytes = 64;
    using token = std::array<std::byte, token_bytes>;

    static constexpr std::size_t at(std::size_t place) noexcept { return place * token_bytes; }
    static token token_of(std::size_t l) noexcept {
        token bytes;
        for (std::size_t i = 0; i < token_bytes; ++i)
            bytes[i] = static_cast<std::byte>((1 + 37 * l + i) & 0xff);
        return bytes;
    }
    bool is_token(std::size_t l, std::size_t place) const noexcept {
        token const due = token_of(l);
        return std::equal(due.begin(), due.end(), host_.begin() + static_cast<std::ptrdiff_t>(place));
    }

    // Copies by a kernel, whose accesses are those of the sums, not by the device's copy engines.
    template <class Item> void to_neighbours(Item const& item) {
        std::vector<copy_item> items;
        for (std::size_t l = 0; l < memory_.size(); ++l)
            if (l != local_) items.push_back(item(l));
        device_.list(batch_, 0, items);
        device_.copy_many(in_.handle(), batch_, 0, items.size());
        finish();
    }
    void finish() {
        device_.record(mark_, in_.handle());
        bool const ended = device_.ended(mark_);
        if (!ended) batch_.leave();
        if (failure const* const why = device_.failed()) throw error(*why);
        if (!ended)
            throw error(errc::device, ranks_.rank(), -1, "construction",
                        "copies to the devices of the node's other ranks do not end");
    }

    Runtime& device_;
    world& ranks_;
    std::span<std::byte* const> memory_;
    std::size_t local_;
    typename Runtime::batch batch_;
    typename Runtime::event mark_;
    std::vector<std::byte> host_; // source or target of copies to or from this rank's memory
    typename Runtime::stream in_; // ends before the memory that its copies use
};

/// A piece of a call, as its rank shows it to local ranks in shared memory.
template <class Runtime> struct offer {
    typename Runtime::export_of_memory allocation; ///< that holds the piece
    std::byte* at = nullptr;                       ///< address of the piece in its rank's process
    bool lent = false;                             ///< false: the piece is copied to the rank's bounce slot
};

/// The allocations of one local rank that this rank has open. An allocation is identified by its first
/// address and its number, which a device gives once: memory that was freed and allocated again at the same
/// address has another number.
///
/// Cost:     a comparison for each open allocation; opening one, once, about 0.1 ms.
/// Memory:   at most `most` allocations. Their rank may free them; the memory is released when they are
///           closed.
/// Threads:  one at a time.
template <class Runtime> class lent_memory {
  public:
    static constexpr std::size_t most = 16;

    /// Returns the address of the piece for this device, or nullptr: ask again when `quiet()`. `quiet()`:
    /// true if no enqueued work uses open allocations, so that one may be closed. `number`: the execution. An
    /// allocation that cannot be opened is a failure of the device.
    template <class Quiet>
    std::byte* see(Runtime& device, offer<Runtime> const& what, int peer, std::uint64_t number,
                   Quiet const& quiet) noexcept {
        if (device.here(what.allocation)) return what.at;
        std::byte* const first = what.allocation.first();
        opened* place = &open_[0];
        for (opened& one : open_) {
            if (one.as && one.first == first && one.id == what.allocation.id) {
                one.used = number;
                return one.as->data() + (what.at - first);
            }
            if (one.as && one.first == first) { // freed since, and allocated anew
                place = &one;
                break;
            }
            if (place->as && (!one.as || one.used < place->used)) place = &one;
        }
        if (place->as && !quiet()) return nullptr;
        place->as.reset();
        try {
            place->as.emplace(device, what.allocation, peer);
        } catch (error const& why) {
            failure const& of = why.why();
            device.keep(failure::make(of.what, of.reporter, of.peer, "all_reduce", of.text));
            return what.at; // not used: a device that failed enqueues nothing
        }
        place->first = first;
        place->id = what.allocation.id;
        place->used = number;
        return place->as->data() + (what.at - first);
    }
    /// Closes the allocation that begins at `first`, which no enqueued work uses.
    void close(std::byte* first) noexcept {
        for (opened& one : open_)
            if (one.as && one.first == first) one.as.reset();
    }

  private:
    struct opened {
        std::optional<typename Runtime::imported_memory> as;
        std::byte* first = nullptr;
        std::uint64_t id = 0;
        std::uint64_t used = 0; // number of the last execution that used it
    };
    opened open_[most];
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_PIPELINE_PEER_MEMORY_HPP
