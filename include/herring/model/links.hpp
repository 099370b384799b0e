// herring: links: latencies, rates and the cost of a message of the network, declared or measured.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_LINKS_HPP
#define HERRING_MODEL_LINKS_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace HERRING_NAMESPACE {

/// The figures of the network from which plans choose: whole numbers, so that all ranks choose alike.
///
/// Units: nanoseconds, Mbit/s and bytes; at most 1,000,000,000. 0: not declared; latency and cost of a
///        message are then those of the transport's tuning.
struct links {
    std::uint32_t latency_ns = 0;              ///< from node to node, beyond the time of processors
    std::uint32_t rack_latency_ns = 0;         ///< the same within a rack; 0: as between racks
    std::uint32_t send_ns = 0, receive_ns = 0; ///< of a processor, a message
    std::uint32_t rate_mbit = 0;               ///< of a node, each way; without it nothing is chosen
    std::uint32_t local_rate_mbit = 0;         ///< at which a node reads what it sums or copies
    std::uint32_t uplink_rate_mbit = 0;        ///< of a rack to all others, each way
    std::uint32_t queue_bytes = 0;             ///< that a port of a switch holds
    bool probe = false;                        ///< `join` measures what is not declared

    static constexpr std::size_t count = 8;
    /// The figures by number, in the order of `link_names`.
    constexpr std::uint32_t& operator[](std::size_t i) noexcept {
        std::uint32_t* const all[count] = {&latency_ns, &rack_latency_ns, &send_ns,          &receive_ns,
                                           &rate_mbit,  &local_rate_mbit, &uplink_rate_mbit, &queue_bytes};
        return *all[i];
    }
    constexpr std::uint32_t operator[](std::size_t i) const noexcept { return links(*this)[i]; }
    friend constexpr bool operator==(links const&, links const&) = default;
};

namespace detail {
inline constexpr char const* link_names[links::count] = {
    "latency=", "rack_latency=", "send=", "receive=", "rate=", "local_rate=", "uplink_rate=", "queue="};
inline constexpr std::uint32_t most_link = 1'000'000'000;
} // namespace detail

/// Returns what HERRING_LINKS would have: "latency=10000,rate=100000"; "none" where nothing is declared.
HERRING_SETUP inline std::string to_string(links const& of) {
    std::string text(of.probe ? "probe" : "");
    for (std::size_t i = 0; i < links::count; ++i)
        if (of[i] != 0) detail::append(text, {text.empty() ? "" : ",", detail::link_names[i], of[i]});
    return text.empty() ? "none" : text;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_LINKS_HPP
