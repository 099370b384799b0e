// herring: libfabric's providers as tags: name, facts and needs of each, known when a program is compiled.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_PROVIDER_HPP
#define HERRING_TRANSPORT_OFI_PROVIDER_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/model/tunings.hpp"
#include "herring/policy/policy.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

/// Tags for `transport::ofi<Provider>`. Needs no libfabric.
///
/// A tag states the facts that are relied upon. At construction the grant of libfabric on the machine is
/// compared with the tag; a provider that grants less is refused. A tag of your own names its provider and
/// states its facts:
/// ```cpp
/// struct psm3 {
///     static constexpr char const* name = "ofi<psm3>";
///     static constexpr char const* libfabric = "psm3";
///     static constexpr herring::provider_facts facts{.keeps_order = true};
/// };
/// using gradients = herring::reducer<float, herring::transport::ofi<psm3>>;
/// ```
namespace HERRING_NAMESPACE::provider {

/// The way in which the endpoint of a rank is placed.
enum class located_by : std::uint8_t {
    interface, ///< by the IP address of this rank: `world.local_address()`, or HERRING_INTERFACE
    device,    ///< by the device: the local ranks of a node take devices in turn
    name       ///< by a generated name in /dev/shm, which the other ranks of the machine map
};

} // namespace HERRING_NAMESPACE::provider

namespace HERRING_NAMESPACE {

/// Facts of a provider that are relied upon:
/// `static constexpr provider_facts facts{.keeps_order = true, ...};`.
///
/// The defaults hold for every provider: nothing is relied upon, all memory is registered. A misspelt member
/// does not compile.
struct provider_facts {
    /// The way in which its endpoints are placed.
    provider::located_by where = provider::located_by::interface;
    /// Two messages with one tag are matched in the order in which they were sent.
    bool keeps_order = false;
    /// Its queue has a descriptor to sleep on (FI_WAIT_FD).
    bool waits_on_descriptor = false;
    /// Posts use registered memory, if the provider asks for it.
    bool registers_memory = true;
    /// FI_HMEM is asked for, and must be granted.
    bool device_memory = false;
    /// All ranks must be processes of one machine.
    bool one_machine = false;
    /// An endpoint may be closed while a send is in flight.
    bool closes_in_flight = true;
    /// A message longer than its receive ends in FI_ETRUNC.
    bool tells_truncation = true;
    /// Posts and reads return, also if a peer dies; otherwise a signal ends them once the world has failed.
    bool always_returns = true;
    /// The memory of a send is not read any more once its endpoint is closed.
    bool withdraws = true;
    /// Most receives posted at once, of all peers together.
    std::size_t most_receives = std::size_t{1} << 30;
    /// Bytes of the largest message.
    std::size_t max_message = std::size_t{1} << 40;
    /// Sizes that suit the provider.
    exchange_tuning tuning{.chunk_bytes = 256_KiB,
                           .window_bytes = 512_KiB,
                           .one_hop_bytes = 16_KiB,
                           .one_hop_bytes_two_nodes = 256_KiB};
    /// Returns why a version of libfabric (major << 16 | minor) will not do, or nullptr. No function: every
    /// version will do.
    char const* (*unusable)(std::uint32_t version) noexcept = nullptr;
};

} // namespace HERRING_NAMESPACE

namespace HERRING_NAMESPACE::provider {

/// TCP sockets below libfabric's messages: works everywhere, for tests and for networks without a better
/// provider.
///
/// Limits: a killed or stopped peer may cause no error; the world's control connection reports it. Messages
///         above 128 KiB (FI_OFI_RXM_SAR_LIMIT) are read by the receiver; closing an endpoint then ends the
///         process (1.17), so an endpoint with sends in flight is left open.
/// Source: fi_tcp(7), fi_rxm(7).
struct tcp {
    static constexpr char const* name = "ofi<tcp>";
    static constexpr char const* libfabric = "tcp;ofi_rxm";
    static constexpr provider_facts facts{.keeps_order = true,
                                          .waits_on_descriptor = true,
                                          .registers_memory = false,
                                          .closes_in_flight = false,
                                          .tuning = {.chunk_bytes = 512_KiB,
                                                     .window_bytes = 1_MiB,
                                                     .one_hop_bytes = 16_KiB,
                                                     .one_hop_bytes_two_nodes = 1_MiB}};
};

/// Shared memory and process_vm_readv between processes of one machine.
///
/// Limits: refuses ranks that are threads of one process, because a process has one mapping. From 4 KiB on a
///         receiver reads the sender's memory when it gets to the message, also after the sender has given
///         up. A rank that dies with a lock in shared memory (1.17) would block the others for ever:
///         `detail::escapable_calls` ends their posts and reads, but not their set-up calls (fi_enable,
///         fi_av_insert).
/// Source: fi_shm(7).
struct shm {
    static constexpr char const* name = "ofi<shm>";
    static constexpr char const* libfabric = "shm";
    static constexpr provider_facts facts{.where = located_by::name,
                                          .keeps_order = true,
                                          .registers_memory = false,
                                          .one_machine = true,
                                          .tells_truncation =
                                              false, // 1.17: from 4 KiB on the read never ends
                                          .always_returns = false,
                                          .withdraws = false,
                                          .most_receives = 1000,
                                          .tuning = {.chunk_bytes = 256_KiB,
                                                     .window_bytes = 512_KiB,
                                                     .one_hop_bytes = 16_KiB,
                                                     .one_hop_bytes_two_nodes = 1_MiB}};
};

/// InfiniBand, RoCE and iWARP adapters.
///
/// Source: fi_verbs(7), fi_rxm(7).
struct verbs {
    static constexpr char const* name = "ofi<verbs>";
    static constexpr char const* libfabric = "verbs;ofi_rxm";
    static constexpr provider_facts facts{.keeps_order = true, .waits_on_descriptor = true};
};

/// Amazon's Elastic Fabric Adapter, whose SRD keeps no order.
///
/// Source: fi_efa(7): manual progress, and in several releases no wait objects, so waiting is by bounded
///         naps.
struct efa {
    static constexpr char const* name = "ofi<efa>";
    static constexpr char const* libfabric = "efa";
    static constexpr char const* needs_1_11(std::uint32_t version) noexcept {
        return version < (1u << 16 | 11) ? "its SRD needs libfabric 1.11 or later" : nullptr;
    }
    static constexpr provider_facts facts{.where = located_by::device, .unusable = needs_1_11};
};

/// The provider of `Tag` with tensors in the memory of a GPU: FI_HMEM is asked for, and must be granted.
template <class Tag> struct on_device : Tag {
    static constexpr provider_facts facts = [] {
        provider_facts changed = Tag::facts;
        changed.device_memory = true;
        return changed;
    }();
};

} // namespace HERRING_NAMESPACE::provider

namespace HERRING_NAMESPACE {

namespace clauses::provider {
template <class Provider>
concept named = requires {
    { Provider::name } -> std::convertible_to<char const*>;
    { Provider::libfabric } -> std::convertible_to<char const*>;
};
// True if `facts` is constexpr. A function, because clang takes a requirement as met where the initializer
// has an error.
template <class Provider>
constexpr auto are_constant(int) noexcept
    -> decltype(std::bool_constant<Provider::facts.keeps_order>{}, true) {
    return true;
}
template <class Provider> constexpr bool are_constant(long) noexcept { return false; }
template <class Provider>
concept facts = requires {
    { Provider::facts } -> std::same_as<provider_facts const&>;
}
&&are_constant<Provider>(0);
/// True if a fact is a member of the tag, where it is never read: it belongs into `facts`.
template <class Provider>
concept strays = requires {
    Provider::where;
}
|| requires { Provider::keeps_order; }
|| requires { Provider::waits_on_descriptor; }
|| requires { Provider::registers_memory; }
|| requires { Provider::device_memory; }
|| requires { Provider::one_machine; }
|| requires { Provider::closes_in_flight; }
|| requires { Provider::tells_truncation; }
|| requires { Provider::always_returns; }
|| requires { Provider::withdraws; }
|| requires { Provider::most_receives; }
|| requires { Provider::max_message; }
|| requires { Provider::tuning; }
|| requires { Provider::unusable; };
// True if `libfabric` names one provider: libfabric takes a list, too, and leaves out names that begin with
// '^'.
template <class Provider> constexpr bool one_provider() noexcept {
    if constexpr (named<Provider>) {
        std::string_view const name(Provider::name), wanted(Provider::libfabric);
        return !name.empty() && !wanted.empty() && wanted.find_first_of(",^ ") == std::string_view::npos;
    } else
        return false;
}
} // namespace clauses::provider

/// A tag that `transport::ofi` takes.
template <class Provider>
concept provider_tag = clauses::provider::named<Provider> && clauses::provider::facts<Provider> &&
                       !clauses::provider::strays<Provider> &&
                       clauses::provider::one_provider<Provider>();

namespace detail {

// Demands on the tag, as a need of the transport: a pack reports them once.
template <class Provider> struct provider_clauses {
    template <class Pack> struct check {
        static constexpr int broken =
            first_broken({clauses::provider::named<Provider>, clauses::provider::one_provider<Provider>(),
                          clauses::provider::facts<Provider>, !clauses::provider::strays<Provider>});
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
                      "[HRG-V03] provider: needs 'static constexpr provider_facts facts{...}'; a common slip "
                      "is a misspelt member of facts, which the compiler names; facts{} relies on nothing");
        static_assert(broken != 3,
                      "[HRG-V05] provider: its facts are members of 'facts', and one is a member of the tag, "
                      "where nobody reads it; a common slip is 'static constexpr bool keeps_order = true'; "
                      "write 'facts{.keeps_order = true}'");
    };
};

// A stand-in for a wrong tag, so that only the sentence is printed.
struct no_provider {
    static constexpr char const* name = "none";
    static constexpr char const* libfabric = "none";
    static constexpr provider_facts facts{};
};
template <class Provider> struct sound_provider { using type = no_provider; };
template <provider_tag Provider> struct sound_provider<Provider> { using type = Provider; };

} // namespace detail

static_assert(provider_tag<provider::tcp> && provider_tag<provider::shm> && provider_tag<provider::verbs> &&
              provider_tag<provider::efa> && provider_tag<provider::on_device<provider::efa>>);

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRANSPORT_OFI_PROVIDER_HPP
