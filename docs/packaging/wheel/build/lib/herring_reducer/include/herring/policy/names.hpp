// herring: declarations of the policies that herring.hpp does not define, for sentences about headers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_NAMES_HPP
#define HERRING_POLICY_NAMES_HPP

#include "herring/base/config.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/policy.hpp"

#include <cstdint>

namespace HERRING_NAMESPACE {

// Gives a declared policy its axis, and the sentence with its header. Written behind the template head, if
// there is one.
#define HERRING_HEADER(of_axis, policy, path, ...)                                                           \
    struct declared_policy<__VA_ARGS__> {                                                                    \
        using axis = axes::of_axis;                                                                          \
        template <bool Included> struct header {                                                             \
            static constexpr bool value = Included;                                                          \
            static_assert(Included, "[HRG-P11] policy: herring::" #of_axis "::" policy                       \
                                    " is declared, but not defined here; a common slip is to forget its "    \
                                    "header; include <herring/" path ">");                                   \
        };                                                                                                   \
    }
// Declares a policy that is no template, and does the same for it.
#define HERRING_DECLARE(key, axis, policy, path)                                                             \
    namespace axis {                                                                                         \
    key policy;                                                                                              \
    }                                                                                                        \
    template <> HERRING_HEADER(axis, #policy, path, axis::policy)

HERRING_DECLARE(class, transport, inproc, "transport/inproc.hpp");
HERRING_DECLARE(struct, update, moments, "collectives/all_moments.hpp");
HERRING_DECLARE(struct, update, sample_moments, "collectives/all_moments.hpp");
namespace update {
template <class... Rules> struct any;
}
template <class... Rules> HERRING_HEADER(update, "any", "update/any.hpp", update::any<Rules...>);
HERRING_DECLARE(struct, optimizer, sgd, "optimizer/sgd.hpp");
HERRING_DECLARE(struct, optimizer, momentum, "optimizer/momentum.hpp");
HERRING_DECLARE(struct, optimizer, nesterov, "optimizer/nesterov.hpp");
HERRING_DECLARE(struct, optimizer, adamw, "optimizer/adamw.hpp");
HERRING_DECLARE(struct, optimizer, lamb, "optimizer/lamb.hpp");
HERRING_DECLARE(struct, placement, dedicated, "serve.hpp");
HERRING_DECLARE(struct, placement, optimal, "serve.hpp");

namespace provider {
struct tcp;
struct shm;
struct verbs;
struct efa;
} // namespace provider
namespace transport {
template <tcp_tuning Tuning = tcp_tuning{}> class basic_tcp;
using tcp = basic_tcp<>;
template <class Provider> class ofi;
using efa = ofi<herring::provider::efa>;
template <class Inner> class checked;
template <class Inner> class sealed;
} // namespace transport
template <transport::tcp_tuning Tuning>
HERRING_HEADER(transport, "tcp", "transport/tcp.hpp", transport::basic_tcp<Tuning>);
template <class Provider> HERRING_HEADER(transport, "ofi", "transport/ofi.hpp", transport::ofi<Provider>);
template <class Inner>
HERRING_HEADER(transport, "checked", "transport/checked.hpp", transport::checked<Inner>);
template <class Inner> HERRING_HEADER(transport, "sealed", "transport/sealed.hpp", transport::sealed<Inner>);

enum class nonfinite : std::uint8_t;
namespace optimizer {
template <class Inner> struct clipped;
template <class Inner, nonfinite What> struct on_nonfinite;
} // namespace optimizer
template <class Inner>
HERRING_HEADER(optimizer, "clipped", "optimizer/clipped.hpp", optimizer::clipped<Inner>);
template <class Inner, nonfinite What>
HERRING_HEADER(optimizer, "on_nonfinite", "optimizer/on_nonfinite.hpp", optimizer::on_nonfinite<Inner, What>);

namespace gpu {
class cuda_runtime;
class cuda_nccl;
template <class Runtime, staging_tuning Tuning = staging_tuning{}> class basic_pcie_staging;
template <class Runtime, peer_sums_tuning Tuning = peer_sums_tuning{}> class basic_nvlink;
template <class Runtime, class Nccl, peer_sums_tuning Tuning = peer_sums_tuning{}> class basic_nccl;
} // namespace gpu
namespace intra_node {
template <shared_memory_tuning Tuning = shared_memory_tuning{}> class basic_shared_memory;
using shared_memory = basic_shared_memory<>;
using pcie_staging = gpu::basic_pcie_staging<gpu::cuda_runtime>;
using nvlink = gpu::basic_nvlink<gpu::cuda_runtime>;
using nccl = gpu::basic_nccl<gpu::cuda_runtime, gpu::cuda_nccl>;
} // namespace intra_node
template <intra_node::shared_memory_tuning Tuning>
HERRING_HEADER(intra_node, "shared_memory", "intra_node/shared_memory.hpp",
               intra_node::basic_shared_memory<Tuning>);
template <class Runtime, gpu::staging_tuning Tuning>
HERRING_HEADER(intra_node, "pcie_staging", "intra_node/pcie_staging.cuh",
               gpu::basic_pcie_staging<Runtime, Tuning>);
template <class Runtime, gpu::peer_sums_tuning Tuning>
HERRING_HEADER(intra_node, "nvlink", "intra_node/nvlink.cuh", gpu::basic_nvlink<Runtime, Tuning>);
template <class Runtime, class Nccl, gpu::peer_sums_tuning Tuning>
HERRING_HEADER(intra_node, "nccl", "intra_node/nccl.cuh", gpu::basic_nccl<Runtime, Nccl, Tuning>);

#undef HERRING_DECLARE
#undef HERRING_HEADER

} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_NAMES_HPP
