// herring: a function that gathers bytes of all ranks: its concept, and a reference to it without its type.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_GATHER_CALL_HPP
#define HERRING_JOIN_GATHER_CALL_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

namespace HERRING_NAMESPACE::detail {

template <class Range> using value_of = std::remove_cvref_t<decltype(*std::declval<Range&>().begin())>;

/// Contiguous bytes: `std::byte`, `unsigned char` or `char`.
template <class Bytes>
concept bytes_of_a_rank = requires(Bytes const& bytes) {
    std::as_bytes(std::span(bytes));
}
&&(std::is_same_v<value_of<Bytes>, std::byte> || std::is_same_v<value_of<Bytes>, unsigned char> ||
   std::is_same_v<value_of<Bytes>, char>);

/// A function that takes the bytes of this rank, and returns those of every rank by rank.
template <class Gather>
concept gathers_bytes = requires(Gather& gather, std::span<std::byte const> mine) {
    requires bytes_of_a_rank<value_of<decltype(gather(mine))>>;
};

/// Returns the bytes of all ranks in one buffer.
///
/// Shape: `replies`: a range that can be walked twice, of one contiguous range of bytes a rank.
template <class Replies> gather_result gather_result_of(Replies&& replies) {
    if constexpr (std::is_same_v<Replies, gather_result>) {
        return std::move(replies);
    } else {
        std::size_t ranks = 0, rank = 0;
        for (auto at = replies.begin(); at != replies.end(); ++at) ++ranks;
        fixed_array<std::size_t> sizes(ranks);
        for (auto const& reply : replies) sizes[rank++] = std::span(reply).size();
        gather_result all(std::move(sizes));
        rank = 0;
        for (auto const& reply : replies) {
            std::span<std::byte> const to = all[rank++];
            if (!to.empty()) std::memcpy(to.data(), std::span(reply).data(), to.size());
        }
        return all;
    }
}

/// A reference to a gather, without its type.
///
/// Lifetime: that of the gather.
struct gather_call {
    void const* self = nullptr;
    gather_result (*call)(void const* self, std::span<std::byte const> mine) = nullptr;

    template <class Gather> static gather_call by(Gather const& gather) noexcept {
        return {&gather, [](void const* function, std::span<std::byte const> mine) {
                    return gather_result(gather_result_of((*static_cast<Gather const*>(function))(mine)));
                }};
    }
    gather_result operator()(std::span<std::byte const> mine) const { return call(self, mine); }
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_GATHER_CALL_HPP
