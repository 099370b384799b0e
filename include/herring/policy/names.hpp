// herring: declarations of the policies that herring.hpp does not include, so that a sentence names a forgotten header.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_POLICY_NAMES_HPP
#define HERRING_POLICY_NAMES_HPP

#include "herring/base/config.hpp"
#include "herring/model/gpu_tuning.hpp"
#include "herring/model/shared_memory_tuning.hpp"
#include "herring/model/tcp_tuning.hpp"
#include "herring/policy/policy.hpp"

#include <cstdint>

// The numbers of declared_name are those of HRG-P11 in policy/sentences.hpp.

namespace HERRING_NAMESPACE::provider {
struct tcp;
struct shm;
struct verbs;
struct efa;
} // namespace HERRING_NAMESPACE::provider

namespace HERRING_NAMESPACE::transport {
template <tcp_tuning Tuning = tcp_tuning{}> class basic_tcp;
using tcp = basic_tcp<>;
class inproc;
template <class Provider> class ofi;
using efa = ofi<herring::provider::efa>;
template <class Inner> class checked;
template <class Inner> class sealed;
} // namespace HERRING_NAMESPACE::transport

namespace HERRING_NAMESPACE::update {
struct moments;
struct sample_moments;
} // namespace HERRING_NAMESPACE::update

namespace HERRING_NAMESPACE::placement {
struct dedicated;
struct optimal;
} // namespace HERRING_NAMESPACE::placement

namespace HERRING_NAMESPACE {
enum class nonfinite : std::uint8_t;
} // namespace HERRING_NAMESPACE
namespace HERRING_NAMESPACE::optimizer {
struct sgd;
struct momentum;
struct nesterov;
struct adamw;
struct lamb;
template <class Inner> struct clipped;
template <class Inner, nonfinite What> struct on_nonfinite;
} // namespace HERRING_NAMESPACE::optimizer

namespace HERRING_NAMESPACE::gpu {
class cuda_runtime;
template <class Runtime, staging_tuning Tuning = staging_tuning{}> class basic_pcie_staging;
template <class Runtime, peer_sums_tuning Tuning = peer_sums_tuning{}> class basic_nvlink;
class cuda_nccl;
template <class Runtime, class Nccl, peer_sums_tuning Tuning = peer_sums_tuning{}> class basic_nccl;
} // namespace HERRING_NAMESPACE::gpu

namespace HERRING_NAMESPACE::intra_node {
template <shared_memory_tuning Tuning = shared_memory_tuning{}> class basic_shared_memory;
using shared_memory = basic_shared_memory<>;
using pcie_staging = gpu::basic_pcie_staging<gpu::cuda_runtime>;
using nvlink = gpu::basic_nvlink<gpu::cuda_runtime>;
using nccl = gpu::basic_nccl<gpu::cuda_runtime, gpu::cuda_nccl>;
} // namespace HERRING_NAMESPACE::intra_node

// herring.hpp defines these. With reducer.hpp alone they are only declared: HRG-P09.
namespace HERRING_NAMESPACE::fusion {
struct per_tensor;
struct whole_model;
} // namespace HERRING_NAMESPACE::fusion
namespace HERRING_NAMESPACE::sharding {
struct whole_tensor;
} // namespace HERRING_NAMESPACE::sharding
namespace HERRING_NAMESPACE::update {
struct sum;
struct min;
struct max;
} // namespace HERRING_NAMESPACE::update
namespace HERRING_NAMESPACE::progress {
struct thread;
} // namespace HERRING_NAMESPACE::progress
namespace HERRING_NAMESPACE::waiting {
struct block;
struct spin;
} // namespace HERRING_NAMESPACE::waiting

namespace HERRING_NAMESPACE {
template <transport::tcp_tuning Tuning> inline constexpr int declared_name<transport::basic_tcp<Tuning>> = 0;
template <> inline constexpr int declared_name<transport::inproc> = 1;
template <class Provider> inline constexpr int declared_name<transport::ofi<Provider>> = 2;
template <intra_node::shared_memory_tuning Tuning>
inline constexpr int declared_name<intra_node::basic_shared_memory<Tuning>> = 3;
template <class Runtime, gpu::staging_tuning Tuning>
inline constexpr int declared_name<gpu::basic_pcie_staging<Runtime, Tuning>> = 4;
template <class Runtime, gpu::peer_sums_tuning Tuning>
inline constexpr int declared_name<gpu::basic_nvlink<Runtime, Tuning>> = 5;
template <class Inner> inline constexpr int declared_name<transport::checked<Inner>> = 6;
template <class Inner> inline constexpr int declared_name<transport::sealed<Inner>> = 7;
template <> inline constexpr int declared_name<update::moments> = 8;
template <> inline constexpr int declared_name<update::sample_moments> = 9;
template <> inline constexpr int declared_name<optimizer::sgd> = 10;
template <> inline constexpr int declared_name<optimizer::momentum> = 11;
template <> inline constexpr int declared_name<optimizer::nesterov> = 12;
template <> inline constexpr int declared_name<optimizer::adamw> = 13;
template <> inline constexpr int declared_name<optimizer::lamb> = 14;
template <> inline constexpr int declared_name<placement::dedicated> = 15;
template <> inline constexpr int declared_name<placement::optimal> = 16;
template <class Inner> inline constexpr int declared_name<optimizer::clipped<Inner>> = 17;
template <class Inner, nonfinite What>
inline constexpr int declared_name<optimizer::on_nonfinite<Inner, What>> = 18;
template <class Runtime, class Nccl, gpu::peer_sums_tuning Tuning>
inline constexpr int declared_name<gpu::basic_nccl<Runtime, Nccl, Tuning>> = 19;
} // namespace HERRING_NAMESPACE

#endif // HERRING_POLICY_NAMES_HPP
