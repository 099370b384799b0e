// herring: what a transport promises beyond the functions that all have: one aggregate, with defaults.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_TRANSPORT_FACTS_HPP
#define HERRING_TRANSPORT_TRANSPORT_FACTS_HPP

#include "herring/base/config.hpp"
#include "herring/model/tunings.hpp"

#include <cstddef>

namespace HERRING_NAMESPACE {

/// What a transport promises: `static constexpr transport_facts facts{.keeps_order = true, ...};`.
///
/// The defaults hold for any transport of host memory. A misspelt member does not compile. What a fact promises, the
/// concept demands.
struct transport_facts {
    /// Largest message, in bytes. A larger send is refused every time.
    std::size_t max_message = static_cast<std::size_t>(-1);
    /// Bits of a tag that take part in matching or are carried along.
    int tag_bits = 64;
    /// Two messages with one tag are matched in the order in which they were sent.
    bool keeps_order = false;
    /// Posts must use memory that was registered.
    bool registers_memory = false;
    /// Posts may name memory of a device: there is a `register_device_memory(bytes, device)`.
    bool device_memory = false;
    /// Every peer that leaves or dies is reported as lost. The world notices a rank that dies in any case.
    bool reports_lost = true;
    /// Nobody reads the memory of a send that was withdrawn.
    bool withdraws = true;
    /// Something touches posted memory between polls: there is an `abandon()` that ends it.
    bool abandons = false;
    /// `wait` may run handlers of the program: there are `runs_handlers()`, `has_exception()` and `take_exception()`.
    bool runs_handlers = false;
    /// Bytes that a message can carry beside its payload, at most 32: there is a `post_send` with an envelope, which comes
    /// with `completion::envelope`.
    std::size_t envelope_bytes = 0;
    /// A received message is what was sent, and is reported once: a decorator compares each with its envelope.
    bool verifies = false;
    /// Receives that can be posted at once, of all peers.
    std::size_t most_receives = static_cast<std::size_t>(-1);
    /// The sizes that suit it.
    exchange_tuning tuning{};
    /// The sizes where all ranks reach each other over the loopback interface.
    exchange_tuning same_host_tuning = tuning;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_TRANSPORT_TRANSPORT_FACTS_HPP
