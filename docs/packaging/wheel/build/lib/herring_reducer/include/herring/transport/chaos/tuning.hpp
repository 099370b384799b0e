// herring: the settings of transport::chaos: the shares of delays and faults, its seed and its counters.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHAOS_TUNING_HPP
#define HERRING_TRANSPORT_CHAOS_TUNING_HPP

#include "herring/base/config.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE::transport {

/// A link between two ranks, in both directions.
struct chaos_link {
    int a = -1, b = -1;
};

/// The disturbances of `chaos`, and their shares. The defaults destroy nothing: a sound engine gives the same
/// bits.
struct chaos_tuning {
    static constexpr int nobody = -1;
    static constexpr int drawn = -2; ///< the seed chooses

    std::uint64_t seed = 0; ///< 0: HERRING_CHAOS_SEED, else a random seed

    std::uint32_t not_now_per_1000 = 60;    ///< posts that return false; below 1000
    std::uint32_t delay_per_1000 = 250;     ///< sends that are posted later
    std::uint32_t hold_back_per_1000 = 250; ///< completions that are reported later
    std::uint32_t longest = 12;             ///< longest delay, in polls; at least 1
    bool reorder = true;                    ///< late sends and completions are shuffled

    // Destructive.
    std::uint32_t flip_per_1000 = 0; ///< received messages with a flipped bit, of payload or envelope
    /// Messages that are sent again, later: only below a transport that drops repeated ones, such as
    /// `checked`.
    std::uint32_t duplicate_per_1000 = 0;
    int stop = nobody; ///< this rank falls silent: no message moves to or from it, and no rank is notified
    chaos_link cut{};  ///< this link breaks: each end finds the other `lost`; a = drawn: any link
    std::uint32_t after = 100; ///< the stop or the cut comes after at most so many sends; the seed chooses
};

/// The seed of one transport, as the argument after the layout: `reducer<...> reduce(world, layout,
/// transport::chaos_seed{7})`.
struct chaos_seed {
    std::uint64_t value = 0;
};

/// Numbers of actions of `chaos` on this rank.
struct chaos_counts {
    std::uint64_t posts = 0;
    std::uint64_t refused = 0;
    std::uint64_t delayed = 0;
    std::uint64_t held_back = 0;
    std::uint64_t flipped = 0;
    std::uint64_t duplicated = 0;
};

} // namespace HERRING_NAMESPACE::transport

namespace HERRING_NAMESPACE::detail {

struct chaos_word {
    static constexpr char const* word = "chaos";
};

/// Demands on the tuning and the order of decorators, as a need of the transport: a pack reports it once.
template <class Inner, transport::chaos_tuning Tuning> struct chaos_numbers {
    template <class Pack> struct check {
        static constexpr bool moves = Tuning.not_now_per_1000 < 1000 && Tuning.delay_per_1000 <= 1000 &&
                                      Tuning.hold_back_per_1000 <= 1000 && Tuning.flip_per_1000 <= 1000 &&
                                      Tuning.duplicate_per_1000 <= 1000 && Tuning.longest >= 1;
        static constexpr bool inside = !Inner::facts.verifies;
        static constexpr bool dropped = [] {
            if constexpr (Tuning.duplicate_per_1000 > 0)
                return Pack::transport::facts.verifies;
            else
                return true;
        }();
        static constexpr bool value = moves && inside && dropped;
        static_assert(
            moves, "[HRG-T20] transport: chaos needs shares of 0 to 1000 in 1000, refusals below 1000, and "
                   "a delay of at least one poll; a common slip is to refuse every post, so that nothing "
                   "ever moves; lower the share");
        static_assert(!moves || inside,
                      "[HRG-T23] transport: chaos stands around a transport that verifies messages (its "
                      "facts.verifies is true), so that nothing would see what it breaks; a common slip is "
                      "chaos<checked<tcp>>; write checked<chaos<tcp>>");
        static_assert(!(moves && inside) || dropped,
                      "[HRG-T24] transport: chaos is to send messages twice, and nothing above drops the "
                      "second one; a common slip is duplicate_per_1000 over bare tcp or inproc; write "
                      "checked<chaos<...>>, or leave it at 0");
    };
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHAOS_TUNING_HPP
