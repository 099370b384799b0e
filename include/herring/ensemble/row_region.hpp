// herring: the memory in which one incarnation of a member shows its rows to a frontend of its machine.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ROW_REGION_HPP
#define HERRING_ENSEMBLE_ROW_REGION_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/round_up.hpp"
#include "herring/ensemble/ids.hpp"
#include "herring/ensemble/request_region.hpp"
#include "herring/ensemble/sealed_memory.hpp"
#include "herring/ensemble/shared_ring.hpp"
#include "herring/machine/descriptor.hpp"
#include "herring/machine/identity.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::ensembles {

/// Where the parts of a member's memory lie. Both ends know it from the admission, so the file has one right size.
///
/// Shape:   facts, and at 128 the member's sleep flag (a page) · the ring of answers · a place for each row: first those of
///          asks, then the spare ones.
/// Memory:  4 KiB + ⌈64 · cells⌉ + ⌈(credits + 8) · stride + 4 KiB⌉ in pages; cells: a power of two above credits + 8; stride:
///          row_bytes in two cache lines, in pages where it is a page or more.
///
/// Rows that are folded together are read side by side. If they all began at the same offset in a page, each step would need
/// one set of the first-level cache for all of them, which has 8 to 12 lines: so rows of peer p begin 39 · p cache lines later,
/// modulo a page.
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

/// A member's memory for one incarnation at one frontend. Nothing of an incarnation before is in it.
///
/// Errors: `no_resources`, `unsupported` (then the member goes by tcp), `bad_argument`.
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

    /// For the frontend; stays this object's.
    int descriptor() const noexcept { return memory_.descriptor(); }
    row_layout const& layout() const noexcept { return layout_; }
    /// Random: where sequences of the rings of this incarnation begin.
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

/// What a frontend sees of it.
///
/// Errors: `protocol`, which says what is wrong with the memory.
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
    /// `place` < places.
    std::byte const* row(place_index place) const noexcept { return memory_.data() + layout_.row_at(place); }

  private:
    row_layout layout_{};
    std::uint64_t origin_ = 0;
    foreign_memory memory_{};
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ROW_REGION_HPP
