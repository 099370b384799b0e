// herring: the table of calls by which a backend of PyTorch reaches the reducers of a policy pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_TABLE_HPP
#define HERRING_TORCH_TABLE_HPP

#include <cstddef>
#include <cstdint>

// In `herring::torch` itself, not in the namespace of a translation unit's flags (base/target.hpp): the table
// crosses translation units of different flags, and of different shared libraries. So it has plain types
// only, and functions that throw nothing.
namespace herring::torch {

/// The number of this layout. A backend refuses a table of another one.
inline constexpr std::uint32_t abi = 2;

/// Element types that are reduced. All other types travel as bytes.
enum class type : std::uint8_t {
    float32,
    float64,
    bfloat16,
    float16,
    int32,
    int64,
    int16,
    int8,
    uint8,
    boolean
};
inline constexpr std::size_t types = 10;

/// The rules of reductions, by the names of PyTorch's: SUM, AVG, PRODUCT, MIN, MAX.
enum class rule : std::uint8_t { sum, average, product, min, max };
inline constexpr std::size_t rules = 5;
inline constexpr char const* rule_names[rules] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX"};

/// The result of a call: `code` is that of `herring::errc`, 0 for success. After success `text` is not set.
struct outcome {
    std::int32_t code = 0;
    std::int32_t peer = -1; ///< the rank that the failure is about; −1: none
    char text[640];         ///< the message of `herring::failure`, which ends with 0

    outcome() noexcept { text[0] = 0; }
};

/// The arguments of a collective.
struct call {
    void const* in = nullptr;
    void* out = nullptr; ///< where `in` is, for a call in place
    /// Elements of a reduction, the whole buffer of reduce_scatter; else bytes of one rank's part.
    std::size_t count = 0;
    rule by = rule::sum;
    std::int32_t root = 0;
    std::int64_t timeout_ms = 0;
    /// All_to_all's bytes for each rank, and from each rank; nullptr: `count` each.
    std::size_t const* sends = nullptr;
    std::size_t const* receives = nullptr;
};

/// A rank's part of a group: its world and its reducers.
struct group;

/// A function that gathers bytes of all ranks, for `table::open`.
struct gather_function {
    void* context;
    /// Calls `reply(to, bytes, size)` once for each rank, in order. Returns nullptr, or a sentence,
    /// which lives until the next call.
    char const* (*all)(void* context, void const* mine, std::size_t size, void* to,
                       void (*reply)(void* to, void const* bytes, std::size_t size));
};

/// The calls of a policy pack: filled at compile time, one indirect call a collective, none for bytes.
///
/// Threads: `fail` and `failed` from any thread while the group lives; all others from one at a time.
struct table {
    using function = void (*)(group* of, call const& with, outcome& result) noexcept;

    std::uint32_t abi;
    std::uint32_t size;   ///< sizeof(table)
    char const* version;  ///< of Herring
    char const* policies; ///< the names of the pack's policies: "tcp, shared_memory, ..."
    char const* target;   ///< the instructions that it was compiled for, as `HERRING_TARGET` names them
    std::uint8_t by_type[types]; ///< a bit a rule, of those that the type has

    /// Joins the ranks of `through`. Returns nullptr after a failure.
    group* (*open)(int rank, int size, gather_function const& through, std::int64_t timeout_ms,
                   outcome& result) noexcept;
    void (*close)(group*) noexcept;
    void (*fail)(group*, std::int32_t code, int peer, char const* operation, char const* text) noexcept;
    bool (*failed)(group*, outcome& result) noexcept;

    function all_reduce[types];     ///< `count` elements in, `count` out
    function reduce_scatter[types]; ///< `count` elements in, `count` / ranks out
    function broadcast;             ///< `out`: `count` bytes, in place
    function all_gather;            ///< `count` bytes in, `count` · ranks out
    function gather;                ///< `count` bytes in, `count` · ranks out on the root
    function scatter;               ///< `count` · ranks bytes in on the root, `count` out
    function all_to_all;            ///< `count` bytes for and from each rank
    function barrier;
};

/// The table of these policies. The translation unit that includes herring/torch/collectives.hpp defines it.
template <class... Policies> table const& table_of() noexcept;

} // namespace herring::torch

#endif // HERRING_TORCH_TABLE_HPP
