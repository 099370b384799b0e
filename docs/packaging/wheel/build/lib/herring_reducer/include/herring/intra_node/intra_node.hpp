// herring: the concept of intra-node reducers, by which ranks of a node read each other's parts; and `none`.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_INTRA_NODE_INTRA_NODE_HPP
#define HERRING_INTRA_NODE_INTRA_NODE_HPP

#include "herring/base/config.hpp"
#include "herring/control/world.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE {

/// Sizes that suit an intra-node reducer, in bytes.
struct intra_node_tuning {
    std::size_t local_chunk_bytes = 64 << 10; ///< on one node: the unit in which a rank sums
    std::size_t mailbox_bytes = 0;            ///< buckets up to this size go through mailboxes; 0: none
    std::size_t split_bytes = 0;              ///< larger buckets are split; 0: no bucket is split
    std::size_t piece_bytes = 0; ///< with device_memory: upper bound on the pieces of a call's buffer
};

/// Facts of an intra-node reducer, stated as `static constexpr intra_node_facts facts{...};`.
struct intra_node_facts {
    bool joins_ranks = true;      ///< ranks of a node are one contributor; false: each rank is a node
    bool device_memory = false;   ///< tensors lie on devices
    bool host_staging = false;    ///< with device_memory: a transport for host memory is enough
    bool sums_on_device = false;  ///< with device_memory: devices sum the node's parts, not the engine
    bool sums_in_threads = false; ///< with device_memory: on one node, threads of the policy sum the parts
    bool reads_peers = false;     ///< with sums_on_device: devices access the memory of other local ranks
    bool leaves_parts = false;    ///< with sums_on_device: sums stay there if the transport has device_memory
    bool rank_order = true;       ///< a node's parts are combined in rank order: the same bits in every run
    intra_node_tuning tuning{};
};

namespace clauses::intra_node {
// A fact outside `facts`, which would have no effect.
template <class Policy>
concept states_facts_elsewhere = requires {
    Policy::joins_ranks;
}
|| requires { Policy::device_memory; }
|| requires { Policy::host_staging; }
|| requires { Policy::sums_on_device; }
|| requires { Policy::reads_peers; }
|| requires { Policy::sums_in_threads; }
|| requires { Policy::leaves_parts; }
|| requires { Policy::rank_order; }
|| requires { Policy::tuning; };

template <class Policy>
concept facts = requires {
    { Policy::name } -> std::convertible_to<char const*>;
}
&&states_facts<Policy, intra_node_facts> && !states_facts_elsewhere<Policy>;
template <class Policy>
concept constructible = std::constructible_from<Policy, world&, std::size_t>;
template <class Policy>
concept maps_memory = requires(Policy& p, int local, std::byte* own) {
    { p.memory() }
    noexcept->std::same_as<std::byte*>;
    { p.peer(local, own) }
    noexcept->std::same_as<std::byte*>;
};
template <class Policy>
concept signals_arrival = requires(Policy& p, int local, std::uint64_t execution, bool notify) {
    { p.arrive(execution) }
    noexcept;
    { p.first_not_arrived(execution) }
    noexcept->std::same_as<int>;
    { p.finish(execution, notify) }
    noexcept;
    { p.first_not_finished(execution) }
    noexcept->std::same_as<int>;
    { p.has_left(local) }
    noexcept->std::same_as<bool>;
};
template <class Policy>
concept sleeps = requires(Policy& p, std::uint32_t heard, time_point until) {
    { p.listen() }
    noexcept->std::same_as<std::uint32_t>;
    { p.sleep(heard, until) }
    noexcept;
    { p.wake() }
    noexcept;
};
template <class Policy>
concept valid_tuning = Policy::facts.tuning.local_chunk_bytes >= 4096 &&
                       Policy::facts.tuning.mailbox_bytes <= std::size_t{1} << 30;
template <class Policy>
concept stages_tensors =
    !Policy::facts.device_memory ||
    requires(Policy & p, typename Policy::stream_handle s, std::uint64_t e, std::size_t n, time_point until) {
    typename Policy::template tensor_store<float>;
    { p.tensors() }
    noexcept->std::same_as<std::byte*>;
    { p.load(e, std::uint32_t{}, n, n, true) }
    noexcept->std::same_as<std::byte*>;
    { p.lend(n, p.tensors()) }
    noexcept->std::same_as<bool>;
    { p.load_piece(e, n, p.tensors(), n, n) }
    noexcept->std::same_as<std::byte*>;
    { p.loaded(e, e) }
    noexcept->std::same_as<bool>;
    { p.nap(until) }
    noexcept->std::same_as<time_point>;
    { p.after(s) }
    noexcept;
    { p.results(s, e) }
    noexcept;
    p.template inspect<float>(s, n);
    p.failed();
    p.memory_bytes();
};
template <class Policy>
concept sums_on_device = (Policy::facts.device_memory ||
                          !(Policy::facts.host_staging || Policy::facts.sums_on_device ||
                            Policy::facts.sums_in_threads)) &&
                         (Policy::facts.sums_on_device || !Policy::facts.leaves_parts) &&
                         (!Policy::facts.sums_on_device ||
                          requires(Policy & p, std::byte* own, std::uint64_t e) {
                              { p.part(own) }
                              noexcept->std::same_as<std::byte*>;
                              { p.slowest_local_rank(e) }
                              noexcept->std::same_as<int>;
                          }) &&
                         (!Policy::facts.leaves_parts || requires(Policy & p, std::span<std::byte> part) {
                             { p.parts() }
                             noexcept->std::same_as<std::span<std::byte>>;
                             { p.on_device(part) }
                             noexcept->std::same_as<std::span<std::byte>>;
                         });
} // namespace clauses::intra_node

/// Lets the ranks of a node act as one contributor.
///
/// Executions of buckets are numbered 0, 1, 2, … in the same order on every rank.
/// - The constructor from (world&, bytes) is collective. `memory()` is this rank's region of `bytes` bytes,
///   zero at first; `peer(l, p)` is the address in local rank l's region that corresponds to p.
/// - `arrive(e)`: this rank's data for execution e is in place, and local ranks may read it.
///   `first_not_arrived(e)` returns a local rank that has not arrived, or −1.
/// - `finish(e, notify)`: this rank has combined its chunks of every execution up to e, in every region;
///   `notify`: wake local ranks that sleep. `first_not_finished(e)` returns a local rank that has not
///   finished, or −1: then the results of e lie in this rank's memory.
/// - `has_left(l)`: local rank l has left; it will not arrive or finish any more.
/// - `listen()` returns the number of events so far, `sleep(heard, until)` sleeps until there are more than
///   `heard`. Each `listen` is followed by one `sleep` (with `until` in the past to give up). `wake()` adds
///   an event, from any thread.
/// - With the fact `device_memory` tensors lie on devices, and more functions are needed: see
///   gpu::basic_pcie_staging.
template <class Policy>
concept intra_node_policy = std::same_as<typename Policy::axis, axes::intra_node> &&
    clauses::intra_node::facts<Policy> && clauses::intra_node::constructible<Policy> &&
    clauses::intra_node::maps_memory<Policy> && clauses::intra_node::signals_arrival<Policy> &&
    clauses::intra_node::sleeps<Policy> && clauses::intra_node::valid_tuning<Policy> &&
    clauses::intra_node::stages_tensors<Policy> && clauses::intra_node::sums_on_device<Policy>;

template <class Policy> struct check<axes::intra_node, Policy> {
    static constexpr int broken = [] {
        if constexpr (!clauses::intra_node::facts<Policy>)
            return 0;
        else
            return first_broken(
                {true, clauses::intra_node::constructible<Policy>, clauses::intra_node::maps_memory<Policy>,
                 clauses::intra_node::signals_arrival<Policy>, clauses::intra_node::sleeps<Policy>,
                 clauses::intra_node::valid_tuning<Policy>, clauses::intra_node::stages_tensors<Policy>,
                 clauses::intra_node::sums_on_device<Policy>});
    }();
    static constexpr bool value = broken < 0;
    static_assert(
        broken != 0,
        "[HRG-I01] intra_node: needs name and 'static constexpr herring::intra_node_facts facts{...}'; "
        "a common slip is a fact of its own, such as 'static constexpr bool joins_ranks', which "
        "nothing reads; write it into facts");
    static_assert(broken != 1,
                  "[HRG-I02] intra_node: needs a constructor from (world&, std::size_t bytes); a common "
                  "slip is to take world by value");
    static_assert(broken != 2,
                  "[HRG-I03] intra_node: needs 'memory() noexcept' and 'peer(local, own) noexcept' that "
                  "return std::byte*; a common slip is to forget noexcept");
    static_assert(broken != 3,
                  "[HRG-I04] intra_node: needs 'arrive', 'first_not_arrived', 'finish', 'first_not_finished' "
                  "and 'has_left', all noexcept; a common slip is to return bool instead of the local rank");
    static_assert(broken != 4,
                  "[HRG-I05] intra_node: needs 'listen', 'sleep(heard, until)' and 'wake', all noexcept; "
                  "a common slip is to take a duration");
    static_assert(
        broken != 5,
        "[HRG-I06] intra_node: needs a tuning in its facts with 'local_chunk_bytes' of at least 4 KiB "
        "and 'mailbox_bytes' of at most 1 GiB; a common slip is 0 for as it likes; start with 64 KiB "
        "and 4 KiB");
    static_assert(
        broken != 6,
        "[HRG-I07] intra_node: with device_memory it needs what brings tensors to the host and back "
        "('tensors', 'load', 'loaded', 'after', 'results', ...); a common slip is to set device_memory "
        "alone; start from herring::gpu::basic_pcie_staging");
    static_assert(
        broken != 7,
        "[HRG-I08] intra_node: sums_on_device needs device_memory, 'part(own)' and 'slowest_local_rank(e)', "
        "leaves_parts needs sums_on_device, 'parts()' and 'on_device(span)', and host_staging and "
        "sums_in_threads need device_memory, all noexcept; a common slip is to copy the facts of another "
        "policy; start from herring::gpu::basic_nvlink");
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::intra_node {

/// Does not combine ranks of a node, so every rank counts as a node: for one rank per node, or as a baseline.
///
/// Shape: n ranks → n contributors.
/// Cost:  none; ranks of one node exchange through the transport.
class none {
  public:
    using axis = axes::intra_node;
    static constexpr char const* name = "none";
    static constexpr intra_node_facts facts{.joins_ranks = false};

    none(world& ranks, std::size_t bytes) : memory_(bytes, ranks.rank()) {}

    std::byte* memory() noexcept { return memory_.data(); }
    std::byte* peer(int, std::byte* own) noexcept { return own; }
    void arrive(std::uint64_t) noexcept {}
    int first_not_arrived(std::uint64_t) noexcept { return -1; }
    void finish(std::uint64_t, bool) noexcept {}
    int first_not_finished(std::uint64_t) noexcept { return -1; }
    bool has_left(int) noexcept { return false; }
    std::uint32_t listen() noexcept { return 0; }
    void sleep(std::uint32_t, time_point) noexcept {}
    void wake() noexcept {}

  private:
    detail::private_memory memory_;
};
static_assert(intra_node_policy<none>);

} // namespace HERRING_NAMESPACE::intra_node

#endif // HERRING_INTRA_NODE_INTRA_NODE_HPP
