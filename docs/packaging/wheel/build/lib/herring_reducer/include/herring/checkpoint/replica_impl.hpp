// herring: encoding and decoding the section of a sync policy.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_REPLICA_IMPL_HPP
#define HERRING_CHECKPOINT_REPLICA_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/checkpoint/replica.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

inline constexpr std::uint32_t replica_version = 1;

HERRING_SEPARABLE byte_buffer write_replica(replica const& from) {
    byte_buffer out;
    wire::append<std::uint32_t>(out, replica_version);
    for (std::uint64_t const number :
         {from.steps, from.outer_steps, from.groups, from.own_bytes, std::uint64_t{from.policy.size()},
          std::uint64_t{from.state.size()}, std::uint64_t{from.exchanged.size()}})
        wire::append<std::uint64_t>(out, number);
    wire::append(out, from.policy);
    out.append(from.state);
    out.append(from.exchanged);
    return out;
}

HERRING_SEPARABLE char const* read_replica(std::span<std::byte const> bytes, replica& to) {
    wire::reader in{bytes};
    replica read;
    if (in.number<std::uint32_t>() != replica_version)
        return "it is no state of a sync policy of this version";
    std::uint64_t name = 0, state = 0, exchanged = 0;
    for (std::uint64_t* const number :
         {&read.steps, &read.outer_steps, &read.groups, &read.own_bytes, &name, &state, &exchanged})
        *number = in.number<std::uint64_t>();
    std::uint64_t left = in.rest.size();
    for (std::uint64_t const size : {name, state, exchanged, read.own_bytes}) {
        if (size > left) return "it ends too soon";
        left -= size;
    }
    if (!in.ok || left != 0) return "its sizes are not those of what it has";
    read.policy = in.text(name);
    read.state.resize(state);
    in.bytes(read.state);
    read.exchanged.resize(exchanged);
    in.bytes(read.exchanged);
    if (std::any_of(read.exchanged.begin(), read.exchanged.end(),
                    [](std::byte one) { return one > std::byte{1}; }))
        return "what was exchanged is neither so nor not";
    read.own = in.rest;
    to = std::move(read);
    return nullptr;
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_REPLICA_IMPL_HPP
