// herring: transports of the host with `small_chunks`: between threads, between processes, and one that is late and disordered.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "conformance/small_chunks.hpp"

#include "herring/transport/chaos.hpp"
#include "herring/transport/inproc.hpp"
#include "herring/transport/tcp.hpp"

namespace herring::conformance {

struct small_inproc : transport::inproc {
    using inproc::inproc;
    static constexpr char const* name = "small_inproc";
    static constexpr transport_facts facts{.keeps_order = true,
                                           .abandons = true,
                                           .envelope_bytes = inproc::facts.envelope_bytes,
                                           .tuning = small_chunks};
};
using small_tcp = transport::basic_tcp<transport::tcp_tuning{
    .chunk_bytes = small_chunks.chunk_bytes,
    .window_bytes = small_chunks.window_bytes,
    .loopback_chunk_bytes = small_chunks.chunk_bytes,
    .loopback_window_bytes = small_chunks.window_bytes,
    .one_hop_bytes = small_chunks.one_hop_bytes,
    .one_hop_bytes_two_nodes = small_chunks.one_hop_bytes_two_nodes,
    .two_level_bytes = small_chunks.two_level_bytes}>;
inline constexpr transport::chaos_tuning fierce{
    .not_now_per_1000 = 250, .delay_per_1000 = 500, .hold_back_per_1000 = 400, .longest = 25};
using rough = transport::chaos<small_inproc, fierce>;

} // namespace herring::conformance
