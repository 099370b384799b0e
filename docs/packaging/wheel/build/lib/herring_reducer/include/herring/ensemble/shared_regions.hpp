// herring: the memory that a frontend and a member of one machine share: requests one way, rows the other.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_SHARED_REGIONS_HPP
#define HERRING_ENSEMBLE_SHARED_REGIONS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/sealed_memory.hpp"
#include "herring/ensemble/shared_ring.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Places for rows that a member sends unasked: those under way or in an answer, and those that came early.
inline constexpr std::uint32_t spare_places = 4 + early_places;

/// The layout of a frontend's memory.
///
/// Shape:   header (a page) · a slot for each request in flight: its id, then its bytes · a section for each
///          peer: this frontend's sleep flag, how often each spare place was given back, the ring of asks.
/// Memory:  4 KiB + in_flight · ⌈128 + request_bytes⌉ + peers · ⌈256 + 64 · credits⌉, each product in pages
///          and credits a power of two; sections are allocated as peers come.
struct request_layout {
    std::uint64_t in_flight = 0; ///< slots
    std::uint64_t request_bytes = 0;
    std::uint64_t peers = 0;   ///< peers that this frontend may ever have
    std::uint64_t credits = 0; ///< most unanswered asks of a peer

    static constexpr std::uint64_t magic = 0x3151455247495248; // "HRIGREQ1"
    static constexpr std::uint64_t most = std::uint64_t{1} << 46;

    bool operator==(request_layout const&) const = default;

    /// True if no sum below overflows.
    bool is_sound() const noexcept {
        std::uint64_t slots = 0;
        return in_flight > 0 && in_flight <= 1u << 20 && peers > 0 && peers <= 1u << 24 && credits > 0 &&
               credits <= 1u << 20 && request_bytes < most &&
               !__builtin_mul_overflow(in_flight, slot_stride(), &slots) && slots < most &&
               peers * section_bytes() < most;
    }
    std::uint64_t cells() const noexcept { return std::bit_ceil(credits); }
    std::uint64_t slot_stride() const noexcept { return round_up(slot_head + request_bytes, slot_head); }
    std::uint64_t slot_at(std::uint64_t slot) const noexcept { return memory_page + slot * slot_stride(); }
    std::uint64_t sections_at() const noexcept { return round_up(slot_at(in_flight), memory_page); }
    std::uint64_t section_bytes() const noexcept {
        return round_up(section_head + cells() * sizeof(ring_cell), memory_page);
    }
    std::uint64_t section_at(std::uint64_t peer) const noexcept {
        return sections_at() + peer * section_bytes();
    }
    std::uint64_t bytes() const noexcept { return section_at(peers); }

    static constexpr std::uint64_t slot_head = 128; // two cache lines, which are fetched in pairs
    static constexpr std::uint64_t section_head = 256;
};

/// The head of a slot, before the request's bytes.
struct request_head {
    std::atomic<std::uint64_t> id; // of the request whose bytes are here; 0: they are being written
};

/// The head of a peer's section, before the ring's cells.
struct request_section {
    sleep_flag frontend; // the frontend sleeps
    // How often each of the peer's spare places was given back, counted from the origin of its rows.
    alignas(128) std::atomic<std::uint64_t> given_back[spare_places];
};
static_assert(sizeof(request_section) == request_layout::section_head);

/// A frontend's memory: each request lies here once for all members of the machine, which read it in place.
///
/// Errors: `no_resources`, `unsupported` (then members connect by TCP), `bad_argument`.
/// Lifetime: outlives the lanes.
class request_region {
  public:
    HERRING_SETUP explicit request_region(request_layout const& layout) : layout_(layout) {
        if (!layout.is_sound())
            throw error(errc::bad_argument, -1, -1, "ensemble",
                        {layout.in_flight, " requests of ", layout.request_bytes, " bytes for ", layout.peers,
                         " members are more than shared memory takes; lower in_flight or request_bytes"});
        memory_ = sealed_memory(layout.bytes());
        memory_.allocate(0, layout.sections_at());
        std::array<std::uint64_t, 5> const facts{request_layout::magic, layout.in_flight,
                                                 layout.request_bytes, layout.peers, layout.credits};
        std::memcpy(memory_.data(), facts.data(), sizeof facts);
    }

    /// Returns the descriptor that members of this machine map. This object owns it.
    int descriptor() const noexcept { return memory_.descriptor(); }
    request_layout const& layout() const noexcept { return layout_; }

    /// Returns the place for the bytes of the slot's next request. From here on members that work on the
    /// slot's last request can tell.
    std::span<std::byte> slot(slot_index slot) noexcept {
        head(slot).id.store(0, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_release);
        return {bytes_of(slot), layout_.request_bytes};
    }

    /// Makes the slot that of request `id`, unless it is already; copies `request` if it lies elsewhere.
    void put(slot_index slot, std::uint64_t id, std::span<std::byte const> request) noexcept {
        if (head(slot).id.load(std::memory_order_relaxed) == id) return;
        if (request.data() != bytes_of(slot) && !request.empty())
            std::memcpy(this->slot(slot).data(), request.data(), request.size());
        head(slot).id.store(id, std::memory_order_release);
    }

    /// Allocates the section of `peer`, which an earlier incarnation may have used.
    ///
    /// Errors: `no_resources`.
    HERRING_SETUP void open_section(peer_index peer) {
        memory_.allocate(layout_.section_at(peer), layout_.section_bytes());
    }
    request_section& section(peer_index peer) noexcept {
        return *reinterpret_cast<request_section*>(memory_.data() + layout_.section_at(peer));
    }
    ring_cell* asks(peer_index peer) noexcept {
        return reinterpret_cast<ring_cell*>(memory_.data() + layout_.section_at(peer) +
                                            request_layout::section_head);
    }

  private:
    request_head& head(slot_index slot) noexcept {
        return *reinterpret_cast<request_head*>(memory_.data() + layout_.slot_at(slot));
    }
    std::byte* bytes_of(slot_index slot) noexcept {
        return memory_.data() + layout_.slot_at(slot) + request_layout::slot_head;
    }

    request_layout layout_;
    sealed_memory memory_{};
};

/// A frontend's memory as a member maps it.
///
/// Errors: `protocol`, with what is wrong with the memory.
class request_view {
  public:
    request_view() = default;
    HERRING_SETUP request_view(detail::descriptor file, peer_index peer)
        : memory_(std::move(file), memory_page, 4 * request_layout::most, false) {
        std::array<std::uint64_t, 5> facts;
        std::memcpy(facts.data(), memory_.data(), sizeof facts); // once: the checked copy is the one in use
        layout_ = {facts[1], facts[2], facts[3], facts[4]};
        if (facts[0] != request_layout::magic || !layout_.is_sound() || layout_.bytes() != memory_.size() ||
            peer >= layout_.peers)
            foreign_memory::refuse(
                {"the shared memory that it passed is not that of a frontend, or of another "
                 "version of Herring"});
    }

    request_layout const& layout() const noexcept { return layout_; }
    request_section const& section(peer_index peer) const noexcept {
        return *reinterpret_cast<request_section const*>(memory_.data() + layout_.section_at(peer));
    }
    ring_cell const* asks(peer_index peer) const noexcept {
        return reinterpret_cast<ring_cell const*>(memory_.data() + layout_.section_at(peer) +
                                                  request_layout::section_head);
    }
    std::span<std::byte const> bytes_of(slot_index slot) const noexcept {
        return {memory_.data() + layout_.slot_at(slot) + request_layout::slot_head, layout_.request_bytes};
    }
    /// True if the slot's bytes are those of request `id`. To be called before they are read, and again
    /// after.
    bool holds(slot_index slot, std::uint64_t id) const noexcept {
        auto const& head = *reinterpret_cast<request_head const*>(memory_.data() + layout_.slot_at(slot));
        std::atomic_thread_fence(std::memory_order_acquire);
        return head.id.load(std::memory_order_acquire) == id;
    }

  private:
    foreign_memory memory_{};
    request_layout layout_{};
};

/// The layout of a member's memory. Both ends know it from the admission, so the file has one right size.
///
/// Shape:   header, and at 128 the member's sleep flag (a page) · the ring of answers · a place for each row:
///          first those of asks, then the spare ones.
/// Memory:  4 KiB + ⌈64 · cells⌉ + ⌈(credits + 8) · stride + 4 KiB⌉ in pages; cells: a power of two above
///          credits + 8; stride: row_bytes in two cache lines, in pages where it is a page or more.
///
/// Rows that are folded together are read side by side. If all began at the same offset in a page, each step
/// would need one set of the first-level cache for all of them, which has 8 to 12 lines. So rows of peer p
/// begin 39 · p cache lines later, modulo a page.
struct row_layout {
    std::uint64_t peer = 0;
    std::uint64_t credits = 0; ///< places of asks
    std::uint64_t row_bytes = 0;

    static constexpr std::uint64_t magic = 0x31574f5247495248; // "HRIGROW1"
    static constexpr std::uint64_t most = std::uint64_t{1} << 46;
    static constexpr std::uint64_t line = 64;

    bool operator==(row_layout const&) const = default;

    bool is_sound() const noexcept {
        std::uint64_t rows = 0;
        return credits > 0 && credits <= 1u << 20 && row_bytes < most &&
               !__builtin_mul_overflow(places(), stride(), &rows) && rows < most;
    }
    std::uint64_t places() const noexcept { return credits + spare_places; }
    std::uint64_t cells() const noexcept { return std::bit_ceil(places()); }
    std::uint64_t stride() const noexcept {
        return round_up(row_bytes, row_bytes < memory_page ? 2 * line : memory_page);
    }
    std::uint64_t stagger() const noexcept { return peer * 39 % (memory_page / line) * line; }
    std::uint64_t rows_at() const noexcept {
        return memory_page + round_up(cells() * sizeof(ring_cell), memory_page) + stagger();
    }
    std::uint64_t row_at(std::uint64_t place) const noexcept { return rows_at() + place * stride(); }
    std::uint64_t bytes() const noexcept {
        return round_up(rows_at() - stagger() + places() * stride() + memory_page, memory_page);
    }

    static constexpr std::uint64_t flag_at = 128;
};

/// A member's memory for one incarnation at one frontend. It holds nothing of earlier incarnations.
///
/// Errors: `no_resources`, `unsupported` (then the member connects by TCP), `bad_argument`.
class row_region {
  public:
    row_region() = default;
    HERRING_SETUP explicit row_region(row_layout const& layout) : layout_(layout), origin_(random_bits()) {
        if (!layout.is_sound())
            throw error(
                errc::bad_argument, -1, -1, "ensemble",
                {layout.credits, " rows of ", layout.row_bytes, " bytes are more than shared memory takes"});
        memory_ = sealed_memory(layout.bytes());
        memory_.allocate(0, layout.bytes());
        std::array<std::uint64_t, 5> const facts{row_layout::magic, layout.peer, layout.credits,
                                                 layout.row_bytes, origin_};
        std::memcpy(memory_.data(), facts.data(), sizeof facts);
    }

    /// Returns the descriptor that the frontend maps. This object owns it.
    int descriptor() const noexcept { return memory_.descriptor(); }
    row_layout const& layout() const noexcept { return layout_; }
    /// Returns the random number at which the sequences of this incarnation's rings begin.
    std::uint64_t origin() const noexcept { return origin_; }

    sleep_flag& flag() noexcept {
        return *reinterpret_cast<sleep_flag*>(memory_.data() + row_layout::flag_at);
    }
    ring_cell* answers() noexcept { return reinterpret_cast<ring_cell*>(memory_.data() + memory_page); }
    std::span<std::byte> row(place_index place) noexcept {
        return {memory_.data() + layout_.row_at(place), layout_.row_bytes};
    }

  private:
    row_layout layout_{};
    std::uint64_t origin_ = 0;
    sealed_memory memory_{};
};

/// A member's memory as a frontend maps it.
///
/// Errors: `protocol`, with what is wrong with the memory.
class row_view {
  public:
    row_view() = default;
    HERRING_SETUP row_view(detail::descriptor file, row_layout const& due)
        : layout_(due), memory_(std::move(file), due.bytes(), due.bytes(), true) {
        std::array<std::uint64_t, 5> facts;
        std::memcpy(facts.data(), memory_.data(), sizeof facts);
        if (facts[0] != row_layout::magic || row_layout{facts[1], facts[2], facts[3]} != due)
            foreign_memory::refuse({"the shared memory that it passed is not that of a member, or of another "
                                    "version of Herring"});
        origin_ = facts[4];
    }

    row_layout const& layout() const noexcept { return layout_; }
    std::uint64_t origin() const noexcept { return origin_; }
    sleep_flag const& flag() const noexcept {
        return *reinterpret_cast<sleep_flag const*>(memory_.data() + row_layout::flag_at);
    }
    ring_cell const* answers() const noexcept {
        return reinterpret_cast<ring_cell const*>(memory_.data() + memory_page);
    }
    /// Returns a row. `place` < places.
    std::byte const* row(place_index place) const noexcept { return memory_.data() + layout_.row_at(place); }

  private:
    row_layout layout_{};
    std::uint64_t origin_ = 0;
    foreign_memory memory_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_SHARED_REGIONS_HPP
