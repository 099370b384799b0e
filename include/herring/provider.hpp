// herring: libfabric's providers as tags: what each is called, can do and needs, known when a program is compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_PROVIDER_HPP
#define HERRING_PROVIDER_HPP

#include "herring/base/config.hpp"
#include "herring/plan/exchange_tuning.hpp"
#include "herring/policy.hpp"
#include "herring/units.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Tags for `transport::ofi<Provider>`. Reaches no libfabric.
///
/// A tag says what is relied upon; what libfabric grants on the machine is compared with it at construction, and one
/// that falls short is refused. A tag of one's own is a type that names its provider; the rest it has from `basic`:
/// ```cpp
/// struct psm3 : herring::provider::basic {
///     static constexpr char const* name = "ofi<psm3>";
///     static constexpr char const* libfabric = "psm3";
/// };
/// using gradients = herring::reducer<float, herring::transport::ofi<psm3>>;
/// ```
namespace HERRING_NAMESPACE::provider {

/// How an endpoint of this rank's is told where to live.
enum class located_by : std::uint8_t {
    interface, ///< by the IP address of this rank: `world.local_address()`, or HERRING_INTERFACE
    device,    ///< by the device: the local ranks of a node take turns with those that there are
    name       ///< by a name that Herring makes; other ranks of the machine map what it names in /dev/shm
};

/// Facts that hold for any provider, for tags to start from: nothing is relied upon, everything is registered.
struct basic {
    static constexpr located_by where = located_by::interface;
    static constexpr bool keeps_order = false; ///< two messages with one tag are matched in the order sent
    static constexpr bool waits_on_descriptor =
        false; ///< its queue has a descriptor to sleep on (FI_WAIT_FD)
    static constexpr bool registers_memory =
        true; ///< posts lie in memory that was registered, if it asks for it
    static constexpr bool device_memory = false; ///< FI_HMEM is asked for, and must be granted
    static constexpr bool one_machine = false;   ///< all ranks must be processes of one machine
    static constexpr bool closes_in_flight =
        true; ///< its endpoint may be closed while a send is not complete
    static constexpr bool tells_truncation = true; ///< a message longer than its receive ends in FI_ETRUNC
    static constexpr bool always_returns =
        true; ///< posts and reads return whatever becomes of a peer; if not, a signal ends them once the world failed
    static constexpr bool withdraws = true; ///< nobody reads a send's memory once its endpoint is closed
    static constexpr std::size_t most_receives = std::size_t{1} << 30; ///< posted at once, of all peers
    static constexpr std::size_t max_message = std::size_t{1} << 40;   ///< bytes
    static constexpr exchange_tuning tuning{
        .chunk_bytes = 256_KiB, .window_bytes = 512_KiB, .one_hop_bytes = 16_KiB, .pair_bytes = 256_KiB};

    /// Why it cannot be used with this version of the library (major << 16 | minor), or nullptr.
    static constexpr char const* unusable(std::uint32_t /*version*/) noexcept { return nullptr; }
};

/// TCP sockets with libfabric's messages on top: works everywhere, for tests and for networks without a better one.
///
/// Source: fi_tcp(7), fi_rxm(7). A killed or stopped peer may give no error at all: the world's control link tells.
///         Messages above 128 KiB go by its rendezvous (FI_OFI_RXM_SAR_LIMIT), in which the receiver reads the sender's
///         memory: an endpoint that is closed then brings the process down (1.17). So one that has sends in flight when
///         it goes is left as it is, which costs its descriptors until the process ends.
struct tcp : basic {
    static constexpr char const* name = "ofi<tcp>";
    static constexpr char const* libfabric = "tcp;ofi_rxm";
    static constexpr bool keeps_order = true;
    static constexpr bool waits_on_descriptor = true;
    static constexpr bool registers_memory = false;
    static constexpr bool closes_in_flight = false;
    static constexpr exchange_tuning tuning{
        .chunk_bytes = 512_KiB, .window_bytes = 1_MiB, .one_hop_bytes = 16_KiB, .pair_bytes = 1_MiB};
};

/// Shared memory and process_vm_readv between processes of one machine.
///
/// Source: fi_shm(7). Ranks that are threads of one process are refused: its mappings are the process's, and go with
/// the first of them that leaves. From 4 KiB on a receiver reads the sender's memory by itself, when it comes
/// to it: also after the sender has given up, in a world that has failed, of which the receiver hears next.
/// Its locks lie in shared memory (1.17): of a rank that is killed or stopped while it holds one, the others would never
/// come back from a post or a read of the queue. `detail::way_out` brings them back once the world has failed, by a thread
/// that wakes ten times a second, and at need by a real-time signal; the endpoint's memory then stays until the process
/// ends. Calls of set-up alone (fi_enable, fi_av_insert) do not go through it.
struct shm : basic {
    static constexpr char const* name = "ofi<shm>";
    static constexpr char const* libfabric = "shm";
    static constexpr located_by where = located_by::name;
    static constexpr bool keeps_order = true;
    static constexpr bool registers_memory = false;
    static constexpr bool one_machine = true;
    static constexpr bool tells_truncation = false; // 1.17: from 4 KiB on it reads for ever
    static constexpr bool withdraws = false;
    static constexpr bool always_returns = false;
    static constexpr std::size_t most_receives = 1000;
    static constexpr exchange_tuning tuning{
        .chunk_bytes = 256_KiB, .window_bytes = 512_KiB, .one_hop_bytes = 16_KiB, .pair_bytes = 1_MiB};
};

/// InfiniBand, RoCE and iWARP adapters. Not run: no such adapter was at hand.
///
/// Source: fi_verbs(7), fi_rxm(7).
struct verbs : basic {
    static constexpr char const* name = "ofi<verbs>";
    static constexpr char const* libfabric = "verbs;ofi_rxm";
    static constexpr bool keeps_order = true;
    static constexpr bool waits_on_descriptor = true;
};

/// Amazon's Elastic Fabric Adapter, whose SRD keeps no order. Not run: no such adapter was at hand.
///
/// Source: fi_efa(7): manual progress, and in several releases no wait objects, so waiting is by a bounded back-off.
struct efa : basic {
    static constexpr char const* name = "ofi<efa>";
    static constexpr char const* libfabric = "efa";
    static constexpr located_by where = located_by::device;

    static constexpr char const* unusable(std::uint32_t version) noexcept {
        return version < (1u << 16 | 11) ? "its SRD needs libfabric 1.11 or later" : nullptr;
    }
};

/// The same provider with tensors in the memory of a GPU: FI_HMEM is asked for, and must be granted. Not run.
template <class Tag> struct on_device : Tag { static constexpr bool device_memory = true; };

} // namespace HERRING_NAMESPACE::provider

namespace HERRING_NAMESPACE {

namespace clauses::provider {
template <class Provider>
concept named = requires {
    { Provider::name } -> std::convertible_to<char const*>;
    { Provider::libfabric } -> std::convertible_to<char const*>;
};
template <class Provider>
concept facts = requires {
    { Provider::where } -> std::convertible_to<herring::provider::located_by>;
    { Provider::keeps_order } -> std::convertible_to<bool>;
    { Provider::waits_on_descriptor } -> std::convertible_to<bool>;
    { Provider::registers_memory } -> std::convertible_to<bool>;
    { Provider::device_memory } -> std::convertible_to<bool>;
    { Provider::one_machine } -> std::convertible_to<bool>;
    { Provider::closes_in_flight } -> std::convertible_to<bool>;
    { Provider::tells_truncation } -> std::convertible_to<bool>;
    { Provider::always_returns } -> std::convertible_to<bool>;
    { Provider::withdraws } -> std::convertible_to<bool>;
    { Provider::most_receives } -> std::convertible_to<std::size_t>;
    { Provider::max_message } -> std::convertible_to<std::size_t>;
    { Provider::tuning } -> std::convertible_to<exchange_tuning>;
};
template <class Provider>
concept versioned = requires(std::uint32_t version) {
    { Provider::unusable(version) }
    noexcept->std::convertible_to<char const*>;
};
// One provider, and no other: libfabric takes a list, and the names that begin with '^' as those to leave out.
template <class Provider> constexpr bool one_provider() noexcept {
    if constexpr (named<Provider>) {
        std::string_view const name(Provider::name), wanted(Provider::libfabric);
        return !name.empty() && !wanted.empty() && wanted.find_first_of(",^ ") == std::string_view::npos;
    } else
        return false;
}
} // namespace clauses::provider

/// What `transport::ofi` can be made of.
template <class Provider>
concept provider_tag = clauses::provider::named<Provider> && clauses::provider::facts<Provider> &&
    clauses::provider::versioned<Provider> && clauses::provider::one_provider<Provider>();

namespace detail {

// As a need, so that a pack says it once.
template <class Provider> struct provider_facts {
    template <class Pack> struct check {
        static constexpr int broken =
            first_broken({clauses::provider::named<Provider>, clauses::provider::one_provider<Provider>(),
                          clauses::provider::facts<Provider>, clauses::provider::versioned<Provider>});
        static constexpr bool value = broken < 0;
        static_assert(
            broken != 0,
            "[HRG-V01] provider: needs 'static constexpr char const* name', which ranks compare, and "
            "'libfabric', which fi_info -p takes; a common slip is to leave one out");
        static_assert(
            broken != 1,
            "[HRG-V02] provider: 'libfabric' must name one provider, for no other may take its "
            "place; a common slip is a list, an exclusion with a caret, or an empty text; write it as "
            "fi_info -l does, as in 'tcp;ofi_rxm'");
        static_assert(broken != 2,
                      "[HRG-V03] provider: needs the facts where, keeps_order, waits_on_descriptor, "
                      "registers_memory, device_memory, one_machine, closes_in_flight, tells_truncation, "
                      "always_returns, withdraws, most_receives, max_message and tuning; a common slip is a "
                      "tag that does not derive "
                      "from herring::provider::basic, which has them all");
        static_assert(
            broken != 3,
            "[HRG-V04] provider: needs 'static constexpr char const* unusable(std::uint32_t version) "
            "noexcept', which returns why a version of libfabric will not do, or nullptr; a common "
            "slip is to forget noexcept");
    };
};

// What a transport of a wrong tag is made of, so that only the sentence is printed.
struct no_provider : provider::basic {
    static constexpr char const* name = "none";
    static constexpr char const* libfabric = "none";
};
template <class Provider> struct sound_provider { using type = no_provider; };
template <provider_tag Provider> struct sound_provider<Provider> { using type = Provider; };

} // namespace detail

static_assert(provider_tag<provider::tcp> && provider_tag<provider::shm> && provider_tag<provider::verbs> &&
              provider_tag<provider::efa> && provider_tag<provider::on_device<provider::efa>>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_PROVIDER_HPP
