// herring: the k-way fold: many contributions into one result, in rank order, reading and writing memory once.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_KERNEL_FOLD_HPP
#define HERRING_KERNEL_FOLD_HPP

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>

#include "herring/detail/config.hpp"
#include "herring/element.hpp"
#include "herring/kernel/lanes.hpp"
#include "herring/update/update.hpp"

namespace herring::kernel {

/// One contribution: elements of T, or, if `wide`, of accumulator<T> (combined before, not rounded). Any alignment.
struct source {
    void const* data;
    bool wide = false;
};

namespace detail {

// So many sources are read side by side; more go by turns through a tile that stays in the first-level cache.
inline constexpr std::size_t fan_in = 8;
inline constexpr std::size_t tile_bytes = 4096;

template <class T> HERRING_ALWAYS_INLINE block<T> load(source const& from, std::size_t index) noexcept {
    if constexpr (!std::is_same_v<T, accumulator<T>>)
        if (!from.wide) return block<T>::load(static_cast<T const*>(from.data) + index);
    return block<T>::load_wide(static_cast<std::byte const*>(from.data) + index * sizeof(accumulator<T>));
}

template <class T> HERRING_ALWAYS_INLINE accumulator<T> load_element(source const& from, std::size_t index) noexcept {
    if constexpr (!std::is_same_v<T, accumulator<T>>)
        if (!from.wide) return load_one<T>(static_cast<T const*>(from.data) + index);
    accumulator<T> made;
    std::memcpy(&made, static_cast<std::byte const*>(from.data) + index * sizeof made, sizeof made);
    return made;
}

template <class Update>
concept lanewise = requires { requires bool(Update::lanewise); };

// sources[0] ∘ sources[1] ∘ ..., element by element, to sink. Needs at least one source.
template <class Update, class T, class Sink>
HERRING_ALWAYS_INLINE void pass(source const* sources, std::size_t k, std::size_t count, Sink const& sink) noexcept {
    std::size_t i = 0;
    if constexpr (!lanewise<Update>) {
        for (; i + block<T>::size <= count; i += block<T>::size) {
            auto total = load<T>(sources[0], i);
            for (std::size_t s = 1; s < k; ++s) total = total.combined(load<T>(sources[s], i), Update{});
            sink.put(i, total);
        }
    }
    for (; i < count; ++i) {
        auto total = load_element<T>(sources[0], i);
        for (std::size_t s = 1; s < k; ++s) total = Update::combine(total, load_element<T>(sources[s], i));
        sink.put(i, total);
    }
}

// Unfinished, unrounded, to one buffer of accumulators.
template <class T> struct wide_sink {
    accumulator<T>* to;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<T> const& total) const noexcept {
        total.store_wide(reinterpret_cast<std::byte*>(to) + i * sizeof(accumulator<T>));
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<T> total) const noexcept {
        std::memcpy(reinterpret_cast<std::byte*>(to) + i * sizeof total, &total, sizeof total);
    }
    wide_sink at(std::size_t base) const noexcept { return {to + base}; }
};

// Finished and rounded once, to every target.
template <class Update, class T, class Finish> struct target_sink {
    T* const* targets;
    std::size_t target_count;
    std::size_t base;
    Finish finish;
    HERRING_ALWAYS_INLINE void put(std::size_t i, block<T> const& total) const noexcept {
        auto const result = total.finished(finish).round();
        for (std::size_t t = 0; t < target_count; ++t) result.store(targets[t] + base + i);
    }
    HERRING_ALWAYS_INLINE void put(std::size_t i, accumulator<T> total) const noexcept {
        T const result = round_one<T>(finish(total));
        for (std::size_t t = 0; t < target_count; ++t) std::memcpy(targets[t] + base + i, &result, sizeof result);
    }
    target_sink at(std::size_t more) const noexcept { return {targets, target_count, base + more, finish}; }
};

// Up to `fan_in` operands of one tile; more are folded into the tile's accumulators as they come.
template <class Update, class T> struct operands {
    std::size_t base, count;
    accumulator<T>* spill;
    std::size_t held;
    source at[fan_in];

    operands(std::size_t base_element, std::size_t elements, accumulator<T>* spill_to) noexcept
        : base(base_element), count(elements), spill(spill_to), held(0) {}

    void add(source from) noexcept {
        if (held == fan_in) {
            pass<Update, T>(at, held, count, wide_sink<T>{spill});
            at[0] = {spill, true};
            held = 1;
        }
        at[held++] = from;
    }
    void add(std::span<source const> sources) noexcept {
        for (auto const& from : sources) {
            std::size_t const size = from.wide ? sizeof(accumulator<T>) : sizeof(T);
            add(source{static_cast<std::byte const*>(from.data) + base * size, from.wide});
        }
    }
    template <class Sink> void end(Sink const& sink) noexcept {
        if (held != 0) pass<Update, T>(at, held, count, sink);
    }
};

template <class Update, class T, class Sink>
void fold_tiles(std::span<source const> before, std::span<source const> group, std::span<source const> after,
                std::size_t count, Sink const& sink) noexcept {
    constexpr std::size_t tile = tile_bytes / sizeof(accumulator<T>);
    static_assert(tile % block<T>::size == 0);
    alignas(64) accumulator<T> main[tile], inner[tile];
    bool const nested = !before.empty() && group.size() > 1; // else a plain left fold is the same
    std::size_t const operand_count = before.size() + group.size() + after.size();
    std::size_t const step = nested || operand_count > fan_in ? tile : count;
    for (std::size_t base = 0; base < count; base += step) {
        std::size_t const n = count - base < step ? count - base : step;
        operands<Update, T> outer(base, n, main);
        outer.add(before);
        if (nested) {
            operands<Update, T> local(base, n, inner);
            local.add(group);
            local.end(wide_sink<T>{inner});
            outer.add(source{inner, true});
        } else {
            outer.add(group);
        }
        outer.add(after);
        outer.end(sink.at(base));
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

template <class Update, class T, class Kernel> HERRING_ALWAYS_INLINE void choose_finish(int ranks, Kernel&& kernel) {
    if (ranks == 0)
        kernel(unfinished{});
    else if constexpr (requires { Update::template with_finish<accumulator<T>>(ranks, kernel); })
        Update::template with_finish<accumulator<T>>(ranks, kernel);
    else
        kernel(finished_by<Update>{ranks});
}

} // namespace detail

/// Folds contributions from the left, a group of them as one operand, and writes the result to every target.
///
/// Shape:   target[i] = finish(before... ∘ (group...) ∘ after...)[i], i < count; each list may be empty, not all.
///          Combined in accumulator<T>, finished for `ranks` contributions (0: not finished), rounded to T once.
///          Every NaN in a result is the one quiet NaN, so that results are the same bits whoever computes them.
/// Cost:    reads each source once and writes each target once; in registers up to 8 sources, in tiles of 4 KiB beyond.
/// Lifetime: a target may be a source of T (in place) at the same index, not shifted against one, and not the memory
///          of a wide source of a wider type.
template <class Update, element_type T>
void fold(std::span<source const> before, std::span<source const> group, std::span<source const> after,
          std::span<T* const> targets, std::size_t count, int ranks) noexcept {
    detail::choose_finish<Update, T>(ranks, [&](auto finish) {
        using sink = detail::target_sink<Update, T, decltype(finish)>;
        detail::fold_tiles<Update, T>(before, group, after, count, sink{targets.data(), targets.size(), 0, finish});
    });
}

/// The same without a group.
template <class Update, element_type T>
void fold(std::span<source const> sources, std::span<T* const> targets, std::size_t count, int ranks) noexcept {
    fold<Update, T>(sources, {}, {}, targets, count, ranks);
}

/// Folds contributions into a partial: neither finished nor rounded, in accumulator<T>.
///
/// Lifetime: `target` may be a wide source (in place) at the same index.
template <class Update, element_type T>
void fold_partial(std::span<source const> before, std::span<source const> group, std::span<source const> after,
                  accumulator<T>* target, std::size_t count) noexcept {
    detail::fold_tiles<Update, T>(before, group, after, count, detail::wide_sink<T>{target});
}

/// The same without a group.
template <class Update, element_type T>
void fold_partial(std::span<source const> sources, accumulator<T>* target, std::size_t count) noexcept {
    fold_partial<Update, T>(sources, {}, {}, target, count);
}

} // namespace herring::kernel

#endif // HERRING_KERNEL_FOLD_HPP
