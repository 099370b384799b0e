// herring: what workers tell dedicated servers before each call: the call, as bytes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENGINE_COMMAND_HPP
#define HERRING_ENGINE_COMMAND_HPP

#include "herring/base/config.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

/// The call that all workers are in. A server does its part of it, and nothing that no worker asked for.
///
/// Shape: 64 bytes, little-endian; what belongs to the reducer's type follows them (hyper values).
struct command {
    enum class kind : std::uint8_t {
        step = 1,   ///< the buckets of the plan
        collective, ///< a buffer of `elements` elements, outside the plan
        start,      ///< the weights, from `root`, by the buckets of the plan
        save,       ///< a checkpoint, whose folder follows by the world
        load,       ///< the same; then as `start`
        leave       ///< the reducer was destroyed between calls
    };
    static constexpr std::size_t bytes = 64;
    static constexpr std::size_t most_name = 24;

    kind what = kind::step;
    std::uint8_t operation =
        0; ///< collective: its number in the engine's list, and what each rank gives and takes
    std::uint8_t gives = 0, takes = 0;
    bool twofold = false;               ///< two results for each element
    std::uint8_t rule = 0;              ///< of update::any: `execution::rule`
    std::int32_t root = -1;             ///< rank, if the call has one
    std::uint32_t moved_bytes = 0;      ///< of an element that is moved; 0: one of the reducer's
    std::uint64_t elements = 0;         ///< of the buffer
    std::uint64_t number = 0;           ///< commands before this one
    std::array<char, most_name> name{}; ///< of the call, for errors; ends with a zero

    HERRING_SEPARABLE void set_name(char const* from) noexcept;
    HERRING_SEPARABLE void write(std::span<std::byte, bytes> to) const noexcept;
    /// False: no worker says that. `operations`: in the engine's list; `ranks`: of the world.
    HERRING_SEPARABLE bool read(std::span<std::byte const> from, std::size_t operations, int ranks) noexcept;

    /// The command as part of a sentence. `rules`: the names of those that calls choose from;
    /// `stored_bytes`: of an element of the reducer.
    struct words {
        char text[96];
    };
    HERRING_SEPARABLE words text(std::span<char const* const> rules = {},
                                 std::size_t stored_bytes = 0) const noexcept;
    /// The worker's call that gives it.
    HERRING_SEPARABLE char const* call() const noexcept;
};

/// The most elements of a buffer: more than any memory has.
inline constexpr std::uint64_t most_elements = std::uint64_t{1} << 43;

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/engine/command_impl.hpp"
#endif

#endif // HERRING_ENGINE_COMMAND_HPP
