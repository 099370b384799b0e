// herring: the concept of an NCCL library as `intra_node::nccl` uses it: one non-blocking communicator.
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

/// NCCL's reduction operations.
enum class reduction : std::uint8_t { none, sum, average, min, max, product };

/// NCCL's operation for an update rule; `none`: NCCL has no such operation.
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

/// Progress of a non-blocking NCCL call.
enum class call_state : std::uint8_t { done, under_way, failed };

/// One non-blocking communicator of the ranks of a node.
/// - `device()` returns bytes that identify the device in all processes of the node. `make_id(id)` is called
///   by one rank, for all ranks.
/// - `join(id, ranks, rank)` starts the communicator. `state()` returns the state of the last call. Until it
///   is `done`, only `state` and `abort` are called. `failed` is final; `why()` names the call and its error.
/// - Collectives stand between `begin()` and `end()`; all of them are enqueued on their streams when the
///   state is done. They work in place. `all_reduce(by, at, n, stream)` reduces n elements. For R ranks and R
///   parts of n elements, `reduce_scatter(by, at, n, stream)` leaves the results of part r on rank r, and
///   `all_gather(at, n, stream)` takes part r from rank r.
/// - `finish()` starts the end of a communicator whose work is done on all ranks; `close()` ends a finished
///   communicator; `abort()` ends any communicator, and the work on the device that waits for other ranks.
///
/// Without a communicator the state is `done`, and `finish`, `close` and `abort` do nothing. The destructor
/// aborts.
/// Blocks:   never for another rank.
/// Errors:   no call throws.
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
