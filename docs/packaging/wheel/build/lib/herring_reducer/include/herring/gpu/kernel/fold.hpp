// herring: the k-way sum of a device: the share of one thread.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_KERNEL_FOLD_HPP
#define HERRING_GPU_KERNEL_FOLD_HPP

#include "herring/base/config.hpp"
#include "herring/gpu/kernel/fold_args.hpp"
#include "herring/gpu/kernel/slices.hpp"
#include "herring/model/element.hpp"
#include "herring/update/update.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace HERRING_NAMESPACE::gpu {

namespace detail {

/// The elements of one access, in the accumulator's type.
template <class Element> struct lanes {
    static constexpr int size = static_cast<int>(access_bytes / sizeof(Element));
    accumulator<Element> at[size];

    HERRING_HOST_DEVICE static lanes of(vec16 const& from) noexcept {
        Element narrow[size];
        std::memcpy(narrow, &from, sizeof narrow);
        lanes result;
        HERRING_UNROLL
        for (int i = 0; i < size; ++i) result.at[i] = static_cast<accumulator<Element>>(narrow[i]);
        return result;
    }
};

} // namespace detail

/// One thread's share of a sum. `SourceCount`: number of sources if known at compile time, else 0. `Wide`:
/// targets are of accumulators.
///
/// Cost: each source read and each target written once, 16 bytes at a time if all buffers are aligned alike.
template <class Update, class Element, bool Wide, int SourceCount, class Finish> struct fold_share {
    using number = accumulator<Element>;
    using target = std::conditional_t<Wide, number, Element>;
    static constexpr int lanes = detail::lanes<Element>::size;
    /// Accesses in flight per thread and source.
    static constexpr int depth = SourceCount == 1 ? 4 : SourceCount == 2 ? 2 : 1;
    static_assert(SourceCount >= 0 && SourceCount <= most_buffers);

    fold_args const& work;
    Finish const& finish;

    /// Sums the share of thread `thread` in slice j.
    HERRING_HOST_DEVICE void run(std::size_t j, std::size_t thread, std::size_t threads) const noexcept {
        std::size_t const begin = work.where.begin(j), count = work.where.size(j);
        vector_cut const cut =
            cut_for_vectors(detail::address(source(0, begin)), count, sizeof(Element), fits(begin));
        std::size_t const quads = begin + cut.head, rest = quads + cut.vectors * lanes;
        for (std::size_t i = thread; i < cut.head; i += threads) one(begin + i);
        std::size_t v = thread;
        if constexpr (depth > 1)
            for (; v + (depth - 1) * threads < cut.vectors; v += depth * threads) {
                detail::vec16 got[depth][SourceCount];
                HERRING_UNROLL
                for (int d = 0; d < depth; ++d)
                    fetch(got[d], quads + (v + static_cast<std::size_t>(d) * threads) * lanes);
                HERRING_UNROLL
                for (int d = 0; d < depth; ++d)
                    combine(got[d], quads + (v + static_cast<std::size_t>(d) * threads) * lanes);
            }
        for (; v < cut.vectors; v += threads) {
            std::size_t const i = quads + v * lanes;
            if constexpr (SourceCount > 0) {
                detail::vec16 got[SourceCount];
                fetch(got, i);
                combine(got, i);
            } else {
                auto total = detail::lanes<Element>::of(detail::load_vec16(source(0, i)));
                for (int s = 1; s < work.source_count; ++s) add(total, detail::load_vec16(source(s, i)));
                put(total, i);
            }
        }
        for (std::size_t i = thread; i < cut.tail(count, lanes); i += threads) one(rest + i);
    }

  private:
    HERRING_HOST_DEVICE Element const* source(int s, std::size_t i) const noexcept {
        return static_cast<Element const*>(work.sources[s]) + i;
    }
    HERRING_HOST_DEVICE target* to(int t, std::size_t i) const noexcept {
        return static_cast<target*>(work.targets[t]) + i;
    }
    HERRING_HOST_DEVICE int sources() const noexcept {
        return SourceCount > 0 ? SourceCount : work.source_count;
    }

    HERRING_HOST_DEVICE bool fits(std::size_t begin) const noexcept {
        bool all = true;
        std::uintptr_t const first = detail::address(source(0, begin));
        for (int s = 1; s < sources(); ++s)
            all = all &&
                  aligned_alike(first, sizeof(Element), detail::address(source(s, begin)), sizeof(Element));
        for (int t = 0; t < work.target_count; ++t)
            all = all && aligned_alike(first, sizeof(Element), detail::address(to(t, begin)), sizeof(target));
        return all;
    }

    template <int Count>
    HERRING_HOST_DEVICE void fetch(detail::vec16 (&got)[Count], std::size_t i) const noexcept {
        HERRING_UNROLL
        for (int s = 0; s < Count; ++s) got[s] = detail::load_vec16(source(s, i));
    }
    template <int Count>
    HERRING_HOST_DEVICE void combine(detail::vec16 const (&got)[Count], std::size_t i) const noexcept {
        auto total = detail::lanes<Element>::of(got[0]);
        HERRING_UNROLL
        for (int s = 1; s < Count; ++s) add(total, got[s]);
        put(total, i);
    }
    HERRING_HOST_DEVICE static void add(detail::lanes<Element>& total, detail::vec16 const& more) noexcept {
        auto const next = detail::lanes<Element>::of(more);
        HERRING_UNROLL
        for (int l = 0; l < lanes; ++l) total.at[l] = Update::combine(total.at[l], next.at[l]);
    }
    HERRING_HOST_DEVICE void put(detail::lanes<Element> const& total, std::size_t i) const noexcept {
        target result[lanes];
        HERRING_UNROLL
        for (int l = 0; l < lanes; ++l) result[l] = last(total.at[l]);
        constexpr int accesses = static_cast<int>(sizeof result / access_bytes);
        detail::vec16 out[accesses];
        std::memcpy(out, result, sizeof result);
        for (int t = 0; t < work.target_count; ++t) {
            auto* const at = reinterpret_cast<std::byte*>(to(t, i));
            HERRING_UNROLL
            for (int a = 0; a < accesses; ++a)
                detail::store_vec16(at + a * static_cast<int>(access_bytes), out[a]);
        }
    }
    HERRING_HOST_DEVICE void one(std::size_t i) const noexcept {
        number total = static_cast<number>(*source(0, i));
        for (int s = 1; s < sources(); ++s)
            total = Update::combine(total, static_cast<number>(*source(s, i)));
        target const result = last(total);
        for (int t = 0; t < work.target_count; ++t) *to(t, i) = result;
    }
    HERRING_HOST_DEVICE target last(number total) const noexcept {
        if constexpr (Wide)
            return total;
        else
            return stored<Element>(finish(total));
    }
};

namespace detail {
template <class Update> struct finished_by {
    int ranks;
    template <class Number> HERRING_HOST_DEVICE constexpr Number operator()(Number total) const noexcept {
        return Update::finish(total, ranks);
    }
};

/// Calls `run(share)` with the type of share that suits `work`. Few types, because each is a kernel.
template <class Update, class Element, class Run>
void choose_share(fold_args const& work, Run&& run) noexcept {
    auto const with = [&]<bool Wide>(auto const& finish, std::bool_constant<Wide>) {
        using finisher = std::remove_cvref_t<decltype(finish)>;
        switch (work.source_count) {
        // clang-format off
        case 1: return run(fold_share<Update, Element, Wide, 1, finisher>{work, finish});
        case 2: return run(fold_share<Update, Element, Wide, 2, finisher>{work, finish});
        case 4: return run(fold_share<Update, Element, Wide, 4, finisher>{work, finish});
        case 8: return run(fold_share<Update, Element, Wide, 8, finisher>{work, finish});
        default: return run(fold_share<Update, Element, Wide, 0, finisher>{work, finish});
            // clang-format on
        }
    };
    if (work.in_accumulator) return with(herring::update::as_is{}, std::true_type{});
    if (work.ranks == 0) return with(herring::update::as_is{}, std::false_type{});
    auto const finished = [&](auto const& finish) { with(finish, std::false_type{}); };
    if constexpr (Update::facts.with_finish)
        Update::template with_finish<accumulator<Element>>(work.ranks, finished);
    else
        finished(finished_by<Update>{work.ranks});
}
} // namespace detail

/// Sums all slices by one thread of the host: the reference for the kernel.
template <class Update, class Element> void fold_on_host(fold_args const& work) noexcept {
    detail::choose_share<Update, Element>(work, [&](auto const& share) {
        for (std::size_t j = 0; j < work.where.count(); ++j) share.run(j, 0, 1);
    });
}

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_KERNEL_FOLD_HPP
