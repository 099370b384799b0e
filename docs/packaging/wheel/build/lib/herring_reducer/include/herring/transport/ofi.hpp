// herring: messages over libfabric: EFA, InfiniBand, shared memory, TCP, and whatever else has a provider.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_OFI_HPP
#define HERRING_TRANSPORT_OFI_HPP

#include "herring/base/config.hpp"
#include "herring/transport/ofi/messenger.hpp"
#include "herring/transport/ofi/provider.hpp"
#include "herring/transport/transport.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::transport {

/// Carries messages over one provider of libfabric, straight between the fabric and the memory that was
/// posted.
///
/// Provider:  the provider that the tag names, and no other. A provider that is missing, has no device or
///            grants less than the tag states is refused, with a list of the providers on the machine.
/// Facts:     of the tag. Nothing relies on the order of messages or completions, nor on «sent» meaning
///            «arrived».
/// Interface: providers with IP addresses bind to `world.local_address()`: the interface that routes to the
///            peers, or HERRING_INTERFACE.
/// Threads:   one at a time (FI_THREAD_DOMAIN); `wake` from any. If the tag's always_returns is false, a
///            further thread watches, which may signal the calling thread
///            (transport/ofi/escapable_calls.hpp).
/// Progress:  manual, which automatic progress satisfies: bytes move in `poll`, `wait` and the posts.
/// Memory:    registered once, if the provider asks for it (FI_MR_LOCAL), until the transport is destroyed;
///            no registration cache is relied upon. 192 bytes a post and 400 a peer of its own.
/// Waiting:   on the queue's descriptor after fi_trywait if the tag has one, else by naps of 20 µs to 1 ms.
/// Lifetime:  the destructor sends a goodbye to its peers, which takes up to 200 ms where a peer does not
///            poll, and withdraws every post. If the tag's closes_in_flight is false, the endpoint of a
///            failed reduction with sends in flight stays open, unused, until the process ends; so does an
///            endpoint with an abandoned call (always_returns).
/// Errors:    construction: `unsupported` (provider, device, version), `no_resources` (memory, registration,
///            address vector), `unreachable` and `timeout` naming the peer. Later: `lost`, with the texts of
///            libfabric and of the provider. A killed or stopped peer may cause no error here: the world
///            reports it.
/// Source:    fi_endpoint(3), fi_tagged(3), fi_cq(3), fi_mr(3), fi_poll(3).
template <class Provider> class ofi : private detail::ofi_messenger {
    using tag = typename detail::sound_provider<Provider>::type;

  public:
    using axis = axes::transport;
    using provider = Provider;
    using needs = herring::needs<detail::provider_clauses<Provider>>;
    static constexpr char const* name = tag::name;
    static constexpr transport_facts facts{.max_message = tag::facts.max_message,
                                           .keeps_order = tag::facts.keeps_order,
                                           .registers_memory = tag::facts.registers_memory,
                                           .device_memory = tag::facts.device_memory,
                                           .withdraws = tag::facts.withdraws,
                                           .abandons = true,
                                           .envelope_bytes = detail::most_envelope_bytes,
                                           .most_receives = tag::facts.most_receives,
                                           .tuning = tag::facts.tuning};

    HERRING_SETUP ofi(world& ranks, transport_needs const& wanted)
        : ofi_messenger(ranks, wanted, detail::ofi_facts_of<tag>()) {}

    using ofi_messenger::abandon;
    using ofi_messenger::describe;
    using ofi_messenger::poll;
    using ofi_messenger::post_receive;
    using ofi_messenger::post_send;
    using ofi_messenger::unplaced;
    using ofi_messenger::wait;
    using ofi_messenger::wake;

    void register_memory(std::span<std::byte> memory) { ofi_messenger::register_memory(memory); }
    /// The same for memory of a CUDA device, with a tag that has `device_memory`.
    void register_device_memory(std::span<std::byte> memory, int device) requires(facts.device_memory) {
        ofi_messenger::register_memory(memory, device);
    }
};

/// Amazon's Elastic Fabric Adapter (SRD).
using efa = ofi<herring::provider::efa>;
static_assert(transport_policy<efa>);
static_assert(transport_policy<ofi<herring::provider::tcp>>);

} // namespace HERRING_NAMESPACE::transport

#endif // HERRING_TRANSPORT_OFI_HPP
