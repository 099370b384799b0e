// herring: the k-way fold: many contributions into one result, in rank order, in one pass over memory.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_FOLD_HPP
#define HERRING_KERNEL_FOLD_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "herring/base/config.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/model/element.hpp"
#include "herring/model/part_format.hpp"
#include "herring/update/update.hpp"

namespace HERRING_NAMESPACE::kernel {

/// One contribution, at any alignment: elements of Element or, of the kind `accumulator`, a partial sum of
/// accumulator<Element>, whose contributions are lifted already.
struct source {
    void const* data;
    part_kind kind = part_kind::stored;
};

namespace detail {

// The most sources that one pass reads; more need several passes over a tile that stays in the first-level
// cache.
inline constexpr std::size_t fan_in = 16;
// At 4096, runs of a source are too short for the hardware prefetchers.
inline constexpr std::size_t tile_bytes = 16384;

template <class Update, class Element> inline constexpr bool lifts = Update::facts.lifts;

template <class Update, class Element>
HERRING_ALWAYS_INLINE block<Element> load(source const& from, std::size_t index) noexcept {
    if constexpr (lifts<Update, Element>) {
        if (from.kind == part_kind::stored)
            return block<Element>::load(static_cast<Element const*>(from.data) + index).lifted(Update{});
    } else if constexpr (!std::is_same_v<Element, accumulator<Element>>) {
        if (from.kind == part_kind::stored)
            return block<Element>::load(static_cast<Element const*>(from.data) + index);
    }
    return block<Element>::load_wide(static_cast<accumulator<Element> const*>(from.data) + index);
}

template <class Update, class Element>
HERRING_ALWAYS_INLINE accumulator<Element> load_element(source const& from, std::size_t index) noexcept {
    if constexpr (lifts<Update, Element>) {
        if (from.kind == part_kind::stored)
            return Update::lift(load_one<Element>(static_cast<Element const*>(from.data) + index));
    } else if constexpr (!std::is_same_v<Element, accumulator<Element>>) {
        if (from.kind == part_kind::stored)
            return load_one<Element>(static_cast<Element const*>(from.data) + index);
    }
    return load_one<accumulator<Element>>(static_cast<accumulator<Element> const*>(from.data) + index);
}

// Folds all whole blocks; returns the index behind the last one. SourceCount: the number of sources; 0: k.
template <class Update, class Element, std::size_t SourceCount, class Sink>
HERRING_ALWAYS_INLINE std::size_t blocks(source const* sources, std::size_t k, std::size_t count,
                                         Sink const& sink) noexcept {
    std::size_t i = 0;
    if constexpr (SourceCount != 0) {
        source from[SourceCount]; // a copy that nothing aliases, so that it stays in registers
        for (std::size_t s = 0; s < SourceCount; ++s) from[s] = sources[s];
        for (; count - i >= block<Element>::size; i += block<Element>::size) {
            auto total = load<Update, Element>(from[0], i);
            if constexpr (SourceCount > 1)
                total = total.combined(load<Update, Element>(from[1], i), Update{});
            if constexpr (SourceCount > 2)
                total = total.combined(load<Update, Element>(from[2], i), Update{});
            if constexpr (SourceCount > 3)
                total = total.combined(load<Update, Element>(from[3], i), Update{});
            sink.put(i, total);
        }
    } else {
        for (; count - i >= block<Element>::size; i += block<Element>::size) {
            auto total = load<Update, Element>(sources[0], i);
            for (std::size_t s = 1; s < k; ++s)
                total = total.combined(load<Update, Element>(sources[s], i), Update{});
            sink.put(i, total);
        }
    }
    return i;
}

// sources[0] ∘ sources[1] ∘ ..., element by element, to sink. Needs at least one source.
// SourceCount: k if known at compile time, which leaves out the loops for other numbers; else 0.
template <class Update, class Element, std::size_t SourceCount = 0, class Sink>
void pass(source const* sources, std::size_t k, std::size_t count, Sink const sink) noexcept {
    std::size_t i = 0;
    if constexpr (Update::facts.takes_vectors && takes_vectors && element_in_vectors<Element>) {
        if constexpr (SourceCount != 0) {
            i = blocks<Update, Element, SourceCount>(sources, k, count, sink);
        } else {
            switch (k) {
                // clang-format off
        case 1: i = blocks<Update, Element, 1>(sources, k, count, sink); break;
        case 2: i = blocks<Update, Element, 2>(sources, k, count, sink); break;
        case 3: i = blocks<Update, Element, 3>(sources, k, count, sink); break;
        case 4: i = blocks<Update, Element, 4>(sources, k, count, sink); break;
        default: i = blocks<Update, Element, 0>(sources, k, count, sink);
                // clang-format on
            }
        }
    }
    for (; i < count; ++i) {
        auto total = load_element<Update, Element>(sources[0], i);
        for (std::size_t s = 1; s < k; ++s)
            total = Update::combine(total, load_element<Update, Element>(sources[s], i));
        sink.put(i, total);
    }
}

// Writes totals to one buffer of accumulators, neither finished nor rounded.
template <class Element> struct wide_sink {
    accumulator<Element>* to;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        total.store_wide(to + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<Element> total) const noexcept {
        std::memcpy(static_cast<void*>(to + i), &total, sizeof total);
    }
    wide_sink from(std::size_t base) const noexcept { return {to + base}; }
};

// Writes totals to one target, finished and rounded once.
template <class Element, class Finish> struct target_sink {
    Element* to;
    Finish finish;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        result(total, finish).store(to + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<Element> total) const noexcept {
        store_one<Element>(to + i, round_one<Element>(finish(total)));
    }
    target_sink from(std::size_t base) const noexcept { return {to + base, finish}; }

    HERRING_ALWAYS_INLINE static typename block<Element>::rounded result(block<Element> const& total,
                                                                         Finish const& finish) noexcept {
        block<Element> last = total.finished(finish);
        if (last.any_nan()) [[unlikely]]
            last = last.canonical();
        return last.round();
    }
};

// Writes totals to several targets, finished and rounded once.
template <class Element, class Finish> struct targets_sink {
    Element* const* to;
    std::size_t targets;
    std::size_t base;
    Finish finish;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        auto const last = target_sink<Element, Finish>::result(total, finish);
        for (std::size_t t = 0; t < targets; ++t) last.store(to[t] + base + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<Element> total) const noexcept {
        Element const last = round_one<Element>(finish(total));
        for (std::size_t t = 0; t < targets; ++t) store_one<Element>(to[t] + base + i, last);
    }
    targets_sink from(std::size_t more) const noexcept { return {to, targets, base + more, finish}; }
};

// Writes totals to one target, and copies `refill` to `place`, the memory of a source that has been read by
// then.
template <class Element, class Finish> struct exchanging_sink {
    target_sink<Element, Finish> result;
    Element* place;
    Element const* refill; // nullptr: none
    std::size_t far;       // elements below this index prefetch the line `ahead` elements further

    // A line that is modified in another core's cache arrives with that cache's latency. The hardware
    // prefetcher has too few such lines in flight, and stops at the end of a page.
    static constexpr std::size_t ahead = 1024 / sizeof(Element);

    HERRING_ALWAYS_INLINE void put(std::size_t i, block<Element> const& total) const noexcept {
        constexpr std::size_t bytes = block<Element>::size * sizeof(Element);
        if (i < far)
            for (std::size_t line = 0; line < bytes; line += 64)
                __builtin_prefetch(reinterpret_cast<std::byte const*>(place + i + ahead) + line);
        if (refill != nullptr) std::memcpy(static_cast<void*>(place + i), refill + i, bytes);
        result.put(i, total);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<Element> total) const noexcept {
        if (refill != nullptr) std::memcpy(static_cast<void*>(place + i), refill + i, sizeof(Element));
        result.put(i, total);
    }
};

// The lists of sources, cut into tiles. Independent of the sink, so that it is compiled once.
template <class Update, class Element> struct tiling {
    std::span<source const> before, group, after;

    static constexpr std::size_t tile = tile_bytes / sizeof(accumulator<Element>);
    static_assert(tile % block<Element>::size == 0);
    // 32 KiB that few calls need, so not initialised; bytes for types whose constructor would initialise
    // them.
    using room = std::conditional_t<element_in_vectors<Element>, accumulator<Element>,
                                    std::byte[sizeof(accumulator<Element>)]>;
    alignas(64) room main_tile[tile];
    alignas(64) room inner_tile[tile];
    std::size_t held;
    source at[fan_in]; // the operands of the last pass over the tile

    tiling(std::span<source const> first, std::span<source const> nested,
           std::span<source const> last) noexcept
        : before(first), group(nested), after(last), held(0) {}

    accumulator<Element>* main() noexcept { return reinterpret_cast<accumulator<Element>*>(main_tile); }
    accumulator<Element>* inner() noexcept { return reinterpret_cast<accumulator<Element>*>(inner_tile); }

    // False: a plain left fold gives the same result.
    bool nested() const noexcept { return !before.empty() && group.size() > 1; }

    // Elements of a tile: all of them if one pass suffices.
    std::size_t step(std::size_t count) const noexcept {
        return nested() || before.size() + group.size() + after.size() > fan_in ? tile : count;
    }

    // Leaves at most `fan_in` operands in `at`; folds the others into the tile's accumulators.
    [[gnu::noinline]] void prepare(std::size_t base, std::size_t count) noexcept {
        held = 0;
        if (nested()) {
            add(group, base, count, inner());
            pass<Update, Element>(at, held, count, wide_sink<Element>{inner()});
            held = 0;
        }
        add(before, base, count, main());
        if (nested())
            add(source{inner(), part_kind::accumulator}, count, main());
        else
            add(group, base, count, main());
        add(after, base, count, main());
    }

  private:
    void add(source from, std::size_t count, accumulator<Element>* spill) noexcept {
        if (held == fan_in) {
            pass<Update, Element>(at, held, count, wide_sink<Element>{spill});
            at[0] = {spill, part_kind::accumulator};
            held = 1;
        }
        at[held++] = from;
    }
    void add(std::span<source const> sources, std::size_t base, std::size_t count,
             accumulator<Element>* spill) noexcept {
        for (auto const& from : sources) {
            std::size_t const size =
                from.kind == part_kind::stored ? sizeof(Element) : sizeof(accumulator<Element>);
            add(source{static_cast<std::byte const*>(from.data) + base * size, from.kind}, count, spill);
        }
    }
};

template <class Update, class Element, class Sink>
void fold_tiles(std::span<source const> before, std::span<source const> group, std::span<source const> after,
                std::size_t count, Sink const& sink) noexcept {
    tiling<Update, Element> tiles(before, group, after);
    std::size_t const step = tiles.step(count);
    for (std::size_t base = 0; base < count; base += step) {
        std::size_t const n = count - base < step ? count - base : step;
        tiles.prepare(base, n);
        if (tiles.held != 0) pass<Update, Element>(tiles.at, tiles.held, n, sink.from(base));
    }
}

struct unfinished {
    template <class Acc> HERRING_ALWAYS_INLINE Acc operator()(Acc total) const noexcept { return total; }
};
template <class Update> struct finished_by {
    int ranks;
    template <class Acc> HERRING_ALWAYS_INLINE Acc operator()(Acc total) const noexcept {
        return Update::finish(total, ranks);
    }
};

// Calls `kernel` with the function that finishes a total. Each such function adds a copy of the loops to the
// program.
template <class Update, class Element, class Kernel>
HERRING_ALWAYS_INLINE void choose_finish(int ranks, Kernel&& kernel) noexcept {
    if constexpr (Update::facts.with_finish)
        Update::template with_finish<accumulator<Element>>(ranks, kernel);
    else if (ranks == 0)
        kernel(unfinished{});
    else
        kernel(finished_by<Update>{ranks});
}

} // namespace detail

/// Folds contributions from the left, a group of them as one operand, and writes the result to every target.
///
/// Shape:    target[i] = finish(before... ∘ (group...) ∘ after...)[i], i < count; not all lists are empty. A
///           rule that lifts lifts the sources that are not in the accumulator's type. Contributions are
///           combined in accumulator<Element>, finished for `ranks` contributions (0: not finished) and
///           rounded to Element once. Every NaN in a result is the canonical quiet NaN: the same bits on
///           every rank.
/// Cost:     reads each source once and writes each target once. Up to 16 sources stay in registers; more
///           sources, or a group, go through tiles of 16 KiB that stay in the first-level cache. 33 KiB of
///           stack.
/// Lifetime: a target may be a source of the same type, in place; it must not overlap a source otherwise, nor
///           be the memory of a source that is wider than Element.
template <herring::detail::one_rule Update, element_type Element>
void fold(std::span<source const> before, std::span<source const> group, std::span<source const> after,
          std::span<Element* const> targets, std::size_t count, int ranks, std::uint8_t = 0) noexcept {
    detail::choose_finish<Update, Element>(ranks, [&](auto finish) {
        if (targets.size() == 1)
            detail::fold_tiles<Update, Element>(
                before, group, after, count,
                detail::target_sink<Element, decltype(finish)>{targets[0], finish});
        else
            detail::fold_tiles<Update, Element>(
                before, group, after, count,
                detail::targets_sink<Element, decltype(finish)>{targets.data(), targets.size(), 0, finish});
    });
}
/// The same by a rule of `update::any`: its place in the list, from 1; 0 is the first. So of all of these.
template <herring::detail::lists_rules Update, element_type Element>
void fold(std::span<source const> before, std::span<source const> group, std::span<source const> after,
          std::span<Element* const> targets, std::size_t count, int ranks, std::uint8_t rule = 0) noexcept {
    Update::choose(rule, [&]<class Rule>(std::type_identity<Rule>) {
        fold<Rule, Element>(before, group, after, targets, count, ranks);
    });
}

/// The same without a group.
template <class Update, element_type Element>
void fold(std::span<source const> sources, std::span<Element* const> targets, std::size_t count, int ranks,
          std::uint8_t rule = 0) noexcept {
    fold<Update, Element>(sources, {}, {}, targets, count, ranks, rule);
}

/// Folds the contributions of two ranks, one of them in another core's cache, and overwrites that one with
/// `refill`.
///
/// Shape:    target[i] = finish(sources[0] ∘ sources[1])[i], i < count; then place[i] = refill[i], i <
///           refill.size() ≤ count. `place` is the memory of one of the two sources; neither is in the
///           accumulator's type. The same bits as `fold`.
/// Cost:     reads each source and `refill` once, writes the target and `place` once. The lines of `place`
///           have just been read, so they are written in the first-level cache; a separate copy of `refill`
///           would fetch them again.
/// Lifetime: `target` may be the other source, in place.
template <herring::detail::one_rule Update, element_type Element>
void fold_exchanging(source const (&sources)[2], Element* target, std::size_t count, int ranks,
                     Element* place, std::span<Element const> refill, std::uint8_t = 0) noexcept {
    detail::choose_finish<Update, Element>(ranks, [&](auto finish) {
        using sink = detail::exchanging_sink<Element, decltype(finish)>;
        auto const part = [&](std::size_t from, std::size_t to, Element const* next) {
            source const here[] = {{static_cast<Element const*>(sources[0].data) + from},
                                   {static_cast<Element const*>(sources[1].data) + from}};
            std::size_t const far = count - from > sink::ahead ? count - from - sink::ahead : 0;
            detail::pass<Update, Element, 2>(here, 2, to - from,
                                             sink{{target + from, finish}, place + from, next, far});
        };
        if (!refill.empty()) part(0, refill.size(), refill.data());
        if (refill.size() < count) part(refill.size(), count, nullptr);
    });
}
template <herring::detail::lists_rules Update, element_type Element>
void fold_exchanging(source const (&sources)[2], Element* target, std::size_t count, int ranks,
                     Element* place, std::span<Element const> refill, std::uint8_t rule = 0) noexcept {
    Update::choose(rule, [&]<class Rule>(std::type_identity<Rule>) {
        fold_exchanging<Rule, Element>(sources, target, count, ranks, place, refill);
    });
}

/// Folds contributions into a partial sum in accumulator<Element>, neither finished nor rounded.
///
/// Lifetime: `target` may be a source in the accumulator's type (in place) at the same index.
template <herring::detail::one_rule Update, element_type Element>
void fold_partial(std::span<source const> before, std::span<source const> group,
                  std::span<source const> after, accumulator<Element>* target, std::size_t count,
                  std::uint8_t = 0) noexcept {
    detail::fold_tiles<Update, Element>(before, group, after, count, detail::wide_sink<Element>{target});
}
template <herring::detail::lists_rules Update, element_type Element>
void fold_partial(std::span<source const> before, std::span<source const> group,
                  std::span<source const> after, accumulator<Element>* target, std::size_t count,
                  std::uint8_t rule = 0) noexcept {
    Update::choose(rule, [&]<class Rule>(std::type_identity<Rule>) {
        fold_partial<Rule, Element>(before, group, after, target, count);
    });
}

/// The same without a group.
template <class Update, element_type Element>
void fold_partial(std::span<source const> sources, accumulator<Element>* target, std::size_t count,
                  std::uint8_t rule = 0) noexcept {
    fold_partial<Update, Element>(sources, {}, {}, target, count, rule);
}

} // namespace HERRING_NAMESPACE::kernel

#endif // HERRING_KERNEL_FOLD_HPP
