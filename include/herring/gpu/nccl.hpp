// herring: the concept of NCCL as the pipeline of `nccl` uses it: a communicator that does not block.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_GPU_NCCL_HPP
#define HERRING_GPU_NCCL_HPP

#include "herring/base/config.hpp"
#include "herring/update/rules.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace HERRING_NAMESPACE::gpu {

/// What NCCL combines elements by.
enum class reduction : std::uint8_t { none, sum, average, min, max, product };

/// NCCL's twin of an update rule; `none`: NCCL has none.
template <class Update>
inline constexpr reduction reduction_of =
    std::is_same_v<Update, herring::update::sum>       ? reduction::sum
    : std::is_same_v<Update, herring::update::min>     ? reduction::min
    : std::is_same_v<Update, herring::update::max>     ? reduction::max
    : std::is_same_v<Update, herring::update::product> ? reduction::product
    : std::is_same_v<Update, herring::update::average> ||
            std::is_same_v<Update, herring::update::unnamed_average>
        ? reduction::average
        : reduction::none;

/// How far a call of NCCL's is that does not block.
enum class call_state : std::uint8_t { done, under_way, failed };

/// NCCL as `nccl` uses it: one communicator that does not block, of the ranks of a node.
/// - `device()`: bytes that identify the device in all processes of the node. `make_id(id)`: of one rank, for all of them.
/// - `join(id, ranks, rank)` starts the communicator. `state()`: of the last call; until it is `done`, nothing else is called
///   but `state` and `abort`. Once `failed`, always `failed`; `why()` says which call and why.
/// - `begin()`, any number of collectives, `end()`: all of them are enqueued on their streams when the state is done.
///   `all_reduce(by, at, n, stream)` in place. Of R ranks with parts of n elements, in place: `reduce_scatter(by, at, n,
///   stream)` leaves rank r the results of part r there, `all_gather(at, n, stream)` takes part r of rank r.
/// - `finish()` starts the end of a communicator whose work is done on all ranks; `close()` ends one that is finished;
///   `abort()` any, and what waits for other ranks on the device.
///
/// Without a communicator the state is `done`, and the last three do nothing. The destructor aborts. No call waits for another
/// rank, and none throws.
template <class Nccl, class Runtime>
concept nccl_policy = std::constructible_from<Nccl, Runtime&> &&
    requires(Nccl& n, typename Nccl::unique_id& id, std::byte* at, typename Runtime::stream_handle s) {
    requires std::is_trivially_copyable_v<typename Nccl::unique_id>;
    { n.device() }
    noexcept->std::same_as<std::span<std::byte const>>;
    { n.make_id(id) }
    noexcept->std::same_as<call_state>;
    { n.join(id, 1, 0) }
    noexcept->std::same_as<call_state>;
    { n.state() }
    noexcept->std::same_as<call_state>;
    { n.why() }
    noexcept->std::same_as<char const*>;
    { n.begin() }
    noexcept;
    { n.template all_reduce<float>(reduction::sum, at, std::size_t{}, s) }
    noexcept;
    { n.template reduce_scatter<float>(reduction::sum, at, std::size_t{}, s) }
    noexcept;
    { n.template all_gather<float>(at, std::size_t{}, s) }
    noexcept;
    { n.end() }
    noexcept->std::same_as<call_state>;
    { n.finish() }
    noexcept->std::same_as<call_state>;
    { n.close() }
    noexcept;
    { n.abort() }
    noexcept;
};

} // namespace HERRING_NAMESPACE::gpu

#endif // HERRING_GPU_NCCL_HPP
